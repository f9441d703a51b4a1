package daemon_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// toolCall is a call with its arguments.
func toolCall(name string, args map[string]any) [2]string {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return [2]string{name, string(text)}
}

func TestApplyPatch(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{})
	p := h.start()
	k := p.dial()
	k.fbot("Ada", h.workspace, "apply_patch write")
	for name, text := range map[string]string{"one": "a\r\nb\r\n", "two": "gone\n"} {
		if err := os.WriteFile(filepath.Join(h.workspace, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(sections string) [2]string {
		return toolCall("apply_patch", map[string]any{"patch": "*** Begin Patch\n" + sections + "*** End Patch\n"})
	}
	holds := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(h.workspace, name)); string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	t.Run("RT-34 RT-120 a patch whose last hunk does not match changes nothing", func(t *testing.T) {
		got := k.steps(s, "Ada", "r1", patch("*** Update File: one\n@@\n-b\n+c\n*** Delete File: two\n*** Add File: d/three\n+x\n*** Update File: one\n@@\n-b\n+d\n"))
		if !strings.Contains(got[0], `{"error":"patch_context_not_found","detail":"one: hunk 1 (line 10 of the patch)`) {
			t.Errorf("got %s", got)
		}
		holds("one", "a\r\nb\r\n")
		holds("two", "gone\n")
		if _, err := os.Stat(filepath.Join(h.workspace, "d")); err == nil {
			t.Error("a folder was made")
		}
	})
	t.Run("RT-112 a patch of three files is applied, and what it wrote may be written again", func(t *testing.T) {
		got := k.steps(s, "Ada", "r2", patch("*** Update File: one\n@@\n a\n-b\n+c\n+d\n*** Delete File: two\n*** Add File: d/three\n+x\n"),
			toolCall("write", map[string]any{"path": "d/three", "content": "y\n"}))
		if got[0] != `{"applied":[{"path":"one","action":"update","added":2,"removed":1},{"path":"two","action":"delete","added":0,"removed":1},{"path":"d/three","action":"add","added":1,"removed":0}]}` {
			t.Errorf("got %s", got)
		}
		holds("one", "a\r\nc\r\nd\r\n")
		holds("d/three", "y\n")
		if _, err := os.Stat(filepath.Join(h.workspace, "two")); err == nil {
			t.Error("two is still there")
		}
	})
	s.Verify(t)
}

func TestWebFetch(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/long" {
			for i := range 30_000 {
				fmt.Fprintf(w, "<p>line %d of the page\n", i)
			}
			return
		}
		fmt.Fprintf(w, "<h1>Hello</h1><p>%d headers, <a href=/next>on</a>", len(r.Header["Cookie"])+len(r.Header["Authorization"]))
	}))
	t.Cleanup(site.Close)
	trap, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer trap.Close()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{})
	h.env = append(h.env, "HTTP_PROXY=http://"+trap.Addr().String(), "http_proxy=http://"+trap.Addr().String())
	p := h.start()
	k := p.dial()
	k.fbot("Ada", h.workspace, "web_fetch read")
	t.Run("RT-35 PO-111 a loopback page is fetched, past any proxy, and marks its turn external", func(t *testing.T) {
		got := k.steps(s, "Ada", "r1", toolCall("web_fetch", map[string]any{"url": site.URL + "/"}))
		want := fmt.Sprintf(`{"url":%q,"final_url":%q,"status":200,"content_type":"text/html","text":"# Hello\n\n0 headers, [on](%s/next)\n","truncated":false}`, site.URL+"/", site.URL+"/", site.URL)
		if got[0] != want {
			t.Errorf("got %s, want %s", got[0], want)
		}
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"Ada"`)
		if n := len(page.Turns); n != 1 || strings.Join(page.Turns[0].External, " ") != "web_fetch" {
			t.Errorf("turns %+v", page)
		}
	})
	t.Run("a long page is kept and read back by its reference", func(t *testing.T) {
		got := k.steps(s, "Ada", "r2", toolCall("web_fetch", map[string]any{"url": site.URL + "/long"}))
		var page struct{ Artifacts []string }
		if err := json.Unmarshal([]byte(got[0]), &page); err != nil || len(page.Artifacts) != 1 || !strings.HasSuffix(page.Artifacts[0], "/body") {
			t.Fatalf("got %.300s", got[0])
		}
		got = k.steps(s, "Ada", "r3", toolCall("read", map[string]any{"artifact": page.Artifacts[0], "offset": 40_001, "limit": 1}))
		if !strings.Contains(got[0], " 40001\tline 20000 of the page") {
			t.Errorf("read gave %.300s", got[0])
		}
	})
	s.Verify(t)
}
