package screen

import (
	"context"
	"fmt"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/md"
	"agent/internal/sonny/screen/roster"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// treeCommands show where the forks of a session began (sonny.md 10.5).
var treeCommands = feature{
	commands: []slashCommand{{"tree", "", "the forks of this session", func(a *App, _ string) error { return a.openTree() }}},
}

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
	rows := roster.Family(s.id, lead.Sessions(a.ready.Store.Identity, page, a.world.Records()))
	info := map[int64]roster.Branch{}
	p := &listPanel{title: "tree of " + cells.OneLine(a.called(s)), empty: "there are no forks", hint: []string{"Enter open"}, List: lists.List{At: fmt.Sprint(s.id)}}
	p.right = func() string { return fmt.Sprint(len(rows)) }
	p.rows = func(*App) (out []lists.Row) {
		for _, r := range rows {
			out = append(out, roster.Fork(r, info[r.BotID]))
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

// readMember reads where a fork began and what was said in it last.
func (a *App) readMember(m roster.Kinsman, info map[int64]roster.Branch) {
	name := m.Record.Name
	do(a, func(ctx context.Context) (roster.Branch, error) {
		var got roster.Branch
		if m.ForkOf != 0 {
			page, err := a.client().Events(ctx, name, 0, 1)
			if err != nil {
				return got, err
			}
			events, err := page.All()
			if err != nil {
				return got, err
			}
			got.From = forkedAfter(ctx, a, name, events)
		}
		for t, err := range a.client().Turns(ctx, name, 0) {
			if err != nil {
				return got, err
			}
			got.Last = headLine(t.Prompt)
		}
		return got, nil
	}, func(got roster.Branch, err error) {
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
		tr := cells.New(md.Options{})
		tr.Item(*d.Node, 0, item, cells.About{}, false)
		if tr.Len() > 0 {
			return text.Cut(headLine(tr.At(tr.Len()-1).Words()), 40, "…")
		}
	}
	return ""
}
