package daemon_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agent/protocol"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	p := h.start()
	k := p.dial()

	t.Run("PR-35 live cursors rise without repeats and equal the replays", func(t *testing.T) {
		all := p.dial()
		all.follow("*", 0)
		for i := range 8 {
			name := fmt.Sprint("e", i)
			k.bot(name, h.workspace, "shell")
			k.submit(name, "r1", "hello", "")
			k.submit(name, "r2", "queued", `"delivery":"queue"`)
			k.submit(name, "r3", "steered", `"delivery":"steer"`)
		}
		var live []string
		cursor, done := int64(0), 0
		for done < 24 {
			l := all.note()
			if l.fields["data"] == nil {
				continue
			}
			if c := l.num("cursor"); c <= cursor {
				t.Fatalf("cursor %d after %d", c, cursor)
			} else {
				cursor = c
			}
			live = append(live, string(l.raw))
			if l.str("event") == "turn_finished" {
				done++
			}
		}
		var replayed []string
		for i := range 8 {
			after := int64(0)
			for {
				var page protocol.EventPage
				k.ask(&page, "events", fmt.Sprintf(`"bot":"e%d","after":%d,"limit":3`, i, after))
				if len(page.Events) == 0 {
					break
				}
				for _, e := range page.Events {
					replayed = append(replayed, string(e)+"\n")
				}
				after = page.NextCursor
			}
		}
		slices.SortFunc(replayed, func(a, b string) int { return int(cursorOf(a) - cursorOf(b)) })
		if !slices.Equal(live, replayed) {
			t.Errorf("%d live, %d replayed", len(live), len(replayed))
		}
		again := p.dial()
		again.ask(nil, "follow", `"bot":"*","after":0`)
		var replay []string
		for _, l := range again.until("follow_live", 0) {
			if l.fields["data"] != nil {
				replay = append(replay, string(l.raw))
			}
		}
		if !slices.Equal(live, replay) {
			t.Errorf("the store-wide replay differs: %d of %d", len(replay), len(live))
		}
	})

	t.Run("PR-37 a follow from the last cursor brings only follow_live", func(t *testing.T) {
		k.bot("Quiet", h.workspace, "")
		k.follow("Quiet", 0)
		s := k.submit("Quiet", "r", "x", "")
		cursor := last(k.until("turn_finished", s.Turn)).num("cursor")
		c := p.dial()
		c.ask(nil, "follow", fmt.Sprintf(`"bot":"Quiet","after":%d`, cursor))
		for _, l := range c.until("follow_live", 0) {
			if l.fields["data"] != nil {
				t.Errorf("got %s", l.raw)
			}
		}
	})

	t.Run("PR-38 after unfollow is answered nothing of the old replay follows", func(t *testing.T) {
		for range 20 {
			c := p.dial()
			c.write(`{"id":1,"op":"follow","bot":"*","after":0}` + "\n" + `{"id":2,"op":"unfollow","bot":"*"}` + "\n")
			c.answer(2)
			c.notes = nil
			c.ask(nil, "stats", "")
			if len(c.notes) > 0 {
				t.Fatalf("got %s", c.notes[0].raw)
			}
		}
	})

	t.Run("PR-36 a bot made later is followed live, as events returns it", func(t *testing.T) {
		c := p.dial()
		c.follow("*", 0)
		k.bot("Late", h.workspace, "")
		l := last(c.until("created", 0))
		var page protocol.EventPage
		k.ask(&page, "events", `"bot":"Late","after":0,"limit":1`)
		if string(page.Events[0])+"\n" != string(l.raw) {
			t.Errorf("live %s, stored %s", l.raw, page.Events[0])
		}
	})

	t.Run("a follower of a script is told so once", func(t *testing.T) {
		c := p.dial()
		c.ask(nil, "follow", `"bot":"Quiet","after":0`)
		n := 0
		for _, l := range c.until("follow_live", 0) {
			if l.str("event") == "scripted_model" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d notices", n)
		}
	})

	t.Run("pages out of range are refused", func(t *testing.T) {
		k.refused(protocol.InvalidEventPage, "events", `"bot":"Quiet","after":-1,"limit":1`)
		k.refused(protocol.InvalidEventPage, "events", `"bot":"Quiet","after":0,"limit":257`)
		k.refused(protocol.InvalidEventPage, "follow", `"bot":"Quiet","after":-1`)
		k.refused(protocol.BotNotFound, "follow", `"bot":"Nobody","after":0`)
		k.refused(protocol.InvalidTurnPage, "turns", `"bot":"Quiet","limit":0`)
		k.refused(protocol.InvalidBotPage, "bots", `"limit":257`)
		k.refused(protocol.InvalidHistoryPage, "history_nodes", `"bot":"Quiet","limit":401`)
		k.refused(protocol.NodeNotInHistory, "history_nodes", `"bot":"Quiet","from":0`)
		k.refused(protocol.InvalidHistoryPage, "history_items", `"bot":"Quiet","nodes":[]`)
		k.refused(protocol.NodeNotInHistory, "history_items", `"bot":"Quiet","nodes":[1]`)
		k.refused(protocol.NodeNotInHistory, "item", `"bot":"Quiet","node":99999`)
		k.refused(protocol.TurnNotFound, "result", `"bot":"Quiet","turn":1`)
	})
}

func cursorOf(line string) int64 {
	var n int64
	fmt.Sscanf(line, `{"cursor":%d`, &n)
	return n
}

func TestHistory(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	k := h.start().dial()
	k.bot("Ada", h.workspace, "")
	k.follow("Ada", 0)
	for i := range 5 {
		s := k.submit("Ada", fmt.Sprint("r", i), fmt.Sprint("prompt ", i), "")
		k.until("turn_finished", s.Turn)
	}
	var all protocol.NodePage
	k.ask(&all, "history_nodes", `"bot":"Ada"`)
	if len(all.Nodes) != 10 || all.NextFrom != nil || all.Nodes[9].Turn != 1 || all.Nodes[0].Turn != 5 || all.Nodes[1].Turn != 5 {
		t.Fatalf("nodes %+v", all)
	}
	t.Run("pages from the newest join to the whole", func(t *testing.T) {
		var got []protocol.Node
		from := ""
		for {
			var page protocol.NodePage
			k.ask(&page, "history_nodes", `"bot":"Ada","limit":3`+from)
			got = append(got, page.Nodes...)
			if page.NextFrom == nil {
				break
			}
			from = fmt.Sprintf(`,"from":%d`, *page.NextFrom)
		}
		if !slices.Equal(got, all.Nodes) {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("pages from the oldest join to the whole", func(t *testing.T) {
		var got []protocol.Node
		least := ""
		for range 10 {
			var page protocol.NodePage
			k.ask(&page, "history_nodes", `"bot":"Ada","limit":3,"oldest_first":true`+least)
			got = append(slices.Clone(page.Nodes), got...)
			next, ok := page.NextNewer.Get()
			if !ok {
				break
			}
			least = fmt.Sprintf(`,"min_node":%d`, next)
		}
		if !slices.Equal(got, all.Nodes) {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("items come in the order asked and byte for byte", func(t *testing.T) {
		var page protocol.ItemPage
		k.ask(&page, "history_items", fmt.Sprintf(`"bot":"Ada","nodes":[%d,%d]`, all.Nodes[9].Node, all.Nodes[0].Node))
		if len(page.Items) != 2 || string(page.Items[0].Item) != `{"role":"user","text":"prompt 0"}` {
			t.Errorf("items %+v", page.Items)
		}
		if got := k.item("Ada", all.Nodes[9].Node); got != `{"role":"user","text":"prompt 0"}` {
			t.Errorf("item %s", got)
		}
	})
	t.Run("RT-84 a prompt with an origin reaches the model behind its line", func(t *testing.T) {
		s := k.submit("Ada", "o", "red", `"origin":"lookout"`)
		k.until("turn_finished", s.Turn)
		var nodes protocol.NodePage
		k.ask(&nodes, "history_nodes", `"bot":"Ada","limit":2`)
		if got := k.item("Ada", nodes.Nodes[1].Node); !strings.Contains(got, `Event from lookout, not from the person:\nred`) {
			t.Errorf("item %s", got)
		}
		k.refused(protocol.InvalidFrom, "submit", submission("Ada", "f", "x", `"from":{"bot":"Ada","turn":999}`))
		k.refused(protocol.InvalidOrigin, "submit", submission("Ada", "f", "x", `"origin":"a b"`))
		s = k.submit("Ada", "f", "x", fmt.Sprintf(`"from":{"bot":"Ada","turn":%d}`, s.Turn))
		k.until("turn_finished", s.Turn)
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"Ada","after":6`)
		if f := page.Turns[0].From; f == nil || f.Bot != "Ada" || f.BotID != 1 || f.Turn != 6 {
			t.Errorf("from %+v", f)
		}
	})
}
