package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"agent/client"
	"agent/protocol"
)

// TestFetchBesideTheSandbox: web_fetch runs in the daemon, which a sandbox does
// not hold.
func TestFetchBesideTheSandbox(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprintln(w, "tea is served")
	}))
	t.Cleanup(page.Close)
	g := newGround(t)
	t.Run("PO-49 RT-36 a bot whose network is off fetches a page of this machine", func(t *testing.T) {
		g.must("run", "--new", "--bot", "Ada", "--model", "t/do", "--sandbox", "workspace-write", "fetch "+page.URL)
		if out := g.must("history", "--bot", "Ada", "--limit", "1"); !strings.Contains(out, "tea is served") || asked.Load() != 1 {
			t.Errorf("asked %d times: %s", asked.Load(), out)
		}
	})
	t.Run("and its commands do not reach that page", func(t *testing.T) {
		port := page.URL[strings.LastIndexByte(page.URL, ':')+1:]
		g.must("run", "--bot", "Ada", "run : 3<>/dev/tcp/127.0.0.1/"+port+" && echo connected")
		if out := g.must("history", "--bot", "Ada", "--limit", "1"); !strings.Contains(out, "onnection refused") && !strings.Contains(out, "not permitted") || !strings.Contains(out, `\"stdout\":\"\"`) {
			t.Errorf("got %s", out)
		}
	})
}

// TestRulesThatAProgramCannotRead: a program that watches a folder sends the
// mark, and the bot runs nothing until there are rules again.
func TestRulesThatAProgramCannotRead(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	rules := filepath.Join(g.dir, "rules")
	if err := os.MkdirAll(rules, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(rules, "a.rules"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.must("run", "--new", "--bot", "Ada", "--model", "t/do", "--rules", rules, "hi")
	c := g.client()
	give := func() *protocol.Bot {
		t.Helper()
		r, err := client.ReadRules(rules)
		if err != nil {
			r = client.UnreadableRules(err)
		}
		bot, err := c.Configure(t.Context(), &protocol.Configure{Bot: "Ada", Rules: protocol.Set(*r)})
		if err != nil {
			t.Fatal(err)
		}
		return bot
	}
	says := func(prompt, want string) {
		t.Helper()
		g.must("run", "--bot", "Ada", prompt)
		if out := g.must("history", "--bot", "Ada", "--limit", "1"); !strings.Contains(out, want) {
			t.Errorf("%s: got %s, want %s", prompt, out, want)
		}
	}
	t.Run("PO-46 the mark refuses every command and names the file", func(t *testing.T) {
		write("# \xff")
		if bot := give(); bot.Rules == nil || !bot.Rules.Unreadable {
			t.Fatalf("the bot has %+v", bot.Rules)
		}
		says("run true", "command_forbidden")
		says("run true", "a.rules cannot be read: it, or its name, is not UTF-8")
		if out := g.must("ls", "--pretty"); !strings.Contains(out, "danger-full-access, rules unreadable") {
			t.Errorf("ls says %s", out)
		}
	})
	t.Run("and rules that can be read lift it", func(t *testing.T) {
		write("prefix_rule(['rm'], decision='forbidden')")
		if bot := give(); bot.Rules == nil || bot.Rules.Rules != 1 {
			t.Fatalf("the bot has %+v", bot.Rules)
		}
		says("run echo went", `stdout\":\"went`)
		says("run rm x", "command_forbidden")
	})
}
