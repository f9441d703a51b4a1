package screen

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/mention"
	"agent/internal/sonny/screen/outbox"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/skill"
	"agent/protocol"
)

// customCommands are the person's and the folder's own, and the skills (sonny.md 10.6).
type customCommands struct {
	folder string
	list   []skill.Command
}

// commandsPanel lists all commands.
var commandsPanel = feature{
	commands: []slashCommand{{"commands", "", "all commands, your own too", func(a *App, _ string) error {
		a.panel = &listPanel{title: "commands", empty: "none", rows: func(a *App) []lists.Row {
			var rows []lists.Row
			for _, p := range a.commandPicks("/") {
				rows = append(rows, lists.InColumns(p.Name, lists.Column{Text: cells.OneLine(p.Name), Width: 31}, lists.Column{Text: cells.OneLine(p.Does), Role: text.Dim}))
			}
			return rows
		}}
		return nil
	}}},
	opened: func(a *App, s *session) { a.readCommands() },
}

// readCommands reads the commands of the folder on screen, beside the loop.
func (a *App) readCommands() {
	folder := a.workspace(a.at())
	own := a.o.Own && folder == a.o.Folder.Path
	do(a, func(context.Context) ([]skill.Command, error) {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		if own { // it was opened without its files
			return skill.Commands(home, home)
		}
		return skill.Commands(folder, home)
	}, func(list []skill.Command, err error) {
		if err != nil {
			a.notes.fail(err)
			return
		}
		a.custom = customCommands{folder, slices.DeleteFunc(list, func(c skill.Command) bool { return a.builtIn(c.Name) != nil })}
		a.menu.word = "" // what is typed may be one of them
		a.complete()
	})
}

func (a *App) builtIn(name string) *slashCommand {
	for i := range a.commands {
		if a.commands[i].name == name {
			return &a.commands[i]
		}
	}
	return nil
}

// commandPicks complete a command's name, or its last argument.
func (a *App) commandPicks(typed string) (picks []mention.Pick) {
	line := strings.TrimPrefix(typed, "/")
	name, args, more := strings.Cut(line, " ")
	if more {
		return a.argumentPicks(name, args)
	}
	for _, c := range a.commands {
		if strings.HasPrefix(c.name, name) {
			picks = append(picks, mention.Pick{Name: strings.TrimSpace("/" + c.name + " " + c.args), Does: c.does, Insert: "/" + c.name + space(c.args)})
		}
	}
	for _, c := range a.custom.list {
		if strings.HasPrefix(c.Name, name) {
			picks = append(picks, mention.Pick{Name: strings.TrimSpace("/" + c.Name + " " + c.Hint), Does: c.Description, Insert: "/" + c.Name + " "})
		}
	}
	slices.SortStableFunc(picks, func(x, y mention.Pick) int { return strings.Compare(x.Name, y.Name) })
	return picks
}

func space(args string) string {
	if args == "" {
		return ""
	}
	return " "
}

// argumentPicks complete the one argument of the commands that have a choice.
func (a *App) argumentPicks(name, typed string) (picks []mention.Pick) {
	var values []string
	switch name {
	case "config":
		values, typed = settingWords(typed)
	case "approval":
		values = []string{string(lead.Auto), string(lead.Manual), string(lead.Look), string(lead.Full)}
	case "effort":
		values = []string{"default", "low", "medium", "high", "xhigh", "max"}
	case "model":
		values = a.o.Models
	case "screen":
		for _, m := range Modes {
			values = append(values, string(m))
		}
	case "peek", "open", "resume":
		for b := range a.world.Bots() {
			if !lead.Judge(&b.Record) {
				values = append(values, b.Record.Name)
			}
		}
	case "stop", "merge":
		values = append(values, "all")
		for _, t := range a.tasks() {
			values = append(values, t.Record.Name)
		}
	}
	if strings.Contains(typed, " ") {
		return nil
	}
	for _, v := range values {
		if strings.HasPrefix(v, typed) && v != typed && len(picks) < mention.Most {
			picks = append(picks, mention.Pick{Name: v, Insert: v})
		}
	}
	return picks
}

// slash reads a command line; //text is a message.
func slash(prompt string) (string, bool) {
	if !strings.HasPrefix(prompt, "/") || strings.HasPrefix(prompt, "//") {
		return "", false
	}
	return prompt[1:], true
}

// commandLine is a command as it was typed, while it is under way.
type commandLine struct {
	c     *composer
	typed string
}

// runCommand runs the command that was typed. One that is unknown or refused stays in the
// composer, and comes back there where that turns out later (sonny.md 10.2).
func (a *App) runCommand() {
	c := a.composing()
	n := c.Editor().Changes()
	c.Runs(true) // it may take the composer off the screen
	a.commanded = &commandLine{c, c.Text()}
	defer func() {
		c.Runs(false)
		a.commanded = nil
	}()
	if a.command(strings.TrimPrefix(c.Text(), "/")) && c.Editor().Changes() == n {
		c.Editor().Sent()
	}
}

// retype gives an empty composer a text as if it was typed there, so that its first
// character says what Enter does with it.
func retype(e *edit.Editor, typed string) {
	e.Type(typed[:1])
	e.Type(typed[1:])
}

// within is what goes on at the word of a command, nil for none, later than its line. A
// line that is refused by then comes back, unless something else is being written.
func (a *App) within(of *commandLine, do func()) {
	before, bad := a.commanded, a.notes.bad
	a.commanded = of
	do()
	a.commanded = before
	if of != nil && a.notes.bad > bad && of.c.Editor().Empty() && slices.Contains(a.writing(), of.c) {
		retype(of.c.Editor(), of.typed)
	}
}

// laterCommands come with companions that this version does not have.
var laterCommands = []string{"goal", "goals", "triggers", "subscriptions", "commons", "backup", "mcp"}

// command runs what was typed after a slash. It reports whether that is done with.
func (a *App) command(typed string) bool {
	name, args := typed, ""
	if end := strings.IndexAny(typed, " \n"); end >= 0 {
		name, args = typed[:end], typed[end:]
	}
	if b := a.builtIn(name); b != nil {
		if a.refusesGone(name) {
			return false
		}
		var err error
		args = strings.TrimSpace(args)
		if args == "" && b.needs() {
			err = protocol.Fail(protocol.UsageError, "/"+b.name+" "+b.args+": "+b.does)
		} else {
			err = b.run(a, args)
		}
		if err != nil {
			a.notes.fail(err)
		}
		return err == nil
	}
	for _, own := range a.custom.list {
		if own.Name == name {
			a.runCustom(a.composing(), own, typed[len(name):])
			return false // its message takes the line's place
		}
	}
	if slices.Contains(laterCommands, name) {
		a.notes.say("/" + name + ": no such command in this version")
		return false
	}
	says := fmt.Sprintf("no command /%s; //%s sends it as a message", name, name)
	if near := a.nearest(name); near != "" {
		says = fmt.Sprintf("no command /%s; is it /%s? //%s sends it as a message", name, near, name)
	}
	a.notes.say(says)
	return false
}

// runCustom sends what a command of the person's own makes of its arguments: words, and
// nothing that runs.
func (a *App) runCustom(c *composer, own skill.Command, args string) {
	n := c.Editor().Changes()
	do(a, func(context.Context) (string, error) { return own.Message(args) }, func(text string, err error) {
		switch {
		case err != nil:
			a.notes.fail(err)
		case len(text) > protocol.MaxPrompt:
			a.notes.fail(protocol.Fail(protocol.UsageError, "/"+own.Name+" makes a message that is longer than the daemon takes"))
		case c.Editor().Changes() == n && c == a.composing():
			typed := c.Editor().Draft()
			c.Editor().SetText(text)
			if a.at() == nil {
				a.send(delivery{})
				return
			}
			a.gone(c, outbox.Of(typed))
			a.out.Post(&c.Box, outbox.Text(text), false)
		}
	})
}

// nearest is the command whose name is most like a mistyped one; "" where none is.
func (a *App) nearest(name string) string {
	best, least := "", max(2, len(name)/2)
	consider := func(other string) {
		if d := distance(name, other); d < least || d == least && best == "" {
			best, least = other, d
		}
	}
	for _, c := range a.commands {
		consider(c.name)
	}
	for _, c := range a.custom.list {
		consider(c.Name)
	}
	return best
}

// distance is how many characters must be put in, taken out or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		last := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := last
			if a[i-1] != b[j-1] {
				cost++
			}
			last = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
