package lead

import (
	"strings"
	"testing"

	"agent/protocol"
)

// A run without a screen is a session of its own and nobody's task (sonny.md 5.3, 26).
func TestARunWithoutAScreenIsNoTask(t *testing.T) {
	t.Parallel()
	head := bot(1, "demo.lead", "/src")
	maker := int64(1)
	made := bot(4, "demo.exec-abc234", "/src")
	made.CreatedBy, made.CreatedByID = &head.Name, &maker
	below := bot(8, "demo.below", "/src")
	exec := int64(2)
	below.CreatedByID = &exec
	bots := []protocol.Bot{
		head, bot(2, HeadlessName("demo", "abcde7"), "/src"), bot(3, "demo.build", "/src"), made,
		bot(5, "demo.exec-plan", "/src"), bot(6, "demo.lead-fork-abcdef", "/src"), bot(7, "demo.exec-ABCDEF", "/src"), below,
	}
	fork := Session{Store: "s", BotID: 6, Bot: "demo.lead-fork-abcdef", Kind: KindFork, ForkOf: 1}
	hidden := Hidden(Sessions("s", &Page{Sessions: []Session{fork, {Store: "s", BotID: 3, Kind: KindTask}}}, bots))
	var names []string
	for _, b := range Tasks(&head, "demo", bots, hidden) {
		names = append(names, b.Name)
	}
	if got := strings.Join(names, " "); got != "demo.build demo.exec-ABCDEF demo.exec-abc234 demo.exec-plan" {
		t.Errorf("the tasks are %s", got)
	}
	for name, want := range map[string]Kind{"demo.exec-abcde7": KindExec, "demo.exec-plan": KindTask, "demo.lead": KindLead, "exec-abcde7": KindLead} {
		b := bot(9, name, "/src")
		if got := KindOf(&b, "/home"); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
}
