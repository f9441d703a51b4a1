package daemon

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agent/internal/engine"
	"agent/protocol"
)

func TestPR86TheTableOfBotSockets(t *testing.T) {
	t.Parallel()
	want := map[treatment]string{ // protocol.md 15
		narrowed: "create delete fork interrupt pause prune submit wait",
		allowed: "approvals artifact bots events follow history_items history_nodes inspect item prompts provider_models " +
			"result stats tool_calls turns unfollow",
		refused: "answer approve_step companions configure renew_approvals renew_tools resume serve_approvals serve_tools " +
			"shutdown step_result tool_result",
	}
	got := map[treatment][]string{}
	for _, op := range protocol.Operations() {
		how, named := onBotSocket[op]
		if !named {
			t.Errorf("%s is not in the table", op)
		}
		got[how] = append(got[how], op)
	}
	for how, ops := range want {
		if list := strings.Join(got[how], " "); list != ops {
			t.Errorf("treatment %d: got %s, want %s", how, list, ops)
		}
	}
	if len(onBotSocket) != len(protocol.Operations()) {
		t.Errorf("the table names %d ops of %d", len(onBotSocket), len(protocol.Operations()))
	}

	t.Run("PR-86 an op that it does not name is refused, and nothing happens", func(t *testing.T) {
		d := &Daemon{fan: newFanout()}
		s := d.newSession(nil, &engine.Owner{ID: 7, Name: "Ada"})
		// Were it let through, the parameters of shutdown would be answered and end
		// the daemon.
		d.quit = make(chan error, 1)
		s.handle(protocol.Request{ID: json.RawMessage("1"), Op: "test_op", Params: &protocol.Shutdown{}})
		if len(s.out.lines) != 1 || len(d.quit) != 0 {
			t.Fatalf("%d lines, ended: %v", len(s.out.lines), len(d.quit) != 0)
		}
		var answer struct {
			ID        int
			Error, Op string
			Scope     protocol.Scope
		}
		if err := json.Unmarshal(s.out.lines[0].line, &answer); err != nil {
			t.Fatal(err)
		}
		if answer.ID != 1 || answer.Error != "bot_socket_refused" || answer.Op != "test_op" || answer.Scope != (protocol.Scope{Bot: "Ada", BotID: 7}) {
			t.Errorf("got %+v", answer)
		}
	})
	t.Run("the daemon's own socket refuses none", func(t *testing.T) {
		s := &session{}
		for _, op := range append(slices.Clone(protocol.Operations()), "test_op") {
			if err := s.refusal(op); err != nil {
				t.Errorf("%s: %v", op, err)
			}
		}
	})
}
