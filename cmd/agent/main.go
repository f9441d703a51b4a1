// Command agent is the daemon and the command that drives it.
package main

import (
	"os"

	"agent/internal/cli"
)

func main() { os.Exit(cli.Main()) }
