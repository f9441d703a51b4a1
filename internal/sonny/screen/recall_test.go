package screen

import (
	"slices"
	"testing"
)

func TestACommandIsNotRecalledAsAMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commands = []slashCommand{{name: "model"}}
	b.history = sentHistory{project: "demo"}
	b.tookHistory("demo", []string{"say: one", "/model x", "/model", "/model\nx", "//model x", "/etc/hosts is wrong", "see /model"}, nil)
	want := []string{"say: one", "//model x", "/etc/hosts is wrong", "see /model"}
	if !slices.Equal(b.history.list, want) {
		t.Errorf("recalled are %q", b.history.list)
	}
	b.remember("/model y")
	if !slices.Equal(b.history.list, want) {
		t.Errorf("after one more: %q", b.history.list)
	}
}
