package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agent/internal/fakemodel"
)

// A leaky answers a request in a way that shows the key it came with. Its
// name is the model's.
type leaky struct {
	name   string
	answer func(w http.ResponseWriter, key string, n int)
	code   string // what the turn ends with; "" completes
	quotes bool   // the detail shows that something was masked
}

// Values of response headers and of a query, which are no keys and are not to
// be seen either.
const (
	headerValue = "hq-header-value-5d1c7be2"
	queryValue  = "qq-query-value-9a44e0f1"
)

func leakyBody(status int, kind, body string) func(http.ResponseWriter, string, int) {
	return func(w http.ResponseWriter, key string, _ int) {
		w.Header().Set("content-type", strings.ReplaceAll(kind, "KEY", key))
		for name, value := range map[string]string{"x-note": headerValue, "set-cookie": "s=" + headerValue, "request-id": key, "x-request-id": key} {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		io.WriteString(w, strings.ReplaceAll(body, "KEY", key))
	}
}

// once fails at the first request and is well at the next.
func once(family string, fail func(http.ResponseWriter, string, int)) func(http.ResponseWriter, string, int) {
	return func(w http.ResponseWriter, key string, n int) {
		if n == 1 {
			fail(w, key, n)
			return
		}
		w.Header().Set("content-type", "text/event-stream")
		io.WriteString(w, wellStream[family])
	}
}

// pieces is a stream that is sent in two writes, cut in the middle of the key.
func pieces(stream string) func(http.ResponseWriter, string, int) {
	return func(w http.ResponseWriter, key string, _ int) {
		w.Header().Set("content-type", "text/event-stream")
		text := strings.ReplaceAll(stream, "KEY", key)
		at := strings.Index(text, key) + len(key)/2
		io.WriteString(w, text[:at])
		w.(http.Flusher).Flush()
		io.WriteString(w, text[at:])
	}
}

var wellStream = map[string]string{
	"anthropic": `data: {"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Well."}}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}` + "\n\n" +
		`data: {"type":"message_stop"}` + "\n\n",
	"responses": `data: {"type":"response.output_item.done","item":{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Well."}]}}` + "\n\n" +
		`data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n",
}

func leakies(family string) []leaky {
	js, text := "application/json", "text/plain"
	all := []leaky{
		{"message", leakyBody(400, js, `{"error":{"message":"no KEY and Bearer KEY"}}`), "provider_http_400", true},
		{"word", leakyBody(401, js, `"no KEY"`), "provider_http_401", true},
		{"plain", leakyBody(403, text, "x-api-key: KEY\nauthorization: Bearer KEY"), "provider_http_403", true},
		{"html", leakyBody(404, "text/html", "<p>KEY</p>"), "provider_http_404", true},
		{"detail", leakyBody(422, js, `{"detail":"KEY"}`), "provider_http_422", true},
		{"cut", leakyBody(400, text, strings.Repeat("x", 505)+"KEY"), "provider_http_400", false},
		{"long", leakyBody(400, text, strings.Repeat("x", 4090)+"KEY"), "provider_http_400", false},
		{"url", leakyBody(400, text, "see https://api.test/v1?key=KEY"), "provider_http_400", true},
		{"broken", leakyBody(400, js, `{"error":{"message":"KEY"`), "provider_http_400", false},
		{"again", once(family, leakyBody(503, js, `{"error":{"message":"busy KEY"}}`)), "", false},
		{"paced", once(family, leakyBody(429, js, `{"error":{"message":"KEY: try again in 10ms"}}`)), "", false},
		{"sse", leakyBody(200, js, `{"error":{"message":"KEY"}}`), "provider_expected_sse", true},
		{"type", leakyBody(200, "text/x-KEY", "x"), "provider_expected_sse", true},
		{"longtype", leakyBody(200, "text/"+strings.Repeat("x", 80)+"KEY", "x"), "provider_expected_sse", false},
		{"untyped", func(w http.ResponseWriter, key string, _ int) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, `{"message":"`+key+`"}`)
		}, "provider_expected_sse", true},
		{"event", pieces(`data: {"type":"KEY` + "\n\n"), "invalid_provider_response", false},
		{"redirect", func(w http.ResponseWriter, key string, _ int) {
			w.Header().Set("location", "https://elsewhere.test/?q="+queryValue+"&key="+key)
			w.WriteHeader(307)
		}, "provider_http_307", false},
		{"torn", once(family, func(w http.ResponseWriter, key string, _ int) {
			w.Header().Set("content-type", "text/event-stream")
			io.WriteString(w, `data: {"type":"x `+key)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}), "", false},
	}
	if family == "anthropic" {
		return append(all,
			leaky{"stream", pieces(`data: {"type":"error","error":{"type":"invalid_request_error","message":"no KEY"}}` + "\n\n"), "provider_error", true},
			leaky{"stop", pieces(strings.Replace(wellStream[family], "end_turn", "KEY", 1)), "provider_incomplete", true},
			leaky{"kind", pieces(`data: {"type":"content_block_start","index":0,"content_block":{"type":"KEY"}}` + "\n\n"), "unsupported_content", true},
			leaky{"quota", leakyBody(402, js, `{"error":{"message":"KEY"}}`), "provider_quota_exhausted", true})
	}
	return append(all,
		leaky{"stream", pieces(`data: {"type":"response.failed","response":{"error":{"code":"x","message":"no KEY"}}}` + "\n\n"), "provider_incomplete", true},
		leaky{"stop", pieces(`data: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"KEY"}}}` + "\n\n"), "provider_incomplete", true},
		leaky{"kind", pieces(`data: {"type":"response.output_item.done","item":{"type":"KEY"}}` + "\n\n"), "unsupported_output_item", true},
		leaky{"quota", leakyBody(429, js, `{"error":{"message":"KEY","code":"insufficient_quota"}}`), "provider_quota_exhausted", true})
}

// leakServer answers each model in its leaky's way, and lists no model.
func leakServer(t *testing.T, family string) *httptest.Server {
	ways := leakies(family)
	var mu sync.Mutex
	asked := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("x-api-key") + strings.TrimPrefix(r.Header.Get("authorization"), "Bearer ")
		if key == "" {
			t.Errorf("%s came without its key", r.URL.Path)
		}
		if strings.HasSuffix(r.URL.Path, "/models") {
			leakyBody(401, "application/json", `{"error":{"message":"no models for KEY"}}`)(w, key, 1)
			return
		}
		text, _ := io.ReadAll(r.Body)
		var body struct{ Model string }
		json.Unmarshal(text, &body)
		i := slices.IndexFunc(ways, func(l leaky) bool { return l.name == body.Model })
		mu.Lock()
		asked[body.Model]++
		n := asked[body.Model]
		mu.Unlock()
		ways[i].answer(w, key, n)
	}))
	t.Cleanup(s.Close)
	return s
}

// recorder is a connection to the daemon of which every byte is kept.
type recorder struct {
	t    *testing.T
	c    net.Conn
	r    *bufio.Reader
	all  bytes.Buffer
	next int
	ends map[string]string // how each bot's last turn ended

	calls []struct{ turn, id string } // tool calls that are done
}

func record(t *testing.T, g *ground) *recorder {
	c, err := net.Dial("unix", g.store()+".sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(30 * time.Second))
	k := &recorder{t: t, c: c, ends: map[string]string{}}
	k.r = bufio.NewReaderSize(io.TeeReader(c, &k.all), 64<<10)
	k.line()
	return k
}

// refuses makes a request that must be refused with a code.
func (k *recorder) refuses(code, op, members string) {
	k.t.Helper()
	id := k.send(op, members)
	text, err := k.r.ReadBytes('\n')
	var l struct {
		ID    json.RawMessage
		Error string
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil || string(l.ID) != id || l.Error != code {
		k.t.Errorf("%s%s: got %s, want %s: %v", op, members, text, code, err)
	}
}

func (k *recorder) line() map[string]json.RawMessage {
	text, err := k.r.ReadBytes('\n')
	if err != nil {
		k.t.Fatalf("the session ended: %v; it said\n%.20000s", err, k.all.Bytes())
	}
	var l map[string]json.RawMessage
	if err := json.Unmarshal(text, &l); err != nil {
		k.t.Fatalf("%s: %v", text, err)
	}
	if l["error"] != nil && l["id"] != nil {
		k.t.Fatalf("a request was refused: %s", text)
	}
	if string(l["event"]) == `"tool_completed"` {
		var data struct {
			ID string `json:"call_id"`
		}
		json.Unmarshal(l["data"], &data)
		k.calls = append(k.calls, struct{ turn, id string }{string(l["turn"]), data.ID})
	}
	if string(l["event"]) == `"turn_finished"` {
		k.ends[strings.Trim(string(l["bot"]), `"`)] = string(l["data"])
	}
	return l
}

// send makes a request; members are given without the braces.
func (k *recorder) send(op, members string) string {
	k.next++
	if _, err := fmt.Fprintf(k.c, `{"id":%d,"op":%q%s}`+"\n", k.next, op, members); err != nil {
		k.t.Fatal(err)
	}
	return fmt.Sprint(k.next)
}

// ask gives a request's whole answer.
func (k *recorder) ask(op, members string) map[string]json.RawMessage {
	id := k.send(op, members)
	for {
		if l := k.line(); string(l["id"]) == id {
			return l
		}
	}
}

// await reads until so many bots have had a turn that ended.
func (k *recorder) await(bots int) {
	for len(k.ends) < bots {
		k.line()
	}
}

// secretGround is a place with six keys, one of them in ~/.agent/env alone.
func secretGround(t *testing.T) (g *ground, keys map[string]string) {
	keys = map[string]string{}
	for i, name := range []string{"K_OK", "K_AN", "K_RE", "K_TLS", "K_PORT", "K_FILE"} {
		// What JSON or HTML would write otherwise is part of it.
		keys[name] = fmt.Sprintf("zq%d-<&+/~%s-%s", i, strings.ToLower(name), strings.Repeat(string(rune('c'+i))+fmt.Sprint(i), 12))
	}
	var env []string
	for name, key := range keys {
		if name != "K_AN" && name != "K_FILE" {
			env = append(env, name+"="+key)
		}
	}
	g = newGround(t, env...)
	dir := filepath.Join(g.home, ".agent")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := "K_AN=\"" + keys["K_AN"] + "\"\nexport K_FILE=" + keys["K_FILE"] + "\nK_OK=not-" + keys["K_OK"][:8] + "\n"
	if err := os.WriteFile(filepath.Join(dir, "env"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return g, keys
}

// TestNoSecretIsWritten runs a real daemon into every failure that can be made
// of a provider, and its tools into the keys themselves, and then reads
// everything that it wrote anywhere.
func TestNoSecretIsWritten(t *testing.T) {
	t.Parallel()
	g, keys := secretGround(t)
	well, err := fakemodel.New(fakemodel.Options{Key: keys["K_OK"], Models: []string{"tools"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { well.Close() })
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0) // that nobody trusts it is the point
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	servers := map[string]*httptest.Server{"anthropic": leakServer(t, "anthropic"), "responses": leakServer(t, "responses")}

	var said bytes.Buffer
	agent := func(args ...string) ran {
		r := g.run(args...)
		said.WriteString(r.stdout + r.stderr)
		return r
	}
	start := []string{
		"start", "--provider", "ok=responses," + well.URL + ",K_OK", "--provider", "an=anthropic," + servers["anthropic"].URL + ",K_AN",
		"--provider", "re=responses," + servers["responses"].URL + ",K_RE", "--provider", "tls=anthropic," + untrusted.URL + ",K_TLS",
		"--provider", "port=responses,http://127.0.0.1:1/v1,K_PORT", "--provider", "file=anthropic,http://127.0.0.1:1/v1,K_FILE",
	}
	if r := agent(start...); r.status != 0 {
		t.Fatalf("start: %s", r.stderr)
	}
	k := record(t, g)
	k.ask("follow", `,"bot":"*","after":0`)

	want := map[string]leaky{}
	for provider, family := range map[string]string{"an": "anthropic", "re": "responses"} {
		for _, l := range leakies(family) {
			bot := provider + "-" + l.name
			want[bot] = l
			k.ask("create", fmt.Sprintf(`,"bot":%q,"model":"%s/%s","instructions":"","tools":[]`, bot, provider, l.name))
			k.send("submit", fmt.Sprintf(`,"bot":%q,"request_id":"r","prompt":"go","workspace":%q`, bot, g.dir))
		}
	}
	k.await(len(want))
	for bot, l := range want {
		var end struct{ Error, Detail string }
		json.Unmarshal([]byte(k.ends[bot]), &end)
		if end.Error != l.code || l.quotes != strings.Contains(end.Detail, "[REDACTED]") {
			t.Errorf("%s ended %s, not with %q, masked: %v", bot, k.ends[bot], l.code, l.quotes)
		}
	}
	k.unreachable(g)
	k.tools(t, g, well, keys)
	k.everything(slices.Collect(maps.Keys(want)))

	longest := 0
	for _, c := range k.calls {
		for _, stream := range []string{"stdout", "stderr"} {
			// What is kept compressed; not every call keeps anything.
			r := agent("artifact", "--bot", "tools", "--turn", c.turn, "--call", c.id, "--stream", stream, "--raw")
			longest = max(longest, strings.Count(r.stdout, "[REDACTED]"))
		}
	}
	if longest < 2000 {
		t.Errorf("the longest output that was kept has %d marks: nothing was tried", longest)
	}
	agent("stats")
	agent("show", "--bot", "tools")
	agent("history", "--bot", "tools")
	agent("calls", "--bot", "tools")
	agent("events", "--bot", "an-message")
	agent("ls")
	if r := agent("models", "--discover"); r.status != 0 || !strings.Contains(r.stdout, `"ok":{"models":1}`) || !strings.Contains(r.stdout, "no models for [REDACTED]") {
		t.Errorf("models: %s%s", r.stdout, r.stderr)
	}
	g.crash(t)

	found := map[string][]byte{"the socket": k.all.Bytes(), "the command": said.Bytes()}
	g.written(t, found)
	for _, part := range []string{".log", ".sqlite", "models"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(path string) bool { return strings.HasSuffix(path, part) }) {
			t.Errorf("nothing that ends in %s was written", part)
		}
	}
	if text := string(found[g.store()+".log"]); !strings.Contains(text, "SIGQUIT") || !strings.Contains(text, "goroutine ") {
		t.Errorf("the crash left nothing in the log: %.500s", text)
	}
	t.Run("PO-88 PO-80 no key, no header and no query of a provider is anywhere in what the daemon wrote", func(t *testing.T) {
		for where, text := range found {
			for name, value := range withParts(keys) {
				if at := bytes.Index(text, []byte(value)); at >= 0 {
					t.Errorf("%s holds %s: %.300q", where, name, text[max(0, at-120):])
				}
			}
		}
	})
}

// withParts are the keys, both ends of each, which a careless cut would leave,
// and what else is not to be seen.
func withParts(keys map[string]string) map[string]string {
	parts := map[string]string{"a response header": headerValue, "a query": queryValue}
	for name, key := range keys {
		parts[name] = key
		parts["the beginning of "+name] = key[:14]
		parts["the end of "+name] = key[len(key)-14:]
	}
	return parts
}

// unreachable runs turns into a certificate nobody knows and a port without a
// server, and interrupts what would be tried again for minutes.
func (k *recorder) unreachable(g *ground) {
	providers, before := []string{"tls", "port", "file"}, len(k.ends)
	for _, p := range providers {
		k.ask("create", fmt.Sprintf(`,"bot":%q,"model":"%s/x","instructions":"","tools":[]`, p, p))
		k.send("submit", fmt.Sprintf(`,"bot":%q,"request_id":"r","prompt":"go","workspace":%q`, p, g.dir))
	}
	tried := map[string]bool{}
	for len(tried) < len(providers) {
		if l := k.line(); string(l["event"]) == `"retry"` {
			bot := strings.Trim(string(l["bot"]), `"`)
			if bot == "tls" && string(l["error"]) != `"provider_connection_tls"` {
				k.t.Errorf("%s: %s", bot, l["error"])
			}
			if !tried[bot] {
				k.send("interrupt", fmt.Sprintf(`,"bot":%q,"turn":%s`, bot, l["turn"]))
			}
			tried[bot] = true
		}
	}
	k.await(before + len(providers))
}

// tools lets commands and tools print every key: plain, from a child, in two
// pieces, on both outputs, far more than a window holds, and in the background.
func (k *recorder) tools(t *testing.T, g *ground, s *fakemodel.Server, keys map[string]string) {
	work := filepath.Join(g.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, key := range keys {
		text.WriteString(key + "\n")
	}
	if err := os.WriteFile(filepath.Join(work, "keys"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := func(command string) fakemodel.Block {
		args, _ := json.Marshal(map[string]any{"command": command})
		return fakemodel.Call("shell", string(args))
	}
	s.Queue(
		fakemodel.Say("a", shell("cat keys; cat keys >&2; env"), shell(`sh -c 'cat keys; exit 3'`), fakemodel.Call("read", `{"path":"keys"}`)),
		fakemodel.Say("b", shell("head -c 30 keys; sleep 0.05; tail -c +31 keys"), shell("cp keys k; for i in 1 2 3 4 5 6 7 8 9 10 11; do cat k k > l; mv l k; done; cat k")),
		fakemodel.Say("c", shell("cat no-such-file $(cat keys)"), fakemodel.Call("edit", `{"path":"keys","old":"no such text","new":"x"}`),
			fakemodel.Call("shell", `{"command":"cat keys; sleep 0.1; cat keys","background":true}`)),
		fakemodel.Say("done"),
	)
	k.ask("create", fmt.Sprintf(`,"bot":"tools","model":"ok/tools","instructions":"","tools":["shell","read","edit"],"workspace":%q`, work))
	k.send("submit", `,"bot":"tools","request_id":"r","prompt":"go"`)
	k.await(len(k.ends) + 1)
	if end := k.ends["tools"]; !strings.Contains(end, `"completed"`) {
		t.Errorf("the tools' turn ended %s", end)
	}
	if !bytes.Contains(k.all.Bytes(), []byte("[REDACTED]")) {
		t.Error("no result had a key to mask: nothing was tried")
	}
	s.Verify(t)
}

// everything asks for all that can be read of some bots.
func (k *recorder) everything(bots []string) {
	for _, op := range []string{"stats", "provider_models", "bots"} {
		k.ask(op, "")
	}
	for _, bot := range append(bots, "tools", "tls", "port", "file") {
		named := fmt.Sprintf(`,"bot":%q`, bot)
		k.ask("inspect", named)
		var page struct{ Turns []struct{ Turn int64 } }
		json.Unmarshal(k.ask("turns", named)["result"], &page)
		for _, turn := range page.Turns {
			k.ask("prompts", fmt.Sprintf(`%s,"turn":%d`, named, turn.Turn))
			k.ask("result", fmt.Sprintf(`%s,"turn":%d`, named, turn.Turn))
		}
		k.ask("events", named+`,"after":0,"limit":256`)
		var nodes struct {
			Nodes []struct{ Node int64 }
		}
		json.Unmarshal(k.ask("history_nodes", named)["result"], &nodes)
		for _, n := range nodes.Nodes {
			k.ask("item", fmt.Sprintf(`%s,"node":%d`, named, n.Node))
		}
	}
}

// crash ends the daemon with a dump of all its goroutines.
func (g *ground) crash(t *testing.T) {
	var ready struct{ PID int }
	if err := json.Unmarshal([]byte(g.must("start")), &ready); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(ready.PID, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); syscall.Kill(ready.PID, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the daemon did not end")
		}
	}
}

// written adds every file below the home but the person's own.
func (g *ground) written(t *testing.T, found map[string][]byte) {
	err := filepath.WalkDir(g.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == filepath.Join(g.home, ".agent", "env") {
			return err
		}
		found[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
