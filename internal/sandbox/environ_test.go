package sandbox

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"agent/protocol"
)

// variables is an environment as a map, which must name nothing twice.
func variables(t *testing.T, list []string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		if _, twice := m[name]; twice {
			t.Errorf("%s is set twice", name)
		}
		m[name] = value
	}
	return m
}

func TestEnviron(t *testing.T) {
	t.Parallel()
	base := []string{"PATH=/bin", "TMPDIR=/elsewhere", "AGENT_SOCKET=/daemon", "GOFLAGS=-mod=mod", "XDG_CACHE_HOME=/home/p/.cache"}
	l := newLab(t)
	p, err := l.plan(func(_ *Setting, c *Call) { c.BotSocket = "/s/7" })
	if err != nil {
		t.Fatal(err)
	}
	tmp := l.path("tmp")
	got := variables(t, p.Environ(base, 7))
	for name, want := range map[string]string{
		"PATH": "/bin", "TMPDIR": tmp, "TMPPREFIX": tmp + "/zsh", "AGENT_SOCKET": "/s/7", "AGENT_SANDBOX": "workspace-write",
		"AGENT_SANDBOX_NETWORK_DISABLED": "1", "GOFLAGS": "-mod=mod -buildvcs=false", "XDG_CACHE_HOME": l.world.CacheFolder(tmp, 7), "npm_config_cache": l.world.CacheFolder(tmp, 7) + "/npm",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if info, err := os.Stat(l.world.CacheFolder(tmp, 7)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache folder: %v, %v", info, err)
	}
	if slices.Contains(base, "AGENT_SOCKET=/s/7") {
		t.Error("the given list was changed")
	}
	t.Run("read-only", func(t *testing.T) {
		p, err := l.plan(func(s *Setting, _ *Call) { s.Mode, s.Network = protocol.SandboxReadOnly, true })
		if err != nil {
			t.Fatal(err)
		}
		got := variables(t, p.Environ(base, 7))
		want := shmFolder
		if runtime.GOOS != "linux" {
			want = p.Cwd
		}
		if got["TMPDIR"] != want || got["AGENT_SANDBOX"] != "read-only" || got["GOFLAGS"] != "-mod=mod" {
			t.Errorf("got %v", got)
		}
		for _, name := range []string{"AGENT_SOCKET", "AGENT_SANDBOX_NETWORK_DISABLED"} {
			if v, ok := got[name]; ok {
				t.Errorf("%s is %q", name, v)
			}
		}
	})
	t.Run("the daemon's own $TMPDIR where it is a root, and a home that is one", func(t *testing.T) {
		l := newLab(t)
		l.world.Tmpdir = l.mkdir("scratch")
		p, err := l.plan(roots(l.path("home")))
		if err != nil {
			t.Fatal(err)
		}
		got := variables(t, p.Environ(base, 7))
		if got["TMPDIR"] != l.path("scratch") || got["XDG_CACHE_HOME"] != "/home/p/.cache" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a cache folder that is a link or another's is not used", func(t *testing.T) {
		l := newLab(t)
		l.link("/etc", "tmp/"+l.world.CacheFolder("", 7))
		p, err := l.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := variables(t, p.Environ(base, 7)); got["XDG_CACHE_HOME"] != "" || got["npm_config_cache"] != "" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a granted git folder is not packed", func(t *testing.T) {
		l := newLab(t)
		p, err := l.plan(roots(l.gitFolder("home/ws/.git")))
		if err != nil {
			t.Fatal(err)
		}
		if got := variables(t, p.Environ(nil, 7)); got["GIT_CONFIG_KEY_0"] != "gc.auto" || got["GOFLAGS"] != "" {
			t.Errorf("got %v", got)
		}
	})
}
