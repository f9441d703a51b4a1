package daemon_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

// own dials a bot's own socket.
func (b *box) own(r protocol.Bot) *conn {
	b.t.Helper()
	c, err := net.Dial("unix", b.socketOf(r.ID))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { c.Close() })
	k := &conn{t: b.t, c: c, r: bufio.NewReaderSize(c, 64<<10)}
	k.ready = k.read().raw
	return k
}

func (b *box) socketOf(id int64) string {
	return filepath.Join(b.set.Socket+".d", strconv.FormatInt(id, 10))
}

// sockets are the bots that have a socket, by id.
func (b *box) sockets() (ids []int64) {
	b.t.Helper()
	list, err := os.ReadDir(b.set.Socket + ".d")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range list {
		id, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || e.Type() != fs.ModeSocket {
			b.t.Errorf("%s is in the folder of sockets", e)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (b *box) inspect(name string) (r protocol.Bot) {
	b.t.Helper()
	b.k.ask(&r, "inspect", fmt.Sprintf(`"bot":%q`, name))
	return r
}

// kid is the request of a bot in the workspace.
func (b *box) kid(name, more string) string {
	return fmt.Sprintf(`"bot":%q,"model":"s/m","instructions":"","tools":["shell"],"workspace":%q%s`, name, b.workspace, more)
}

// eventually waits for a condition of the daemon's.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came about that %s", what)
		}
	}
}

// members are the parameters of each op, good enough to be read.
var members = map[string]string{
	"create": `"bot":"Made"`, "fork": `"source":"Bob","bot":"F"`, "resume": "", "inspect": `"bot":"Ada"`, "bots": "", "configure": `"bot":"Ada","sandbox":"danger-full-access"`,
	"delete": `"bot":"Bob"`, "prune": `"bot":"Bob","keep_turns":0`, "submit": `"bot":"Ada","request_id":"o","prompt":"hi","origin":"lookout"`,
	"interrupt": `"bot":"Bob","turn":1`, "turns": `"bot":"Ada"`, "result": `"bot":"Ada","turn":1`, "wait": `"handles":["turn:Ada/1"],"timeout_ms":0`,
	"events": `"bot":"Ada","after":0,"limit":8`, "follow": `"bot":"*"`, "unfollow": `"bot":"*"`, "history_nodes": `"bot":"Ada"`,
	"history_items": `"bot":"Ada","nodes":[1]`, "item": `"bot":"Ada","node":1`, "prompts": `"bot":"Ada","turn":1`,
	"artifact": `"bot":"Ada","turn":1,"call_id":"c"`, "approvals": "", "answer": `"bot":"Ada","turn":1,"call_id":"c","request":1,"decision":"allow"`,
	"serve_approvals": `"tag":"t","lease_ms":5000`, "renew_approvals": `"tag":"t","lease":1`, "tool_calls": "", "serve_tools": `"tag":"t","lease_ms":5000`,
	"renew_tools": `"tag":"t","lease":1`, "tool_result": `"bot":"Ada","turn":1,"call_id":"c","request":1,"tag":"t","output":"x"`,
	"approve_step": `"bot":"Ada","turn":1,"call_id":"c","request":1,"tag":"t","step":"s","name":"n","arguments":{}`,
	"step_result":  `"bot":"Ada","turn":1,"call_id":"c","request":1,"tag":"t","step":"s","ok":true`,
	"stats":        "", "provider_models": "", "companions": `"set":[]`, "pause": "", "shutdown": "",
}

func TestBotSocket(t *testing.T) {
	t.Parallel()
	refusedFor := func(t *testing.T, l line, op string, r protocol.Bot) {
		t.Helper()
		var scope protocol.Scope
		json.Unmarshal(l.fields["scope"], &scope)
		if l.str("op") != op || scope != (protocol.Scope{Bot: r.Name, BotID: r.ID}) || l.str("detail") == "" {
			t.Errorf("got %s", l.raw)
		}
	}
	t.Run("PR-60 PR-86 PO-16 a session is the bot, and what would widen it is refused", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ada := b.inspect("Ada")
		b.make("Bob", `"sandbox":"read-only"`)
		b.do("Ada", "run true")
		k := b.own(ada)
		var ready protocol.Ready
		if err := json.Unmarshal(k.ready, &ready); err != nil || ready.Scope == nil || *ready.Scope != (protocol.Scope{Bot: "Ada", BotID: ada.ID}) ||
			ready.BotSockets == nil || *ready.BotSockets != b.set.Socket+".d" || !slices.Contains(ready.Capabilities, "bot_sockets") || !slices.Contains(ready.Capabilities, "closed") {
			t.Errorf("ready is %s (%v)", k.ready, err)
		}
		if strings.Contains(string(b.k.ready), `"scope"`) {
			t.Errorf("the daemon's own socket says %s", b.k.ready)
		}
		for _, op := range strings.Fields("configure answer tool_result approve_step step_result serve_approvals renew_approvals serve_tools renew_tools companions resume shutdown") {
			refusedFor(t, k.refused(protocol.BotSocketRefused, op, members[op]), op, ada)
		}
		refusedFor(t, k.refused(protocol.BotSocketRefused, "resume", `"bot":"Ada"`), "resume", ada)
		if got := b.inspect("Ada"); got.Sandbox != "workspace-write" {
			t.Errorf("got %+v", got)
		}
		for _, op := range strings.Fields("fork delete prune submit interrupt") { // not theirs
			refusedFor(t, k.refused(protocol.BotSocketRefused, op, members[op]), op, ada)
		}
		for _, op := range protocol.Operations() {
			given, ok := members[op]
			if !ok {
				t.Errorf("no request of %s is tried", op)
			}
			id := k.request(op, given)
			for {
				l, err := k.tryRead()
				if err != nil {
					t.Fatalf("%s is not answered: %v", op, err)
				}
				if l.str("error") == string(protocol.InvalidJSON) && !strings.Contains(l.str("detail"), "is not an op of this daemon") {
					t.Errorf("%s cannot be read: %s", op, l.raw)
				}
				if raw := string(l.fields["id"]); raw == fmt.Sprint(id) || raw == "null" {
					break
				}
			}
		}
		k.ask(nil, "stats", "")
		k.ask(nil, "history_items", fmt.Sprintf(`"bot":"Ada","nodes":[%d]`, *b.inspect("Ada").Head))
	})
	t.Run("AP-78 PR-61 what it submits is from the bot", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ada, bob := b.inspect("Ada"), b.make("Bob", `"sandbox":"read-only"`)
		k := b.own(ada)
		b.k.follow("Bob", 0)
		from := func(request, more string) *protocol.From {
			t.Helper()
			s := k.submit("Bob", request, "run true", more)
			var data struct{ From *protocol.From }
			for _, l := range b.k.until("turn_finished", s.Turn) {
				if kind := l.str("event"); l.num("turn") == s.Turn && (kind == "accepted" || kind == "queued") {
					l.data(&data)
				}
			}
			return data.From
		}
		if got := from("none", ""); got == nil || *got != (protocol.From{Bot: "Ada", BotID: ada.ID}) {
			t.Errorf("of a bot without a turn: %+v", got)
		}
		first := b.k.submit("Ada", "one", "run true", "")
		b.k.ask(nil, "wait", fmt.Sprintf(`"handles":[%q]`, first.Handle))
		second := b.k.submit("Ada", "two", "run true", "")
		b.k.ask(nil, "wait", fmt.Sprintf(`"handles":[%q]`, second.Handle))
		if got := from("newest", ""); got == nil || *got != (protocol.From{Bot: "Ada", BotID: ada.ID, Turn: second.Turn}) {
			t.Errorf("of a bot whose turn is over: %+v", got)
		}
		if got := from("stated", fmt.Sprintf(`"from":{"bot":"Ada","turn":%d}`, first.Turn)); got == nil || got.Turn != first.Turn {
			t.Errorf("as stated: %+v", got)
		}
		theirs := b.k.submit("Bob", "theirs", "run true", "")
		b.k.until("turn_finished", theirs.Turn)
		for _, more := range []string{
			fmt.Sprintf(`"from":{"bot":"Bob","turn":%d}`, theirs.Turn), fmt.Sprintf(`"from":{"bot":"Ada","turn":%d}`, theirs.Turn),
			`"from":{"bot":"Ada","turn":99}`, fmt.Sprintf(`"from":{"bot":"Ada","turn":%d,"bot_id":%d}`, first.Turn, bob.ID), `"origin":"trigger"`,
		} {
			for _, delivery := range []string{"reject", "queue", "steer"} {
				refusedFor(t, k.refused(protocol.BotSocketRefused, "submit", submission("Bob", "x", "run true", more+`,"delivery":"`+delivery+`"`)), "submit", ada)
			}
		}
		k.refused(protocol.BotNotFound, "submit", submission("Nobody", "x", "hi", `"origin":"trigger"`))
		var turns protocol.TurnPage
		b.k.ask(&turns, "turns", `"bot":"Bob"`)
		if len(turns.Turns) != 4 {
			t.Errorf("a refused submission wrote a turn: %+v", turns.Turns)
		}
		// The bot whose turn runs: its own command asks.
		script := fmt.Sprintf(`%s inside ask "$AGENT_SOCKET" '{"id":1,"op":"submit","bot":"Bob","request_id":"live","prompt":"run true"}'; echo turn $AGENT_TURN`, os.Args[0])
		b.k.ask(nil, "configure", `"bot":"Ada","network":true`)
		got := b.do("Ada", "run "+script)
		b.k.ask(&turns, "turns", `"bot":"Bob"`)
		last := turns.Turns[len(turns.Turns)-1]
		if last.From == nil || last.From.Bot != "Ada" || !strings.Contains(got, fmt.Sprintf("turn %d", last.From.Turn)) {
			t.Errorf("the command got %s, the turn is from %+v", got, last.From)
		}
	})
	t.Run("PR-62 what it makes is the bot's, and no wider", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ada, bob := b.inspect("Ada"), b.make("Bob", `"sandbox":"read-only"`)
		k := b.own(ada)
		for more, code := range map[string]protocol.Code{
			fmt.Sprintf(`,"created_by":"Bob","created_by_id":%d`, bob.ID): protocol.BotSocketRefused,
			fmt.Sprintf(`,"created_by":"Ada","created_by_id":%d`, bob.ID): protocol.BotSocketRefused,
			`,"created_by_id":0`: protocol.BotSocketRefused,
			`,"closed":true`:     protocol.BotSocketRefused,
			`,"closed":false`:    protocol.BotSocketRefused,
			`,"client_tools":[]`: protocol.BotSocketRefused,
			`,"client_tools":[{"name":"x","parameters":{"type":"object"},"tag":"t"}]`: protocol.BotSocketRefused,
			`,"from":{"bot":"Bob","turn":1}`:                                          protocol.BotSocketRefused,
			`,"sandbox":"danger-full-access"`:                                         protocol.SandboxWidens,
			`,"network":true`:                                                         protocol.SandboxWidens,
			`,"unix_sockets":["/x"]`:                                                  protocol.SandboxWidens,
			`,"exclude_slash_tmp":false`:                                              protocol.SandboxWidens,
			`,"writable_roots":[` + quoted(filepath.Join(b.dir, "out")) + `]`:         protocol.SandboxWidens,
			`,"rules":{"files":[]}`:                                                   protocol.RulesInherited,
		} {
			k.refused(code, "create", b.kid("Kid", more))
		}
		for _, more := range []string{`,"closed":true`, `,"closed":false`, fmt.Sprintf(`,"created_by":"Bob","created_by_id":%d`, bob.ID)} {
			refusedFor(t, k.refused(protocol.BotSocketRefused, "fork", `"source":"Ada","bot":"Kid"`+more), "fork", ada)
		}
		k.refused(protocol.SandboxWidens, "fork", `"source":"Ada","bot":"Kid","network":true`)
		b.k.refused(protocol.BotNotFound, "inspect", `"bot":"Kid"`)
		for name, request := range map[string]string{"create": b.kid("Kid", ""), "fork": `"source":"Ada","bot":"Fork","workspace":` + quoted(b.workspace)} {
			var r protocol.Bot
			k.ask(&r, name, request)
			if *r.CreatedBy != "Ada" || *r.CreatedByID != ada.ID || r.Sandbox != "workspace-write" || r.Network || !r.ExcludeSlashTmp {
				t.Errorf("%s made %+v", name, r)
			}
			if _, err := os.Stat(b.socketOf(r.ID)); err != nil {
				t.Error("it has no socket when it is answered:", err)
			}
		}
		k.ask(nil, "create", b.kid("Stated", fmt.Sprintf(`,"created_by":"Ada","created_by_id":%d`, ada.ID)))
		k.ask(nil, "create", b.kid("Null", `,"closed":null,"client_tools":null`))
	})
	t.Run("AP-25 AP-26 PO-61 PO-62 its own gates are out of its reach, and those of what it makes", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"approve":["shell"],"approver":"manual"`)
		ada := b.inspect("Ada")
		k := b.own(ada)
		s := b.k.submit("Ada", "esc", "escalate touch ../out/esc", "")
		a := b.k.waiting(1)[0]
		theCall := fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"request":%d`, a.Turn, a.CallID, a.Request)
		for op, request := range map[string]string{
			"configure": `"bot":"Ada","gates":[]`, "answer": theCall + `,"decision":"allow"`, "serve_approvals": `"tag":"manual","lease_ms":5000`,
			"approve_step": theCall + `,"tag":"manual","step":"s","name":"n","arguments":{}`, "step_result": theCall + `,"tag":"manual","step":"s","ok":true`,
			"companions": `"set":[]`, "resume": "",
		} {
			refusedFor(t, k.refused(protocol.BotSocketRefused, op, request), op, ada)
		}
		if got := k.waiting(1)[0]; got.CallID != a.CallID {
			t.Errorf("it reads %+v", got)
		}
		for more, want := range map[string]string{
			"": `[{"tag":"manual","tools":["shell"]}]`,
			`,"approve":["shell"],"approver":"other"`: `[{"tag":"manual","tools":["shell"]},{"tag":"other","tools":["shell"]}]`,
		} {
			if l := k.ask(nil, "create", b.kid(fmt.Sprint("Kid", len(more)), more)); !strings.Contains(string(l.raw), `"gates":`+want) {
				t.Errorf("with %s: %s", more, l.raw)
			}
		}
		if l := k.ask(nil, "fork", `"source":"Ada","bot":"Twin","workspace":`+quoted(b.workspace)); !strings.Contains(string(l.raw), `"gates":[{"tag":"manual","tools":["shell"]}]`) {
			t.Errorf("its fork: %s", l.raw)
		}
		b.k.deny(a, "")
		b.k.ask(nil, "wait", fmt.Sprintf(`"handles":[%q]`, s.Handle))
		if got := b.inspect("Ada"); len(got.Gates) != 1 || b.exists("out/esc") {
			t.Errorf("it has %+v", got.Gates)
		}
	})
	t.Run("PR-63 it ends what it made, through creators that are deleted", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ada, bob := b.inspect("Ada"), b.make("Bob", `"sandbox":"read-only"`)
		k := b.own(ada)
		line := []protocol.Bot{ada}
		for _, name := range []string{"A", "B", "C", "D", "E"} {
			var r protocol.Bot
			maker := b.own(line[len(line)-1])
			if name == "C" {
				maker.ask(&r, "fork", `"source":"B","bot":"C","workspace":`+quoted(b.workspace))
			} else {
				maker.ask(&r, "create", b.kid(name, ""))
			}
			line = append(line, r)
		}
		s := b.k.submit("Bob", "theirs", "run sleep 60", "")
		for op, request := range map[string]string{
			"interrupt": fmt.Sprintf(`"bot":"Bob","turn":%d`, s.Turn), "delete": `"bot":"Bob"`, "prune": `"bot":"Bob","keep_turns":0`, "fork": `"source":"Bob","bot":"X"`,
		} {
			refusedFor(t, k.refused(protocol.BotSocketRefused, op, request), op, ada)
			refusedFor(t, b.own(bob).refused(protocol.BotSocketRefused, op, strings.Replace(request, `"Bob"`, `"E"`, 1)), op, bob)
			k.refused(protocol.BotNotFound, op, strings.Replace(request, `"Bob"`, `"Nobody"`, 1))
			if op != "fork" {
				refusedFor(t, k.refused(protocol.BotSocketRefused, op, strings.Replace(request, `"Bob"`, `"Ada"`, 1)), op, ada)
			}
		}
		for _, gone := range []string{"B", "D", "A"} { // in this order each knows less of who was above
			b.k.ask(nil, "delete", fmt.Sprintf(`"bot":%q`, gone))
		}
		b.p.kill()
		b.p = b.host.start()
		b.k = b.p.dial()
		k = b.own(ada)
		s = k.submit("E", "mine", "run sleep 60", "")
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"E","turn":%d`, s.Turn))
		b.k.ask(nil, "wait", fmt.Sprintf(`"handles":[%q]`, s.Handle))
		k.ask(nil, "prune", `"bot":"E","keep_turns":0`)
		k.ask(nil, "fork", `"source":"E","bot":"F"`)
		for _, name := range []string{"E", "C", "F"} {
			k.ask(nil, "delete", fmt.Sprintf(`"bot":%q`, name))
		}
	})
	t.Run("PR-87 a closed bot is out of reach", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ada := b.inspect("Ada")
		k := b.own(ada)
		mine := fmt.Sprintf(`"sandbox":"workspace-write","created_by":"Ada","created_by_id":%d`, ada.ID)
		b.make("Shut", mine+`,"closed":true`)
		b.k.ask(nil, "fork", `"source":"Shut","bot":"Twin","workspace":`+quoted(b.workspace)+strings.Replace(mine, `"sandbox":"workspace-write"`, "", 1))
		b.k.ask(nil, "fork", `"source":"Shut","bot":"Open","closed":false`+strings.Replace(mine, `"sandbox":"workspace-write"`, "", 1))
		for name, shut := range map[string]bool{"Shut": true, "Twin": true, "Open": false} {
			if got := b.inspect(name); got.Closed != shut {
				t.Errorf("%s: closed %v", name, got.Closed)
			}
		}
		for _, name := range []string{"Shut", "Twin"} {
			for _, delivery := range []string{"reject", "queue", "steer"} {
				refusedFor(t, k.refused(protocol.BotSocketRefused, "submit", submission(name, "x", "run true", `"delivery":"`+delivery+`"`)), "submit", ada)
			}
			for op, request := range map[string]string{
				"interrupt": fmt.Sprintf(`"bot":%q,"turn":1`, name), "delete": fmt.Sprintf(`"bot":%q`, name),
				"prune": fmt.Sprintf(`"bot":%q,"keep_turns":0`, name), "fork": fmt.Sprintf(`"source":%q,"bot":"X"`, name),
			} {
				refusedFor(t, k.refused(protocol.BotSocketRefused, op, request), op, ada)
			}
		}
		for _, closed := range []string{"true", "false"} {
			refusedFor(t, k.refused(protocol.BotSocketRefused, "create", b.kid("X", `,"closed":`+closed)), "create", ada)
		}
		b.do("Shut", "run touch by-its-client")
		k.ask(nil, "fork", `"source":"Open","bot":"Open2"`)
		k.ask(nil, "delete", `"bot":"Open"`)
		if !b.exists("w/by-its-client") {
			t.Error("its client cannot have it do anything")
		}
	})
	t.Run("PR-88 SB-114 no web tool for what a bot without it makes", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ada := b.inspect("Ada")
		k := b.own(ada)
		web := strings.Replace(b.kid("Web", ""), `["shell"]`, `["shell","web_fetch"]`, 1)
		k.refused(protocol.SandboxWidens, "create", web)
		b.k.refused(protocol.BotNotFound, "inspect", `"bot":"Web"`)
		var r protocol.Bot
		b.k.ask(&r, "create", web+fmt.Sprintf(`,"created_by":"Ada","created_by_id":%d`, ada.ID)) // its client may
		k.refused(protocol.SandboxWidens, "fork", `"source":"Web","bot":"Fork"`)
		k.refused(protocol.SandboxWidens, "fork", `"source":"Web","bot":"Fork","allow":["web_fetch"]`)
		k.ask(nil, "fork", `"source":"Web","bot":"Fork","allow":["shell"]`)
		b.own(r).ask(nil, "create", strings.Replace(web, "Web", "Web2", 1))
		b.k.refused(protocol.SandboxWidens, "configure", fmt.Sprintf(`"bot":"Web","writable_roots":[%q]`, filepath.Join(b.dir, "out")))
		if got := b.inspect("Web"); len(got.WritableRoots) != 0 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("another bot's command is no handle of its", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ada, bob := b.inspect("Ada"), b.make("Bob", `"sandbox":"read-only"`)
		b.says(b.do("Bob", "behind echo secret"), "", `"handle":"proc:1"`)
		for _, timeout := range []string{"", `,"timeout_ms":0`} {
			l := b.own(ada).ask(nil, "wait", `"handles":["proc:1","proc:2"]`+timeout)
			if text := string(l.raw); !strings.Contains(text, `"proc:1":{"error":"handle_unavailable"`) || !strings.Contains(text, `"proc:2":{"error":"unknown_handle"`) || strings.Contains(text, "secret") {
				t.Errorf("got %s", text)
			}
		}
		for _, k := range []*conn{b.own(bob), b.k} {
			if l := k.ask(nil, "wait", `"handles":["proc:1"]`); !strings.Contains(string(l.raw), "secret") {
				t.Errorf("got %s", l.raw)
			}
		}
	})
	t.Run("a session ends with the bot, and its namesake is another", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ada := b.inspect("Ada")
		k := b.own(ada)
		var kid protocol.Bot
		k.ask(&kid, "create", b.kid("Kid", ""))
		k.ask(nil, "follow", `"bot":"Ada"`)
		b.k.ask(nil, "delete", `"bot":"Ada"`)
		k.hungUp()
		if _, err := os.Lstat(b.socketOf(ada.ID)); err == nil {
			t.Error("the socket of a deleted bot is still there")
		}
		again := b.make("Ada", `"sandbox":"workspace-write"`)
		if again.ID == ada.ID {
			t.Fatal("an id was given out twice")
		}
		b.own(again).refused(protocol.BotSocketRefused, "delete", `"bot":"Kid"`)
		if got := b.sockets(); !slices.Equal(got, []int64{kid.ID, again.ID}) {
			t.Errorf("sockets %v", got)
		}
	})
	t.Run("a deletion meets requests under way", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		b.make("Bob", `"sandbox":"read-only"`)
		for i := range 20 {
			r := b.make("Short", `"sandbox":"read-only"`)
			k := b.own(r)
			done := make(chan struct{})
			go func() { // its session is closed under its hands
				defer close(done)
				for n := 0; ; n++ {
					if _, err := fmt.Fprintf(k.c, `{"id":1,"op":"submit","bot":"Bob","request_id":"d%d-%d","prompt":"run true","delivery":"queue"}`+"\n", i, n); err != nil {
						return
					}
					if _, err := k.tryRead(); err != nil {
						return
					}
				}
			}()
			b.k.ask(nil, "delete", `"bot":"Short"`)
			<-done
			var page protocol.TurnPage
			b.k.ask(&page, "turns", `"bot":"Bob","limit":256`)
			for _, turn := range page.Turns {
				if turn.From == nil || turn.From.Bot != "Short" {
					t.Fatalf("a turn is from %+v", turn.From)
				}
			}
		}
		eventually(t, "one socket is left of each bot", func() bool { return len(b.sockets()) == 2 })
	})
	t.Run("it goes when the bot leaves its sandbox, and comes back", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ada := b.inspect("Ada")
		k := b.own(ada)
		b.k.ask(nil, "configure", `"bot":"Ada","sandbox":null`)
		k.hungUp()
		if got := b.sockets(); len(got) != 0 {
			t.Errorf("sockets %v", got)
		}
		b.k.ask(nil, "configure", `"bot":"Ada","sandbox":"read-only"`)
		b.own(ada).refused(protocol.BotSocketRefused, "resume", "")
	})
}

func TestBotSocketFiles(t *testing.T) {
	t.Parallel()
	t.Run("they are there before ready, stale ones are not, and none after the end", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ada := b.inspect("Ada")
		bob := b.make("Bob", `"sandbox":"read-only"`)
		b.make("Free", `"sandbox":"danger-full-access"`)
		b.k.ask(nil, "delete", `"bot":"Bob"`)
		b.p.kill()
		stale, err := net.Listen("unix", b.socketOf(bob.ID))
		if err != nil {
			t.Fatal(err)
		}
		stale.(*net.UnixListener).SetUnlinkOnClose(false)
		stale.Close()
		os.Chmod(b.set.Socket+".d", 0o755)
		b.p = b.host.start()
		if got := b.sockets(); !slices.Equal(got, []int64{ada.ID}) {
			t.Errorf("sockets %v", got)
		}
		b.own(ada)
		for path, want := range map[string]fs.FileMode{b.set.Socket + ".d": 0o700, b.socketOf(ada.ID): 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
		b.p.dial().ask(nil, "shutdown", "")
		b.p.wait()
		if got := b.sockets(); len(got) != 0 {
			t.Errorf("sockets %v", got)
		}
	})
	t.Run("one that was removed is there again for the next command", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"network":true`)
		ada := b.inspect("Ada")
		if err := os.Remove(b.socketOf(ada.ID)); err != nil {
			t.Fatal(err)
		}
		b.says(b.do("Ada", fmt.Sprintf(`run %s inside ask "$AGENT_SOCKET" '{"id":1,"op":"resume"}'`, os.Args[0])), "", "bot_socket_refused")
		b.own(ada)
	})
	t.Run("on standard input and output there are none", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		h.set.Socket = ""
		p := h.start()
		if p.ready.BotSockets != nil {
			t.Errorf("ready names %s", *p.ready.BotSockets)
		}
		fmt.Fprintf(p.stdin, `{"id":1,"op":"create","bot":"Ada","model":"s/m","instructions":"","tools":["shell"],"workspace":%q,"sandbox":"read-only","network":true}`+"\n", h.workspace)
		fmt.Fprintln(p.stdin, `{"id":2,"op":"submit","bot":"Ada","request_id":"r","prompt":"run echo [$AGENT_SOCKET]"}`)
		fmt.Fprintln(p.stdin, `{"id":3,"op":"wait","handles":["turn:Ada/1"]}`)
		for {
			text, err := p.stdout.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(text, `{"id":3,`) {
				if !strings.Contains(text, `"stdout\":\"[]`) {
					t.Errorf("got %s", text)
				}
				break
			}
		}
		if list, _ := filepath.Glob(filepath.Join(h.dir, "*.d")); len(list) != 0 {
			t.Errorf("there is %v", list)
		}
		p.stdin.Close()
		p.cmd.Wait()
	})
	t.Run("an unsafe folder, or something else in it, stops the start", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		dir := h.set.Socket + ".d"
		for code, make := range map[string]func(){
			"unsafe_socket_directory": func() { os.Symlink(h.workspace, dir) },
			"socket_path_not_socket":  func() { os.Mkdir(dir, 0o700); os.WriteFile(dir+"/1", nil, 0o600) },
		} {
			make()
			p := h.launch()
			go p.cmd.Wait()
			eventually(t, code+" is reported", func() bool { return strings.Contains(p.stderr.String(), code) })
			close(p.exited)
			os.RemoveAll(dir)
		}
	})
	t.Run("PR-85 of 1,000 idle bots 256 have one, and another gets its own before its command", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"network":true`)
		ada := b.inspect("Ada")
		held := b.own(ada) // a session keeps it
		var text strings.Builder
		const bots = 1000
		for i := range bots {
			fmt.Fprintf(&text, `{"id":%d,"op":"create","bot":"b%d","model":"s/m","instructions":"","tools":["shell"],"workspace":%q,"sandbox":"read-only","network":true}`+"\n", i, i, b.workspace)
		}
		go b.k.write(text.String())
		var ids []int64
		for range bots {
			l := b.k.read()
			var r protocol.Bot
			if err := json.Unmarshal(l.fields["result"], &r); err != nil {
				t.Fatalf("%s: %v", l.raw, err)
			}
			ids = append(ids, r.ID)
		}
		recent := func(got []int64, older ...int64) bool {
			return slices.Equal(got, append(older, ids[len(ids)-257+len(older):]...))
		}
		if got := b.sockets(); !recent(got, ada.ID) {
			t.Errorf("%d sockets: %v", len(got), got)
		}
		first := `run %s inside ask "$AGENT_SOCKET" '{"id":1,"op":"resume"}'`
		b.says(b.do("b0", fmt.Sprintf(first, os.Args[0])), "", `\"bot\":\"b0\"`)
		held.ask(nil, "stats", "")
		eventually(t, "the socket of a bot that had no turn for longest is closed", func() bool { return recent(b.sockets(), ada.ID, ids[0]) })

		b.p.kill()
		begun := time.Now()
		b.p = b.host.start()
		t.Logf("a store of %d bots is ready in %v", bots, time.Since(begun))
		if got := b.sockets(); !slices.Equal(got, append([]int64{ids[0]}, ids[len(ids)-255:]...)) {
			t.Errorf("%d sockets after a restart: %v", len(got), got)
		}
	})
	t.Run("PR-81 files made meanwhile have the daemon's umask", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		b.make("Free", `"sandbox":"danger-full-access"`)
		b.make("Writer", `"sandbox":"danger-full-access"`)
		probe := filepath.Join(b.dir, "probe")
		if err := os.WriteFile(probe, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(probe)
		if err != nil {
			t.Fatal(err)
		}
		mask := 0o666 &^ info.Mode().Perm()
		free := b.p.dial()
		loop := free.submit("Free", "loop", "run mkdir loop; i=0; while [ ! -e stop ]; do : > loop/f$i; mkdir loop/d$i; sh -c umask >> loop/umask; i=$((i+1)); done; umask", "")
		stop := make(chan struct{})
		writes := make(chan int)
		go func() {
			n := 0
			k := b.p.dial()
			for {
				select {
				case <-stop:
					writes <- n
					return
				default:
					k.run("Writer", fmt.Sprint("w", n), fmt.Sprintf("write made/%d/file", n))
					n++
				}
			}
		}()
		eventually(t, "files are being made", func() bool { return b.exists("w/loop/f9") && b.exists("w/made/0/file") })
		for i := range 200 {
			r := b.make(fmt.Sprint("s", i), `"sandbox":"read-only"`)
			info, err := os.Lstat(b.socketOf(r.ID))
			if err != nil || info.Mode() != fs.ModeSocket|0o600 {
				t.Fatalf("socket %d: %v (%v)", r.ID, info, err)
			}
		}
		close(stop)
		n := <-writes
		if err := os.WriteFile(filepath.Join(b.workspace, "stop"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		free.ask(nil, "wait", fmt.Sprintf(`"handles":[%q]`, loop.Handle))
		files := 0
		filepath.WalkDir(b.workspace, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == b.workspace || d.Name() == "stop" {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			want := fs.FileMode(0o666) &^ mask
			if d.IsDir() {
				want = 0o777 &^ mask
			}
			if info.Mode().Perm() != want {
				t.Errorf("%s: mode %v, want %v", path, info.Mode().Perm(), want)
			}
			files++
			return nil
		})
		masks, err := os.ReadFile(filepath.Join(b.workspace, "loop/umask"))
		for _, got := range strings.Fields(string(masks)) {
			if v, perr := strconv.ParseUint(got, 8, 32); perr != nil || fs.FileMode(v) != mask {
				t.Errorf("a command had the umask %s, want %04o", got, mask)
			}
		}
		if err != nil || n < 1 || files < 20 {
			t.Errorf("only %d files and %d writes (%v)", files, n, err)
		}
	})
}
