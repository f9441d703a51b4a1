package screen

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/connect"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/story"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// still is a terminal that shows nothing and says nothing.
type still struct{ frames int }

func (*still) Events() <-chan term.Event { return nil }
func (s *still) Draw(*term.Frame)        { s.frames++ }
func (*still) Print([]text.Line)         {}
func (*still) Write(string)              {}
func (*still) Redraw()                   {}
func (*still) Size() (int, int, error)   { return 160, 48, nil }
func (*still) Title(string)              {}
func (*still) AskBackground()            {}
func (*still) Bell()                     {}
func (*still) Send(string) bool          { return true }
func (*still) Copy(string) bool          { return true }
func (*still) Suspend()                  {}
func (*still) Resume() error             { return nil }

// loaded is a screen with a long transcript, without a daemon.
func loaded(items, lines int) *App {
	ready := &protocol.Ready{}
	a := &App{
		ctx:   context.Background(),
		front: &fullFront{},
		o: Options{
			Term: &still{}, Link: &connect.Link{Ready: ready}, Folder: &lead.Folder{Path: "/src/demo"}, Taste: Taste{Keys: keys.Default(), Fold: cells.DefaultFold()},
			Settings: lead.DefaultSettings(), Now: time.Now, Clock: time.Now,
		},
		world: live.New(ready), ready: ready, w: 160, h: 48, calls: make(chan func(), 256), frameDue: stopped(), clockDue: stopped(),
	}
	a.notes.now = time.Now
	a.spend.reading, a.firsts.reading = true, true // there is no daemon to be asked
	a.out = newOutbox(a)
	a.assemble()
	folder := "/src/demo"
	for i := range 9 {
		name := fmt.Sprintf("demo.task%d", i)
		if i == 0 {
			name = "demo.lead"
		}
		a.world.Page([]protocol.Bot{{ID: int64(i + 1), Name: name, Workspace: &folder, Status: "idle"}})
	}
	s := newSession(a, "demo.lead", 1)
	s.story.Fill(&story.Part{})
	a.session = s
	for i := range items {
		text, _ := json.Marshal(map[string]any{"role": []string{"user", "assistant"}[i%2], "text": fmt.Sprintf("item %d with a few words and `code`", i)})
		s.tr.Item(int64(i+1), int64(i/2+1), text, cells.About{}, false)
	}
	if lines > 0 {
		text, _ := json.Marshal(map[string]any{"role": "assistant", "text": strings.Repeat("A line of a long reply, with *marks* and 漢字.\n", lines)})
		s.tr.Item(int64(items+1), int64(items), text, cells.About{}, false)
	}
	a.draw()
	return a
}

// BenchmarkKey is a key in a long transcript while eight bots stream (SO-54): what is
// measured is the handling and the frame, without the terminal.
func BenchmarkKey(b *testing.B) {
	for _, c := range []struct {
		name         string
		items, lines int
	}{{"small", 10, 0}, {"10000 items", 10_000, 0}, {"50000 lines", 400, 50_000}} {
		b.Run(c.name, func(b *testing.B) {
			a := loaded(c.items, c.lines)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				line := fmt.Sprintf(`{"event":"text_delta","bot":"demo.task%d","turn":1,"text":"word ","durable":false}`, i%8+1)
				e, err := protocol.ParseEvent([]byte(line))
				if err != nil {
					b.Fatal(err)
				}
				a.note(live.Note{Event: e})
				a.key(term.Key{Name: "x", Text: "x"})
				a.draw()
				if i%100 == 99 {
					a.composing().Clear()
				}
			}
		})
	}
}
