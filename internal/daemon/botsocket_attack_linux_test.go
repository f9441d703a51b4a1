package daemon_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

// attack has a bot run one act of the test program, confined, and gives what it
// printed.
func (b *box) attack(bot, act string, args ...string) string {
	b.t.Helper()
	script := attackScript(act, args...)
	var result struct{ Stderr string }
	out := filepath.Join(b.workspace, "printed") // the whole of it, unlike a turn's text
	text := b.do(bot, "run "+script+" > "+out)
	if err := json.Unmarshal([]byte(text), &result); err != nil || result.Stderr != "" {
		b.t.Fatalf("%s: %s (%v)", act, text, err)
	}
	printed, err := os.ReadFile(out)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(printed)
}

// attackScript is what a shell runs for an act.
func attackScript(act string, args ...string) string {
	script := os.Args[0] + " " + insideVerb + " " + act
	for _, a := range args {
		if !strings.HasPrefix(a, `"$`) {
			a = "'" + a + "'"
		}
		script += " " + a
	}
	return script
}

// lines checks the lines of an act's output, in whatever order.
func (b *box) lines(got string, want ...string) {
	b.t.Helper()
	seen := map[string]bool{}
	for _, l := range strings.Split(strings.TrimSpace(got), "\n") {
		seen[l] = true
	}
	for _, w := range want {
		if !seen[w] {
			b.t.Errorf("no line %q in:\n%s", w, got)
		}
		delete(seen, w)
	}
	if len(seen) > 0 {
		b.t.Errorf("more than expected: %v", seen)
	}
}

const ownSocket = `"$AGENT_SOCKET"`

func TestBotSocketAttacks(t *testing.T) {
	t.Parallel()
	t.Run("PO-15 SB-36 SB-37 SB-38 only its own socket is there, with the network on", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"network":true`)
		ada, bob := b.inspect("Ada"), b.make("Bob", `"sandbox":"read-only"`)
		if got := b.do("Ada", "run echo $AGENT_SOCKET; ls "+filepath.Dir(b.socketOf(1))); !strings.Contains(got, fmt.Sprintf(`"stdout":"%s\n%d\n"`, b.socketOf(ada.ID), ada.ID)) {
			t.Errorf("got %s", got)
		}
		daemon, other := b.set.Socket, b.socketOf(bob.ID)
		got := b.attack("Ada", "dial", daemon, other, b.socketOf(99))
		for _, kind := range []string{"stream", "dgram", "seqpacket"} {
			for name, allowed := range map[string][]string{
				filepath.Base(daemon): {"ECONNREFUSED", "ENOTSOCK"}, filepath.Base(other): {"ENOENT"}, "99": {"ENOENT"},
			} {
				line := kind + " " + name + " connect "
				if !strings.Contains(got, line+allowed[0]+"\n") && !strings.Contains(got, line+allowed[len(allowed)-1]+"\n") {
					t.Errorf("%s: want %v in\n%s", line, allowed, got)
				}
			}
		}
		b.lines(b.attack("Ada", "dial", b.socketOf(ada.ID)), fmt.Sprintf("stream %d connect ok", ada.ID),
			fmt.Sprintf("dgram %d connect EPROTOTYPE", ada.ID), fmt.Sprintf("seqpacket %d connect EPROTOTYPE", ada.ID))
		b.lines(b.attack("Ada", "inherited"), "looked")
	})
	t.Run("SB-38 PO-16 every op of the protocol, from inside", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"network":true`)
		b.make("Bob", `"sandbox":"read-only"`)
		b.do("Bob", "run true")
		args := []string{ownSocket}
		for i, op := range protocol.Operations() {
			if op == protocol.OpPause {
				continue // it is allowed, and would end the attack itself
			}
			more := members[op]
			if more != "" {
				more = "," + more
			}
			if op == "follow" {
				more = `,"bot":"Bob","after":1000000`
			}
			args = append(args, fmt.Sprintf(`{"id":%d,"op":%q%s}`, i, op, more))
		}
		got := b.attack("Ada", "ask", args...)
		for _, op := range strings.Fields("configure answer tool_result approve_step step_result serve_approvals renew_approvals serve_tools renew_tools companions resume shutdown fork delete prune submit interrupt") {
			refused := false
			for l := range strings.Lines(got) {
				refused = refused || strings.Contains(l, `"error":"bot_socket_refused"`) && strings.Contains(l, `"op":"`+op+`"`)
			}
			if !refused {
				t.Errorf("%s was not refused:\n%s", op, got)
			}
		}
		if r := b.inspect("Ada"); r.Sandbox != "workspace-write" {
			t.Errorf("got %+v", r)
		}
		b.inspect("Bob")
	})
	t.Run("PR-64 AP-63 a pause over it is the bot's own, whoever it names; AP-65 only the daemon's socket lifts it", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"network":true`)
		ada, bob := b.inspect("Ada"), b.make("Bob", `"network":true`)
		b.k.follow("Ada", 0)
		s := b.k.submit("Ada", "pull", "run "+attackScript("ask", ownSocket,
			fmt.Sprintf(`{"id":1,"op":"pause","by":"somebody","from":{"bot":"Bob","bot_id":%d,"turn":1},"reason":"stop"}`, bob.ID)), "")
		var p protocol.Ready
		b.k.until("turn_finished", s.Turn)
		if o := b.k.result("Ada", s.Turn); o.Status != "interrupted" || o.Error == nil || *o.Error != protocol.Paused {
			t.Errorf("the puller's own turn: %+v", o)
		}
		if err := json.Unmarshal(b.p.dial().ready, &p); err != nil || p.Paused == nil || p.Paused.By != "Ada" || p.Paused.ByID == nil || *p.Paused.ByID != ada.ID || p.Paused.Reason == nil || *p.Paused.Reason != "stop" {
			t.Errorf("the record names %+v (%v)", p.Paused, err)
		}
		own, err := net.Dial("unix", b.socketOf(ada.ID))
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		k := &conn{t: t, c: own, r: bufio.NewReaderSize(own, 64<<10)}
		k.ready = k.read().raw
		k.refused(protocol.BotSocketRefused, "resume", "")
		k.refused(protocol.BotSocketRefused, "resume", `"bot":"Ada"`)
		b.k.ask(nil, "resume", "")
		if got := b.do("Ada", "run echo again"); !strings.Contains(got, "again") {
			t.Errorf("after the lift: %s", got)
		}
	})
	for name, more := range map[string]string{"off": "", "of Unix sockets": `,"unix_sockets":["/nowhere"]`} {
		t.Run("SB-39 with the network "+name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, more)
			ada := b.inspect("Ada")
			want := "socket EPERM"
			if more != "" {
				want = "connect ok"
			}
			if got := b.attack("Ada", "dial", b.socketOf(ada.ID)); !strings.Contains(got, fmt.Sprintf("stream %d %s\n", ada.ID, want)) {
				t.Errorf("got %s", got)
			}
		})
	}
	for where, more := range map[string]string{"a folder it may not write": `,"exclude_slash_tmp":true`, "a writable folder": ""} {
		t.Run("SB-46 PO-17 nothing is put in a socket's place, in "+where, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "")
			bob := b.make("Bob", `"sandbox":"read-only"`)
			eve := b.make("Eve", `"sandbox":"workspace-write","network":true`+more) // the sockets lie below /tmp
			got := b.attack("Eve", "take", filepath.Dir(b.socketOf(1)), b.socketOf(eve.ID))
			for _, l := range strings.Split(strings.TrimSpace(got), "\n") {
				switch name, result, _ := strings.Cut(l, ": "); {
				case name == "listed":
					if result != "1 ok" {
						t.Errorf("it sees %s", l)
					}
				case name == "listen over" && result == "EADDRINUSE":
				case result != "EROFS" && result != "EPERM" && result != "EBUSY":
					t.Errorf("%s", l)
				}
			}
			if !strings.Contains(got, "listen: EROFS\n") || !strings.Contains(got, "create: EROFS\n") {
				t.Errorf("got %s", got)
			}
			for _, r := range []protocol.Bot{b.inspect("Ada"), bob, eve} {
				b.own(r)
			}
			if list := b.sockets(); len(list) != 3 {
				t.Errorf("sockets %v", list)
			}
		})
	}
	t.Run("PO-18 a command outside the sandbox has the daemon's own socket", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"rules":{"files":[{"name":"r","text":"prefix_rule(['printenv'])"}]}`)
		ada := b.inspect("Ada")
		b.says(b.do("Ada", "run printenv AGENT_SOCKET"), "", quoted(b.set.Socket+"\n"))
		b.says(b.do("Ada", "run printenv AGENT_SOCKET && (true)"), "", quoted(b.socketOf(ada.ID)+"\n"))
		b.make("Free", `"sandbox":"danger-full-access"`)
		b.says(b.do("Free", "run echo $AGENT_SOCKET"), "", quoted(b.set.Socket+"\n"))
	})
	t.Run("a flood of sessions is bounded, and the daemon's own socket answers", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"network":true`)
		bob := b.make("Bob", `"sandbox":"read-only"`)
		mark := filepath.Join(b.workspace, "all-open")
		k := b.p.dial()
		k.follow("Ada", 0)
		s := k.submit("Ada", "flood", fmt.Sprintf(`run %s inside flood "$AGENT_SOCKET" 1000 %s`, os.Args[0], mark), "")
		eventually(t, "the sessions are open", func() bool { return b.exists("w/all-open") })
		var st protocol.Stats
		eventually(t, "as many are answered as may be", func() bool { b.p.dial().ask(&st, "stats", ""); return st.Sessions >= 64 })
		if st.Sessions > 64+20 {
			t.Errorf("%d sessions are open", st.Sessions)
		}
		b.own(bob).ask(nil, "stats", "")
		k.until("turn_finished", s.Turn)
		b.says(k.result("Ada", s.Turn).Text, "", `opened 1000, answered 64\n`)
		eventually(t, "all are gone", func() bool { b.k.ask(&st, "stats", ""); return st.Sessions < 64 })
		b.own(b.inspect("Ada")).ask(nil, "stats", "")
	})
	t.Run("broken and giant lines end their session at most", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"network":true`)
		got := b.attack("Ada", "garbage", ownSocket)
		for name, code := range map[string]string{
			"giant": "input_line_limit_or_truncation", "endless": "input_line_limit_or_truncation", "cut": "input_line_limit_or_truncation",
			"deep": "invalid_json", "zeros": "invalid_json", "not UTF-8": "invalid_json", "twice": "invalid_json", "unknown": "invalid_json",
		} {
			if !strings.Contains(got, name+`: {"id":null,"error":"`+code+`"`) {
				t.Errorf("%s: want %s in\n%s", name, code, got)
			}
		}
		b.k.ask(nil, "stats", "")
	})
	t.Run("a long path: sockets in the folder of the system's temporary one", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		h.set.Socket = filepath.Join(h.dir, strings.Repeat("s", 107-len(h.dir)-1))
		b := &box{host: h, p: h.start()}
		b.k = b.p.dial()
		ada := b.make("Ada", `"sandbox":"workspace-write","network":true`)
		bob := b.make("Bob", `"sandbox":"read-only"`)
		dir := *b.p.ready.BotSockets
		if !strings.HasPrefix(dir, fmt.Sprintf("/tmp/agent-%d/v1-", os.Getuid())) {
			t.Fatalf("the folder is %s", dir)
		}
		t.Cleanup(func() { os.Remove(dir) })
		own, other := fmt.Sprintf("%s/%d", dir, ada.ID), fmt.Sprintf("%s/%d", dir, bob.ID)
		b.says(b.do("Ada", "run echo $AGENT_SOCKET; ls /tmp/agent-* "+dir), "", fmt.Sprintf(`"stdout":"%s\n`, own))
		got := b.attack("Ada", "dial", own, other)
		if !strings.Contains(got, fmt.Sprintf("stream %d connect ok\n", ada.ID)) || !strings.Contains(got, fmt.Sprintf("stream %d connect ENOENT\n", bob.ID)) {
			t.Errorf("got %s", got)
		}
		b.lines(b.attack("Ada", "ask", own, `{"id":1,"op":"resume"}`),
			fmt.Sprintf(`{"id":1,"error":"bot_socket_refused","detail":"resume takes the daemon's own socket","op":"resume","scope":{"bot":"Ada","bot_id":%d}}`, ada.ID))
		b.p.dial().ask(nil, "shutdown", "")
		b.p.wait()
		if list, _ := os.ReadDir(dir); len(list) != 0 {
			t.Errorf("left behind: %v", list)
		}
	})
	t.Run("a background command keeps its socket and outlives its turn", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"network":true`)
		b.make("Bob", `"sandbox":"read-only"`)
		fifo := filepath.Join(b.workspace, "go")
		first := b.k.submit("Ada", "behind", fmt.Sprintf(`behind while [ ! -e %s ]; do sleep 0.02; done; %s inside ask "$AGENT_SOCKET" '{"id":1,"op":"submit","bot":"Bob","request_id":"late","prompt":"run true"}'`, fifo, os.Args[0]), "")
		b.k.ask(nil, "wait", fmt.Sprintf(`"handles":[%q]`, first.Handle))
		if err := os.WriteFile(fifo, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b.k.ask(nil, "wait", `"handles":["proc:1"]`)
		var turns protocol.TurnPage
		b.k.ask(&turns, "turns", `"bot":"Bob"`)
		if len(turns.Turns) != 1 || turns.Turns[0].From == nil || turns.Turns[0].From.Turn != first.Turn {
			t.Errorf("got %+v", turns.Turns)
		}
	})
}
