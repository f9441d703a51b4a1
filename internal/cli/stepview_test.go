package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/client"
	"agent/protocol"
)

// served is a model that calls a served tool once.
const served = `{"version":1,"models":{"clerk":{"scripts":[{"match":{"any":true},"steps":[
	{"calls":[{"tool":"post","arguments":{"to":"Kim\u001b[2J"}}]},{"text":"The end."}]}]}}}`

func TestPrettySteps(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.write("script.json", served)
	g.write("tools.json", `[{"name":"post","description":"posts","parameters":{"type":"object"},"tag":"posts"}]`)
	g.env = append(g.env, "AGENT_PROVIDER=s=scripted,"+filepath.Join(g.dir, "script.json"))
	g.must("start")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := g.client()
	go c.ServeTools(ctx, "posts", client.ServeOptions{}, func(ctx context.Context, call *client.ToolCall) (client.ToolOutput, error) {
		for step, ok := range map[string]bool{"good": true, "bad": false} {
			verdict, err := call.ApproveStep(ctx, protocol.Step{Step: step, Name: "post/send", Arguments: json.RawMessage(call.Arguments)})
			if err != nil {
				return client.ToolOutput{}, err
			}
			if verdict.Decision == protocol.Allow {
				call.StepResult(ctx, step, ok, "as\n\x1b[2Jtold")
			}
		}
		return client.ToolOutput{Text: "Posted."}, nil
	})
	t.Run("a served call, its steps' verdicts and their results are shown, and act on no terminal", func(t *testing.T) {
		r := g.run("run", "--pretty", "--new", "--bot", "Bob", "--model", "s/clerk", "--tools=", "--client-tools", "tools.json", "hi")
		if r.status != 0 {
			t.Fatal(r.stderr)
		}
		for _, want := range []string{
			`▸ post {"to":"Kim`,
			"▸ post/send (step good): allowed\n",
			"  post/send (step good) done: as\n  \\u{1b}[2Jtold\n",
			"▸ post/send (step bad): allowed\n",
			"  [error] post/send (step bad) failed: as\n  \\u{1b}[2Jtold\n",
			"\n  Posted.\nThe end.",
		} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("no %q in %q", want, r.stdout)
			}
		}
		if call, step := strings.Index(r.stdout, "▸ post {"), strings.Index(r.stdout, "▸ post/send"); call > step {
			t.Errorf("the call is not shown before its steps: %q", r.stdout)
		}
		if strings.ContainsAny(r.stdout, "\x1b\u202e") {
			t.Errorf("it acts on a terminal: %q", r.stdout)
		}
		if again := g.run("follow", "--pretty", "--bot", "Bob"); !strings.Contains(again.stdout, ": allowed\n") || strings.Count(again.stdout, "▸ post {") != 1 {
			t.Errorf("the replay shows %q", again.stdout)
		}
	})
}

func TestDecided(t *testing.T) {
	t.Parallel()
	cli, judge := "cli", "judge"
	for name, c := range map[string]struct {
		step protocol.StepDecided
		want string
	}{
		"without a gate":                  {protocol.StepDecided{Decision: protocol.Allow}, "allowed"},
		"by two gates":                    {protocol.StepDecided{Decision: protocol.Allow, Approvals: []protocol.Verdict{{By: &cli}, {By: &judge}}}, "allowed by cli, judge"},
		"a denial with its reason":        {protocol.StepDecided{Decision: protocol.Deny, Approvals: []protocol.Verdict{{By: &cli, Reason: "not today"}}}, "denied by cli: not today"},
		"an expiry, which nobody decided": {protocol.StepDecided{Decision: protocol.Expired, Approvals: []protocol.Verdict{{}}}, "expired"},
		"an overturned denial":            {protocol.StepDecided{Decision: protocol.Allow, OverturnedBy: &cli}, "allowed, a denial overturned by cli"},
	} {
		if got := decided(&c.step); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
