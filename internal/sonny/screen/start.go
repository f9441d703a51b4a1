package screen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/outbox"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// startScreen is a folder without a lead, or one that gets another: a composer with a
// summary above it (sonny.md 3.3). The first message makes the lead.
type startScreen struct {
	compose composer
	project string
	lead    string   // its name
	beside  []string // the leads that the folder has
	asked   bool     // for a lead of its own, whatever the folder has
	parts   string   // what its instructions hold
	model   string
	effort  string
	failed  error
	making  bool
	tr      *cells.Transcript // what the person ran before there is a lead; nil for nothing
	due     bool              // Enter was pressed before the lead's name was known
	behind  bool              // bots came or went since it was filled in
	changes []func(*lead.Settings)
}

// begin waits for the bots to be known, which decides what is opened (choose), and for
// what was written on the folder's start screens.
func (a *App) begin() {
	a.start = a.newStart()
	a.start.asked = a.o.Fresh
	a.where.Sweep()
	a.out.Begin(a.starts(), a.choose)
}

// starts are the keys of what is written on the folder's start screens.
func (a *App) starts() []string {
	return []string{pen.OfFolder(a.o.Folder.Path), pen.OfNewLead(a.o.Folder.Path)}
}

// newStart is a start screen of which nothing is filled in.
func (a *App) newStart() *startScreen {
	return &startScreen{project: a.o.Project, model: a.o.Model, effort: a.o.Effort}
}

// choose opens the folder's newest lead, or fills the start screen in, when all that it
// goes by is known. What was written before goes to the bot that is opened.
func (a *App) choose() {
	if a.session != nil || !a.loadedAll || !a.out.Begun() {
		return
	}
	due := a.start.due
	a.opens()
	if a.session != nil && due && !a.session.compose.Editor().Empty() {
		a.send(delivery{})
	}
}

func (a *App) opens() {
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
	if !a.start.asked && a.openLead(page) {
		return
	}
	a.fillStart(page)
}

// openLead opens the lead that the folder is opened on (sonny.md 3.2): one for which a
// message was on its way when Sonny was killed, or the newest. What was written on the
// start screen goes to it. It reports whether there is one.
func (a *App) openLead(page *lead.Page) bool {
	leads := a.leadsHere(page)
	if len(leads) == 0 {
		return false
	}
	beside := pen.OfNewLead(a.o.Folder.Path)
	for _, l := range leads {
		if start := a.startFor(l.Name); start != "" {
			a.openWith(l.Name, l.ID, start)
			return true
		}
	}
	a.openWith(leads[0].Name, leads[0].ID, pen.OfFolder(a.o.Folder.Path))
	if a.out.Waits(beside) {
		a.notes.say("what you wrote for a new lead is kept; " + "/new shows it")
	}
	return true
}

// leadsHere are the folder's leads, the newest used first.
func (a *App) leadsHere(page *lead.Page) (list []*protocol.Bot) {
	for _, f := range lead.Leads(a.o.Folder.Path, a.ready.Store.Identity, page, a.world.Records()) {
		if !f.Gone() {
			list = append(list, f.Record)
		}
	}
	return list
}

// startFor is the start screen on which a message for a bot was written that is not
// there yet; "" for none.
func (a *App) startFor(bot string) string { return a.out.WrittenFor(a.starts(), bot) }

// heardOfBots has the start screen follow when bots come and go.
func (a *App) heardOfBots(_ *live.Bot, e *protocol.Event) {
	switch e.Kind {
	case protocol.KindCreated, protocol.KindForked, protocol.KindDeleted:
		if a.start != nil {
			a.start.behind = true
		}
	}
}

// follow shows what the folder would be opened on now, where bots have come or gone: the
// lead that somebody made meanwhile, with what is written here, or another name for the
// one that Enter makes. What is open over the start screen is left alone until it closes.
func (a *App) follow() {
	st := a.start
	if st == nil || !st.behind || st.making || st.lead == "" || a.panel != nil || st.compose.Reading() {
		return
	}
	st.behind = false
	if a.o.Kind == lead.KindHome {
		a.openHome()
		return
	}
	page, _, err := a.o.Book.Read()
	if err != nil {
		st.failed = err
		return
	}
	if !st.asked && len(st.beside) == 0 && a.openLead(page) {
		a.notes.say(a.session.bot + " was made elsewhere meanwhile")
		return
	}
	if err := a.nameLead(page); err != nil {
		st.failed = err
	}
}

// readStart fills a start screen in by the settings as they are now. What keeps them from
// being read is said, and looked at again when Enter is pressed.
func (a *App) readStart(st *startScreen) {
	st.failed = nil
	a.readSettings(func(_ bool, err error) {
		var page *lead.Page
		if err == nil {
			page, _, err = a.o.Book.Read()
		}
		switch {
		case err != nil:
			st.failed, st.due = err, false
		case a.start != st:
		case a.o.Kind == lead.KindHome:
			a.openHome()
		default:
			a.fillStart(page)
		}
	})
}

// fillStart fills in what a first message makes.
func (a *App) fillStart(page *lead.Page) {
	st := a.start
	if err := a.nameLead(page); err != nil {
		st.failed, st.due = err, false
		return
	}
	a.readParts(st.project)
	a.openStart()
}

// nameLead names the lead that a first message makes, and those that it joins.
func (a *App) nameLead(page *lead.Page) error {
	project, err := a.projectName(page)
	if err != nil {
		return err
	}
	name, bot, taken, err := a.o.Folder.Free(project, a.record)
	if err != nil {
		return err
	}
	st := a.start
	if taken && name != st.project {
		a.notes.say("another folder's lead has the name " + project + ".lead; this project is " + name)
	}
	st.project, st.lead, st.beside = name, bot, nil
	leads := a.leadsHere(page)
	slices.SortFunc(leads, func(x, y *protocol.Bot) int { return cmp.Compare(x.ID, y.ID) }) // the first one first
	for _, l := range leads {
		st.beside = append(st.beside, l.Name)
	}
	return nil
}

// openHome opens the person's own agent, or the start screen for it. A bot that only has
// its name is not opened, and nothing takes its place (sonny.md 3.6).
func (a *App) openHome() {
	if b := a.world.Bot(lead.HomeBot); b != nil {
		if err := lead.CheckHome(&b.Record, a.o.Folder.Path); err != nil {
			a.start.failed = err
			return
		}
		a.openSession(b.Record.Name, b.Record.ID)
		return
	}
	a.start.project, a.start.lead = lead.HomeBot, lead.HomeBot
	a.readParts(lead.HomeBot)
	a.openStart()
}

// projectName is how the folder's project is called, without its own word where its
// files are left out.
func (a *App) projectName(page *lead.Page) (string, error) {
	recorded := page.Projects[a.o.Folder.Home]
	switch {
	case !a.o.NoProject:
		return a.o.Folder.ProjectName(recorded)
	case recorded != "":
		return recorded, nil
	}
	return a.o.Folder.PlainName(), nil
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

// openStart brings back what was written here before, and sends the command line's
// message.
func (a *App) openStart() {
	if !a.start.compose.Kept() {
		own, other := pen.OfFolder(a.o.Folder.Path), pen.OfNewLead(a.o.Folder.Path)
		if len(a.start.beside) > 0 {
			a.out.LoadStart(&a.start.compose.Box, other, "")
		} else { // there is none that it could be beside
			a.out.LoadStart(&a.start.compose.Box, own, other)
		}
	}
	a.readCommands()
	a.start.sendPrompt(a)
}

// sendPrompt sends the command line's message, or the one for which Enter came before
// the lead's name was known.
func (st *startScreen) sendPrompt(a *App) {
	if a.o.Prompt != "" {
		st.compose.Set(a.o.Prompt)
		a.o.Prompt, st.due = "", true
	}
	if st.due {
		st.due = false
		a.send(delivery{})
	}
}

// plan is the lead that the screen shows.
func (st *startScreen) plan(a *App) *lead.Plan {
	return &lead.Plan{
		Folder: a.o.Folder, Project: st.project, Name: st.lead, Store: a.o.Store, Model: st.model, Effort: st.effort,
		Settings: a.o.Settings, Tools: a.ready.Tools, ClientTools: a.o.ClientTools,
	}
}

// send makes the lead and gives it the message, by the settings as they are now and as
// the screen shows them: where they have changed, it shows them first. What fails before
// leaves no bot, and the message in the composer.
func (st *startScreen) send(a *App, m outbox.Message) {
	if st.making {
		return
	}
	if st.lead == "" { // it is still looked for
		st.due = true
		if st.failed != nil {
			a.readStart(st)
		}
		return
	}
	a.out.Leave(&st.compose.Box)
	st.making, st.failed = true, nil
	a.readSettings(func(changed bool, err error) {
		st.making = false
		switch {
		case err != nil:
			st.failed = err
		case changed:
			a.notes.say("config.toml has changed; Enter makes the lead as it is shown now")
		default:
			st.make(a, m)
		}
	})
}

// make makes the lead.
func (st *startScreen) make(a *App, m outbox.Message) {
	if st.model == "" {
		a.pickModel(m.Prompt())
		return
	}
	was := st.lead
	if st.failed = a.nameAnew(); st.failed != nil {
		return
	}
	if st.lead != was {
		a.notes.say(was + " was made elsewhere meanwhile; Enter makes " + st.lead)
		return
	}
	p := st.plan(a)
	if err := a.o.Link.Covers(p.Sandbox(), p.Folder.Path, p.Roots()); err != nil {
		a.notes.fail(err)
		return
	}
	st.making, st.failed = true, nil
	f := a.out.ForLead(&st.compose.Box, m, p.Name)
	keep := a.out.Keeper(f)
	do(a, func(ctx context.Context) (*protocol.Bot, error) {
		keep()
		text, _, err := a.o.Compose(p.Project)
		if err != nil {
			return nil, err
		}
		p.Instructions, p.Rules = text, a.o.Rules.Read(0)
		if err := a.o.Book.Change(func(page *lead.Page) error {
			page.Projects[a.o.Folder.Home] = p.Project
			return nil
		}); err != nil {
			return nil, err
		}
		outbox.Instant("making")
		bot, err := p.Make(ctx, a.client())
		outbox.Instant("made")
		return bot, err
	}, func(bot *protocol.Bot, err error) {
		st.making = false
		if err != nil {
			st.notMade(a, f, err)
			return
		}
		st.made(a, f, p, bot)
	})
}

// notMade puts the message of a lead that was not made back.
func (st *startScreen) notMade(a *App, f *outbox.Flight, err error) {
	a.out.Back(f)
	if st.failed = err; errors.Is(err, protocol.SandboxUnavailable) && a.start == st {
		a.noSandbox(err)
	}
}

// made opens the lead and hands it the message, with what was written since.
func (st *startScreen) made(a *App, f *outbox.Flight, p *lead.Plan, bot *protocol.Bot) {
	a.world.Put(*bot)
	a.told(f.Message())
	a.openWith(bot.Name, bot.ID, f.Key())
	s := a.session
	s.first = &firstMessage{m: f.Message(), request: f.Request(), model: p.Model}
	if st.tr != nil {
		s.tr.Prepend(st.tr)
	}
	a.out.ToLead(f, &s.compose.Box)
}

// nameAnew gives the lead another name where a bot has taken the one on screen since.
func (a *App) nameAnew() error {
	if a.o.Kind == lead.KindHome || a.world.Bot(a.start.lead) == nil {
		return nil
	}
	page, _, err := a.o.Book.Read()
	if err != nil {
		return err
	}
	return a.nameLead(page)
}

// firstMessage is the message that a lead was made for.
type firstMessage struct {
	m       outbox.Message
	request string
	model   string
}

// refused takes a lead back whose provider refused its first call, so that a mistyped
// model leaves no bot, and the message in the composer.
func (m *firstMessage) refused(a *App, s *session, code, detail string) {
	status, ok := strings.CutPrefix(code, "provider_http_4")
	if !ok || status == "29" || s.tr.Replied() || s != a.session {
		return
	}
	why := fmt.Errorf("%s: %s: %s", m.model, code, detail)
	key := a.startWithout(s)
	a.out.OfLead(&s.compose.Box, m.request, m.m, key, func(f *outbox.Flight) {
		a.deleteBot(s.bot, func() {
			outbox.Instant("unmade")
			a.forgetSession(s.id)
			a.out.Back(f)
			if a.start != nil {
				a.start.failed = why
			}
		})
	})
}

// startWithout is the start screen that the folder has when a lead is gone.
func (a *App) startWithout(s *session) string {
	if page, _, err := a.o.Book.Read(); err == nil {
		for _, l := range a.leadsHere(page) {
			if l.ID != s.id {
				return pen.OfNewLead(a.o.Folder.Path)
			}
		}
	}
	return pen.OfFolder(a.o.Folder.Path)
}

// view draws the summary.
func (st *startScreen) view(a *App, c term.Canvas) {
	w, h := c.Size()
	rows := append(st.rows(a, w), st.ran(w, h/2)...)
	rows = append(rows, a.sendingRows(&st.compose, w)...)
	for y, row := range rows[max(0, len(rows)-h):] {
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
		rows = append(rows, st.intro(a, w)...)
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
		rows = append(rows, text.Wrap([]text.Span{{Text: fault.Screen.Words(st.failed), Role: text.Fail}}, text.Frame{Width: max(10, w-4), First: text.Indent(2), Rest: text.Indent(2)})...)
	}
	return rows
}

// intro says what the first message makes, and beside whom.
func (st *startScreen) intro(a *App, w int) []text.Line {
	folder := human.Path(a.o.Folder.Path)
	words := fmt.Sprintf("No agent works in %s yet. Your first message makes one: %s", folder, st.lead)
	switch n := len(st.beside); {
	case n == 1:
		words = fmt.Sprintf("%s works in %s. Your first message makes another lead beside it: %s", st.beside[0], folder, st.lead)
	case n > 1:
		words = fmt.Sprintf("%s and %d more work in %s. Your first message makes another lead beside them: %s", st.beside[0], n-1, folder, st.lead)
	}
	return text.Wrap([]text.Span{{Text: words}}, text.Frame{Width: max(10, w-4), First: text.Indent(2), Rest: text.Indent(2)})
}

// ran are the newest rows of what the person ran here, at most so many.
func (st *startScreen) ran(w, most int) (rows []text.Line) {
	if st.tr == nil {
		return nil
	}
	look := cells.Look{Fold: cells.DefaultFold(), Width: max(10, w-4)}
	n := st.tr.Height(look)
	for _, row := range st.tr.Rows(look, max(0, n-most), n) {
		rows = append(rows, row.Line)
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
	out := human.Path(a.o.Folder.Path)
	if a.o.Folder.Repo.There() && p.Settings.Git {
		out += " and its git folder, its tasks' worktrees"
	}
	for _, folder := range p.Settings.WritableRoots {
		out += ", " + human.Path(folder)
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
	if _, err := os.Lstat(filepath.Join(a.o.Folder.Repo.Source(), ".agents", "setup")); err == nil && !a.o.Own {
		return "each in its own worktree; .agents/setup runs first, when approved"
	}
	return "each in its own worktree"
}
