package screen

import (
	"context"
	"fmt"
	"os"
	"strings"
	"unicode"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/memory"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/outbox"
	"agent/protocol"
)

// typedModes are what Enter does with a text whose first character was typed into an
// empty composer (sonny.md 10.1).
var typedModes = feature{
	commands: []slashCommand{{"task", "NAME BRIEF", "start a task", func(a *App, args string) error {
		name, brief, _ := strings.Cut(args, " ")
		if a.session == nil || strings.TrimSpace(brief) == "" {
			return protocol.Fail(protocol.UsageError, "a lead starts it: /task NAME BRIEF")
		}
		return a.startTask(a.project()+"."+name, brief, "/task "+args)
	}}},
	actions: map[string]func(*App){
		"mode !": (*App).bang,
		"mode #": (*App).saveFact,
		"mode &": (*App).startTyped,
		"mode /": (*App).runCommand,
	},
}

// after is what was typed after the character of a mode.
func (c *composer) after() string {
	return strings.TrimSpace(strings.TrimLeft(c.Text(), "!#&/"))
}

// intent says what Enter would do with a text that is no message; "" for a message.
func (a *App) intent(c *composer) string {
	words := c.after()
	if words == "" {
		return ""
	}
	switch c.Editor().Mode() {
	case '!':
		if !a.o.Bang {
			return ""
		}
		return "runs as you, in " + human.Path(a.workspace(a.at())) + ", outside any bot"
	case '#':
		return "saves the fact " + slug(words, maxFactName) + " for " + a.factScope().String()
	case '&':
		return "starts the task " + a.taskName(words)
	}
	return ""
}

// maxFactName and maxTaskLabel bound the names that are made of a text, in bytes.
const (
	maxFactName  = 40
	maxTaskLabel = 32
)

// slug is a name made of a text's first words: small letters, digits and hyphens.
func slug(s string, most int) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if b.Len() >= most || r == '\n' {
			break
		}
		switch {
		case r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.Trim(b.String(), "-")
	if name == "" {
		return "note"
	}
	return name
}

// factScope is whose facts a new one joins: the project's, or for the home bot the
// person's.
func (a *App) factScope() memory.Scope {
	if a.o.Kind == lead.KindHome {
		return memory.Scope{}
	}
	return memory.Scope{Project: a.project()}
}

// saveFact shows the name and the scope that a fact would take. Enter saves it, Esc
// gives the text back.
func (a *App) saveFact() {
	c := a.composing()
	words, scope := c.after(), a.factScope()
	if words == "" {
		return
	}
	name := slug(words, maxFactName)
	a.panel = &askPanel{
		title: "save a fact",
		lines: []string{"name   " + name, "scope  " + scope.String(), "", words, "", "Enter saves it; Esc gives the text back."},
		yes:   func(a *App) { a.putFact(c, scope, name, words) },
	}
}

// maxDescription bounds a fact's description, in bytes.
const maxDescription = 200

func (a *App) putFact(c *composer, scope memory.Scope, name, words string) {
	first, _, _ := strings.Cut(words, "\n")
	kind := "project"
	if scope.Project == "" {
		kind = "user"
	}
	d := memory.Draft{Name: name, Type: kind, Description: strings.ToValidUTF8(first[:min(len(first), maxDescription)], ""), Source: "the person", Text: words}
	n := c.Editor().Changes()
	do(a, func(context.Context) (*memory.Saved, error) {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		return memory.Open(home, a.o.Now).Save(scope, d)
	}, func(saved *memory.Saved, err error) {
		if err != nil {
			a.notes.fail(err)
			return
		}
		if c.Editor().Changes() == n {
			c.Editor().Sent()
		}
		a.notes.say("saved the fact " + saved.Name + " for " + saved.Scope.String())
	})
}

// taskName is the bot of a task that a text starts: the first free name that its words
// make.
func (a *App) taskName(words string) string {
	base := a.project() + "." + slug(words, maxTaskLabel)
	name := base
	for n := 2; a.world.Bot(name) != nil; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

// startTyped starts a task with the text as its brief.
func (a *App) startTyped() {
	c := a.composing()
	words := c.after()
	if words == "" {
		return
	}
	if a.session == nil {
		a.notes.say("a task is a lead's; the first message makes one")
		return
	}
	m := outbox.Of(c.Editor().Draft())
	a.gone(c, m)
	if err := a.startTask(a.taskName(words), words, "&"+words); err != nil {
		a.notes.fail(err)
		a.taskBack(a.session, "&"+words)
	}
}

// TaskPlan is a task as it will be started.
type TaskPlan struct {
	Bot   string
	Says  []string // what the person has to have seen before; none: it starts at once
	Setup string   // the script that Says speaks of
	Do    func(ctx context.Context) error
}

// startTask starts a task under the lead on screen. What fails says so and gives back
// what was typed.
func (a *App) startTask(bot, brief, typed string) error {
	if a.o.PlanTask == nil {
		return protocol.Fail(protocol.UsageError, "no tasks are started from here; ask the lead for one")
	}
	s := a.session
	by, label := s.bot, strings.TrimPrefix(bot, a.project()+".")
	f := a.out.ForTask(&s.compose.Box, typed, bot)
	over := func() { a.out.Over(f) }
	back := func() {
		a.taskBack(s, typed)
		over()
	}
	failed := func(err error) {
		a.notes.fail(err)
		back()
	}
	keep := a.out.Keeper(f)
	do(a, func(ctx context.Context) (*TaskPlan, error) {
		keep()
		outbox.Instant("planning")
		return a.o.PlanTask(ctx, by, label, brief)
	},
		func(plan *TaskPlan, err error) {
			switch {
			case err != nil:
				failed(err)
			case len(plan.Says) > 0:
				a.panel = &askPanel{
					title: "start " + plan.Bot, lines: plan.Says, text: plan.Setup,
					yes: func(a *App) { a.carryOut(plan, over, failed) },
					no:  func(*App) { back() },
				}
			default:
				a.carryOut(plan, over, failed)
			}
		})
	return nil
}

// taskBack gives back what was typed to start a task.
func (a *App) taskBack(s *session, typed string) {
	s = a.nowOf(s)
	e := s.compose.Editor()
	if !a.shows(s) || !e.Empty() {
		a.out.GiveBack(&s.compose.Box, outbox.Text(typed))
		return
	}
	retype(e, typed)
}

func (a *App) carryOut(plan *TaskPlan, over func(), failed func(error)) {
	a.notes.say("starting " + plan.Bot + "…")
	do(a, func(ctx context.Context) (struct{}, error) {
		err := plan.Do(ctx)
		outbox.Instant("started")
		return struct{}{}, err
	},
		func(_ struct{}, err error) {
			if err != nil {
				failed(err)
				return
			}
			over()
			if a.world.Paused != nil {
				a.notes.say(plan.Bot + " is there; it begins when /unpause lets all go on")
				return
			}
			a.notes.say("started " + plan.Bot)
		})
}
