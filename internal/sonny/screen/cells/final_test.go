package cells_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/md"
	"agent/protocol"
)

// printer takes a transcript as a printing front-end does.
type printer struct {
	tr    *cells.Transcript
	ended bool
	lines []string
}

func (p *printer) take() {
	for _, piece := range p.tr.Take(func(int64) bool { return p.ended }) {
		for _, line := range piece.Lines(cells.Look{Width: 60, Fold: cells.DefaultFold()}) {
			if s := strings.TrimRight(line.String(), " "); s != "" {
				p.lines = append(p.lines, s)
			}
		}
	}
}

func assistant(text string) json.RawMessage {
	item, _ := json.Marshal(map[string]any{"role": "assistant", "text": text})
	return item
}

func TestTake(t *testing.T) {
	t.Parallel()
	const reply = "first paragraph\n\nsecond paragraph\n\n```\ncode one\ncode two\n```\n\nlast words"
	want := []string{"first paragraph", "second paragraph", "code one", "code two", "last words"}
	trimmed := func(lines []string) (out []string) {
		for _, l := range lines {
			out = append(out, strings.TrimSpace(l))
		}
		return out
	}

	t.Run("a streamed reply is given once, block by block, the durable one after it", func(t *testing.T) {
		for step := 1; step <= len(reply); step++ {
			p := &printer{tr: cells.New(md.Options{})}
			for at := 0; at < len(reply); at += step {
				p.tr.Delta(1, false, reply[at:min(at+step, len(reply))])
				p.take()
			}
			if step == 1 && !slices.Equal(trimmed(p.lines), want[:4]) {
				t.Fatalf("before its end: %q", p.lines)
			}
			p.tr.Item(7, 1, assistant(reply), cells.About{}, false)
			p.take()
			p.ended = true
			p.take()
			if !slices.Equal(trimmed(p.lines), want) {
				t.Fatalf("in steps of %d: %q", step, p.lines)
			}
		}
	})

	t.Run("what a failed attempt had given is followed by a notice, and the next begins anew", func(t *testing.T) {
		p := &printer{tr: cells.New(md.Options{})}
		p.tr.Delta(1, false, "first paragraph\n\nsecond")
		p.take()
		p.tr.Void()
		p.take()
		p.tr.Delta(1, false, reply)
		p.take()
		p.tr.Item(7, 1, assistant(reply), cells.About{}, false)
		p.take()
		if got := trimmed(p.lines); !slices.Equal(got, append([]string{"first paragraph", "that attempt failed; trying again"}, want...)) {
			t.Errorf("%q", got)
		}
	})

	t.Run("a failed attempt of which nothing was given leaves no notice", func(t *testing.T) {
		p := &printer{tr: cells.New(md.Options{})}
		p.tr.Delta(1, false, "first")
		p.take()
		p.tr.Void()
		p.take()
		if len(p.lines) != 0 || p.tr.Len() != 0 {
			t.Errorf("%q", p.lines)
		}
	})

	t.Run("a call is given when it has ended, and what follows it not before", func(t *testing.T) {
		p := &printer{tr: cells.New(md.Options{})}
		started, _ := json.Marshal(protocol.ToolStarted{CallID: "c1", Name: "shell", Arguments: `{"command":"true"}`})
		p.tr.Event(&protocol.Event{Kind: protocol.KindToolStarted, Turn: 1, Durable: true, Data: started})
		p.tr.Notice(0, "a word of Sonny's", "")
		p.take()
		if len(p.lines) != 0 {
			t.Fatalf("while it runs: %q", p.lines)
		}
		if rest := p.tr.Rest(cells.Look{Width: 60, Fold: cells.DefaultFold()}); len(rest) != 2 {
			t.Errorf("the rest is %d rows", len(rest))
		}
		done, _ := json.Marshal(protocol.ToolCompleted{CallID: "c1"})
		p.tr.Event(&protocol.Event{Kind: protocol.KindToolCompleted, Turn: 1, Durable: true, Data: done})
		p.take()
		if len(p.lines) != 2 || !strings.Contains(p.lines[0], "true") {
			t.Errorf("%q", p.lines)
		}
		if rest := p.tr.Rest(cells.Look{Width: 60, Fold: cells.DefaultFold()}); len(rest) != 0 {
			t.Errorf("the rest is %d rows", len(rest))
		}
	})

	t.Run("at another width a streamed reply goes on where it was", func(t *testing.T) {
		p := &printer{tr: cells.New(md.Options{})}
		p.tr.Delta(1, false, strings.Repeat("wide words ", 20)+"\n\nsecond")
		p.take()
		n := len(p.lines)
		if rest := p.tr.Rest(cells.Look{Width: 20, Fold: cells.DefaultFold()}); len(rest) != 2 || rest[1].String() != "second" {
			t.Errorf("at 20 cells the rest is %v", rest)
		}
		p.take()
		if len(p.lines) != n {
			t.Errorf("given again: %q", p.lines[n:])
		}
	})
}
