package screen

import (
	"context"
	"fmt"
	"strconv"
	"unicode/utf8"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/clipboard"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/protocol"
)

// copyCommands copy by keyboard (sonny.md 12).
var copyCommands = feature{
	commands: []slashCommand{{"copy", "[N]", "copy the last reply, or its Nth block of code", (*App).copyCommand}},
	actions: map[string]func(*App){
		"copy_reply": func(a *App) { a.failing(a.copyCommand("")) },
		"copy_block": (*App).askBlock,
	},
}

// failing says what an action came to.
func (a *App) failing(err error) {
	if err != nil {
		a.notes.fail(err)
	}
}

func (a *App) copyCommand(args string) error {
	s := a.at()
	if s == nil {
		return protocol.Fail("failed", "nothing was said yet")
	}
	if args == "" {
		source := s.tr.Source()
		if source == "" {
			return protocol.Fail("failed", "there is no reply yet")
		}
		a.copy(source)
		return nil
	}
	n, err := strconv.Atoi(args)
	if err != nil || n < 1 {
		return protocol.Fail("failed", args+" is no block of code; they are counted from 1")
	}
	code := s.tr.Code(n)
	if code == "" {
		return protocol.Fail("failed", fmt.Sprintf("no reply here has a block of code %d", n))
	}
	a.copy(code)
	return nil
}

// askBlock takes the number of a block as the next key.
func (a *App) askBlock() { a.panel = &blockPanel{under: a.panel} }

// blockPanel waits for a digit, over what was on screen.
type blockPanel struct{ under panel }

func (p *blockPanel) hints() []string {
	return []string{"1–9 copies that block of code", "Esc leave it"}
}

// view leaves the transcript in view: the numbers are counted in it.
func (p *blockPanel) view(a *App, c term.Canvas) {
	if s := a.at(); s != nil {
		s.view(a, c, a.place(a.w, a.h))
	}
}

func (p *blockPanel) key(a *App, k term.Key) bool {
	if len(k.Name) == 1 && k.Name >= "1" && k.Name <= "9" {
		a.failing(a.copyCommand(k.Name))
	}
	return true
}

// copy brings a text to the clipboard: through the terminal, and by the platform's
// program where there is one. It says so only for a route that was written to. What
// neither takes is kept in a file.
func (a *App) copy(s string) {
	if s == "" {
		a.notes.say("there is nothing to copy")
		return
	}
	sent := a.o.Term.Copy(s)
	argv := clipboard.Program()
	if sent && argv == nil {
		a.notes.say(copied(s))
		return
	}
	do(a, func(ctx context.Context) (string, error) {
		if argv == nil {
			return clipboard.Keep(s, a.o.Now())
		}
		return "", clipboard.Give(ctx, argv, s)
	}, func(file string, err error) {
		switch {
		case err != nil && sent:
			a.notes.say(copied(s))
		case err != nil:
			a.notes.fail(protocol.Fail("failed", "not copied: "+fault.Screen.Words(err)))
		case file != "":
			a.notes.say("no way to the clipboard here; the text is in " + human.Path(file))
		default:
			a.notes.say(copied(s))
		}
	})
}

func copied(s string) string {
	return "copied " + human.Count(utf8.RuneCountInString(s), "character", "characters")
}

// hint is how an action is called on the key line, with the key that this map has.
func (a *App) hint(action, does string) string {
	h := a.o.Keys.Hint(action, keys.Sender{})
	if h == "" {
		return ""
	}
	return h + " " + does
}
