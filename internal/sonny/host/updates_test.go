package host_test

import (
	"fmt"
	"strings"
	"testing"

	"agent/internal/sonny/lead"
	"agent/protocol"
)

// updates are the turns that a bot was given by the tool host.
func (d *desk) updates(bot string) (prompts []string) {
	d.t.Helper()
	for turn, err := range d.c.Turns(d.ctx, bot, 0) {
		if err != nil {
			d.t.Fatal(err)
		}
		if turn.Origin != "tasks" {
			continue
		}
		p, err := d.c.Prompts(d.ctx, bot, turn.Turn, 1)
		if err != nil {
			d.t.Fatal(err)
		}
		prompts = append(prompts, p.Prompts[0].Text)
	}
	return prompts
}

func TestWhatALeadHears(t *testing.T) {
	t.Parallel()
	t.Run("SO-69 a task's end makes one message, unless the lead waited for it", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, scripted(t,
			`{"match": {"equals": "start and wait"}, "repeat_last": true, "steps": [
				{"calls": [{"tool": "start_task", "arguments": {"name": "waited", "brief": "slow: 3", "worktree": false}}], "capture": {"handle": "turn:demo.waited/[0-9]+"}},
				{"calls": [{"tool": "wait", "arguments": {"handles": ["${handle}"]}}]}, {"text": "${last}"}]}`,
			calls("start two", "start_task", `{"name": "a", "brief": "say: hi", "worktree": false}`, "start_task", `{"name": "b", "brief": "save: a-fact | text", "worktree": false}`),
		))
		bot := d.lead(d.Repo("demo", nil), lead.Manual)
		if said := d.say("demo.lead", "start and wait").says(); !strings.Contains(said, "completed") {
			t.Fatal(said)
		}
		d.say("demo.lead", "start two").says()
		start, err := d.starter(bot).Resolve(d.ctx, lead.TaskRequest{Name: "mine", Brief: "say: hi"})
		if err != nil {
			t.Fatal(err)
		}
		mine, err := start.Do(d.ctx)
		if err != nil {
			t.Fatal(err)
		}
		d.Until("a message", func() bool { return len(d.updates("demo.lead")) > 0 })
		got := d.updates("demo.lead")
		if len(got) != 1 || !strings.HasPrefix(got[0], "Task updates:\n") {
			t.Fatalf("%q", got)
		}
		if strings.Contains(got[0], "demo.waited") {
			t.Errorf("it is told what it waited for: %s", got[0])
		}
		own, others, _ := strings.Cut(got[0], "leave these alone")
		for _, name := range []string{"demo.a", "demo.b"} {
			task, err := d.c.Inspect(d.ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("- turn:%s/", task.Name); !strings.Contains(own, want) || !strings.Contains(own, "completed, asked for by you") {
				t.Errorf("no %s in %s", want, own)
			}
		}
		if !strings.Contains(others, "- "+mine.Handle+" completed, asked for by the person") || !strings.Contains(others, "- saved a-fact (project demo): text") {
			t.Error(others)
		}
	})
	t.Run("turns that end while the host is away make none", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		bot := d.lead(d.Repo("demo", nil), lead.Full)
		d.companions()
		start, err := d.starter(bot).Resolve(d.ctx, lead.TaskRequest{Name: "a", Brief: "say: hi"})
		if err != nil {
			t.Fatal(err)
		}
		first, err := start.Do(d.ctx)
		if err != nil {
			t.Fatal(err)
		}
		(&turn{d, protocol.Submitted{Turn: first.Turn}, first.Bot}).says()
		d.companions("toolhost")
		d.say("demo.lead", "plan: one;two;three").says() // it is there
		second := d.say("demo.a", "say: again")
		second.says()
		d.Until("a message", func() bool { return len(d.updates("demo.lead")) > 0 })
		if got := d.updates("demo.lead"); len(got) != 1 || strings.Contains(got[0], first.Handle) || !strings.Contains(got[0], second.Handle) {
			t.Errorf("%q", got)
		}
	})
}
