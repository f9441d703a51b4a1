package screen

import (
	"slices"
	"testing"
	"time"

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

func TestACommandIsNotRecalledAsAMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commands = []slashCommand{{name: "model"}}
	kept := pen.HistoryIn(b.o.Kept)
	for i, text := range []string{"see /model", "/etc/hosts is wrong", "//model x", "/model\nx", "/model", "/model x", "say: one"} {
		if _, err := kept.Add("demo", text, time.Date(2026, 3, 4, 5, 6, i, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
	}
	b.out.ReadSent("demo")
	b.settled()
	want := []string{"say: one", "//model x", "/etc/hosts is wrong", "see /model"}
	if !slices.Equal(b.out.Sent(), want) {
		t.Errorf("recalled are %q", b.out.Sent())
	}
	b.out.Remember("demo", "/model y")
	if !slices.Equal(b.out.Sent(), want) {
		t.Errorf("after one more: %q", b.out.Sent())
	}
}
