package cli

import (
	"fmt"

	"agent/internal/store"
	"agent/protocol"
)

// Version is the build's tag, set by the linker:
// -ldflags "-X agent/internal/cli.Version=v1.2.3".
var Version = "devel"

func (a *app) printVersion() error {
	line := "agent " + Version + "\n"
	if a.pretty {
		line += fmt.Sprintf("protocol %d\nschema %d\n", protocol.Version, store.SchemaVersion())
	}
	return a.write([]byte(line))
}
