package screen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// startScreen is a folder without a lead: a composer with a summary above it
// (sonny.md 3.3). The first message makes the lead.
type startScreen struct {
	compose composer
	project string
	lead    string // its name
	parts   string // what its instructions hold
	model   string
	effort  string
	failed  error
	making  bool
	due     bool // Enter was pressed before the lead's name was known
}

// begin decides what is opened, once the bots are known.
func (a *App) begin() {
	a.start = &startScreen{project: a.o.Project, model: a.o.Model, effort: a.o.Effort}
	do(a, func(ctx context.Context) ([]protocol.Bot, error) {
		var bots []protocol.Bot
		for b, err := range a.client().Bots(ctx) {
			if err != nil {
				return nil, err
			}
			bots = append(bots, *b)
		}
		return bots, nil
	}, func(bots []protocol.Bot, err error) {
		if err != nil {
			a.notes.fail(err)
			return
		}
		a.world.Page(bots)
		a.loadedAll = true
		a.choose(bots)
	})
}

// choose opens the folder's newest lead, or fills the start screen in.
func (a *App) choose(bots []protocol.Bot) {
	if a.session != nil {
		return
	}
	page, broken, err := a.o.Book.Read()
	if err != nil {
		a.notes.fail(err)
		return
	}
	if broken != nil {
		a.notes.fail(fmt.Errorf("the list of sessions was unreadable and starts anew: %w", broken))
	}
	if name := a.o.Bot; name != "" {
		if b := a.world.Bot(name); b != nil {
			a.openSession(name, b.Record.ID)
			return
		}
		a.notes.say(name + " is gone")
	}
	if a.o.Kind == lead.KindHome {
		a.openHome()
		return
	}
	if !a.o.Fresh {
		for _, f := range lead.Leads(a.o.Folder.Path, a.ready.Store.Identity, page, bots) {
			if !f.Gone() {
				a.openSession(f.Record.Name, f.Record.ID)
				return
			}
		}
	}
	a.fillStart(page)
}

// fillStart names the lead that a first message makes.
func (a *App) fillStart(page *lead.Page) {
	st := a.start
	project, err := a.o.Folder.ProjectName(page.Projects[a.o.Folder.Home])
	if err != nil {
		st.failed = err
		return
	}
	name, bot, taken, err := a.o.Folder.Free(project, a.record)
	if err != nil {
		st.failed = err
		return
	}
	st.project, st.lead = name, bot
	if taken {
		a.notes.say("another folder's lead has the name " + project + ".lead; this project is " + name)
	}
	a.readParts(name)
	st.sendPrompt(a)
}

// openHome opens the person's own agent, or the start screen for it.
func (a *App) openHome() {
	if b := a.world.Bot(lead.HomeBot); b != nil {
		a.openSession(b.Record.Name, b.Record.ID)
		return
	}
	a.start.project, a.start.lead = lead.HomeBot, lead.HomeBot
	a.readParts(lead.HomeBot)
	a.start.sendPrompt(a)
}

// readParts finds out what the instructions will hold.
func (a *App) readParts(project string) {
	st := a.start
	do(a, func(context.Context) (string, error) {
		_, parts, err := a.o.Compose(project)
		return parts, err
	}, func(parts string, err error) {
		if st.parts = parts; err != nil {
			st.failed = err
		}
	})
}

// sendPrompt sends the command line's message, or the one for which Enter came before
// the lead's name was known.
func (st *startScreen) sendPrompt(a *App) {
	if a.o.Prompt != "" {
		st.compose.set(a.o.Prompt)
		a.o.Prompt, st.due = "", true
	}
	if st.due {
		st.due = false
		st.send(a)
	}
}

// plan is the lead that the screen shows.
func (st *startScreen) plan(a *App) *lead.Plan {
	return &lead.Plan{
		Folder: a.o.Folder, Project: st.project, Name: st.lead, Store: a.o.Store, Model: st.model, Effort: st.effort,
		Settings: a.o.Settings, Tools: a.ready.Tools, ClientTools: a.o.ClientTools,
	}
}

// send makes the lead and gives it the message. What fails before leaves no bot, and
// the message in the composer.
func (st *startScreen) send(a *App) {
	prompt := strings.TrimRight(st.compose.text(), "\n")
	if st.making || strings.TrimSpace(prompt) == "" {
		return
	}
	if st.lead == "" { // it is still looked for
		st.due = true
		return
	}
	if st.model == "" {
		a.pickModel(prompt)
		return
	}
	p := st.plan(a)
	if err := a.o.Link.Covers(p.Sandbox(), p.Folder.Path, p.Roots()); err != nil {
		a.notes.fail(err)
		return
	}
	st.making, st.failed = true, nil
	do(a, func(ctx context.Context) (*protocol.Bot, error) {
		text, _, err := a.o.Compose(p.Project)
		if err != nil {
			return nil, err
		}
		p.Instructions, p.Rules = text, a.o.Rules(0)
		if err := a.o.Book.Change(func(page *lead.Page) error {
			page.Projects[a.o.Folder.Home] = p.Project
			return nil
		}); err != nil {
			return nil, err
		}
		return p.Make(ctx, a.client())
	}, func(bot *protocol.Bot, err error) {
		st.making = false
		if err != nil {
			if st.failed = err; errors.Is(err, protocol.SandboxUnavailable) {
				a.noSandbox(err)
			}
			return
		}
		a.world.Put(*bot)
		a.openSession(bot.Name, bot.ID)
		a.session.first = &firstMessage{prompt: prompt, model: p.Model}
		a.session.compose.set(prompt)
		a.send(delivery{})
	})
}

// firstMessage is the message that a lead was made for.
type firstMessage struct{ prompt, model string }

// refused takes a lead back whose provider refused its first call, so that a mistyped
// model leaves no bot, and the message in the composer.
func (m *firstMessage) refused(a *App, s *session, code, detail string) {
	status, ok := strings.CutPrefix(code, "provider_http_4")
	if !ok || status == "29" || s.tr.Replied() || s != a.session {
		return
	}
	why := fmt.Errorf("%s: %s: %s", m.model, code, detail)
	a.deleteBot(s.bot, func() {
		a.forgetSession(s.id)
		if a.start != nil {
			a.start.compose.set(m.prompt)
			a.start.failed = why
		}
	})
}

// view draws the summary.
func (st *startScreen) view(a *App, c term.Canvas) {
	w, h := c.Size()
	for y, row := range st.rows(a, w) {
		if y < h {
			c.Put(0, y, row.Cut(w), w)
		}
	}
}

// rows are the summary.
func (st *startScreen) rows(a *App, w int) (rows []text.Line) {
	say := func(name, value string) {
		rows = append(rows, text.Join(text.Span{Text: fmt.Sprintf("  %-8s ", name), Role: text.Dim}, text.Span{Text: value}))
	}
	rows = append(rows, text.Line{})
	switch {
	case st.lead == "" && st.failed == nil:
		rows = append(rows, text.Of(text.Dim, "  looking for this folder's agents…"))
	default:
		rows = append(rows, text.Of(text.Plain, fmt.Sprintf("  No agent works in %s yet. Your first message makes one: %s", tilde(a.o.Folder.Path), st.lead)))
		rows = append(rows, text.Line{})
		p := st.plan(a)
		model := st.model
		if model == "" {
			model = "none set"
		}
		say("model", model+" · effort "+orDefault(st.effort))
		say("asks", asks[p.Settings.Row])
		say("writes", st.writes(a, p))
		say("reads", "every file you can read · "+network(p))
		say("tasks", st.tasks(a))
		if st.parts != "" {
			say("knows", st.parts)
		}
	}
	if st.failed != nil {
		rows = append(rows, text.Line{})
		rows = append(rows, text.Wrap([]text.Span{{Text: st.failed.Error(), Role: text.Fail}}, text.Frame{Width: max(10, w-4), First: indent2, Rest: indent2})...)
	}
	return rows
}

// filled reports whether the summary says all that it will, or why it cannot.
func (st *startScreen) filled() bool {
	return !st.making && (st.failed != nil || st.lead != "" && st.parts != "")
}

// news are the rows of the summary that said does not hold, which are added to it: for
// who prints them and never takes back.
func (st *startScreen) news(a *App, w int, said map[string]bool) (rows []text.Line) {
	if !st.filled() {
		return nil
	}
	for _, row := range st.rows(a, w) {
		if s := row.String(); s != "" && !said[s] {
			said[s] = true
			rows = append(rows, row)
		}
	}
	return rows
}

var indent2 = []text.Span{{Text: "  ", Chrome: true}}

func orDefault(s string) string {
	if s == "" {
		return "default"
	}
	return s
}

// asks are the rows in a sentence of consequence.
var asks = map[lead.Row]string{
	lead.Auto:   "auto: a judge model decides what may leave the sandbox",
	lead.Manual: "manual: you decide what may leave the sandbox",
	lead.Look:   "look: nothing asks and nothing changes; it reads and plans",
	lead.Full:   "full: nothing is confined and nobody is asked",
}

// Asks is a row in a sentence of consequence.
func Asks(row string) string { return asks[lead.Row(row)] }

func (st *startScreen) writes(a *App, p *lead.Plan) string {
	switch p.Sandbox() {
	case protocol.SandboxFull:
		return "everything you can write: no sandbox"
	case protocol.SandboxReadOnly:
		return "nothing: sandbox read-only"
	}
	out := tilde(a.o.Folder.Path)
	if a.o.Folder.Repo.There() && p.Settings.Git {
		out += " and its git folder, its tasks' worktrees"
	}
	if !p.Settings.NoTmp {
		out += ", /tmp"
	}
	if !p.Settings.NoTmpdir {
		out += ", $TMPDIR"
	}
	return out + " · workspace-write"
}

func network(p *lead.Plan) string {
	if p.Settings.Network || p.Sandbox() == protocol.SandboxFull {
		return "network on"
	}
	return "network off"
}

func (st *startScreen) tasks(a *App) string {
	switch {
	case !a.o.Folder.Repo.There():
		return "in this folder: it is in no git repository"
	case a.o.Settings.Tasks.InFolder || !a.o.Settings.Git:
		return "in this folder"
	}
	if _, err := os.Lstat(filepath.Join(a.o.Folder.Repo.Source(), ".agents", "setup")); err == nil {
		return "each in its own worktree; .agents/setup runs first, when approved"
	}
	return "each in its own worktree"
}

// tilde is a path below the home folder as people write it.
func tilde(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "/" {
		return path
	}
	if path == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(path, home+"/"); ok {
		return "~/" + rest
	}
	return path
}
