package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

// These tests look at a session's queue that nobody drains.

func quietOutput() (o *output, closed *int) {
	closed = new(int)
	return newOutput(nil, func() { *closed++ }), closed
}

// queuedTexts are the texts of the deltas that wait.
func (o *output) queuedTexts() (texts []string) {
	for i := range o.lines {
		if o.lines[i].line == nil {
			texts = append(texts, string(o.lines[i].text))
		}
	}
	return texts
}

func TestDeltasOfASlowReader(t *testing.T) {
	t.Parallel()
	t.Run("a turn's deltas are joined in order, another turn's and another kind's are not", func(t *testing.T) {
		t.Parallel()
		o, _ := quietOutput()
		for _, d := range []struct {
			kind, bot, text string
			turn            int64
		}{
			{protocol.KindTextDelta, "Ada", "a", 1},
			{protocol.KindTextDelta, "Bob", "x", 2},
			{protocol.KindTextDelta, "Ada", "b", 1},
			{protocol.KindThinkingDelta, "Ada", "c", 1},
			{protocol.KindTextDelta, "Ada", "d", 1},
			{protocol.KindTextDelta, "Ada", "e", 1},
		} {
			o.delta(d.kind, d.bot, d.turn, d.text)
		}
		if got := strings.Join(o.queuedTexts(), " "); got != "ab x c de" {
			t.Errorf("queued %q", got)
		}
	})
	t.Run("they are joined up to 64 KiB", func(t *testing.T) {
		t.Parallel()
		o, _ := quietOutput()
		for range 100 {
			o.delta(protocol.KindTextDelta, "Ada", 1, strings.Repeat("x", 1<<10))
		}
		if got := o.queuedTexts(); len(got) != 2 || len(got[0]) != 64<<10 || len(got[1]) != 36<<10 {
			t.Errorf("%d are queued", len(got))
		}
	})
	t.Run("past half of the queue they are dropped, and the session stays", func(t *testing.T) {
		t.Parallel()
		for _, row := range []struct {
			name string
			fill func(o *output)
		}{
			{"bytes", func(o *output) {
				o.put(make([]byte, protocol.MaxQueueBytes/2))
				o.put([]byte("x"))
			}},
			{"lines", func(o *output) {
				for range protocol.MaxQueueLines/2 + 1 {
					o.put([]byte("x"))
				}
			}},
		} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				o, closed := quietOutput()
				row.fill(o)
				for i := range 10_000 {
					o.delta(protocol.KindTextDelta, fmt.Sprint("b", i), int64(i), "text")
				}
				if got := o.queuedTexts(); len(got) != 0 || *closed != 0 || o.err != nil {
					t.Errorf("%d are queued, closed %d times, %v", len(got), *closed, o.err)
				}
				if !o.put([]byte("durable")) {
					t.Error("a durable line found no room")
				}
			})
		}
	})
}

func TestDurableLinesOfASlowReader(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		line []byte
		fit  int
	}{
		{"4,096 lines are queued, and one more ends the session", []byte("x\n"), protocol.MaxQueueLines},
		{"2 MiB are queued, and a byte more ends the session", make([]byte, 64<<10), protocol.MaxQueueBytes / (64 << 10)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			o, closed := quietOutput()
			for i := range row.fit {
				if !o.put(row.line) {
					t.Fatalf("line %d found no room", i)
				}
			}
			if o.put([]byte("x")) || *closed != 1 || o.err != errFull {
				t.Errorf("closed %d times, %v", *closed, o.err)
			}
			if len(o.lines) != 0 {
				t.Error("a closed session keeps its queue")
			}
			if o.put([]byte("x")) || *closed != 1 {
				t.Error("a closed session took a line, or was closed again")
			}
		})
	}
}

func TestDeferredAnswersWithoutRoomHoldUpNobody(t *testing.T) {
	t.Parallel()
	d := &Daemon{deferred: make(chan struct{}, protocol.MaxAdmissions)}
	full, other := d.newSession(nil, nil), d.newSession(nil, nil)
	full.out.put(make([]byte, protocol.MaxQueueBytes/2+1)) // its reader takes nothing
	defer full.out.end()
	ran := make(chan struct{}, protocol.MaxAdmissions)
	for range protocol.MaxAdmissions {
		full.later(nil, func() (any, *protocol.Error) { ran <- struct{}{}; return nil, nil })
	}
	for range protocol.MaxAdmissions {
		<-ran // its answer waits for room now
	}
	done := make(chan struct{})
	go func() {
		other.later(nil, func() (any, *protocol.Error) { close(done); return nil, nil })
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("another session's request waits for a reader that takes nothing")
	}
}
