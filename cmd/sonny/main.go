// Command sonny is the terminal client of agent's daemon.
package main

import (
	"os"

	"agent/internal/sonny/cli"
)

func main() { os.Exit(cli.Main()) }
