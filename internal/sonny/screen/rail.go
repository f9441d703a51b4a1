package screen

import (
	"context"
	"slices"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// railKeys are of the list of sessions at the left (sonny.md 7.1, 11).
var railKeys = feature{
	actions: map[string]func(*App){"rail": (*App).openRail},
	event: func(a *App, b *live.Bot, _ *protocol.Event) {
		if b != nil {
			a.rail.heard(b)
		}
	},
	opened: func(a *App, s *session) {
		if s == a.session {
			a.rail.read(a)
		}
	},
}

// rail is the list of this folder's sessions with their tasks, and of those of other
// folders where something runs or waits. What its rows are is derived when who there is
// changes, and not for each frame.
type rail struct {
	shown   bool // as a column, where the screen is wide enough for one
	decided bool // the person has opened or hidden it, or a session said how it was left
	panel   *railPanel

	page *lead.Page // the book as it was read last
	// What the rows were derived of.
	world *live.World
	kin   int
	stale bool

	own    []*railGroup          // this folder's sessions, in order
	others []*railGroup          // the other folders'
	of     map[string]*railGroup // the group of each bot in others
	rows   []railRow             // nil: to be put together again
	index  map[string]int        // of rows, by bot
	found  railFound
}

// railGroup is a session with its tasks.
type railGroup struct {
	lead.Found
	kids   []lead.Child
	states map[string]live.State // of its bots
	count  [live.Paused + 1]int  // how many of them are in each state
}

// railRow is one row: of a bot, or a word about the one above where name is empty.
type railRow struct {
	name  string
	group *railGroup // of a session's own row; nil for a task's
	head  string     // what stands before a task
	words string     // its name, or the word
}

// railFound are the rows that a filter lets through.
type railFound struct {
	filter string
	rows   []railRow
}

// maxRail bounds the rows around the one at hand that are listed (sonny.md 11).
const maxRail = 300

// busyStates are those in which something of a session runs or waits, the most urgent
// first.
var busyStates = []live.State{live.NeedsYou, live.HeldUp, live.Working, live.Waiting, live.Queued}

// read reads the book anew, where the rail is on screen.
func (r *rail) read(a *App) {
	if !a.railOpen() {
		return
	}
	do(a, func(context.Context) (*lead.Page, error) { page, _, err := a.o.Book.Read(); return page, err },
		func(page *lead.Page, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			r.page, r.stale = page, true
		})
}

// fresh sees to it that the rows are of what there is now.
func (r *rail) fresh(a *App) {
	if r.world != a.world || r.kin != a.world.Kin || r.stale {
		r.world, r.kin, r.stale = a.world, a.world.Kin, false
		r.derive(a)
	}
	if r.rows == nil {
		r.list()
	}
}

// derive finds the sessions and their tasks.
func (r *rail) derive(a *App) {
	page := r.page
	if page == nil {
		page = &lead.Page{}
	}
	bots := a.world.Records()
	sessions := slices.DeleteFunc(lead.Sessions(a.ready.Store.Identity, page, bots), func(f lead.Found) bool { return f.Archived || f.Gone() })
	slices.SortStableFunc(sessions, func(x, y lead.Found) int { return pinnedFirst(x) - pinnedFirst(y) })
	heads := make([]lead.Head, 0, len(sessions))
	for _, f := range sessions {
		heads = append(heads, lead.Head{Bot: f.Record, Project: f.Project})
	}
	slices.SortStableFunc(heads, func(x, y lead.Head) int { return int(x.Bot.ID - y.Bot.ID) }) // the oldest has its project's
	families := lead.Families(heads, bots, a.hidden())
	r.own, r.others, r.of, r.rows = nil, nil, map[string]*railGroup{}, nil
	for _, f := range sessions {
		g := &railGroup{Found: f, kids: families[f.BotID]}
		if f.Folder == a.o.Folder.Path {
			r.own = append(r.own, g)
			continue
		}
		r.others = append(r.others, g)
		g.states = map[string]live.State{}
		r.watch(g, a.world.Bot(f.Record.Name))
		for _, c := range g.kids {
			r.watch(g, a.world.Bot(c.Bot.Name))
		}
	}
}

func pinnedFirst(f lead.Found) int {
	if f.Pinned {
		return 0
	}
	return 1
}

// watch counts the state of a bot of another folder's session.
func (r *rail) watch(g *railGroup, b *live.Bot) {
	if b == nil {
		return
	}
	r.of[b.Record.Name] = g
	g.states[b.Record.Name] = b.State(false)
	g.count[b.State(false)]++
}

// heard takes what a bot of another folder does now: whether its session is listed may
// depend on it.
func (r *rail) heard(b *live.Bot) {
	g := r.of[b.Record.Name]
	if g == nil {
		return
	}
	was, now := g.states[b.Record.Name], b.State(false)
	if was == now {
		return
	}
	_, listed := g.busy()
	g.count[was]--
	g.count[now]++
	g.states[b.Record.Name] = now
	if _, lists := g.busy(); lists != listed {
		r.rows = nil
	}
}

// busy is the most urgent of what its bots do, and whether anything of it runs or waits.
func (g *railGroup) busy() (live.State, bool) {
	for _, s := range busyStates {
		if g.count[s] > 0 {
			return s, true
		}
	}
	return live.Idle, false
}

// list puts the rows together.
func (r *rail) list() {
	r.rows, r.found = []railRow{}, railFound{}
	for _, g := range r.own {
		r.session(g)
		for _, c := range g.kids {
			head := strings.Repeat("  ", min(c.Depth, 4)-1) + "├ "
			if c.Last {
				head = strings.Repeat("  ", min(c.Depth, 4)-1) + "└ "
			}
			r.rows = append(r.rows, railRow{name: c.Bot.Name, head: head, words: strings.TrimPrefix(c.Bot.Name, g.Project+".")})
		}
	}
	first := true
	for _, g := range r.others {
		if _, busy := g.busy(); !busy {
			continue
		}
		if first {
			r.rows = append(r.rows, railRow{}, railRow{words: "other folders"})
			first = false
		}
		r.session(g)
	}
	r.index = make(map[string]int, len(r.rows))
	for i, row := range r.rows {
		if row.name != "" {
			r.index[row.name] = i
		}
	}
}

// session adds the rows of a session itself: its title, and whose that is.
func (r *rail) session(g *railGroup) {
	r.rows = append(r.rows, railRow{name: g.Record.Name, group: g, words: titleOf(g.Found)})
	var about []string
	if g.Title != "" {
		about = append(about, g.Record.Name)
	}
	if g.Kind == lead.KindFork {
		about = append(about, "fork")
	}
	if len(about) > 0 {
		r.rows = append(r.rows, railRow{group: g, words: strings.Join(about, "  ")})
	}
}

// through are the rows that a filter lets through, 300 at most.
func (r *rail) through(filter string) []railRow {
	if r.found.rows != nil && r.found.filter == filter {
		return r.found.rows
	}
	words := strings.Fields(strings.ToLower(filter))
	r.found = railFound{filter, []railRow{}}
	for _, row := range r.rows {
		if row.name != "" && len(r.found.rows) < maxRail && lists.HasAll(strings.ToLower(row.name+" "+row.words), words) {
			r.found.rows = append(r.found.rows, row)
		}
	}
	return r.found.rows
}

// around are the rows about the one of a bot, 300 at most, and which is the first.
func (r *rail) around(name string) (rows []railRow, from int) {
	at := r.index[name]
	from = max(0, min(at-maxRail/2, len(r.rows)-maxRail))
	return r.rows[from:min(len(r.rows), from+maxRail)], from
}

// row is a row as it is drawn.
func (r *rail) row(a *App, row railRow) lists.Row {
	if row.name == "" {
		indent := "  "
		if row.group == nil {
			indent = ""
		}
		return lists.Row{Line: text.Of(text.Dim, indent+cells.OneLine(row.words)+a.railTurns(row))}
	}
	state := live.Idle
	if b := a.world.Bot(row.name); b != nil {
		state = b.State(false)
	}
	if g := row.group; g != nil && g.states != nil && state == live.Idle {
		state, _ = g.busy() // of its tasks
	}
	g := glyphs[state]
	words := row.words
	if row.group != nil && a.session != nil && a.session.bot == row.name {
		words = a.session.name() // which may have been given just now
	}
	return lists.Row{ID: row.name, Match: row.name + " " + row.words, Line: text.Join(
		text.Span{Text: railIndent(row) + row.head, Role: text.Rule}, text.Span{Text: g.mark + " ", Role: g.role}, text.Span{Text: cells.OneLine(words)})}
}

// railIndent puts a task below its session's title.
func railIndent(row railRow) string {
	if row.group != nil {
		return ""
	}
	return "  "
}

// railTurns says how many turns the session on screen has had, below its title, where
// all of them are loaded.
func (a *App) railTurns(row railRow) string {
	s := a.session
	if row.group == nil || s == nil || s.bot != row.group.Record.Name || !s.whole || len(s.about) == 0 {
		return ""
	}
	return "   " + s.turnWords()
}
