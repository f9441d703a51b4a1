package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// families are the HTTP families of this build; every test of a conversation
// runs on each, the long ones over a WebSocket too.
var families = []string{"anthropic", "responses", "chat"}

// fake gives the host a strict model server under the provider name "f".
func (h *host) fake(family string, opt fakemodel.Options) *fakemodel.Server {
	h.t.Helper()
	if opt.Identity == nil {
		opt.Identity = fakemodel.ByModel
	}
	opt.Key = "key-of-the-test-provider"
	s, err := fakemodel.New(opt)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.Close() })
	h.set.Providers = append(h.set.Providers, "f="+family+","+s.URL+",F_KEY")
	h.env = append(h.env, "F_KEY="+opt.Key)
	return s
}

// fbot makes a bot on the model server; its model is its name.
func (k *conn) fbot(name, workspace, tools string) {
	k.t.Helper()
	list := `"` + strings.Join(strings.Fields(tools), `","`) + `"`
	if tools == "" {
		list = ""
	}
	k.ask(nil, "create", fmt.Sprintf(`"bot":%q,"model":"f/%s","instructions":"Be brief.","tools":[%s],"workspace":%q`, name, name, list, workspace))
}

func eachFamily(t *testing.T, f func(t *testing.T, family string)) {
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			f(t, family)
		})
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{Keep: 50, Bodies: true})
		s.Queue(
			fakemodel.Reply{Blocks: []fakemodel.Block{
				fakemodel.Thinking("Use <ls> & stop"), fakemodel.Text("Looking."),
				fakemodel.Call("shell", `{"command": "echo one > f; ls"}`), fakemodel.Call("read", `{"path":"f"}`),
			}},
			fakemodel.Say("Found it."),
			fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Redacted(), fakemodel.Text("More."), fakemodel.Call("edit", `{"path":"f","old":"one","new":"two"}`)}},
			fakemodel.Say("Changed."),
		)
		p := h.start()
		k := p.dial()
		k.fbot("Ada", h.workspace, "shell read edit")
		if o := k.run("Ada", "r1", "List files & say <done>"); o.Status != "completed" || o.Text != "Found it." {
			t.Fatalf("outcome %+v", o)
		}
		p.kill()
		k = h.start().dial()
		t.Run("RT-91 a conversation goes on after a crash and every byte of it is kept", func(t *testing.T) {
			if o := k.run("Ada", "r2", "change it"); o.Status != "completed" || o.Text != "Changed." {
				t.Fatalf("outcome %+v", o)
			}
		})
		if b, _ := os.ReadFile(filepath.Join(h.workspace, "f")); string(b) != "two\n" {
			t.Errorf("the file holds %q", b)
		}
		s.Verify(t)
		var b protocol.Bot
		k.ask(&b, "inspect", `"bot":"Ada"`)
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"Ada"`)
		sum := int64(0)
		for _, tr := range page.Turns {
			sum += tr.InputTokens + tr.OutputTokens
			if tr.ModelRounds != 2 {
				t.Errorf("turn %d made %d rounds", tr.Turn, tr.ModelRounds)
			}
		}
		if b.TokensUsed != sum || sum == 0 {
			t.Errorf("the bot used %d tokens, its turns %d", b.TokensUsed, sum)
		}
	})
}

func TestBlankPrompts(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{Handler: func(*fakemodel.Request) fakemodel.Reply { return fakemodel.Say("Yes?") }})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "echo")
		long := strings.Repeat(" ", 5000) // one that a node would keep alone
		for i, prompt := range []string{"", " \n", "\u3000", long, "something"} {
			if o := k.run("Ada", fmt.Sprint("r", i), prompt); o.Status != "completed" {
				t.Fatalf("after the prompt %.10q: %+v", prompt, o)
			}
		}
		if again := k.submit("Ada", "r3", long, ""); !again.Duplicate {
			t.Errorf("repeat %+v", again)
		}
		s.Verify(t)
	})
}

func TestCallsMadeSafe(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "echo")
		t.Run("PV-70 repeated ids, in one answer and along the conversation, are told apart", func(t *testing.T) {
			s.Queue(fakemodel.Say("a", fakemodel.CallID("same", "echo", `{"text":"1"}`), fakemodel.CallID("same", "echo", `{"text":"2"}`), fakemodel.CallID("", "echo", `{"text":"3"}`)),
				fakemodel.Say("b", fakemodel.CallID("same", "echo", `{"text":"4"}`)), fakemodel.Say("c"), fakemodel.Say("d"))
			k.follow("Ada", 0)
			sub := k.submit("Ada", "r1", "x", "")
			var got []string
			for _, l := range k.until("turn_finished", sub.Turn) {
				if l.str("event") == "tool_completed" {
					var c protocol.ToolCompleted
					l.data(&c)
					got = append(got, k.item("Ada", c.Node))
				}
			}
			if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "c" {
				t.Fatalf("outcome %+v", o)
			}
			for i, item := range got {
				if !strings.Contains(item, fmt.Sprintf(`%d`, i+1)) {
					t.Errorf("result %d is %s", i, item)
				}
			}
			k.run("Ada", "r2", "y")
		})
		t.Run("PV-71 arguments that are no object are told of and never sent back broken", func(t *testing.T) {
			for i, args := range []string{`null`, `[1]`, `{"text":`, `"x"`, `{"text":1}`, `{"nope":"x"}`, ``} {
				s.Queue(fakemodel.Say("try", fakemodel.Call("echo", args)), fakemodel.Say("sorry"))
				k.follow("Ada", 0)
				sub := k.submit("Ada", fmt.Sprint("bad", i), "go", "")
				seen := k.until("turn_finished", sub.Turn)
				if strings.Contains(strings.Join(kinds(seen), ","), "tool_started") {
					t.Errorf("%s: the call started", args)
				}
				var c protocol.ToolCompleted
				for _, l := range seen {
					if l.str("event") == "tool_completed" {
						l.data(&c)
					}
				}
				if item := k.item("Ada", c.Node); !strings.Contains(item, "invalid_tool_arguments") {
					t.Errorf("%s: the result %s", args, item)
				}
				if o := k.result("Ada", sub.Turn); o.Status != "completed" {
					t.Errorf("%s: outcome %+v", args, o)
				}
			}
		})
		t.Run("ids, names and arguments that no strict provider takes back do not break the conversation", func(t *testing.T) {
			long := strings.Repeat("N", 5000)
			for i, c := range []struct {
				call fakemodel.Block
				says string
			}{
				{fakemodel.CallID("a b/ü\"\n", "echo", `{"text":"one"}`), "one"},
				{fakemodel.CallID("../../x", "echo", `{"text":"two"}`), "two"},
				{fakemodel.CallID(strings.Repeat("i", 5000), "echo", `{"text":"three"}`), "three"},
				{fakemodel.Call("rm -rf / ü", `{}`), "rm -rf / ü is no name"},
				{fakemodel.Call("echo\n", `{"text":"x"}`), "is no name"},
				{fakemodel.Call(long, `{}`), long[:256] + " is no name"},
				{fakemodel.Call("echo", `{"text":"a","text":"b"}`), "name a member twice"},
				{fakemodel.Call("echo", `{"text":1e999}`), "out of range"},
			} {
				s.Queue(fakemodel.Say("try", c.call), fakemodel.Say("so"))
				k.follow("Ada", 0)
				sub := k.submit("Ada", fmt.Sprint("odd", i), "go", "")
				var done protocol.ToolCompleted
				for _, l := range k.until("turn_finished", sub.Turn) {
					if l.str("event") == "tool_completed" {
						l.data(&done)
					}
				}
				if item := k.item("Ada", done.Node); !strings.Contains(item, c.says) || len(item) > 1<<10 || len(done.CallID) > 64 {
					t.Errorf("%d: call %q, the result %s", i, done.CallID, item)
				}
				if o := k.result("Ada", sub.Turn); o.Status != "completed" {
					t.Errorf("%d: outcome %+v", i, o)
				}
			}
			s.Queue(fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Text("told"), fakemodel.Thinking("more")}}, fakemodel.Say("heard"))
			k.run("Ada", "tail", "x")
			k.run("Ada", "after", "y")
		})
		t.Run("RT-21 a tool that the bot lacks is not available and the turn goes on", func(t *testing.T) {
			s.Queue(fakemodel.Say("try", fakemodel.Call("write", `{"path":"f","content":"x"}`)), fakemodel.Say("ok"))
			k.follow("Ada", 0)
			sub := k.submit("Ada", "lack", "go", "")
			var c protocol.ToolCompleted
			for _, l := range k.until("turn_finished", sub.Turn) {
				if l.str("event") == "tool_completed" {
					l.data(&c)
				}
			}
			if item := k.item("Ada", c.Node); !strings.Contains(item, "tool_not_available") {
				t.Errorf("the result %s", item)
			}
			if _, err := os.Stat(filepath.Join(h.workspace, "f")); err == nil {
				t.Error("the file was written")
			}
		})
		s.Verify(t)
	})
}

func TestRetries(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "shell")
		k.follow("Ada", 0)
		turn := func(request string) (protocol.Turn, []line) {
			sub := k.submit("Ada", request, "go", "")
			seen := k.until("turn_finished", sub.Turn)
			var page protocol.TurnPage
			k.ask(&page, "turns", fmt.Sprintf(`"bot":"Ada","after":%d`, sub.Turn-1))
			return page.Turns[0], seen
		}
		t.Run("RT-71 PV-38 two 503 answers and then success run each tool once", func(t *testing.T) {
			s.Queue(fakemodel.HTTPError(503, "busy"), fakemodel.HTTPError(503, "busy"),
				fakemodel.Say("a", fakemodel.Call("shell", `{"command":"echo x >> ran"}`)), fakemodel.Say("done"))
			tr, seen := turn("r1")
			if tr.Status != "completed" || tr.Retries != 2 {
				t.Errorf("turn %+v", tr)
			}
			n := 0
			for _, l := range seen {
				if l.str("event") == "retry" {
					n++
					if l.num("attempt") != int64(n) || l.str("error") != "provider_http_503" {
						t.Errorf("notice %s", l.raw)
					}
				}
			}
			if ran, _ := os.ReadFile(filepath.Join(h.workspace, "ran")); n != 2 || string(ran) != "x\n" {
				t.Errorf("%d notices; ran %q", n, ran)
			}
		})
		t.Run("PV-75 PV-72 a cut answer is voided and made again, half a call never runs", func(t *testing.T) {
			s.Queue(fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Text("half"), fakemodel.Call("shell", `{"command":"touch bad"}`)}, NoEnd: true},
				fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Text("half"), fakemodel.Call("shell", `{"command":"touch bad"}`)}, MidFrame: true},
				fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Text("half"), fakemodel.Call("shell", `{"command":"touch bad"}`)}, NoEnd: true, Abort: true, CutAt: 700},
				fakemodel.Say("whole"))
			tr, _ := turn("r2")
			if tr.Status != "completed" || tr.Retries != 3 {
				t.Errorf("turn %+v", tr)
			}
			if _, err := os.Stat(filepath.Join(h.workspace, "bad")); err == nil {
				t.Error("a call of a cut answer ran")
			}
		})
		t.Run("RT-70 PV-19 an incomplete answer is charged and not kept", func(t *testing.T) {
			stop := "max_tokens"
			if family != "anthropic" {
				stop = "max_output_tokens"
			}
			s.Queue(fakemodel.Reply{
				Blocks: []fakemodel.Block{fakemodel.Text("too long")}, Stop: stop,
				Usage: &fakemodel.Usage{Input: 70, Output: 30},
			})
			tr, seen := turn("r3")
			var end protocol.TurnFinished
			last(seen).data(&end)
			if tr.Status != "failed" || *end.Error != "provider_incomplete" || *end.Detail != stop || tr.InputTokens != 70 || tr.ModelRounds != 1 {
				t.Errorf("turn %+v, end %+v", tr, end)
			}
			if strings.Contains(strings.Join(kinds(seen), ","), "message") {
				t.Error("the answer joined the history")
			}
		})
		t.Run("PV-60 a redirect is an error and is not followed", func(t *testing.T) {
			s.Queue(fakemodel.HTTPError(307, "", "Location", "http://127.0.0.1:9/"))
			tr, seen := turn("r4")
			var end protocol.TurnFinished
			last(seen).data(&end)
			if tr.Status != "failed" || *end.Error != "provider_http_307" {
				t.Errorf("end %+v", end)
			}
		})
		t.Run("PV-59 a key in an error's message is masked", func(t *testing.T) {
			s.Queue(fakemodel.HTTPError(400, "bad key key-of-the-test-provider, really"))
			_, seen := turn("r5")
			var end protocol.TurnFinished
			last(seen).data(&end)
			if *end.Error != "provider_http_400" || strings.Contains(*end.Detail, "key-of") || !strings.Contains(*end.Detail, "[REDACTED]") {
				t.Errorf("end %+v", *end.Detail)
			}
		})
		t.Run("a bot takes its next turn after each of these", func(t *testing.T) {
			s.Queue(fakemodel.Say("fine"))
			if tr, _ := turn("r6"); tr.Status != "completed" {
				t.Errorf("turn %+v", tr)
			}
		})
		s.Verify(t)
	})
}

func TestStalls(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		h.set.Limits.StallTimeoutSeconds = 1
		s := h.fake(family, fakemodel.Options{})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "")
		k.follow("Ada", 0)
		t.Run("RT-75 PV-17 silence ends an attempt after the bound, keep-alives after five times it", func(t *testing.T) {
			t.Parallel()
			s.Queue(fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Text("half")}, Stall: true},
				fakemodel.Reply{KeepAlive: 200 * time.Millisecond, Stall: true},
				fakemodel.Reply{KeepAlive: 200 * time.Millisecond, KeepAliveFor: 2 * time.Second, Comments: true, Blocks: []fakemodel.Block{fakemodel.Text("late")}})
			sub := k.submit("Ada", "r1", "go", "")
			began := time.Now()
			var at []time.Duration
			for {
				l := k.note()
				if l.str("event") == "retry" {
					at = append(at, time.Since(began))
					if l.str("error") != "provider_stream_stalled" || !strings.Contains(l.str("detail"), "--stall-timeout") {
						t.Errorf("notice %s", l.raw)
					}
				}
				if l.str("event") == "turn_finished" {
					break
				}
			}
			if o := k.result("Ada", sub.Turn); o.Text != "late" || len(at) != 2 {
				t.Fatalf("outcome %+v after %v", o, at)
			}
			if at[0] < 900*time.Millisecond || at[0] > 4*time.Second || at[1]-at[0] < 4900*time.Millisecond {
				t.Errorf("retries at %v", at)
			}
		})
	})
}

func TestInterruptedStream(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{Lost: true})
		k := h.start().dial()
		k.fbot("Ada", h.workspace, "")
		k.follow("Ada", 0)
		t.Run("PV-65 an interrupt closes the request at once and nothing of it follows", func(t *testing.T) {
			s.Queue(fakemodel.Deltas(1000, 20, 10*time.Millisecond), fakemodel.Say("next"))
			sub := k.submit("Ada", "r1", "go", "")
			k.until("text_delta", sub.Turn)
			k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, sub.Turn))
			began := time.Now()
			for s.Stats().Open > 0 {
				if time.Since(began) > 2*time.Second {
					t.Fatal("the stream stays open")
				}
				time.Sleep(time.Millisecond)
			}
			k.until("turn_finished", sub.Turn)
			k.notes = nil
			next := k.submit("Ada", "r2", "again", "")
			for _, l := range k.until("turn_finished", next.Turn) {
				if l.num("turn") == sub.Turn {
					t.Errorf("a late event %s", l.raw)
				}
			}
			if o := k.result("Ada", next.Turn); o.Text != "next" {
				t.Errorf("outcome %+v", o)
			}
		})
		s.Verify(t)
	})
}

func TestKeysStayHidden(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{})
	// As in a daemon that a bot's command has started.
	h.env = append(h.env, "AGENT_BOT=Eve", "AGENT_PARENT=Eve", "AGENT_PARENT_ID=9", "AGENT_SANDBOX=workspace", "AGENT_COMPANION=1")
	p := h.start()
	k := p.dial()
	t.Run("PV-11 RT-28 a provider's key is neither in a command's environment nor in what it prints", func(t *testing.T) {
		s.Queue(fakemodel.Say("a", fakemodel.Call("shell", `{"command":"env; printf key-of-the-; printf test-provider; cat /proc/$PPID/environ | tr '\\0' '\\n' | grep ^F_KEY"}`)), fakemodel.Say("done"))
		k.fbot("Ada", h.workspace, "shell")
		k.follow("Ada", 0)
		sub := k.submit("Ada", "r", "go", "")
		var c protocol.ToolCompleted
		for _, l := range k.until("turn_finished", sub.Turn) {
			if l.str("event") == "tool_completed" {
				l.data(&c)
			}
		}
		item := k.item("Ada", c.Node)
		if strings.Contains(item, "key-of-the-test-provider") || !strings.Contains(item, "[REDACTED]") {
			t.Errorf("the result %s", item)
		}
		for _, name := range []string{"AGENT_BOT=Ada", "AGENT_BOT_ID=1", "AGENT_SHELL_CONTEXT=1", "AGENT_MODEL=f/Ada", "AGENT_SOCKET=", "AGENT_STORE=", "AGENT_BIN="} {
			if !strings.Contains(item, name) {
				t.Errorf("the environment lacks %s", name)
			}
		}
		for _, stray := range []string{"=Eve", "AGENT_PARENT", "AGENT_SANDBOX", "AGENT_COMPANION", playVar} {
			if strings.Contains(item, stray) {
				t.Errorf("the environment has the starter's %s", stray)
			}
		}
		if n := strings.Count(item, "AGENT_BOT="); n != 1 {
			t.Errorf("AGENT_BOT is there %d times", n)
		}
		if !strings.Contains(string(k.ready), `"key_env":"F_KEY"`) || strings.Contains(string(k.ready), "key-of") {
			t.Errorf("ready %s", k.ready)
		}
	})
	p.kill()
	for _, name := range []string{"state.sqlite", "state.sqlite-wal"} {
		if b, err := os.ReadFile(filepath.Join(h.dir, name)); err == nil && strings.Contains(string(b), "key-of-the-test-provider") {
			t.Errorf("%s holds the key", name)
		}
	}
	s.Verify(t)
}

func TestRefusalsAreRedacted(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{})
	p := h.start()
	k := p.dial()
	t.Run("the detail of a call that never starts is redacted like every result", func(t *testing.T) {
		s.Queue(fakemodel.Say("a", fakemodel.Call("shell", `{"command":"true","key-of-the-test-provider":1}`)), fakemodel.Say("done"))
		k.fbot("Bob", h.workspace, "shell")
		k.follow("Bob", 0)
		sub := k.submit("Bob", "r2", "go", "")
		var c protocol.ToolCompleted
		for _, l := range k.until("turn_finished", sub.Turn) {
			if l.str("event") == "tool_completed" {
				l.data(&c)
			}
		}
		if item := k.item("Bob", c.Node); strings.Contains(item, "key-of-the") || !strings.Contains(item, "[REDACTED]") ||
			!strings.Contains(item, "invalid_tool_arguments") {
			t.Errorf("the result %s", item)
		}
	})
	s.Verify(t)
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	h.fake("anthropic", fakemodel.Options{})
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "")
	t.Run("PV-9 a model of another family is refused before anything is written", func(t *testing.T) {
		k.refused(protocol.ProviderFamilyMismatch, "submit", submission("Ada", "r", "x", `"model":"f/claude"`))
		var b protocol.Bot
		if k.ask(&b, "inspect", `"bot":"Ada"`); b.Head != nil {
			t.Errorf("head %v", *b.Head)
		}
	})
	t.Run("RT-9 PV-10 without its provider a bot's work is refused, queued work fails, and both work when it is back", func(t *testing.T) {
		full := h.set.Providers
		k.ask(nil, "shutdown", "")
		p.wait()
		h.set.Providers = []string{"scripted"}
		p = h.start()
		k = p.dial()
		k.refused(protocol.ProviderUnavailable, "submit", submission("Ada", "later", "x", ""))
		k.ask(nil, "shutdown", "")
		p.wait()
		h.set.Providers = full
		p = h.start()
		k = p.dial()
		if o := k.run("Ada", "later", "x"); o.Status != "completed" {
			t.Errorf("outcome %+v", o)
		}
	})
}
