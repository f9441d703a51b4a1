package sandbox

import (
	"strings"
	"testing"

	"agent/protocol"
)

// argLines are the arguments with one flag a line, and the lab's folder left out.
func (l *lab) argLines(args []string) string {
	text := strings.ReplaceAll(strings.Join(args, " "), l.dir+"/", "")
	return strings.ReplaceAll(text, " --", "\n--")
}

// The parts of the list that do not depend on the plan's folders.
const (
	argNamespaces = "--unshare-user\n--unshare-pid\n--unshare-ipc\n"
	argNoNetwork  = "--unshare-net\n"
	argProcess    = "--die-with-parent\n--new-session\n--cap-drop ALL\n"
	argSystem     = "--ro-bind / /\n--dev /dev\n--perms 1777\n--tmpfs /dev/shm\n--proc /proc\n"
	argWall       = "--perms 000\n--tmpfs home/.agent/run\n--remount-ro home/.agent/run\n"
	argNoSockets  = "--perms 700\n--tmpfs home/.agent/state.sqlite.sock.d\n--remount-ro home/.agent/state.sqlite.sock.d\n"
	argEnd        = "--remount-ro /dev\n--chdir home/ws\n--clearenv\n--setenv A x=y\n--seccomp 3\n--json-status-fd 4"
)

// mask is a missing folder that nobody may make.
func mask(path string) string {
	return "--perms 555\n--tmpfs " + path + "\n--remount-ro " + path + "\n"
}

func bound(paths ...string) (text string) {
	for _, path := range paths {
		text += "--bind " + path + " " + path + "\n"
	}
	return text
}

func readOnly(paths ...string) (text string) {
	for _, path := range paths {
		text += "--ro-bind " + path + " " + path + "\n"
	}
	return text
}

func TestArguments(t *testing.T) {
	t.Parallel()
	noTmp := func(s *Setting, _ *Call) { s.NoSlashTmp = true }
	for _, row := range []struct {
		name   string
		prep   func(*lab) func(*Setting, *Call)
		launch func(*launch)
		want   string
	}{
		{
			"read-only",
			func(l *lab) func(*Setting, *Call) {
				l.mkdir("home/ws/.git")
				return func(s *Setting, _ *Call) { s.Mode = protocol.SandboxReadOnly }
			},
			nil,
			argNamespaces + argNoNetwork + argProcess + argSystem + argNoSockets + argWall + argEnd,
		},
		{
			"workspace-write without a .git, the daemon being root",
			func(*lab) func(*Setting, *Call) { return nil },
			func(l *launch) { l.root = true },
			argNamespaces + argNoNetwork + argProcess + argSystem + readOnly("/proc/sys") +
				bound("tmp", "home/ws") + mask("tmp/.git") + mask("tmp/.agents") + mask("tmp/.codex") +
				mask("home/ws/.git") + mask("home/ws/.agents") + mask("home/ws/.codex") + argNoSockets + argWall + argEnd,
		},
		{
			"a granted git folder, a file missing in it, and the network on",
			func(l *lab) func(*Setting, *Call) {
				git := l.gitFolder("home/ws/.git")
				l.mkdir("home/ws/.agents")
				return func(s *Setting, c *Call) { noTmp(s, c); s.Network, s.Roots = true, []string{git} }
			},
			nil,
			argNamespaces + argProcess + argSystem + bound("home/ws", "home/ws/.git") + readOnly("home/ws/.agents") + mask("home/ws/.codex") +
				readOnly("home/ws/.git/hooks", "home/ws/.git/config", "home/ws/.git/config.worktree") + mask("home/ws/.git/modules") + mask("home/ws/.git/worktrees") +
				readOnly("home/ws/.git/commondir") + argNoSockets + argWall + argEnd,
		},
		{
			"the same for a command that outlives its call",
			func(l *lab) func(*Setting, *Call) {
				git := l.gitFolder("home/ws/.git")
				return func(s *Setting, c *Call) { noTmp(s, c); c.Beyond, s.Roots = true, []string{git} }
			},
			nil,
			argNamespaces + argNoNetwork + argProcess + argSystem + bound("home/ws") + readOnly("home/ws/.git") + mask("home/ws/.agents") + mask("home/ws/.codex") +
				argNoSockets + argWall + argEnd,
		},
		{
			"walls, sockets and the bot's own among them, deep in a root",
			func(l *lab) func(*Setting, *Call) {
				l.write("home/.agent/state.sqlite.sock", "")
				l.world.Walls = append(l.world.Walls, l.mkdir("home/a/b/wall"))
				l.world.FallbackDir = l.mkdir("tmp/agent-1")
				for _, name := range []string{".git", ".agents", ".codex"} {
					l.mkdir("home/" + name)
					l.mkdir("home/ws/" + name)
				}
				return func(s *Setting, c *Call) {
					noTmp(s, c)
					s.Roots, s.UnixSockets, c.BotSocket = []string{l.path("home")}, []string{"/x"}, l.world.SocketDir+"/7"
				}
			},
			nil,
			argNamespaces + argNoNetwork + argProcess + argSystem +
				bound("home", "home/ws") + readOnly("home/.git", "home/.agents", "home/.codex", "home/.agent") + bound("home/a") +
				readOnly("home/ws/.git", "home/ws/.agents", "home/ws/.codex", "home/.agent/state.sqlite.sock.d", "home/.agent/state.sqlite.sock") + bound("home/a/b") +
				"--perms 700\n--tmpfs tmp/agent-1\n--remount-ro tmp/agent-1\n" +
				"--ro-bind /dev/null home/.agent/state.sqlite.sock\n" +
				"--perms 700\n--tmpfs home/.agent/state.sqlite.sock.d\n" + readOnly("home/.agent/state.sqlite.sock.d/7") + "--remount-ro home/.agent/state.sqlite.sock.d\n" +
				argWall + "--perms 000\n--tmpfs home/a/b/wall\n--remount-ro home/a/b/wall\n" + argEnd,
		},
		{
			"files that ssh includes, the helper, and sources by descriptor",
			func(l *lab) func(*Setting, *Call) { l.mkdir("home/ws/.git"); return noTmp },
			func(l *launch) {
				l.sshFiles = map[string]int{sshFolder + "/b.conf": 8, sshFolder + "/a.conf": 9}
				l.helper, l.helperFD = "/proc/self/exe", 7
				l.sources = map[string]int{l.plan.Cwd: 5, l.plan.Cwd + "/.git": 6}
			},
			argNamespaces + argNoNetwork + argProcess + argSystem +
				"--perms 755\n--tmpfs /etc/ssh/ssh_config.d\n--perms 644\n--ro-bind-data 9 /etc/ssh/ssh_config.d/a.conf\n--perms 644\n--ro-bind-data 8 /etc/ssh/ssh_config.d/b.conf\n--remount-ro /etc/ssh/ssh_config.d\n" +
				"--bind-fd 5 home/ws\n--ro-bind-fd 6 home/ws/.git\n" + mask("home/ws/.agents") + mask("home/ws/.codex") + argNoSockets + argWall +
				"--ro-bind-fd 7 /dev/.agent-helper\n" + argEnd,
		},
		{
			"the helper by its path",
			func(l *lab) func(*Setting, *Call) {
				return func(s *Setting, _ *Call) { s.Mode = protocol.SandboxReadOnly }
			},
			func(l *launch) { l.helper = "/opt/agent" },
			argNamespaces + argNoNetwork + argProcess + argSystem + argNoSockets + argWall + "--ro-bind /opt/agent /dev/.agent-helper\n" + argEnd,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			p, err := l.plan(row.prep(l))
			if err != nil {
				t.Fatal(err)
			}
			start := &launch{plan: p, env: []string{"A=x=y"}, filter: 3, status: 4}
			if row.launch != nil {
				row.launch(start)
			}
			if got := l.argLines(start.args()); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
	t.Run("without a status there is no descriptor for it", func(t *testing.T) {
		l := newLab(t)
		p, err := l.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.argLines((&launch{plan: p, filter: 3}).args()); !strings.HasSuffix(got, "--clearenv\n--seccomp 3") {
			t.Errorf("got %s", got)
		}
	})
}
