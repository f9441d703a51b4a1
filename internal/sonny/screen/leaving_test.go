package screen

import (
	"os"
	"path/filepath"
	"testing"

	"agent/internal/sonny/pen"
)

// settled runs what is done beside the loop to its end, and its ends in the loop.
func (b *bench) settled() {
	b.running.Wait()
	for {
		select {
		case call := <-b.calls:
			call()
		default:
			return
		}
	}
}

func TestLeavingLosesNothingUnsaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		write func(b *bench)
		broke bool
		asks  bool
	}{
		{"nothing is written", func(*bench) {}, true, false},
		{"a draft is saved", func(b *bench) { b.composing().Editor().Type("words") }, false, false},
		{"a draft cannot be saved", func(b *bench) { b.composing().Editor().Type("words") }, true, true},
		{"a stash cannot be saved", func(b *bench) {
			c := b.composing()
			c.Editor().Type("words")
			c.stash.Toggle(c.Editor())
		}, true, true},
		{"what was cleared cannot be saved", func(b *bench) {
			b.composing().Editor().Type("words")
			b.cleared(b.composing())
		}, true, true},
		{"what was cleared is saved", func(b *bench) {
			b.composing().Editor().Type("words")
			b.cleared(b.composing())
		}, false, false},
	} {
		b := newBench(t)
		dir := filepath.Join(t.TempDir(), "sonny")
		if c.broke {
			if err := os.WriteFile(dir, nil, 0o600); err != nil { // no folder can be made there
				t.Fatal(err)
			}
		} else if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		b.pen, b.keeping.kept, b.keeping.failed = pensIn(dir), map[string]pen.Kept{}, map[string]bool{}
		b.sent = []func(*App, string){(*App).remember}
		b.composing().file = "demo"
		c.write(b)
		b.leave()
		b.settled()
		if b.quit == c.asks {
			t.Fatalf("%s: left %v", c.name, b.quit)
		}
		if b.leave(); !b.quit {
			t.Errorf("%s: a second time does not leave", c.name)
		}
	}
}

func TestWhatIsWrittenAfterTheWarningIsAskedAboutAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.keeping.warned, b.keeping.due = true, stopped()
	b.history.project = "demo"
	b.composing().file = "demo"
	b.composing().Editor().Type("more")
	b.noteChanges()
	if b.keeping.warned {
		t.Error("the next Ctrl+D loses what was never asked about")
	}
}
