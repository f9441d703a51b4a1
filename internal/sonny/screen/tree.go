package screen

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// treeCommands show where the forks of a session began (sonny.md 10.5).
var treeCommands = feature{
	commands: []slashCommand{{"tree", "", "the forks of this session", func(a *App, _ string) error { return a.openTree() }}},
}

// branchInfo is what a row of the tree says beside the name.
type branchInfo struct{ from, last string }

// openTree lists the family of the session on screen, each below what it is a fork of.
func (a *App) openTree() error {
	s := a.session
	if s == nil {
		return protocol.Fail("failed", "nothing was said yet")
	}
	page, _, err := a.o.Book.Read()
	if err != nil {
		return err
	}
	rows := family(s.id, lead.Sessions(a.ready.Store.Identity, page, a.world.Records()))
	info := map[int64]branchInfo{}
	p := &listPanel{title: "tree of " + cells.OneLine(s.name()), empty: "there are no forks", hint: []string{"Enter open"}, List: lists.List{At: fmt.Sprint(s.id)}}
	p.right = func() string { return fmt.Sprint(len(rows)) }
	p.rows = func(*App) (out []lists.Row) {
		for _, r := range rows {
			out = append(out, treeRow(r, info[r.BotID]))
		}
		return out
	}
	p.keys = map[string]func(*App, lists.Row) bool{"enter": func(a *App, r lists.Row) bool {
		for _, f := range rows {
			if fmt.Sprint(f.BotID) == r.ID && f.Record != nil {
				a.goTo(f.Record.Name, false)
			}
		}
		return true
	}}
	a.panel = p
	for _, r := range rows {
		if r.Record != nil {
			a.readMember(r, info)
		}
	}
	return nil
}

// kinsman is a session in a tree, with how deep it stands.
type kinsman struct {
	lead.Found
	depth int
}

// family are all that a session is a fork of, or a fork of those, in the order of a tree.
func family(of int64, all []lead.Found) (out []kinsman) {
	byID := map[int64]lead.Found{}
	for _, f := range all {
		byID[f.BotID] = f
	}
	root := of
	for range all {
		parent, ok := byID[byID[root].ForkOf]
		if !ok {
			break
		}
		root = parent.BotID
	}
	seen := map[int64]bool{}
	var add func(id int64, depth int)
	add = func(id int64, depth int) {
		f, ok := byID[id]
		if !ok || seen[id] {
			return
		}
		seen[id] = true
		out = append(out, kinsman{f, depth})
		var under []int64
		for _, g := range all {
			if g.ForkOf == id {
				under = append(under, g.BotID)
			}
		}
		slices.Sort(under)
		for _, u := range under {
			add(u, depth+1)
		}
	}
	add(root, 0)
	return out
}

func treeRow(m kinsman, info branchInfo) lists.Row {
	head := strings.Repeat("  ", m.depth)
	if m.depth > 0 {
		head = strings.Repeat("  ", m.depth-1) + "└ "
	}
	spans := []text.Span{{Text: head, Role: text.Rule}, {Text: text.Pad(cells.OneLine(titleOf(m.Found)), max(8, 26-len(head))) + "  "}}
	if m.Gone() {
		spans = append(spans, text.Span{Text: "gone", Role: text.Fail})
	}
	if info.from != "" {
		spans = append(spans, text.Span{Text: "after " + cells.OneLine(info.from) + "  ", Role: text.Dim})
	}
	if info.last != "" {
		spans = append(spans, text.Span{Text: cells.OneLine(info.last), Role: text.Dim})
	}
	return lists.Row{ID: fmt.Sprint(m.BotID), Line: text.Join(spans...)}
}

// readMember reads where a fork began and what was said in it last.
func (a *App) readMember(m kinsman, info map[int64]branchInfo) {
	name := m.Record.Name
	do(a, func(ctx context.Context) (branchInfo, error) {
		var got branchInfo
		if m.ForkOf != 0 {
			page, err := a.client().Events(ctx, name, 0, 1)
			if err != nil {
				return got, err
			}
			events, err := page.All()
			if err != nil {
				return got, err
			}
			got.from = forkedAfter(ctx, a, name, events)
		}
		for t, err := range a.client().Turns(ctx, name, 0) {
			if err != nil {
				return got, err
			}
			got.last = headLine(t.Prompt)
		}
		return got, nil
	}, func(got branchInfo, err error) {
		if err == nil {
			info[m.BotID] = got
		}
	})
}

// forkedAfter are the first words of the item that a fork began after.
func forkedAfter(ctx context.Context, a *App, name string, events []*protocol.Event) string {
	for _, e := range events {
		var d protocol.Forked
		if e.Kind != protocol.KindForked || e.Decode(&d) != nil || d.Node == nil {
			continue
		}
		item, err := a.client().Item(ctx, name, *d.Node)
		if err != nil {
			return ""
		}
		tr := cells.New(a.o.Markdown)
		tr.Item(*d.Node, 0, item, cells.About{}, false)
		if tr.Len() > 0 {
			return text.Cut(headLine(tr.At(tr.Len()-1).Words()), 40, "…")
		}
	}
	return ""
}
