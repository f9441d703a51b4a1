package screen

import (
	"bufio"
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"strings"

	"agent/internal/sonny/export"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/outbox"
	"agent/protocol"
)

// sessionCommands are of the session on screen itself (sonny.md 16, 26).
var sessionCommands = feature{
	commands: []slashCommand{
		{"archive", "", "hide this session from lists and from opening by itself", (*App).archiveCommand},
		{"delete", "", "delete this session, with all that was said", (*App).deleteCommand},
		{"export", "[FILE] [--json|--md]", "write what was said to a file", (*App).exportSession},
		{"init", "", "have the bot draft an AGENTS.md", (*App).initCommand},
	},
}

// noSession is why a command of the session on screen does nothing.
func noSession() error {
	return protocol.Fail("failed", "there is no session yet; the first message makes one")
}

// archiveCommand archives the session, or shows it in lists again.
func (a *App) archiveCommand(string) error {
	s := a.session
	if s == nil {
		return noSession()
	}
	archived := !s.kept.Archived
	words := "it is in the lists again"
	if archived {
		words = "archived: it goes on, and X in /sessions shows it; /archive again takes it back"
	}
	s.note(a, func(k *lead.Session) { k.Archived = archived }, func() { a.notes.say(words) })
	return nil
}

// deleteCommand deletes the bot's rows, after a question that says what goes and what
// stays. While a turn runs it is refused.
func (a *App) deleteCommand(string) error {
	s := a.session
	switch {
	case s == nil:
		return noSession()
	case s.working(a):
		return protocol.Fail("failed", "a turn runs; Esc interrupts it")
	}
	words := "Delete " + cells.OneLine(fully(a.called(s), s.bot)) + " with all that was said?"
	if n := len(a.tasks()); n > 0 {
		words += " Its " + human.Count(n, "task stays", "tasks stay") + ", worktrees too."
	}
	id := s.id
	a.ask(&question{text: words + " The store's free pages are not scrubbed.", yes: func(a *App) {
		a.deleteBot(s.bot, func() { a.forgetSession(id) })
	}})
	return nil
}

// exportSession writes what was said to a new file: one that is there is not replaced.
func (a *App) exportSession(args string) error {
	s := a.session
	if s == nil {
		return noSession()
	}
	o, path := export.Options{Format: export.Markdown, Tools: export.Summary}, ""
	for _, word := range strings.Fields(args) {
		switch {
		case word == "--json":
			o.Format = export.JSON
		case word == "--md":
			o.Format = export.Markdown
		case strings.HasPrefix(word, "-") || path != "":
			return protocol.Fail(protocol.UsageError, "/export [FILE] [--json|--md]; FILE is one word")
		default:
			path = word
		}
	}
	if path == "" {
		path = s.bot + "." + string(o.Format)
	}
	path, bot := a.absolute(path), s.bot
	do(a, func(ctx context.Context) (struct{}, error) { return struct{}{}, a.exportTo(ctx, path, bot, o) },
		func(_ struct{}, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			a.notes.say("written to " + human.Path(path))
		})
	return nil
}

// exportTo writes the file whole, or not at all.
func (a *App) exportTo(ctx context.Context, path, bot string, o export.Options) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if os.IsExist(err) {
		return protocol.Fail(protocol.UsageError, path+" is there already; /export takes another name")
	}
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	err = export.Write(ctx, out, a.client(), bot, o)
	if err == nil {
		err = out.Flush()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(filepath.Clean(path))
	}
	return err
}

//go:embed init.md
var initMessage string

// initCommand asks the bot to draft an AGENTS.md, as a message of the person's.
func (a *App) initCommand(string) error {
	words := strings.TrimSpace(initMessage)
	if s := a.at(); s != nil {
		a.out.Post(&s.compose.Box, outbox.Text(words), true)
		return nil
	}
	a.composing().Set(words)
	a.send(delivery{})
	return nil
}
