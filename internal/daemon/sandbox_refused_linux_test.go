package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

func TestSandboxesThatCannotBe(t *testing.T) {
	t.Parallel()
	t.Run("PR-65 PO-32 without the sandbox program no sandboxed bot is made", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		// The daemon runs where no launcher is to be found.
		text := "#!/bin/sh\nexec bwrap --die-with-parent --dev-bind / /"
		for _, path := range []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"} {
			if _, err := os.Stat(path); err == nil {
				text += " --ro-bind /dev/null " + path
			}
		}
		self, err := filepath.Abs(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		h.bin = filepath.Join(h.dir, "daemon")
		if err := os.WriteFile(h.bin, []byte(text+" "+self+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		b := &box{host: h, p: h.start()}
		b.k = b.p.dial()
		for _, mode := range []string{"read-only", "workspace-write"} {
			l := b.k.refused(protocol.SandboxUnavailable, "create", b.kid("Ada", `,"sandbox":"`+mode+`"`))
			if !strings.Contains(l.str("detail"), "bwrap") {
				t.Errorf("got %s", l.raw)
			}
		}
		b.k.refused(protocol.BotNotFound, "inspect", `"bot":"Ada"`)
		free := b.make("Free", `"sandbox":"danger-full-access"`)
		b.k.refused(protocol.SandboxUnavailable, "configure", `"bot":"Free","sandbox":"read-only"`)
		b.k.refused(protocol.SandboxUnavailable, "fork", `"source":"Free","bot":"Fork","sandbox":"read-only"`)
		if got := b.inspect("Free"); got.Sandbox != free.Sandbox || len(b.sockets()) != 0 {
			t.Errorf("got %+v and the sockets %v", got, b.sockets())
		}
	})
	t.Run("PR-89 the folder of the store", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		data := filepath.Join(h.dir, "data")
		for _, dir := range []string{"data/x/y", "data/worktrees/x", "home"} {
			if err := os.MkdirAll(filepath.Join(h.dir, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		h.set.Store = filepath.Join(data, "state.sqlite")
		h.env = append(h.env, "HOME="+filepath.Join(h.dir, "home"))
		b := &box{host: h, p: h.start()}
		b.k = b.p.dial()
		base := b.kid("X", `,"sandbox":"workspace-write","exclude_slash_tmp":true,"writable_roots":[%q]`)
		for _, path := range []string{data, data + "/x", data + "/x/y", data + "/worktrees"} {
			b.k.refused(protocol.InvalidWritableRoot, "create", fmt.Sprintf(base, path))
		}
		b.k.ask(nil, "create", fmt.Sprintf(base, data+"/worktrees/x"))
		b.do("X", "run touch ../data/worktrees/x/in; touch ../data/out ../data/x/out")
		if !b.exists("data/worktrees/x/in") || b.exists("data/out") || b.exists("data/x/out") {
			t.Error("the wrong files were written")
		}
	})
	t.Run("PR-66 PR-89 folders that may not be writable", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		agent := filepath.Join(b.dir, "home/.agent")
		base := b.kid("X", `,"sandbox":"workspace-write","writable_roots":[%q]`)
		for path, code := range map[string]protocol.Code{
			agent + "/run/x": protocol.WritableRootWalled, agent: protocol.InvalidWritableRoot, agent + "/rules": protocol.InvalidWritableRoot,
			agent + "/x/y": protocol.InvalidWritableRoot,
		} {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			b.k.refused(code, "create", fmt.Sprintf(base, path))
			b.k.refused(code, "configure", fmt.Sprintf(`"bot":"Ada","writable_roots":[%q]`, path))
		}
		b.k.refused(protocol.BotNotFound, "inspect", `"bot":"X"`)
		tree := agent + "/worktrees/x"
		if err := os.MkdirAll(tree, 0o700); err != nil {
			t.Fatal(err)
		}
		b.k.ask(nil, "create", fmt.Sprintf(base, tree))
		b.do("X", "run touch "+tree+"/in; touch "+agent+"/out")
		if !b.exists("home/.agent/worktrees/x/in") || b.exists("home/.agent/out") {
			t.Error("the wrong files were written")
		}
	})
}
