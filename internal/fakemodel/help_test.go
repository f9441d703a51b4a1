package fakemodel

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"agent/internal/model"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, opts Options) *Server {
	t.Helper()
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// client is what the tests ask with: no compression, as the product.
func client(t *testing.T) *http.Client {
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// post is one request; edit may break it.
func post(t *testing.T, s *Server, family model.Family, body string, edit ...func(*http.Request)) *http.Response {
	t.Helper()
	resp, err := client(t).Do(newRequest(t.Context(), s, family, body, edit...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func newRequest(ctx context.Context, s *Server, family model.Family, body string, edit ...func(*http.Request)) *http.Request {
	path := "/messages"
	switch family {
	case model.FamilyResponses:
		path = "/responses"
	case model.FamilyChat:
		path = "/chat/completions"
	}
	r, _ := http.NewRequestWithContext(ctx, "POST", s.URL+path, strings.NewReader(body))
	r.Header.Set("content-type", "application/json")
	r.Header.Set("accept", "text/event-stream")
	if family == model.FamilyAnthropic {
		r.Header.Set("anthropic-version", "2023-06-01")
		r.Header.Set("anthropic-beta", bindingBeta)
	} else if _, rest, ok := strings.Cut(body, `"prompt_cache_key":"`); ok {
		key, _, _ := strings.Cut(rest, `"`)
		r.Header.Set("session-id", key)
	}
	for _, f := range edit {
		f(r)
	}
	return r
}

// read reads a stream to its end.
func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("after %q: %v", b, err)
	}
	return string(b)
}

// good asks and wants a stream.
func good(t *testing.T, s *Server, family model.Family, body string) string {
	t.Helper()
	resp := post(t, s, family, body)
	out := read(t, resp)
	if resp.StatusCode != 200 {
		t.Fatalf("status %d: %s", resp.StatusCode, out)
	}
	return out
}

// refused asks and wants one violation with this reason.
func refused(t *testing.T, s *Server, family model.Family, body, reason string, edit ...func(*http.Request)) {
	t.Helper()
	before := len(s.Violations())
	resp := post(t, s, family, body, edit...)
	out := read(t, resp)
	if resp.StatusCode != 400 {
		t.Fatalf("status %d for a request that is %s: %s", resp.StatusCode, reason, out)
	}
	v := s.Violations()
	if len(v) != before+1 || v[before].Reason != reason {
		t.Fatalf("violations %+v, wanted %s", v[before:], reason)
	}
	if !strings.Contains(out, `"invalid_request_error"`) || !strings.Contains(out, reason) {
		t.Errorf("error body %s", out)
	}
}

// data gives the data lines of a stream.
func data(sse string) []string {
	var out []string
	sc := bufio.NewScanner(strings.NewReader(sse))
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		if rest, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: ")); ok {
			out = append(out, string(rest))
		}
	}
	return out
}

const (
	reqA1  = `{"model":"claude-test-1","max_tokens":128000,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"stream":true,"cache_control":{"type":"ephemeral"},"tools":[{"name":"shell","description":"Run a command","input_schema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}],"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}},"output_config":{"effort":"low"},"messages":[{"role":"user","content":[{"type":"text","text":"List files & say <done>"}]}]}`
	itemA2 = `{"role":"assistant","content":[{"type":"thinking","thinking":"Use <ls> & stop","signature":"c2lnLTE+/w=="},{"type":"text","text":"Looking."},{"type":"tool_use","id":"toolu_01","name":"shell","input":{"command": "ls"}}]}`
	itemA3 = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"a.txt\n"}]}`

	reqR1   = `{"model":"gpt-test-1","instructions":"Be brief.","stream":true,"store":false,"include":["reasoning.encrypted_content"],"tools":[{"type":"function","name":"shell","description":"Run a command","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]},"strict":false}],"reasoning":{"effort":"low","summary":"auto"},"prompt_cache_key":"st1-7","input":[{"role":"user","content":[{"type":"input_text","text":"List files"}]}]}`
	itemR2a = `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Need a listing."}],"encrypted_content":"gAAAAB+/ex=="}`
	itemR2b = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Looking.","annotations":[]}]}`
	itemR2c = `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"shell","arguments":"{\"command\":\"ls\"}","status":"completed"}`
	itemR3  = `{"type":"function_call_output","call_id":"call_1","output":"a.txt\n"}`
)

// replyA2 is fixture A2 in this server's hands: the items are the fixture's.
func replyA2() Reply {
	return Reply{Raw: []byte("data: {\"type\":\"message_stop\"}\n\n"), Stored: [][]byte{[]byte(itemA2)}}
}

func replyR2() Reply {
	return Reply{Raw: []byte("data: {\"type\":\"response.completed\"}\n\n"), Stored: [][]byte{[]byte(itemR2a), []byte(itemR2b), []byte(itemR2c)}}
}

// with appends items to the list at the end of a fixture's request.
func with(req string, items ...string) string {
	return strings.TrimSuffix(req, "]}") + "," + strings.Join(items, ",") + "]}"
}

// only puts a list in place of a fixture's.
func only(req string, items ...string) string {
	i := max(strings.LastIndex(req, `"messages":[`), strings.LastIndex(req, `"input":[`))
	head := req[:i]
	name := "messages"
	if strings.HasPrefix(req[i:], `"input"`) {
		name = "input"
	}
	return fmt.Sprintf(`%s"%s":[%s]}`, head, name, strings.Join(items, ","))
}

func say(text string) string {
	return `{"role":"user","content":[{"type":"text","text":"` + text + `"}]}`
}

func sayR(text string) string {
	return `{"role":"user","content":[{"type":"input_text","text":"` + text + `"}]}`
}
