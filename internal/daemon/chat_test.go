package daemon_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// What distinguishes the Chat Completions family; the rest is tested with the
// others'.

// chatFixture is fixture C2 of providers.md, as its stream and as it is stored.
func chatFixture(t *testing.T) fakemodel.Reply {
	t.Helper()
	folder := filepath.Join("..", "model", "chat", "testdata")
	return fakemodel.Reply{
		Raw:    content(t, filepath.Join(folder, "C2.sse")),
		Stored: [][]byte{content(t, filepath.Join(folder, "C2.item"))},
	}
}

func bodies(s *fakemodel.Server) (out []string) {
	for _, r := range s.Requests() {
		out = append(out, string(r.Body))
	}
	return out
}

func TestPV35ThinkingGoesBehindTheLastUserMessage(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("chat", fakemodel.Options{Keep: 20, Bodies: true})
	p := h.start()
	k := p.dial()
	k.fbot("Ada", h.workspace, "shell")
	const thinking, extra = `"reasoning_content":"ls it"`, `"extra_content":{"google":{"thought_signature":"c2ln"}}`
	t.Run("PV-34 a fixture's call runs and its answer goes back as it came", func(t *testing.T) {
		s.Queue(chatFixture(t), fakemodel.Say("Done."))
		if o := k.run("Ada", "r1", "List files"); o.Status != "completed" || o.Text != "Done." {
			t.Fatalf("outcome %+v", o)
		}
		last := bodies(s)[1]
		if !strings.Contains(last, thinking) || !strings.Contains(last, extra) || !strings.Contains(last, `{"role":"tool","tool_call_id":"call_a",`) {
			t.Errorf("the next round: %s", last)
		}
	})
	p.kill()
	k = h.start().dial()
	t.Run("PV-35 after a new user message the thinking is cut, and the rest stays", func(t *testing.T) {
		s.Queue(fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Thinking("anew"), fakemodel.Call("shell", `{"command":"true"}`)}}, fakemodel.Say("Again."))
		if o := k.run("Ada", "r2", "and now"); o.Status != "completed" || o.Text != "Again." {
			t.Fatalf("outcome %+v", o)
		}
		for _, body := range bodies(s)[2:] {
			if strings.Contains(body, thinking) || !strings.Contains(body, extra) {
				t.Errorf("a request of the next turn: %s", body)
			}
		}
		if last := bodies(s)[3]; !strings.Contains(last, `"reasoning_content":"anew"`) {
			t.Errorf("the next round: %s", last)
		}
	})
	t.Run("PV-35 a steer is a user message, and an answer without calls has no thinking", func(t *testing.T) {
		gate := fakemodel.NewGate()
		s.Queue(
			fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Thinking("first"), fakemodel.Call("shell", `{"command":"true"}`)}},
			fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Thinking("second"), fakemodel.Text("so far")}, Finish: gate},
			fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Thinking("third"), fakemodel.Call("shell", `{"command":"true"}`)}},
			fakemodel.Say("over"),
		)
		k.follow("Ada", 0)
		sub := k.submit("Ada", "r3", "go", "")
		if !gate.Await(t.Context().Done(), 1) {
			t.Fatal("the second request did not come")
		}
		k.submit("Ada", "r4", "look here", `"delivery":"steer"`)
		gate.Release()
		k.until("turn_finished", sub.Turn)
		if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "over" {
			t.Fatalf("outcome %+v", o)
		}
		all := bodies(s)
		for word, want := range map[string]string{"first": "0100", "second": "0000", "third": "0001"} {
			got := ""
			for _, body := range all[len(all)-4:] {
				if strings.Contains(body, `"reasoning_content":"`+word+`"`) {
					got += "1"
				} else {
					got += "0"
				}
			}
			if got != want {
				t.Errorf("the %s thinking goes with requests %s, want %s", word, got, want)
			}
		}
	})
	s.Verify(t)
}

func TestCallsWithoutIndexOrID(t *testing.T) {
	t.Parallel()
	t.Run("PV-36 they get ids of ours, which their results carry", callsWithoutIndexOrID)
}

func callsWithoutIndexOrID(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("chat", fakemodel.Options{Keep: 20, Bodies: true})
	k := h.start().dial()
	k.fbot("Ada", h.workspace, "shell")
	for i, quirks := range []fakemodel.ChatQuirks{
		{NoIndex: true},
		{NoIndex: true, WholeCalls: true, NoDone: true, Reasoning: true},
		{WholeCalls: true, NoUsage: true},
		{AtOnce: true},
	} {
		s.Queue(fakemodel.Reply{
			Blocks: []fakemodel.Block{
				fakemodel.Thinking("hm"), fakemodel.CallID("", "shell", fmt.Sprintf(`{"command":"echo one >> f%d"}`, i)),
				fakemodel.CallID("", "shell", fmt.Sprintf(`{"command":"echo two >> f%d"}`, i)),
			},
			DeltaSize: 7, Chat: quirks,
		}, fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Text("Done.")}, Chat: quirks})
		if o := k.run("Ada", fmt.Sprint("r", i), "go"); o.Status != "completed" || o.Text != "Done." {
			t.Fatalf("%+v: outcome %+v", quirks, o)
		}
		if b, _ := os.ReadFile(filepath.Join(h.workspace, fmt.Sprint("f", i))); string(b) != "one\ntwo\n" {
			t.Errorf("%+v: the file holds %q", quirks, b)
		}
	}
	all := bodies(s)
	ids := regexp.MustCompile(`"(?:id|tool_call_id)":"(call_[0-9a-f]{12})"`).FindAllStringSubmatch(all[len(all)-1], -1)
	seen := map[string]int{}
	for _, m := range ids {
		seen[m[1]]++
	}
	if len(seen) != 8 {
		t.Errorf("%d ids of ours: %v", len(seen), seen)
	}
	for id, n := range seen {
		if n != 2 {
			t.Errorf("%s stands there %d times", id, n)
		}
	}
	s.Verify(t)
}

func TestPV37UsageIsEstimatedWhereNoneComes(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("chat", fakemodel.Options{Handler: func(*fakemodel.Request) fakemodel.Reply {
		return fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Text(strings.Repeat("word ", 100))}, Chat: fakemodel.ChatQuirks{NoUsage: true}}
	}})
	k := h.start().dial()
	k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"f/Ada","instructions":"","tools":[],"workspace":%q,"budget_tokens":100`, h.workspace))
	k.follow("Ada", 0)
	sub := k.submit("Ada", "r1", "go", "")
	found := false
	for _, l := range k.until("turn_finished", sub.Turn) {
		if l.str("event") != "usage" {
			continue
		}
		var u protocol.Usage
		l.data(&u)
		found = u.Estimated && u.OutputTokens >= 125 && u.InputTokens > 0
	}
	if !found {
		t.Error("no usage is marked as estimated")
	}
	var b protocol.Bot
	k.ask(&b, "inspect", `"bot":"Ada"`)
	if b.TokensUsed < 125 {
		t.Errorf("%d tokens are counted", b.TokensUsed)
	}
	k.refused(protocol.BudgetExhausted, "submit", submission("Ada", "r2", "more", ""))
	s.Verify(t)
}

func TestPV39PicturesFollowTheRoundsResults(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("chat", fakemodel.Options{Keep: 20, Bodies: true})
	p := h.start()
	k := p.dial()
	k.fbot("Ada", h.workspace, "read shell")
	_, one := h.picture(t, 1)
	_, two := h.picture(t, 2)
	os.WriteFile(filepath.Join(h.workspace, "text"), []byte("plain\n"), 0o600)
	read := func(path string) fakemodel.Block { return fakemodel.Call("read", `{"path":"`+path+`"}`) }
	s.Queue(
		fakemodel.Say("x", read("p01.png"), read("text"), read("p02.png")), // one shown first, one last
		fakemodel.Say("y", read("p01.png"), read("text")), fakemodel.Say("seen"),
	)
	if o := k.run("Ada", "r1", "look"); o.Status != "completed" || o.Text != "seen" {
		t.Fatalf("outcome %+v", o)
	}
	part := func(text string) string { return imagePart("chat", text) }
	shows := func(names string, parts ...string) string {
		return `{"role":"user","content":[{"type":"text","text":"[shown by the tools above, in this order: ` + names + `]"},` + strings.Join(parts, ",") + `]}`
	}
	first, second := shows("p01.png; p02.png", part(one), part(two)), shows("p01.png", part(one))
	last := func() []string {
		reqs := s.Requests()
		return itemsOf(reqs[len(reqs)-1])
	}
	roles := func(items []string) (out string) {
		for _, item := range items {
			out += strings.TrimPrefix(item, `{"role":"`)[:1]
		}
		return out
	}
	was := last()
	t.Run("PV-39 a tool message is text, and one user message follows the last result of the round", func(t *testing.T) {
		if got := roles(was); got != "uatttuattu" {
			t.Fatalf("the roles are %s", got)
		}
		if was[5] != first || was[9] != second {
			t.Errorf("the pictures go as\n%s\n%s\nwant\n%s\n%s", was[5], was[9], first, second)
		}
		for _, i := range []int{2, 3, 4} {
			if !strings.HasPrefix(was[i], `{"role":"tool","tool_call_id":"`) || strings.Contains(was[i], "image_url") {
				t.Errorf("a result goes as %s", was[i])
			}
		}
	})
	t.Run("PV-39 a crash changes nothing of it", func(t *testing.T) {
		p.kill()
		p = h.start()
		k = p.dial()
		s.Queue(fakemodel.Say("still"))
		if o := k.run("Ada", "r2", "and"); o.Status != "completed" {
			t.Fatalf("outcome %+v", o)
		}
		if is := last(); strings.Join(is[:len(was)], ",") != strings.Join(was, ",") {
			t.Errorf("then it goes as %s", is)
		}
	})
	t.Run("PV-39 a round that an interrupt cut shows what it has", func(t *testing.T) {
		s.Queue(fakemodel.Say("z", read("p02.png"), fakemodel.Call("shell", `{"command":"touch began; until [ -e go ]; do sleep 0.02; done"}`)))
		k.follow("Ada", 0)
		sub := k.submit("Ada", "r3", "once more", "")
		h.began()
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, sub.Turn))
		k.until("turn_finished", sub.Turn)
		s.Queue(fakemodel.Say("back"))
		if o := k.run("Ada", "r4", "well"); o.Status != "completed" {
			t.Fatalf("outcome %+v", o)
		}
		if got := roles(last()); got != roles(was)+"auauattuu" {
			t.Errorf("the roles are %s", got)
		}
	})
	s.Verify(t)
}

func TestPV39ARoundThatWaitsThroughACrash(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	h.set.Limits.ApprovalHoldMS = 50
	f := h.fake("chat", fakemodel.Options{Keep: 5, Bodies: true})
	p := h.start()
	k := p.dial()
	k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"f/Ada","instructions":"","tools":["read"],"workspace":%q,"client_tools":[%s]`, h.workspace, memoryTool("")))
	_, one := h.picture(t, 1)
	path, two := h.picture(t, 2)
	f.Queue(fakemodel.Say("x", fakemodel.Call("read", `{"path":"p01.png"}`), fakemodel.Call("memory", `{"fact":"a"}`)), fakemodel.Say("seen"))
	k.follow("Ada", 0)
	sub := k.submit("Ada", "r1", "look", "")
	k.until("turn_waiting", sub.Turn)
	p.kill()
	p = h.start()
	k, s := p.dial(), p.dial()
	k.follow("Ada", 0)
	given := s.serve("sonny", 60_000)
	s.ask(nil, "tool_result", address(sub.Turn, given.Calls[0].CallID, given.Lease)+`,"output":"here",`+naming(path))
	k.until("turn_finished", sub.Turn)
	t.Run("PV-39 a picture from before it goes with one from after it", func(t *testing.T) {
		if o := k.result("Ada", sub.Turn); o.Status != "completed" || o.Text != "seen" {
			t.Fatalf("outcome %+v", o)
		}
		want := `"content":"here"},{"role":"user","content":[{"type":"text","text":"[shown by the tools above, in this order: p01.png; ` + path + `]"},` +
			imagePart("chat", one) + "," + imagePart("chat", two) + `]}]}`
		if last := bodies(f)[1]; !strings.HasSuffix(last, want) {
			t.Errorf("the request: %s", last)
		}
	})
	k.ask(nil, "delete", `"bot":"Ada"`)
	p.stop(k)
	h.pictureRows(0, 0)
	f.Verify(t)
}

func TestPV69WebSearchWhereItIsNotServed(t *testing.T) {
	t.Parallel()
	eachFamily(t, func(t *testing.T, family string) {
		h := newHost(t, "")
		s := h.fake(family, fakemodel.Options{Keep: 5, Bodies: true})
		k := h.start().dial()
		var made, b protocol.Bot
		k.ask(&made, "create", fmt.Sprintf(`"bot":"Ada","model":"f/Ada","instructions":"","tools":["echo","web_search"],"workspace":%q`, h.workspace))
		k.ask(&b, "inspect", `"bot":"Ada"`)
		want := ""
		if family == "chat" {
			want = "web_search"
		}
		if got := strings.Join(b.UnavailableTools, " "); got != want || strings.Join(made.UnavailableTools, " ") != want {
			t.Errorf("PV-69 unavailable are %q", got)
		}
		s.Queue(fakemodel.Say("a", fakemodel.Call("web_search", `{}`)), fakemodel.Say("b"))
		if o := k.run("Ada", "r1", "search"); o.Status != "completed" || o.Text != "b" {
			t.Fatalf("outcome %+v", o)
		}
		for _, body := range bodies(s)[:1] {
			if strings.Contains(body, "web_search") != (family != "chat") {
				t.Errorf("PV-69 the request: %s", body)
			}
		}
		if last := bodies(s)[1]; !strings.Contains(last, "tool_not_available") {
			t.Errorf("a call of it is answered: %s", last)
		}
		k.refused(protocol.UnknownTool, "create", fmt.Sprintf(`"bot":"Eve","model":"f/Eve","instructions":"","tools":["web_search","web_search"],"workspace":%q`, h.workspace))
		s.Verify(t)
	})
}

func TestPV66ASearchIsOutsideContent(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("anthropic", fakemodel.Options{Keep: 5, Bodies: true})
	k := h.start().dial()
	k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"f/Ada","instructions":"","tools":["web_search"],"workspace":%q`, h.workspace))
	const found = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.com/a","title":"A","encrypted_content":"RW5j+/=","page_age":null}]}`
	s.Queue(fakemodel.Reply{Blocks: []fakemodel.Block{
		fakemodel.Raw(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`), fakemodel.Raw(found), fakemodel.Text("Yes."),
	}}, fakemodel.Say("Still."))
	if o := k.run("Ada", "r1", "search"); o.Status != "completed" || o.Text != "Yes." {
		t.Fatalf("outcome %+v", o)
	}
	if o := k.run("Ada", "r2", "and"); o.Status != "completed" {
		t.Fatalf("outcome %+v", o)
	}
	all := bodies(s)
	if !strings.Contains(all[0], `"name":"web_search","max_uses"`) || !strings.Contains(all[1], found) {
		t.Errorf("the requests: %s\n%s", all[0], all[1])
	}
	var page protocol.TurnPage
	k.ask(&page, "turns", `"bot":"Ada"`)
	if got := page.Turns[0].External; strings.Join(got, " ") != "web_search" {
		t.Errorf("the turn's outside content is %q", got)
	}
	s.Verify(t)
}

// TestAServerThatAnswersOneAtATime is a local server's usual manner. It takes no
// key, and none is sent.
func TestAServerThatAnswersOneAtATime(t *testing.T) {
	t.Parallel()
	var turn sync.Mutex
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		turn.Lock()
		defer turn.Unlock()
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("authorization") != "" {
			t.Errorf("%s with %q", r.URL, r.Header.Get("authorization"))
		}
		w.Header().Set("content-type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n")
		w.(http.Flusher).Flush()
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(site.Close)
	h := newHost(t, "")
	h.set.Providers = append(h.set.Providers, "x=chat,"+site.URL+"/v1")
	h.env = append(h.env, "OPENAI_API_KEY=never-for-another-host")
	k := h.start().dial()
	k.follow("*", 0)
	turns := map[string]int64{}
	for _, bot := range []string{"Ada", "Bob", "Cid"} {
		k.ask(nil, "create", fmt.Sprintf(`"bot":%q,"model":"x/m","instructions":"","tools":[],"workspace":%q`, bot, h.workspace))
		turns[bot] = k.submit(bot, "r", "hi", "").Turn
	}
	for n := 0; n < 3; {
		if k.note().str("event") == "turn_finished" {
			n++
		}
	}
	for bot, turn := range turns {
		if o := k.result(bot, turn); o.Status != "completed" || o.Text != "hello" {
			t.Errorf("%s: %+v", bot, o)
		}
	}
}
