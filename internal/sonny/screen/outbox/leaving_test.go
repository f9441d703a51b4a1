package outbox

import (
	"os"
	"testing"
)

func TestLeavingLosesNothingUnsaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		write func(b *bench)
		broke bool
		asks  bool
	}{
		{"nothing is written", func(*bench) {}, true, false},
		{"a draft is saved", func(b *bench) { b.box.Editor().Type("words") }, false, false},
		{"a draft cannot be saved", func(b *bench) { b.box.Editor().Type("words") }, true, true},
		{"a stash cannot be saved", func(b *bench) {
			b.box.Editor().Type("words")
			b.box.Stash()
		}, true, true},
		{"what was cleared cannot be saved", func(b *bench) { b.Remember("demo", "words") }, true, true},
		{"what was cleared is saved", func(b *bench) { b.Remember("demo", "words") }, false, false},
	} {
		b := newBench(t, nil)
		if c.broke {
			if err := os.WriteFile(b.kept, nil, 0o600); err != nil { // no folder can be made there
				t.Fatal(err)
			}
		} else if err := os.Mkdir(b.kept, 0o700); err != nil {
			t.Fatal(err)
		}
		b.box.file = "demo"
		c.write(b)
		left := false
		leave := func() {
			b.End(func() { left = true })
			b.settle()
		}
		if leave(); left == c.asks {
			t.Fatalf("%s: left %v", c.name, left)
		}
		if leave(); !left {
			t.Errorf("%s: a second time does not leave", c.name)
		}
	}
}

func TestWhatIsWrittenAfterTheWarningIsAskedAboutAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.keeping.warned = true
	b.box.file = "demo"
	b.box.Editor().Type("more")
	b.NoteChanges()
	if b.keeping.warned {
		t.Error("the next Ctrl+D loses what was never asked about")
	}
}
