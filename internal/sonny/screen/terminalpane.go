package screen

import (
	"context"
	"os"

	"agent/internal/sonny/host/panes"
	"agent/protocol"
)

// terminalPanes open a pane of the terminal beside Sonny (sonny.md 16).
var terminalPanes = feature{
	commands: []slashCommand{{"pane", "COMMAND", "run a command of yours in a terminal pane beside Sonny", (*App).openPane}},
}

// openPane runs a command of the person's in a pane of the tmux around Sonny, in the folder
// of what is on screen. It is the person's own: no gate sees it.
func (a *App) openPane(command string) error {
	if command == "" {
		return protocol.Fail(protocol.UsageError, "/pane COMMAND runs it in a terminal pane")
	}
	here := panes.Here(os.Getenv, a.ready.Store.Identity, 0)
	if here.Host == "" {
		return protocol.Fail(panes.NoHost, "Sonny runs in no tmux here; !"+command+" runs it on this screen")
	}
	pane := &panes.Wanted{Command: command, Cwd: a.workspaceOf(a.session), Where: a.o.PaneSplit, Focus: true, Keep: true}
	do(a, func(ctx context.Context) (string, error) { return here.At().Open(ctx, panes.Shell(), pane) },
		func(id string, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			a.notes.say("it runs in the pane " + id)
		})
	return nil
}
