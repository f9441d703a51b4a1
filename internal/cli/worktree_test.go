package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"agent/protocol"
)

// checkout makes a repository with one commit at src of the ground, and is its
// folder.
func (g *ground) checkout() string {
	g.t.Helper()
	g.write("home/.gitconfig", "[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n")
	src := filepath.Dir(g.write("src/file", "text\n"))
	g.write("src/sub/file", "text\n")
	g.git(src, "init", "--quiet")
	g.git(src, "add", ".")
	g.git(src, "commit", "--quiet", "-m", "first")
	real, err := filepath.EvalSymlinks(src)
	if err != nil {
		g.t.Fatal(err)
	}
	return real
}

// git runs git as the ground's person.
func (g *ground) git(dir string, args ...string) string {
	g.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, g.env
	r := finish(g.t, cmd)
	if r.status != 0 {
		g.t.Fatalf("git %s: %s", strings.Join(args, " "), r.stderr)
	}
	return strings.TrimSpace(r.stdout)
}

// script makes an executable .agents/setup of a checkout.
func (g *ground) setup(src, text string) {
	g.t.Helper()
	path := filepath.Join(src, ".agents", "setup")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		g.t.Fatal(err)
	}
}

// left is what of a worktree is there: its folder, its branch, git's entry.
func (g *ground) left(src, name string) (left []string) {
	g.t.Helper()
	if _, err := os.Lstat(filepath.Join(g.home, ".agent", "worktrees", name)); err == nil {
		left = append(left, "folder")
	}
	if g.git(src, "branch", "--list", "agent/"+name) != "" {
		left = append(left, "branch")
	}
	if _, err := os.Lstat(filepath.Join(src, ".git", "worktrees", name)); err == nil {
		left = append(left, "entry")
	}
	return left
}

func TestWorktree(t *testing.T) {
	t.Parallel()
	g := newGround(t, "AGENT_MODEL=t/do", "OPENAI_API_KEY=not-a-key-but-long", "COPY=not-a-key-but-long")
	src := g.checkout()
	g.setup(src, `echo out; echo err >&2
echo "$AGENT_SOURCE" > source
pwd -P > where
env | grep -e KEY -e COPY > keys
cat > stdin
`)
	in := filepath.Join(g.home, ".agent", "worktrees", "w")
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(in, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	t.Run("CL-71 a bot gets a worktree and its setup runs there", func(t *testing.T) {
		cmd := g.command("run", "--new", "--worktree", "--bot", "w", "--workspace", filepath.Join(src, "sub"), "run pwd -P > made-here")
		cmd.Stdin = strings.NewReader("not for the setup")
		r := finish(t, cmd)
		if r.status != 0 || r.stderr != "out\nerr\n" {
			t.Fatalf("exit %d: %s", r.status, r.stderr)
		}
		for line := range strings.Lines(r.stdout) {
			if !json.Valid([]byte(line)) {
				t.Errorf("stdout has %q", line)
			}
		}
		if got := g.git(in, "rev-parse", "--abbrev-ref", "HEAD"); got != "agent/w" {
			t.Errorf("it is on the branch %s", got)
		}
		if read("source") != src || read("where") != in || read("stdin") != "" || read("keys") != "" {
			t.Errorf("source %q, folder %q, input %q, keys %q", read("source"), read("where"), read("stdin"), read("keys"))
		}
		if got := read("sub/made-here"); got != filepath.Join(in, "sub") || *g.bot("w").Workspace != got {
			t.Errorf("the bot works in %s, its record says %s", got, *g.bot("w").Workspace)
		}
		for path, mode := range map[string]os.FileMode{in: 0o700, filepath.Dir(in): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	})
	t.Run("CL-71 a continued bot works there", func(t *testing.T) {
		g.must("run", "--bot", "w", "run pwd -P > again")
		if got := read("sub/again"); got != filepath.Join(in, "sub") {
			t.Errorf("it worked in %s", got)
		}
	})
	t.Run("CL-71 it outlives the bot, and a second run does not take it", func(t *testing.T) {
		g.must("rm", "--bot", "w")
		if got := g.left(src, "w"); len(got) != 3 {
			t.Errorf("of it are left %q", got)
		}
		r := g.run("run", "--new", "--worktree", "--bot", "w", "--workspace", src, "hi")
		if r.status != 1 || r.code() != "worktree_exists" || !strings.Contains(r.stderr, "git -C "+src+" worktree remove "+in) {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
		g.git(src, "worktree", "remove", "--force", in)
		r = g.run("run", "--new", "--worktree", "--bot", "w", "--workspace", src, "hi")
		if r.code() != "worktree_failed" || !strings.Contains(r.stderr, "git -C "+src+" update-ref -d refs/heads/agent/w") || len(g.left(src, "w")) != 1 {
			t.Errorf("with its branch left: exit %d: %s", r.status, r.stderr)
		}
	})
	t.Run("--detach prints it", func(t *testing.T) {
		var got struct {
			Handle   string
			Worktree struct{ Path, Branch string }
		}
		out := g.must("run", "--detach", "--new", "--worktree", "--bot", "d", "--workspace", src, "hi")
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Worktree.Path != filepath.Join(filepath.Dir(in), "d") || got.Worktree.Branch != "agent/d" || got.Handle == "" {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("--pretty counts what is not in it and names the branch", func(t *testing.T) {
		r := g.run("run", "--pretty", "--new", "--worktree", "--bot", "p", "--workspace", src, "hi")
		if !strings.Contains(r.stderr, "agent: 1 uncommitted in "+src+", not in the worktree\n") || !strings.Contains(r.stderr, "(new bot) in "+filepath.Join(filepath.Dir(in), "p")+" on agent/p\n") {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
	})
	t.Run("a bot of the name is not touched", func(t *testing.T) {
		g.must("run", "--new", "--bot", "taken", "hi")
		if r := g.run("run", "--new", "--worktree", "--bot", "taken", "--workspace", src, "hi"); r.code() != "bot_exists" || len(g.left(src, "taken")) > 0 {
			t.Errorf("exit %d: %s; left %q", r.status, r.stderr, g.left(src, "taken"))
		}
	})
	t.Run("SO-86 its instructions are its own checkout's, and of the folders above the source", func(t *testing.T) {
		g.write("AGENTS.md", "Above.\n")
		g.write("src/AGENTS.md", "Not committed.\n")
		g.write("home/.agents/agents/r.md", "---\nmodel: t/echo\n---\nA role.\n")
		g.must("run", "--detach", "--new", "--worktree", "--bot", "told", "--profile", "r", "--workspace", src, "hi")
		bot := g.bot("told")
		if text := bot.Instructions; !strings.Contains(text, "Above.") || strings.Contains(text, "Not committed.") || !strings.HasSuffix(text, "A role.\n") || modelOf(bot) != "t/echo" {
			t.Errorf("model %s, %s", modelOf(bot), text)
		}
	})
}

// TestSetupOutput reads all that the command says: its end comes only when nobody
// holds its outputs any more.
func TestSetupOutput(t *testing.T) {
	t.Parallel()
	for _, flag := range [][]string{nil, {"--pretty"}} {
		t.Run(fmt.Sprintf("what a setup prints moves no cursor, and what it leaves running holds no output %v", flag), func(t *testing.T) {
			t.Parallel()
			g := newGround(t, "AGENT_MODEL=t/do")
			g.setup(g.checkout(), `printf 'a\033[2Jb\rc\342\200\256d\033]52;c;eA==\007\n'
setsid sleep 600 &
echo $! > "$HOME/left"
`)
			r := g.run(slices.Concat([]string{"run"}, flag, []string{"--new", "--worktree", "--bot", "w", "--workspace", filepath.Join(g.dir, "src"), "hi"})...)
			pid, err := os.ReadFile(filepath.Join(g.home, "left"))
			if err != nil {
				t.Fatal(err)
			}
			n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
			if err != nil {
				t.Fatal(err)
			}
			defer syscall.Kill(n, syscall.SIGKILL)
			if r.status != 0 || !strings.Contains(r.stderr, `a\u{1b}[2Jb\rc\u{202e}d\u{1b}]52;c;eA==\u{7}`+"\n") || strings.ContainsAny(r.stderr, "\x1b\r\x07\u202e") {
				t.Errorf("exit %d: %q", r.status, r.stderr)
			}
			if syscall.Kill(n, 0) != nil {
				t.Error("what the setup left did not run on: the test shows nothing")
			}
		})
	}
}

func TestWorktreeThatComesToNothing(t *testing.T) {
	t.Parallel()
	g := newGround(t, "AGENT_MODEL=t/do")
	src := g.checkout()
	g.must("start")
	outside := filepath.Dir(g.write("outside/file", ""))
	astray := filepath.Dir(filepath.Dir(g.write("astray/.git/HEAD", "ref: refs/heads/main\n")))
	g.write("astray/.git/objects/x", "")
	g.write("astray/.git/refs/x", "")
	g.write("astray/.git/config", "[core]\nrepositoryformatversion = 0\nworktree = "+filepath.Join(filepath.Dir(outside), "elsewhere")+"\n")
	for _, row := range []struct {
		name, bot    string
		setup        string
		flags        []string
		code, detail string
	}{
		{"CL-72 a setup that exits 3", "w", "touch x; exit 3", nil, "setup_failed", "exit status 3"},
		{"a setup that makes its folder unwritable", "w", "mkdir d; touch d/x; chmod 500 d; exit 3", nil, "setup_failed", "exit status 3"},
		{"a setup that takes the worktree apart", "w", "rm .git; exit 3", nil, "setup_failed", "exit status 3"},
		{"a setup that removes it and says all is well", "w", `rm -rf "$PWD"`, nil, "setup_failed", "took "},
		{"a setup that puts a link in its place", "w", `mv "$PWD" "$PWD.x"; ln -s /tmp "$PWD"; rm -rf "$PWD.x"`, nil, "setup_failed", "took "},
		{"a setup that commits", "w", "git commit --quiet --allow-empty -m x; exit 3", nil, "setup_failed", "exit status 3"},
		{"CL-72 outside git", "w", "", []string{"--workspace", outside}, "worktree_needs_git", "outside"},
		{"a checkout that git says lies elsewhere", "w", "", []string{"--workspace", astray}, "worktree_needs_git", "core.worktree"},
		{"CL-72 a name with two dots", "a..b", "", nil, "invalid_name", "a..b"},
		{"a name that git keeps for itself", "a.lock", "", nil, "invalid_name", "a.lock"},
		{"a name that ends with a dot", "a.", "", nil, "invalid_name", "a."},
		{"a base that is no commit", "w", "", []string{"--base", "nowhere"}, "worktree_failed", "nowhere is no commit"},
		{"a base that looks like a flag", "w", "", []string{"--base=--all"}, "worktree_failed", "--all is no commit"},
		{"a role that is not there", "w", "", []string{"--profile", "nobody"}, "profile_not_found", "nobody"},
		{"a bot that the daemon refuses", "w", "", []string{"--tools", "nonsense"}, "unknown_tool", "nonsense"},
		{"a gate for a tool that it has not", "w", "", []string{"--approval", "manual", "--approve", "nonsense"}, "", "nonsense"},
	} {
		t.Run(row.name, func(t *testing.T) {
			g.setup(src, row.setup)
			// A flag may be given once.
			args := []string{"run", "--new", "--worktree", "--bot", row.bot}
			if !slices.Contains(row.flags, "--workspace") {
				args = append(args, "--workspace", src)
			}
			r := g.run(append(append(args, row.flags...), "hi")...)
			if r.status != 1 || row.code != "" && r.code() != row.code || !strings.Contains(r.stderr, row.detail) || r.stdout != "" {
				t.Errorf("exit %d: %s%s", r.status, r.stdout, r.stderr)
			}
			if left := g.left(src, row.bot); len(left) > 0 {
				t.Errorf("of it is left %q", left)
			}
			if got := g.names(); len(got) > 0 {
				t.Errorf("bots were made: %q", got)
			}
		})
	}
	t.Run("--base without --worktree is a wrong line", func(t *testing.T) {
		if r := g.run("run", "--new", "--bot", "w", "--base", "HEAD", "hi"); r.status != 2 {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
	})
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run("an interrupt in the middle of a setup cleans up: "+signal.String(), func(t *testing.T) {
			running := filepath.Join(g.dir, "running-"+signal.String())
			if err := syscall.Mkfifo(running, 0o600); err != nil {
				t.Fatal(err)
			}
			g.setup(src, "exec 3> '"+running+"'; echo up >&3; sleep 600")
			cmd := g.command("run", "--new", "--worktree", "--bot", "w", "--workspace", src, "hi")
			ended := make(chan ran, 1)
			go func() { ended <- finish(t, cmd) }()
			pipe, err := os.Open(running) // until the setup has it
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			lines := bufio.NewReader(pipe)
			if line, err := lines.ReadString('\n'); line != "up\n" {
				t.Fatalf("%q, %v", line, err)
			}
			cmd.Process.Signal(signal)
			if r := <-ended; r.status != 128+int(signal) || r.stdout != "" {
				t.Errorf("exit %d: %s%s", r.status, r.stdout, r.stderr)
			}
			if _, err := lines.ReadByte(); err != io.EOF { // until all of its group has ended
				t.Errorf("the setup goes on: %v", err)
			}
			if left := g.left(src, "w"); len(left) > 0 || len(g.names()) > 0 {
				t.Errorf("of it is left %q; bots %q", left, g.names())
			}
		})
	}
}

func TestWorktreeLeavesTheConfigAlone(t *testing.T) {
	t.Parallel()
	g := newGround(t, "AGENT_MODEL=t/do")
	origin := g.checkout()
	clone := filepath.Join(g.dir, "clone")
	g.git(g.dir, "clone", "--quiet", origin, clone)
	inode := func() uint64 {
		t.Helper()
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(clone, ".git", "config"), &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	before := inode()
	t.Run("CL-91 SO-135 a remote-tracking branch as the base", func(t *testing.T) {
		g.must("run", "--new", "--worktree", "--base", "origin/main", "--bot", "w", "--workspace", clone, "hi")
		if got := inode(); got != before {
			t.Errorf("the config is another file: %d, before %d", got, before)
		}
		if text := g.git(clone, "config", "--list", "--local"); strings.Contains(text, "agent/w") {
			t.Errorf("the config names the branch: %s", text)
		}
	})
	t.Run("CL-91 and one whose setup fails", func(t *testing.T) {
		g.setup(clone, "exit 1")
		if r := g.run("run", "--new", "--worktree", "--base", "origin/main", "--bot", "x", "--workspace", clone, "hi"); r.code() != string(protocol.SetupFailed) {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
		if left := g.left(clone, "x"); len(left) > 0 || inode() != before {
			t.Errorf("left %q; the config %d, before %d", left, inode(), before)
		}
	})
}

// TestWorktreeOfALostAnswer plays a daemon that is gone before it answers the
// create: whether the bot is there says the one that is met next.
func TestWorktreeOfALostAnswer(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		made bool // the bot
		left int  // of its worktree
	}{
		{"a bot that was made keeps its folder", true, 3},
		{"one that was not has none", false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			src := g.checkout()
			var workspace atomic.Value
			g.listener(func(conn net.Conn) {
				ready, err := protocol.AppendReady(nil, &protocol.Ready{PID: 1})
				if err != nil {
					panic(err)
				}
				conn.Write(ready)
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					var r struct {
						ID            json.RawMessage
						Op, Workspace string
					}
					json.Unmarshal(lines.Bytes(), &r)
					in := workspace.Load()
					switch {
					case r.Op == protocol.OpBots: // none of them may write the repository's config
						fmt.Fprintf(conn, `{"id":%s,"result":{"bots":[],"next_after":null}}`+"\n", r.ID)
					case r.Op == protocol.OpCreate:
						workspace.Store(r.Workspace)
						return
					case in != nil && row.made:
						fmt.Fprintf(conn, `{"id":%s,"result":{"name":"w","id":1,"workspace":%q}}`+"\n", r.ID, in)
					default:
						conn.Write(protocol.AppendError(nil, r.ID, protocol.Fail(protocol.BotNotFound, "w")))
					}
				}
			})
			r := g.run("run", "--new", "--worktree", "--bot", "w", "--model", "t/echo", "--workspace", src, "hi")
			if r.status != 1 || r.code() != string(protocol.DaemonDisconnected) || strings.Contains(r.stderr, `"worktree":`) != row.made {
				t.Errorf("exit %d: %s", r.status, r.stderr)
			}
			if left := g.left(src, "w"); len(left) != row.left {
				t.Errorf("of it is left %q", left)
			}
		})
	}
}
