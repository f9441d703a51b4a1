package client

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"agent/protocol"
)

func TestPages(t *testing.T) {
	t.Parallel()
	text := "αβγδ"
	f := newFake(t, func(s *fakeSession, r protocol.Request) {
		switch p := r.Params.(type) {
		case *protocol.Bots:
			page := protocol.BotPage{Bots: []protocol.Bot{{Name: p.After + "a"}}}
			if len(p.After) < 2 {
				page.NextAfter = &page.Bots[0].Name
			}
			s.result(r, page)
		case *protocol.Turns:
			if p.After >= 9 {
				s.refuse(r, protocol.Fail(protocol.InvalidTurnPage, ""))
				return
			}
			next := p.After + 3
			s.result(r, protocol.TurnPage{Turns: []protocol.Turn{{Turn: next - 1}, {Turn: next}}, NextAfter: &next})
		case *protocol.HistoryNodes:
			s.result(r, nodePage(p))
		case *protocol.HistoryItems:
			var page protocol.ItemPage
			for _, node := range p.Nodes[:min(2, len(p.Nodes))] { // a prefix of what was asked
				page.Items = append(page.Items, protocol.Item{Node: node, Item: raw(fmt.Sprint("item ", node))})
			}
			s.result(r, page)
		case *protocol.ArtifactRequest:
			if p.CallID != "c" {
				s.refuse(r, protocol.Fail(protocol.ArtifactNotFound, ""))
				return
			}
			at := p.Offset.Or(0)
			s.result(r, protocol.ArtifactPage{Text: text[at : at+2], NextOffset: at + 2, TotalBytes: int64(len(text)), Done: at+2 == int64(len(text))})
		}
	})
	c := f.client(t)
	t.Run("bots come page by page", func(t *testing.T) {
		t.Parallel()
		var names []string
		for bot, err := range c.Bots(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, bot.Name)
		}
		if !slices.Equal(names, []string{"a", "aa", "aaa"}) {
			t.Errorf("got %v", names)
		}
	})
	t.Run("a page that fails is the last pair", func(t *testing.T) {
		t.Parallel()
		var ids []int64
		var last error
		for turn, err := range c.Turns(t.Context(), "B", 0) {
			if last = err; err == nil {
				ids = append(ids, turn.Turn)
			}
		}
		if !slices.Equal(ids, []int64{2, 3, 5, 6, 8, 9}) || !errors.Is(last, protocol.InvalidTurnPage) {
			t.Errorf("%v %v", ids, last)
		}
	})
	for _, row := range []struct {
		name string
		o    HistoryOptions
		want []int64
	}{
		{"history is newest first", HistoryOptions{}, []int64{7, 6, 5, 4, 3, 2, 1}},
		{"history from a node down to another", HistoryOptions{From: 6, MinNode: 3}, []int64{6, 5, 4, 3}},
		{"history oldest first", HistoryOptions{OldestFirst: true}, []int64{1, 2, 3, 4, 5, 6, 7}},
		{"history oldest first within bounds", HistoryOptions{OldestFirst: true, From: 6, MinNode: 2}, []int64{2, 3, 4, 5, 6}},
		{"history with nothing in it", HistoryOptions{MinNode: 8}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var nodes []int64
			for item, err := range c.History(t.Context(), "B", row.o) {
				if err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes, item.Node)
				if item.Turn != item.Node*10 || string(item.Item) != fmt.Sprintf("%q", fmt.Sprint("item ", item.Node)) {
					t.Errorf("got %+v", item)
				}
			}
			if !slices.Equal(nodes, row.want) {
				t.Errorf("got %v", nodes)
			}
		})
	}
	t.Run("an artifact is read page by page", func(t *testing.T) {
		t.Parallel()
		got, err := io.ReadAll(c.Artifact(t.Context(), "B", 1, "c", "stdout"))
		if err != nil || string(got) != text {
			t.Errorf("%q %v", got, err)
		}
		if _, err := io.ReadAll(c.Artifact(t.Context(), "B", 1, "d", "stdout")); !errors.Is(err, protocol.ArtifactNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// nodePage lists three of the nodes 1 to 7.
func nodePage(p *protocol.HistoryNodes) protocol.NodePage {
	from, least := p.From.Or(7), p.MinNode.Or(1)
	var all []int64
	for n := from; n >= least; n-- {
		all = append(all, n)
	}
	part := all[:min(3, len(all))]
	if p.OldestFirst {
		part = all[len(all)-len(part):]
	}
	var page protocol.NodePage
	for _, n := range part {
		page.Nodes = append(page.Nodes, protocol.Node{Node: n, Turn: n * 10})
	}
	if p.OldestFirst {
		page.NextNewer = protocol.Null[int64]()
	}
	if len(part) < len(all) {
		next := part[len(part)-1] - 1
		if p.OldestFirst {
			page.NextNewer = protocol.Set(part[0] + 1)
		} else {
			page.NextFrom = &next
		}
	}
	return page
}
