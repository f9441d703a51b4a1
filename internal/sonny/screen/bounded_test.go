package screen

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/story"
	"agent/internal/sonny/screen/term"
	"agent/protocol"
)

// longPast is a history of a message and a reply by turns, of which loaded shows all.
type longPast struct{ reads int }

func pastItem(i int64) json.RawMessage {
	data, _ := json.Marshal(map[string]any{"role": []string{"user", "assistant"}[i%2], "text": fmt.Sprintf("item %d with a few words and `code`", i)})
	return data
}

func (*longPast) Part(context.Context, int64, int) (*story.Part, error) { return &story.Part{}, nil }

func (p *longPast) Items(_ context.Context, nodes []int64) (map[int64]json.RawMessage, error) {
	p.reads++
	items := map[int64]json.RawMessage{}
	for _, n := range nodes {
		items[n] = pastItem(n - 1)
	}
	return items, nil
}

// settledFrame draws until nothing is on its way any more.
func (a *App) settledFrame() {
	for range 4 {
		a.draw()
		a.running.Wait()
		for len(a.calls) > 0 {
			(<-a.calls)()
		}
	}
}

// inView are the rows on screen.
func (s *session) inView() (out []string) {
	for _, r := range s.tr.Rows(s.look, s.topRow, s.topRow+s.height) {
		out = append(out, r.Line.String())
	}
	return out
}

func TestALongSessionIsScrolledUpAndDownWithinItsBounds(t *testing.T) {
	t.Parallel()
	const items = 4000
	a := loaded(0, 0)
	s, past := a.session, &longPast{}
	s.story = story.New(teller{a, s}, past, s.tr)
	s.story.Fill(&story.Part{})
	for i := range items {
		line := fmt.Sprintf(`{"event":"message","cursor":%d,"bot":"demo.lead","turn":%d,"data":{"node":%d}}`, i+1, i/2+1, i+1)
		e, err := protocol.ParseEvent([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		s.event(e)
	}
	for !s.story.IsSettled() {
		a.settledFrame()
	}
	past.reads = 0
	scroll := func(key, until string) {
		t.Helper()
		was := ""
		for range items {
			a.key(term.Key{Name: key})
			a.settledFrame()
			if kept, _ := s.tr.Kept(); kept > cells.MostCells {
				t.Fatalf("%d cells are kept", kept)
			}
			rows := strings.Join(s.inView(), "\n")
			for row := range strings.SplitSeq(rows, "\n") {
				if row != "" && !strings.Contains(row, "with a few words") {
					t.Fatalf("in view is %q", row)
				}
			}
			if strings.Contains(rows, until) {
				return
			}
			if rows == was {
				t.Fatalf("%s goes no further than\n%s", key, rows)
			}
			was = rows
		}
	}
	scroll("pgup", "item 0 with")
	if past.reads == 0 || !s.tr.Folds() {
		t.Error("nothing was let go")
	}
	scroll("pgdown", fmt.Sprintf("item %d with", items-1))

	t.Run("the reader goes to its top, and back to a session that stands where it did", func(t *testing.T) {
		a.openReader()
		a.settledFrame()
		a.key(term.Key{Name: "home"})
		a.settledFrame()
		p := a.panel.(*readerPanel)
		rows := s.tr.Rows(p.look(a, a.w), p.top, p.top+p.h)
		if kept, _ := s.tr.Kept(); kept > cells.MostCells || !strings.Contains(rows[0].Line.String(), "item 0 with") {
			t.Errorf("%d are kept; at the top is %q", kept, rows[0].Line)
		}
		a.key(term.Key{Name: "q"})
		a.settledFrame()
		if rows := s.inView(); !strings.Contains(strings.Join(rows, "\n"), fmt.Sprintf("item %d with", items-1)) {
			t.Errorf("in view is %q", rows)
		}
	})

	t.Run("a message that is not kept is gone to", func(t *testing.T) {
		for range 600 {
			a.key(term.Key{Name: "alt+up"})
			a.settledFrame()
		}
		if c := s.mark.cell; c == nil || c.Kind != cells.User || c.Node != items-2*600+1 {
			t.Errorf("it is at %+v", c)
		}
	})

	t.Run("what is selected is there to be copied, all of it", func(t *testing.T) {
		s.up = 0
		a.settledFrame()
		last := s.tr.Height(s.look) - 1
		from := spot{row: 0}
		s.mark.from, s.mark.to = &from, spot{row: last, col: 200}
		for range 20 {
			a.settledFrame()
		}
		text := s.selection()
		for i := range items {
			if !strings.Contains(text, fmt.Sprintf("item %d with", i)) {
				t.Fatalf("item %d is missing", i)
			}
		}
		s.mark.from = nil
		a.settledFrame()
		if kept, _ := s.tr.Kept(); kept > cells.MostCells {
			t.Errorf("%d are kept when it is copied", kept)
		}
	})
}
