package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"agent/protocol"
)

func TestClientToolDeclarations(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	k := p.dial()
	create := func(declared string) string {
		return `"bot":"X","model":"s/m","instructions":"","tools":["echo"],"client_tools":[` + declared + `]`
	}
	good := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"parameters":{"type":"object"},"tag":"sonny"}`, name)
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = good(fmt.Sprint("t", i))
	}
	big := fmt.Sprintf(`{"name":"b","parameters":{"type":"object","title":%q},"tag":"x"}`, strings.Repeat("x", 64<<10))
	for _, row := range []struct {
		name, declared string
		code           protocol.Code
	}{
		{"a name with a dot", good("a.b"), protocol.InvalidClientTool},
		{"a name too long", good(strings.Repeat("a", 65)), protocol.InvalidClientTool},
		{"a daemon's tool", good("shell"), protocol.ToolNameTaken},
		{"a name given twice", good("a") + "," + good("a"), protocol.ToolNameTaken},
		{"a bad tag", `{"name":"a","parameters":{"type":"object"},"tag":"a b"}`, protocol.InvalidTag},
		{"no schema of an object", `{"name":"a","parameters":{"type":"string"},"tag":"x"}`, protocol.InvalidClientTool},
		{"a malformed schema", `{"name":"a","parameters":{"type":"object","required":"x"},"tag":"x"}`, protocol.InvalidClientTool},
		{"a description too long", fmt.Sprintf(`{"name":"a","description":%q,"parameters":{"type":"object"},"tag":"x"}`, strings.Repeat("d", 8193)), protocol.InvalidClientTool},
		{"an expiry too short", `{"name":"a","parameters":{"type":"object"},"tag":"x","expire_ms":999}`, protocol.InvalidClientTool},
		{"an expiry too long", `{"name":"a","parameters":{"type":"object"},"tag":"x","expire_ms":86400001}`, protocol.InvalidClientTool},
		{"more than 64 tools", strings.Join(many, ","), protocol.ClientToolsLimit},
		{"schemas over 64 KiB", big, protocol.ClientToolsLimit},
		{"PR-83 a name given twice inside client_tools", `{"name":"a","parameters":{"type":"object","type":"object"},"tag":"x"}`, protocol.InvalidJSON},
		{"an unknown field", `{"name":"a","parameters":{"type":"object"},"tag":"x","expires":1}`, protocol.InvalidJSON},
	} {
		t.Run(row.name+" is refused and makes nothing", func(t *testing.T) {
			c := p.dial()
			if row.code != protocol.InvalidJSON {
				c.refused(row.code, "create", create(row.declared))
			} else {
				c.request("create", create(row.declared))
				if l := c.read(); l.str("error") != string(row.code) {
					t.Errorf("answer %s", l.raw)
				}
			}
			c.refused(protocol.BotNotFound, "inspect", `"bot":"X"`)
		})
	}
	t.Run("PR-83 parameters come back from inspect byte for byte, also after a restart", func(t *testing.T) {
		declared := `{"name":"memory","description":"keeps <facts>","parameters":{ "type" : "object",  "title":"a\/b <&> \u00e9" , "properties":{}},"tag":"sonny","gated":false,"expire_ms":5000}`
		k.served("Ada", h.workspace, "echo", declared)
		p.kill()
		k = h.start().dial()
		for _, op := range []string{"inspect", "resume"} {
			if l := k.ask(nil, op, `"bot":"Ada"`); !strings.Contains(string(l.raw), `"client_tools":[`+declared+`]`) {
				t.Errorf("%s: %s", op, l.raw)
			}
		}
		if l := k.ask(nil, "bots", ""); !strings.Contains(string(l.raw), declared) {
			t.Errorf("bots: %s", l.raw)
		}
	})
}

func TestClientToolsOfForksAndConfigure(t *testing.T) {
	t.Parallel()
	_, _, k := servedHost(t, 0, "")
	declared := func(bot string) string {
		l := k.ask(nil, "inspect", fmt.Sprintf(`"bot":%q`, bot))
		return string(l.fields["result"])
	}
	t.Run("a fork has its source's, and may be allowed them", func(t *testing.T) {
		k.ask(nil, "fork", `"bot":"Eve","source":"Ada","allow":["memory"]`)
		if r := declared("Eve"); !strings.Contains(r, memoryTool("")[:len(memoryTool(""))-1]) || !strings.Contains(r, `"allowed":["memory"]`) {
			t.Errorf("record %s", r)
		}
		k.refused(protocol.AllowNotSubset, "fork", `"bot":"Fay","source":"Ada","allow":["nope"]`)
	})
	t.Run("configure replaces them while no turn runs", func(t *testing.T) {
		lease := k.serve("sonny", 60000)
		sub := k.submit("Ada", "r1", "one x", "")
		push := k.push()
		k.refused(protocol.BotBusy, "configure", `"bot":"Ada","client_tools":[]`)
		k.ask(nil, "tool_result", address(push.Turn, push.Data.CallID, lease.Lease)+`,"output":"kept"`)
		k.until("turn_finished", sub.Turn)
		k.ask(nil, "configure", `"bot":"Ada","client_tools":[{"name":"other","description":"d","parameters":{"type":"object"},"tag":"sonny"}]`)
		if r := declared("Ada"); strings.Contains(r, `"name":"memory"`) || !strings.Contains(r, `"name":"other"`) {
			t.Errorf("record %s", r)
		}
		k.ask(nil, "configure", `"bot":"Ada","client_tools":null`)
		if r := declared("Ada"); !strings.Contains(r, `"client_tools":[]`) {
			t.Errorf("record %s", r)
		}
	})
}
