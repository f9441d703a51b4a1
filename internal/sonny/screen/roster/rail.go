package roster

import (
	"cmp"
	"slices"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// Rail are this folder's sessions with their tasks, and those of other folders where
// something runs or waits. What the rows are is derived when who there is changes, and
// not for each frame. The zero value has none. It belongs to one goroutine.
type Rail struct {
	page *lead.Page // the book as it was read last
	// What the rows were derived of.
	world *live.World
	kin   int
	stale bool
	at    Place

	own    []*Group          // this folder's sessions, in order
	others []*Group          // the other folders'
	of     map[string]*Group // the group of each bot in others
	rows   []Row             // nil: to be put together again
	index  map[string]int    // of rows, by bot
	found  found
}

// Group is a session with its tasks.
type Group struct {
	lead.Found
	kids   []lead.Child
	states map[string]live.State // of its bots
	count  [live.Paused + 1]int  // how many of them are in each state
}

// Row is one row: of a bot, or words about the one above.
type Row struct {
	Bot   string // "" for words
	Group *Group // of a session's own row; nil for a task's
	head  string // what stands before a task
	words string // its name, or the word
	shown func() // called when it is drawn; nil for nothing
}

// found are the rows that a filter lets through.
type found struct {
	filter string
	rows   []Row
}

// Most bounds the rows around the one at hand that are listed (sonny.md 11).
const Most = 300

// busyStates are those in which something of a session runs or waits, the most urgent
// first.
var busyStates = []live.State{live.NeedsYou, live.HeldUp, live.Working, live.Waiting, live.Queued}

// Take takes the book as it was read last.
func (r *Rail) Take(page *lead.Page) { r.page, r.stale = page, true }

// Place are whose sessions the rows are of.
type Place struct {
	Store  string // its identity
	Folder string
	Hidden func() map[int64]bool // bots that are listed nowhere, by id
	// Title is how a session is shown by the title that it was given and its bot, "" for its
	// bot's name, and what is to be done when that is drawn; nil for nothing.
	Title func(given string, record *protocol.Bot) (title string, shown func())
}

// Fresh sees to it that the rows are of what there is now.
func (r *Rail) Fresh(w *live.World, at Place) {
	r.at = at
	if r.world != w || r.kin != w.Kin || r.stale {
		r.world, r.kin, r.stale = w, w.Kin, false
		r.derive(at)
	}
	if r.rows == nil {
		r.list()
	}
}

// Retitled notes that sessions may be called otherwise now.
func (r *Rail) Retitled() { r.rows = nil }

// derive finds the sessions and their tasks.
func (r *Rail) derive(at Place) {
	page := r.page
	if page == nil {
		page = &lead.Page{}
	}
	bots := r.world.Records()
	sessions := slices.DeleteFunc(lead.Sessions(at.Store, page, bots), func(f lead.Found) bool { return f.Archived || f.Gone() })
	slices.SortStableFunc(sessions, func(x, y lead.Found) int { return pinnedFirst(x) - pinnedFirst(y) })
	heads := make([]lead.Head, 0, len(sessions))
	for _, f := range sessions {
		heads = append(heads, lead.Head{Bot: f.Record, Project: f.Project})
	}
	slices.SortStableFunc(heads, func(x, y lead.Head) int { return int(x.Bot.ID - y.Bot.ID) }) // the oldest has its project's
	families := lead.Families(heads, bots, at.Hidden())
	r.own, r.others, r.of, r.rows = nil, nil, map[string]*Group{}, nil
	for _, f := range sessions {
		g := &Group{Found: f, kids: families[f.BotID]}
		if f.Folder == at.Folder {
			r.own = append(r.own, g)
			continue
		}
		r.others = append(r.others, g)
		g.states = map[string]live.State{}
		r.watch(g, r.world.Bot(f.Record.Name))
		for _, c := range g.kids {
			r.watch(g, r.world.Bot(c.Bot.Name))
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
func (r *Rail) watch(g *Group, b *live.Bot) {
	if b == nil {
		return
	}
	r.of[b.Record.Name] = g
	g.states[b.Record.Name] = b.State(false)
	g.count[b.State(false)]++
}

// Heard takes what a bot of another folder does now: whether its session is listed may
// depend on it.
func (r *Rail) Heard(b *live.Bot) {
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
func (g *Group) busy() (live.State, bool) {
	for _, s := range busyStates {
		if g.count[s] > 0 {
			return s, true
		}
	}
	return live.Idle, false
}

// list puts the rows together.
func (r *Rail) list() {
	r.rows, r.found = []Row{}, found{}
	for _, g := range r.own {
		r.session(g)
		for _, c := range g.kids {
			head := strings.Repeat("  ", min(c.Depth, 4)-1) + "├ "
			if c.Last {
				head = strings.Repeat("  ", min(c.Depth, 4)-1) + "└ "
			}
			r.rows = append(r.rows, Row{Bot: c.Bot.Name, head: head, words: strings.TrimPrefix(c.Bot.Name, g.Project+".")})
		}
	}
	first := true
	for _, g := range r.others {
		if _, busy := g.busy(); !busy {
			continue
		}
		if first {
			r.rows = append(r.rows, Row{}, Row{words: "other folders"})
			first = false
		}
		r.session(g)
	}
	r.index = make(map[string]int, len(r.rows))
	for i, row := range r.rows {
		if row.Bot != "" {
			r.index[row.Bot] = i
		}
	}
}

// session adds the rows of a session itself: its title, and whose that is.
func (r *Rail) session(g *Group) {
	title, shown := r.at.Title(g.Title, g.Record)
	r.rows = append(r.rows, Row{Bot: g.Record.Name, Group: g, words: cmp.Or(title, g.Bot), shown: shown})
	var about []string
	if title != "" {
		about = append(about, g.Record.Name)
	}
	if g.Kind == lead.KindFork {
		about = append(about, "fork")
	}
	if len(about) > 0 {
		r.rows = append(r.rows, Row{Group: g, words: strings.Join(about, "  ")})
	}
}

// Through are the rows that a filter lets through, 300 at most.
func (r *Rail) Through(filter string) []Row {
	if r.found.rows != nil && r.found.filter == filter {
		return r.found.rows
	}
	words := strings.Fields(strings.ToLower(filter))
	r.found = found{filter, []Row{}}
	for _, row := range r.rows {
		if row.Bot != "" && len(r.found.rows) < Most && lists.HasAll(strings.ToLower(row.Bot+" "+row.words), words) {
			r.found.rows = append(r.found.rows, row)
		}
	}
	return r.found.rows
}

// Around are the rows about the one of a bot, 300 at most, and which is the first.
func (r *Rail) Around(name string) (rows []Row, from int) {
	at := r.index[name]
	from = max(0, min(at-Most/2, len(r.rows)-Most))
	return r.rows[from:min(len(r.rows), from+Most)], from
}

// All are the rows. They are the rail's, and are not changed.
func (r *Rail) All() []Row { return r.rows }

// Session is the session that a bot's row is of; nil for a task's row, and for none.
func (r *Rail) Session(bot string) *Group {
	if i, ok := r.index[bot]; ok {
		return r.rows[i].Group
	}
	return nil
}

// Has reports whether a bot has a row.
func (r *Rail) Has(bot string) bool { _, is := r.index[bot]; return is }

// Shown is the session that is on screen, for the rows that are about it.
type Shown struct {
	Bot   string // "" for none
	Name  string // which may have been given just now
	Turns string // how many turns it has had, below its title; "" where that is not known
}

// Row is a row as it is drawn.
func (r *Rail) Row(row Row, now Shown) lists.Row {
	if row.Bot == "" {
		indent, turns := "  ", ""
		if row.Group == nil {
			indent = ""
		} else if now.Turns != "" && row.Group.Record.Name == now.Bot {
			turns = "   " + now.Turns
		}
		return lists.Row{Line: text.Of(text.Dim, indent+cells.OneLine(row.words)+turns)}
	}
	state := live.Idle
	if b := r.world.Bot(row.Bot); b != nil {
		state = b.State(false)
	}
	if g := row.Group; g != nil && g.states != nil && state == live.Idle {
		state, _ = g.busy() // of its tasks
	}
	g := Looks[state]
	words := row.words
	if row.Group != nil && now.Bot == row.Bot {
		words = now.Name
	}
	return lists.Row{ID: row.Bot, Match: row.Bot + " " + row.words, Shown: row.shown, Line: text.Join(
		text.Span{Text: indentOf(row) + row.head, Role: text.Rule}, text.Span{Text: g.Mark + " ", Role: g.Role}, text.Span{Text: cells.OneLine(words)})}
}

// indentOf puts a task below its session's title.
func indentOf(row Row) string {
	if row.Group != nil {
		return ""
	}
	return "  "
}
