package screen

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/lead"
	"agent/protocol"
)

// slashCommand is what stands after a slash.
type slashCommand struct {
	name, args, does string
	run              func(a *App, args string) error
}

// slashCommands are those of the screen, in the order in which they are listed.
var slashCommands []slashCommand

func init() {
	slashCommands = []slashCommand{
		{"approval", "ROW", "who is asked: auto, manual, look, full", func(a *App, args string) error {
			row, err := lead.ParseRow(args)
			if err != nil {
				return err
			}
			a.setRow(row)
			return nil
		}},
		{"look", "", "read and plan only; again to go back", func(a *App, _ string) error {
			if a.confinement().Row() == lead.Look {
				a.setRow(lead.Auto)
			} else {
				a.setRow(lead.Look)
			}
			return nil
		}},
		{"pause", "[REASON]", "stop every bot of the store", (*App).pause},
		{"unpause", "", "let them go on", (*App).unpause},
		{"rename", "TITLE", "name this session", func(a *App, args string) error {
			if a.session != nil {
				a.session.note(a, func(k *lead.Session) { k.Title = args })
			}
			return nil
		}},
		{"quit", "", "detach", func(a *App, _ string) error { a.quit = true; return nil }},
	}
}

// command runs a line that begins with a slash. It reports whether the line is done
// with; one that is unknown stays in the composer.
func (a *App) command(line string) bool {
	name, args, _ := strings.Cut(line, " ")
	for _, c := range slashCommands {
		if c.name != name {
			continue
		}
		if err := c.run(a, strings.TrimSpace(args)); err != nil {
			a.notes.fail(err)
			return false
		}
		return true
	}
	a.notes.say(fmt.Sprintf("no command /%s; //%s sends it as a message", name, name))
	return false
}

func (a *App) pause(reason string) error {
	do(a, func(ctx context.Context) (*protocol.Pause, error) { return a.client().Pause(ctx, reason) },
		func(_ *protocol.Pause, err error) {
			if err != nil {
				a.notes.fail(err)
			}
		})
	return nil
}

func (a *App) unpause(string) error {
	do(a, func(ctx context.Context) (*protocol.Pause, error) { return a.client().Resume(ctx) },
		func(_ *protocol.Pause, err error) {
			if err != nil {
				a.notes.fail(err)
			}
		})
	return nil
}
