package host_test

import (
	"strings"
	"testing"

	"agent/internal/sonny/lead"
	"agent/protocol"
)

const setup = "printf %s \"$AGENT_SOURCE\" > from\n"

func TestStartingATask(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	t.Run("SO-65 PO-114 the setup is shown, and nothing is made before the verdict", func(t *testing.T) {
		d := d.in(t)
		dir := d.Repo("demo", map[string]string{".agents/setup": setup, "f.txt": "one"})
		d.lead(dir, lead.Manual)
		n := d.say("demo.lead", "task: build | say: done")
		a := d.waiting("demo.lead")
		if a.Cause != "step" || a.Name != "start_task.start" || !strings.Contains(string(a.Arguments), `$AGENT_SOURCE\" > from`) {
			t.Errorf("%s %s %s", a.Cause, a.Name, a.Arguments)
		}
		tree := d.Path(".agent", "worktrees", "demo", "build")
		if there(tree) || d.Git(dir, "branch", "--list", "agent/*") != "" || len(d.bots()) != 1 {
			t.Errorf("before the verdict: %v, %v", there(tree), d.bots())
		}
		d.answer(a, protocol.Allow, "")
		var got lead.TaskStarted
		n.answers(&got)
		if got.Bot != "demo.build" || got.Workspace != tree || got.Setup != "ran" || got.Branch != "agent/demo.build" {
			t.Errorf("%+v", got)
		}
		if from := d.Run("cat", tree+"/from").Stdout; from != dir {
			t.Errorf("from holds %q", from)
		}
		task := &turn{d, protocol.Submitted{Turn: got.Turn}, got.Bot}
		if said := task.says(); said != "done" {
			t.Errorf("the task said %q", said)
		}
		if branches := d.Git(dir, "branch", "--list", "agent/*"); !strings.Contains(branches, "agent/demo.build") {
			t.Error(branches)
		}
	})
}
