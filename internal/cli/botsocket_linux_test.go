package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

// TestInsideASandbox runs the command in a confined shell, where AGENT_SOCKET is
// the bot's own.
func TestInsideASandbox(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	script := filepath.Join(g.dir, "script.json")
	text := `{"version":1,"models":{"m":{"scripts":[
	 {"match":{"regex":"(?s)^run (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}"}}]},{"text":"${last}"}]},
	 {"match":{"any":true},"steps":[{"text":"done: ${prompt}"}]}]}}}`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g.must("start", "--provider", "s=scripted,"+script)
	c := g.client()
	ctx := context.Background()
	make := func(name string, create protocol.Create) *protocol.Bot {
		t.Helper()
		create.Bot, create.Model, create.Tools, create.Workspace, create.Sandbox = name, "s/m", []string{"shell", "web_fetch"}, g.dir, protocol.SandboxReadOnly
		b, err := c.Create(ctx, &create)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	on := make("On", protocol.Create{Network: protocol.Set(true)})
	make("Off", protocol.Create{})
	make("Peer", protocol.Create{UnixSockets: []string{"/nowhere"}})
	n := 0
	do := func(bot, command string) string {
		t.Helper()
		n++
		out := g.run("run", "--bot", bot, "--", `run "$AGENT_BIN" `+command)
		if out.status != 0 {
			t.Fatalf("%s: %+v", command, out)
		}
		r := g.must("result", "--bot", bot, "--turn", lastTurn(t, g, bot))
		var o protocol.Outcome
		if err := json.Unmarshal([]byte(r), &o); err != nil || o.Text == "" {
			t.Fatalf("%s: %v", r, err)
		}
		return o.Text
	}
	expect := func(got string, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(got, p) {
				t.Errorf("no %s in %s", p, got)
			}
		}
	}
	for _, bot := range []string{"On", "Peer"} {
		t.Run(bot+" lists, reads and waits without blocking", func(t *testing.T) {
			expect(do(bot, "ls"), `\"name\":\"On\"`, `\"name\":\"Off\"`, `"success":true`)
			expect(do(bot, "stats"), `\"active_turns\":1`)
			expect(do(bot, "wait turn:On/1"), string(protocol.BlockingToolClient))
		})
	}
	t.Run("SB-114 a new bot's usual tools are too many for a bot without them", func(t *testing.T) {
		b := protocol.Create{Bot: "Plain", Model: "s/m", Tools: []string{"shell"}, Workspace: g.dir, Sandbox: protocol.SandboxReadOnly, Network: protocol.Set(true)}
		if _, err := c.Create(ctx, &b); err != nil {
			t.Fatal(err)
		}
		expect(do("Plain", "run --detach --new --bot Wide -- look"), string(protocol.SandboxWidens), "web_fetch", `"exit_code":1`)
	})
	t.Run("it delegates, and the work is the bot's", func(t *testing.T) {
		expect(do("On", "run --detach --new --bot Kid -- look"), `"success":true`)
		kid, err := c.Inspect(ctx, "Kid")
		if err != nil || kid.CreatedByID == nil || *kid.CreatedByID != on.ID || kid.Sandbox != protocol.SandboxReadOnly {
			t.Fatalf("got %+v (%v)", kid, err)
		}
		expect(do("On", "run --detach --bot Peer -- hello"), `"success":true`)
		turns := g.must("turns", "--bot", "Peer")
		expect(turns, `"from":{"bot":"On","bot_id":1,"turn":`)
		expect(do("Peer", "rm --bot Kid"), string(protocol.BotSocketRefused), `\"bot\":\"Peer\"`)
		g.must("wait", "turn:Kid/"+lastTurn(t, g, "Kid"))
		expect(do("On", "rm --bot Kid"), `"success":true`)
	})
	t.Run("CL-66 without its variables the socket is still the bot's", func(t *testing.T) {
		g.must("run", "--bot", "On", "--", `run env -u AGENT_BOT -u AGENT_BOT_ID -u AGENT_SHELL_CONTEXT "$AGENT_BIN" resume`)
		said := g.must("history", "--bot", "On", "--limit", "1")
		expect(said, string(protocol.BotSocketRefused), `"op`, "resume", `"scope`, "On")
	})
	t.Run("SB-39 none is reached with the network off", func(t *testing.T) {
		expect(do("Off", "ls"), string(protocol.DaemonUnavailable), "require_escalated", `"exit_code":1`)
	})
}

// lastTurn is a bot's newest turn.
func lastTurn(t *testing.T, g *ground, bot string) string {
	t.Helper()
	var rows []struct{ Turn json.Number }
	if err := json.Unmarshal([]byte(g.must("turns", "--bot", bot)), &rows); err != nil || len(rows) == 0 {
		t.Fatalf("the turns of %s: %v, %v", bot, rows, err)
	}
	return rows[len(rows)-1].Turn.String()
}
