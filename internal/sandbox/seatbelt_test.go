package sandbox

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agent/protocol"
)

// judged is the decision maker of a plan's profile, which must be well made.
func judged(t *testing.T, p *Plan, cacheDir string) *judge {
	t.Helper()
	j, err := newJudge(newProfile(p, cacheDir))
	if err != nil {
		t.Fatalf("%v\n%s", err, newProfile(p, cacheDir).text.String())
	}
	return j
}

// decisions compares what a profile decides, by lines such as
// "file-write-data home/ws/x": want is what it must say to each.
func (l *lab) decisions(j *judge, want bool, lines ...string) {
	l.t.Helper()
	for _, line := range lines {
		op, path, _ := strings.Cut(line, " ")
		if got := j.allows(asked{op: op, path: l.path(path)}); got != want {
			l.t.Errorf("%s: allowed is %v", line, got)
		}
	}
}

// writes are the operations by which a path is written, made and removed.
func writes(paths ...string) (lines []string) {
	for _, p := range paths {
		for _, op := range []string{"file-write-data", "file-write-create", "file-write-unlink", "file-write-mode"} {
			lines = append(lines, op+" "+p)
		}
	}
	return lines
}

func (l *lab) must(change func(*Setting, *Call)) *Plan {
	l.t.Helper()
	p, err := l.plan(change)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func TestSeatbeltWrites(t *testing.T) {
	t.Parallel()
	t.Run("SB-1 SB-2 read-only writes nothing but devices", func(t *testing.T) {
		l := newLab(t)
		j := judged(t, l.must(func(s *Setting, _ *Call) { s.Mode = protocol.SandboxReadOnly }), "")
		l.decisions(j, false, writes("home/ws/f", "tmp/f", "home/.bashrc")...)
		l.decisions(j, true, "file-read-data home/ws/f", "file-read-data home/.agent/env")
		for _, c := range []struct {
			a    asked
			want bool
		}{
			{asked{op: "file-write-data", path: "/dev/null", device: true}, true},
			{asked{op: "file-write-data", path: "/dev/null"}, false},
			{asked{op: "file-write-create", path: "/dev/newfile"}, false},
			{asked{op: "file-write-unlink", path: "/dev/null", device: true}, false},
			{asked{op: "file-write-data", path: "/dev/ttys003", device: true}, false},
			{asked{op: "file-write-data", path: "/dev/ttys003", device: true, tty: true}, true},
			{asked{op: "file-ioctl", path: "/dev/ttys003"}, true},
			{asked{op: "file-ioctl", path: "/dev/tty"}, false},
			{asked{op: "file-write-data", path: "/dev/ptmx", device: true}, true},
		} {
			if got := j.allows(c.a); got != c.want {
				t.Errorf("%+v: allowed is %v", c.a, got)
			}
		}
	})
	t.Run("SB-1 SB-2 SB-4 SB-5 SB-6 SB-12 the workspace and what is protected in it", func(t *testing.T) {
		l := newLab(t)
		l.mkdir("home/ws/.git/hooks")
		j := judged(t, l.must(nil), "")
		l.decisions(j, true, writes("home/ws/f", "home/ws/sub/.git/config", "home/ws/.gitignore", "home/ws/.github/x", "tmp/f", "home/ws/.agents2", "home/ws/git")...)
		l.decisions(j, false, writes("home/.bashrc", "home/ws2", "home/ws2/f", "etc", "home/ws/.git", "home/ws/.git/hooks/pre-commit",
			"home/ws/.agents", "home/ws/.agents/skills", "home/ws/.codex", "tmp/.git", "tmp/.git/x")...)
		l.decisions(j, false, "file-write-unlink home/ws", "file-write-unlink tmp", "file-write-setugid home/ws/f")
	})
	t.Run("SB-10 .aws is protected where it is, and may be made", func(t *testing.T) {
		l := newLab(t)
		l.decisions(judged(t, l.must(nil), ""), true, writes("home/ws/.aws", "home/ws/.aws/config")...)
		l.mkdir("home/ws/.aws")
		l.decisions(judged(t, l.must(nil), ""), false, writes("home/ws/.aws", "home/ws/.AWS/config")...)
	})
	t.Run("SB-89 names that the file system folds", func(t *testing.T) {
		l := newLab(t)
		j := judged(t, l.must(nil), "")
		l.decisions(j, false, writes("home/ws/.GIT", "home/ws/.Git/config", "home/ws/.agent\u017f", "home/ws/.agent\u017f/skills", "home/ws/.CODEX",
			"home/ws/.\uff47it", "home/ws/.GIT/a\nb")...)
		l.decisions(j, true, writes("home/ws/\u017f", "home/ws/sub/.agent\u017f", "home/ws/.envrc")...)
	})
	t.Run("SB-11 a folder around a nested root is pinned", func(t *testing.T) {
		l := newLab(t)
		l.ws = l.mkdir("tmp/a/b/ws")
		j := judged(t, l.must(nil), "")
		l.decisions(j, false, "file-write-unlink tmp/a", "file-write-unlink tmp/a/b", "file-write-unlink tmp/a/b/ws")
		l.decisions(j, true, "file-write-unlink tmp/a/other", "file-write-create tmp/a/b/x", "file-write-mode tmp/a/b", "file-write-unlink tmp/a/b/ws/sub")
		l.decisions(j, false, writes("tmp/a/b/ws/.git", "tmp/a/b/ws/.GIT")...)
	})
	t.Run("SB-13 SB-14 SB-15 SB-16 SB-17 a granted git folder", func(t *testing.T) {
		l := newLab(t)
		git := l.gitFolder("home/ws/.git")
		j := judged(t, l.must(roots(git)), "")
		l.decisions(j, true, writes("home/ws/.git/objects/aa", "home/ws/.git/index.lock", "home/ws/.git/refs/heads/\u00e9", "home/ws/.git/HEAD")...)
		l.decisions(j, false, writes("home/ws/.git/config", "home/ws/.git/hooks/x", "home/ws/.git/commondir", "home/ws/.git/COMMONDIR", "home/ws/.git/config.worktree",
			"home/ws/.git/modules/m/hooks/x", "home/ws/.git/worktrees/x/config.worktree", "home/ws/.git/hook\u017f", "home/ws/.git/con\ufb01g")...)
		l.decisions(j, false, "file-write-unlink home/ws/.git")
	})
	t.Run("SB-104 a command that outlives its call sees a git folder read-only", func(t *testing.T) {
		l := newLab(t)
		git := l.gitFolder("home/ws/.git")
		j := judged(t, l.must(func(s *Setting, c *Call) { s.Roots, c.Beyond = []string{git}, true }), "")
		l.decisions(j, false, writes("home/ws/.git/objects/aa", "home/ws/.git", "home/ws/.GIT")...)
	})
	t.Run("SB-19 a root in a protected .git is writable", func(t *testing.T) {
		l := newLab(t)
		l.gitFolder("home/ws/.git")
		l.write("home/ws/.git/worktrees/x/HEAD", "")
		l.write("home/ws/.git/worktrees/x/commondir", "../..\n")
		j := judged(t, l.must(roots(l.path("home/ws/.git/worktrees/x"))), "")
		l.decisions(j, true, writes("home/ws/.git/worktrees/x/index")...)
		l.decisions(j, false, writes("home/ws/.git/worktrees/x/commondir", "home/ws/.git/worktrees/y/index", "home/ws/.git/objects/aa")...)
	})
	t.Run("SB-46 SB-62 SB-63 SB-112 what is protected everywhere, in a root that holds it", func(t *testing.T) {
		l := newLab(t)
		l.world.FallbackDir = l.path("tmp/agent-0") // to come
		l.world.Protect = []string{l.mkdir("home/rules")}
		j := judged(t, l.must(roots(l.path("home"))), l.mkdir("home/cache"))
		l.decisions(j, true, writes("home/f", "home/ws/f", "tmp/f")...)
		l.decisions(j, false, writes("home/.agent/env", "home/.agent", "home/.agent/state.sqlite-journal", "home/.agent/state.sqlite.sock.d/x",
			"home/rules", "home/rules/x", "home/.agent/run", "home/.agent/run/x", "tmp/agent-0", "tmp/agent-0/s")...)
	})
	t.Run("a root below worktrees is writable alone", func(t *testing.T) {
		l := newLab(t)
		deep := l.mkdir("home/.agent/worktrees/p")
		j := judged(t, l.must(roots(deep, l.path("home"))), "")
		l.decisions(j, true, writes("home/.agent/worktrees/p/f")...)
		l.decisions(j, false, writes("home/.agent/worktrees/q", "home/.agent/worktrees/p/.git", "home/.agent/env")...)
		l.decisions(j, false, "file-write-unlink home/.agent/worktrees/p", "file-write-unlink home/.agent/worktrees")
	})
	t.Run("SB-62 a store that lies loose in a root", func(t *testing.T) {
		l := newLab(t)
		l.world.Store = l.write("tmp/s.sqlite", "")
		j := judged(t, l.must(nil), "")
		l.decisions(j, true, writes("tmp/f", "tmp/s.sqlite2", "tmp/\u00e9")...)
		l.decisions(j, false, writes("tmp/s.sqlite", "tmp/s.sqlite-journal", "tmp/S.SQLite-Journal", "tmp/s.sqlite.files/x", "tmp/s.sqlite.companions")...)
	})
	t.Run("SB-105 what a creator's folders protect", func(t *testing.T) {
		l := newLab(t)
		creator := l.ws
		l.ws = l.path("home")
		j := judged(t, l.must(func(s *Setting, _ *Call) { s.Above = []string{creator} }), "")
		l.decisions(j, true, writes("home/ws/f")...)
		l.decisions(j, false, writes("home/ws/.git/hooks/x", "home/ws/.Git")...)
		l.decisions(j, false, "file-write-unlink home/ws")
	})
}

func TestSeatbeltReads(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, mode := range []string{protocol.SandboxReadOnly, protocol.SandboxWorkspace} {
		j := judged(t, l.must(func(s *Setting, _ *Call) { s.Mode = mode }), "")
		l.decisions(j, true, "file-read-data home/.agent/env", "file-read-data etc/x", "file-read-metadata home/.agent/run", "file-read-data home/.agent/runner")
		l.decisions(j, false, "file-read-data home/.agent/run", "file-read-data home/.agent/run/x", "file-read-metadata home/.agent/run/x", "file-read-xattr home/.agent/run")
	}
}

func TestSeatbeltNetwork(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.world.FallbackDir = l.path("tmp/agent-0")
	l.write("home/docker.sock", "")
	l.link("docker.sock", "home/docker")
	l.mkdir("home/socks")
	bot := l.path("home/.agent/state.sqlite.sock.d/b7")
	all := []string{"home/docker.sock", "home/socks/a", "home/.agent/state.sqlite.sock", "home/.agent/state.sqlite.sock.d/b7", "home/.agent/state.sqlite.sock.d/b8", "home/.agent/run/s", "tmp/agent-0/s", "home/other"}
	ip := func(j *judge, op string) bool { return j.allows(asked{op: op, ip: true}) }
	reached := func(j *judge, op string) (paths []string) {
		for _, path := range all {
			if j.allows(asked{op: op, path: l.path(path)}) {
				paths = append(paths, path)
			}
		}
		return paths
	}
	plan := func(change func(*Setting)) *judge {
		return judged(t, l.must(func(s *Setting, c *Call) { change(s); c.BotSocket = bot }), "")
	}
	t.Run("SB-40 SB-41 SB-47 off: nothing", func(t *testing.T) {
		j := plan(func(*Setting) {})
		if got := reached(j, "network-outbound"); got != nil || ip(j, "network-outbound") || ip(j, "network-bind") || ip(j, "network-inbound") {
			t.Errorf("reached %v, or the internet", got)
		}
		if j.allows(asked{op: "system-socket", domain: "AF_UNIX"}) {
			t.Error("a socket may be made")
		}
	})
	t.Run("SB-36 SB-37 SB-41 off, with sockets: those alone, by their real paths", func(t *testing.T) {
		j := plan(func(s *Setting) {
			s.UnixSockets = []string{l.path("home/docker"), l.path("home/socks"), l.world.Socket, l.path("home/.agent/state.sqlite.sock.d/b8"), l.path("home/.agent/run"), "relative", l.path("home/.agent")}
		})
		// home/.agent is named too, and holds the bot's own socket.
		if got := reached(j, "network-outbound"); !slices.Equal(got, []string{all[0], all[1], all[3]}) {
			t.Errorf("reached %v", got)
		}
		if got := reached(j, "network-bind"); !slices.Equal(got, all[:2]) {
			t.Errorf("listens at %v", got)
		}
		if ip(j, "network-outbound") || ip(j, "network-bind") || !j.allows(asked{op: "system-socket", domain: "AF_UNIX"}) || j.allows(asked{op: "system-socket", domain: "AF_INET"}) {
			t.Error("the classes of sockets are wrong")
		}
	})
	t.Run("off, with no socket left: nothing", func(t *testing.T) {
		j := plan(func(s *Setting) { s.UnixSockets = []string{l.world.Socket} })
		if got := reached(j, "network-outbound"); got != nil || j.allows(asked{op: "system-socket", domain: "AF_UNIX"}) {
			t.Errorf("reached %v", got)
		}
	})
	t.Run("SB-36 SB-37 SB-38 SB-40 SB-41 SB-46 on: all but what is hidden", func(t *testing.T) {
		j := plan(func(s *Setting) { s.Network = true })
		if got := reached(j, "network-outbound"); !slices.Equal(got, []string{all[0], all[1], all[3], all[7]}) {
			t.Errorf("reached %v", got)
		}
		if got := reached(j, "network-bind"); !slices.Equal(got, []string{all[0], all[1], all[7]}) {
			t.Errorf("listens at %v", got)
		}
		for _, op := range []string{"network-outbound", "network-bind", "network-inbound"} {
			if !ip(j, op) {
				t.Errorf("%s is refused", op)
			}
		}
	})
	t.Run("on: the libraries' cache may be written, in read-only too", func(t *testing.T) {
		cache := l.mkdir("cache")
		p := l.must(func(s *Setting, _ *Call) { s.Mode, s.Network = protocol.SandboxReadOnly, true })
		l.decisions(judged(t, p, cache), true, writes("cache/f")...)
		l.decisions(judged(t, p, l.path("home")), false, writes("home/.agent/env", "home/.agent/run/x")...)
		l.decisions(judged(t, p, ""), false, writes("cache/f")...)
	})
}

// The order is that of sandbox.md 5: base, reads, writes, network, last denials.
func TestSeatbeltOrder(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	p := l.must(func(s *Setting, _ *Call) { s.Network, s.Roots = true, []string{l.path("home")} })
	rules, err := readProfile(newProfile(p, l.path("tmp")).text.String())
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, r := range rules {
		name := r.head()
		if len(r.list) > 1 {
			name += " " + r.list[1].word
		}
		order = append(order, name)
	}
	first := func(name string) int { return slices.Index(order, name) }
	base, read, write, network := first("allow process-exec"), first("allow file-read-metadata")-1, first("allow file-write*"), first("allow network-outbound")
	last := slices.IndexFunc(order[2:], func(s string) bool { return strings.HasPrefix(s, "deny ") }) + 2
	if first("deny default") != 1 || !(1 < base && base < read && read < write && write < network && network < last) {
		t.Errorf("the order is %v", order)
	}
	if order[read] != "allow file-read*" {
		t.Errorf("reads begin with %s", order[read])
	}
	for _, name := range order[last:] {
		if !strings.HasPrefix(name, "deny ") {
			t.Errorf("%s stands among the last denials", name)
		}
	}
}

func TestSeatbeltNames(t *testing.T) {
	t.Parallel()
	g := nameGroup{dir: "/a.b/(c)+[d]{1}^$|\\ é", names: []string{".git", ".agents", ".codex", ".aws"}, more: moreDotNames}
	re := regexp.MustCompile(g.regex())
	for name, want := range map[string]bool{
		".git": true, ".GIT": true, ".Git": true, ".gIt/x": true, ".agents": true, ".AGENTS/a/b": true, ".codex": true, ".aws": true, ".AWS": true,
		".agent\u017f": true, ".agent\u017f/x": true, ".\u00e9": true, ".a\u00e9b/c": true,
		".gitignore": false, ".gi": false, "git": false, "x.git": false, "x/.git": false, ".agents2": false, "\u017f": false, ".x/\u00e9": false, ".a/b\u00e9": false, ".a\x01": false, ".a\x7f": false,
	} {
		if got := re.MatchString(g.dir + "/" + name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	for _, path := range []string{g.dir, g.dir + "/", "/aXb" + g.dir[4:] + "/.git", "/x" + g.dir + "/.git"} {
		if re.MatchString(path) {
			t.Errorf("%q fits", path)
		}
	}
}

func TestSeatbeltLine(t *testing.T) {
	t.Parallel()
	s := &profile{params: []param{{"A", "/x y=\"z\"\n"}}}
	s.text.WriteString("(version 1)")
	got, err := seatbeltLine(s, []string{"/bin/bash", "-c", "a=b"}, []string{"K=V", "E=", "none", "=x", "-u=x", "", "M=a\nb"})
	want := []string{"/usr/bin/sandbox-exec", "-p", "(version 1)", "-DA=/x y=\"z\"\n", "--", "/usr/bin/env", "-i", "K=V", "E=", "M=a\nb", "/bin/bash", "-c", "a=b"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	for name, c := range map[string]struct{ argv, env []string }{
		"a program that env would take for a variable": {[]string{"/a=b/sh"}, nil},
		"a NUL in an argument":                         {[]string{"/bin/sh", "a\x00"}, nil},
		"a NUL in a variable":                          {[]string{"/bin/sh"}, []string{"A=\x00"}},
	} {
		_, err := seatbeltLine(s, c.argv, c.env)
		if e, ok := err.(*protocol.Error); !ok || e.Code != protocol.SandboxDenied {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if seatbeltHint("sandbox-exec: sandbox_apply: Operation not permitted") == "" || seatbeltHint("x") != "" {
		t.Error("the hint is wrong")
	}
}

// Golden profiles: what stands behind the base, and the parameters.
func TestSeatbeltGolden(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*lab) func(*Setting, *Call){
		"read-only": func(*lab) func(*Setting, *Call) {
			return func(s *Setting, _ *Call) { s.Mode = protocol.SandboxReadOnly }
		},
		"workspace-write": func(*lab) func(*Setting, *Call) { return nil },
		"network": func(l *lab) func(*Setting, *Call) {
			return func(s *Setting, c *Call) {
				s.Network, c.BotSocket = true, l.path("home/.agent/state.sqlite.sock.d/b7")
			}
		},
		"unix-sockets": func(l *lab) func(*Setting, *Call) {
			return func(s *Setting, _ *Call) {
				s.NoSlashTmp, s.UnixSockets = true, []string{l.path("run/docker.sock"), l.world.Socket}
			}
		},
		"nested": func(l *lab) func(*Setting, *Call) {
			git := l.gitFolder("home/a/ws/.git")
			l.ws = l.path("home/a/ws")
			l.world.Walls = append(l.world.Walls, l.mkdir("home/secret"))
			return func(s *Setting, _ *Call) { s.NoSlashTmp, s.Roots = true, []string{l.path("home"), git} }
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p := l.must(change(l))
			s := newProfile(p, l.path("C"))
			judged(t, p, l.path("C"))
			text, based := strings.CutPrefix(s.text.String(), seatbeltBase)
			if !based {
				t.Fatal("the profile does not begin with the base")
			}
			var b strings.Builder
			b.WriteString(strings.TrimPrefix(text, "\n"))
			b.WriteString("\n")
			for _, p := range s.params {
				b.WriteString("; -D" + p.name + "=" + strings.Trim(strconv.QuoteToASCII(p.value), `"`) + "\n")
			}
			got := strings.ReplaceAll(b.String(), strings.ReplaceAll(regexp.QuoteMeta(l.dir), `\`, `\\`), "LAB")
			got = strings.ReplaceAll(got, l.dir, "LAB")
			file := filepath.Join("testdata", "seatbelt", name+".sbpl")
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				fresh := filepath.Join(t.ArtifactDir(), name+".sbpl")
				os.WriteFile(fresh, []byte(got), 0o644)
				t.Errorf("%s is not what the profile is now (%v); run with -artifacts, compare it and copy it over:\n%s", file, err, got)
			}
		})
	}
}

// Of any plan the profile is well made, and decides about each path as the plan
// does, whatever names the folders have; only the other spellings of protected
// names are refused besides.
func TestSeatbeltDecidesAsThePlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b.c", "d(e", `f\g`, "h i", "j\"k", "l=m", "n\u00e9", "^o$", "p+q", ".git", ".agents", ".aws", "hooks", "config", "worktrees"})
		path := rapid.Map(rapid.SliceOfN(name, 1, 5), func(names []string) string { return "/r/" + strings.Join(names, "/") })
		kind := rapid.SampledFrom([]Kind{Writable, Writable, ReadOnly, AbsentFolder, AbsentFile, Walled})
		w := &World{AgentDir: "/home/.agent", Store: "/home/.agent/s", Socket: "/home/.agent/s.sock", SocketDir: "/home/.agent/s.sock.d"}
		p := &Plan{World: w, Mode: protocol.SandboxWorkspace, Class: rapid.SampledFrom([]Class{Closed, Unix, Open}).Draw(t, "class"), BotSocket: w.SocketDir + "/b"}
		p.UnixSockets = rapid.SliceOfN(path, 0, 3).Draw(t, "sockets")
		b := builder{plan: p, at: map[string]int{}}
		for range rapid.IntRange(0, 12).Draw(t, "entries") {
			e := Entry{Path: path.Draw(t, "path"), Kind: kind.Draw(t, "kind")}
			if e.Kind == Walled {
				w.Walls = append(w.Walls, e.Path)
			} else if e.Kind != Writable && rapid.Bool().Draw(t, "named") {
				e.Root = filepath.Dir(e.Path)
			}
			b.put(e)
		}
		for _, e := range p.Entries {
			if e.Kind == Writable && !slices.ContainsFunc(w.Walls, func(wall string) bool { return within(e.Path, wall) }) {
				p.Roots = append(p.Roots, e.Path)
			}
		}
		// No root lies in a wall: NewPlan and the checks at create refuse that.
		p.Entries = slices.DeleteFunc(p.Entries, func(e Entry) bool { return e.Kind == Writable && !slices.Contains(p.Roots, e.Path) })
		b.at = map[string]int{}
		for i, e := range p.Entries {
			b.at[e.Path] = i
		}
		b.sort()
		b.pin()

		j, err := newJudge(newProfile(p, ""))
		if err != nil {
			t.Fatal(err)
		}
		asks := rapid.SliceOfN(path, 0, 10).Draw(t, "asked")
		for _, e := range p.Entries {
			asks = append(asks, e.Path, e.Path+"/x", e.Path+"/.git", filepath.Dir(e.Path))
		}
		for _, path := range asks {
			got, want := j.allows(asked{op: "file-write-create", path: path}), p.Inside(path)
			if e, ok := p.Of(path); ok && e.Kind == Pinned && e.Path == path {
				want = true // written as what lies around it; renaming is another operation
				if j.allows(asked{op: "file-write-unlink", path: path}) {
					t.Errorf("the pinned %s may be renamed", path)
				}
			}
			if got && !want {
				t.Errorf("%s may be written, and the plan says no:\n%s", path, p)
			}
			if !got && want && !p.respelt(path) {
				t.Errorf("%s may not be written, and the plan says yes:\n%s", path, p)
			}
		}
	})
}

func TestRespelt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	git := l.gitFolder("home/ws/.git")
	p := l.must(roots(git, l.path("home")))
	for path, want := range map[string]bool{
		"home/ws/.Agents/x": true, "home/ws/.agent\u017f": true, "home/.GIT": true, "home/ws/.git/Config": true, "tmp/.codeX": true,
		"home/ws/f": false, "home/ws/.git/index": false, "home/ws/sub/.GIT": false, "tmp/git": false,
	} {
		if got := p.respelt(l.path(path)); got != want {
			t.Errorf("%s: %v", path, got)
		}
		if got := p.Inside(l.path(path)); got != (!want || !foldsNames) {
			t.Errorf("%s: inside is %v", path, got)
		}
	}
}
