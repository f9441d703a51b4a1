package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agent/protocol"
)

// modes runs a part of the threat table in both modes.
func modes(t *testing.T, name string, test func(t *testing.T, l *lab, in func(change func(*Setting, *Call)) *Plan)) {
	for _, mode := range []string{protocol.SandboxReadOnly, protocol.SandboxWorkspace} {
		t.Run(name+", "+mode, func(t *testing.T) {
			l := socketLab(t)
			test(t, l, func(change func(*Setting, *Call)) *Plan {
				t.Helper()
				p, err := l.plan(func(s *Setting, c *Call) {
					if change != nil {
						change(s, c)
					}
					s.Mode = mode
				})
				if err != nil {
					t.Fatal(err)
				}
				return p
			})
		})
	}
}

// TestThreatsOfTime has the rows of the threat table in which something happens
// on the host meanwhile, or afterwards.
func TestThreatsOfTime(t *testing.T) {
	launch := launcher(t)
	modes(t, "SB-35 kill all processes", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		bystander := exec.Command("/bin/cat")
		stdin, err := bystander.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := bystander.Start(); err != nil {
			t.Fatal(err)
		}
		e := l.run(launch, in(nil), `[ $(ls -d /proc/[0-9]* | wc -l) -lt 8 ] || exit 9; echo alive; (kill -9 -1); echo still`)
		if !strings.HasPrefix(e.out, "alive\n") || strings.Contains(e.out, "still") {
			t.Errorf("got %+v", e)
		}
		stdin.Close()
		if err := bystander.Wait(); err != nil {
			t.Errorf("a process of the host did not outlive it: %v", err)
		}
	})
	modes(t, "SB-56 what is left behind dies with the call", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		// The child holds the output open: the reader sees its end when it is dead.
		e := l.run(launch, in(nil), `(setsid nohup sh -c 'echo born; while :; do sleep 1000; done' 2>/dev/null &) ; sleep 0.1; echo end`)
		if e.code != 0 || !strings.HasSuffix(e.out, "end\n") {
			t.Errorf("got %+v", e)
		}
	})
	modes(t, "SB-57 the daemon is killed", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		daemon := exec.Command(self, daemonVerb, l.dir, l.ws, in(nil).Mode, "echo up >&2; while :; do sleep 1000; done")
		out, err := daemon.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := daemon.Start(); err != nil {
			t.Fatal(err)
		}
		if b := make([]byte, 3); !read(t, out, b) || string(b) != "up\n" {
			t.Fatalf("it said %q", b)
		}
		daemon.Process.Kill()
		if err := out.(*os.File).SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		// The command has the other end of the pipe: this waits for its death.
		if rest := new(bytes.Buffer); !drained(t, rest, out) || rest.Len() > 0 {
			t.Errorf("it went on: %q", rest)
		}
		daemon.Wait()
		ph, err := OpenPlaceholders(l.path("home/.agent/state.sqlite.placeholders"))
		if err != nil {
			t.Fatal(err)
		}
		ph.Close()
		if got := l.names(); got != "" {
			t.Errorf("left: %s", got)
		}
	})
	modes(t, "SB-58 descriptors of the daemon", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		store, err := os.OpenFile(l.world.Store, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		// One that whoever started the daemon left open.
		stray, err := unix.Open(l.world.Store, unix.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(stray)
		l.listen(l.world.Socket)
		if e := l.run(launcher(t), in(nil), l.script("$TRY fds")); e.code != 0 || e.out != "" {
			t.Errorf("got %+v", e)
		}
	})
	modes(t, "SB-59 variables that load code", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		l.write("home/ws/start", "echo read >&2\n")
		placed, _, err := l.placeholders().Place(in(nil))
		if err != nil {
			t.Fatal(err)
		}
		defer placed.Remove()
		c, err := launch.Prepare(t.Context(), placed.Plan, []string{"/bin/bash", "-c", ":"}, append(l.env(), "LD_PRELOAD=/nowhere/x.so", "BASH_ENV="+l.ws+"/start", "GCONV_PATH="+l.ws))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := strings.Join(c.Env, " "); got != "PATH=/usr/bin:/bin LANG=C" {
			t.Errorf("the launcher's environment is %s", got)
		}
		if got := strings.Join(c.Argv, " "); strings.Contains(got, "LD_PRELOAD") {
			t.Errorf("a process list shows it: %s", got)
		}
		cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
		cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Files
		out, err := cmd.CombinedOutput()
		// The dynamic loader complains once a program: the shell that looks whether the
		// daemon lives, and the command. The launcher is none.
		if err != nil || strings.Count(string(out), "read\n") != 1 || strings.Count(string(out), "ERROR: ld.so") != 2 {
			t.Errorf("%v: %s", err, out)
		}
	})
	modes(t, "SB-85 watching files outside", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		file := l.write("home/watched", "x")
		r := l.start(launch, in(nil), l.script(`$TRY inotify ~/watched && echo seen`))
		r.says("watching")
		if err := os.WriteFile(file, []byte("more"), 0o644); err != nil {
			t.Fatal(err)
		}
		if e := r.end(); e.out != "seen\n" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("SB-92 git init outside while a call is running", func(t *testing.T) {
		l := socketLab(t)
		p, err := l.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		r := l.start(launch, p, l.script(`echo up; read; try write 'echo x > .git/config'; try hook 'mkdir -p .git/hooks'`))
		r.says("up")
		l.git("home/ws", "init", "-q", "-b", "main")
		before := l.host()
		r.tell("go")
		compareEnds(t, r.end(), "write EROFS; hook EROFS")
		if got := l.names(); got != ".git" {
			t.Errorf("left: %s", got)
		}
		l.git("home/ws", "status")
		if !strings.Contains(before, "home/ws/.git/config") {
			t.Error("git made no config")
		}
	})
	t.Run("SB-102 another daemon's call and start meanwhile", func(t *testing.T) {
		l := socketLab(t)
		p, err := l.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		r := l.start(launch, p, l.script(`echo up; read; try git 'mkdir -p .git/hooks'; try agents 'mkdir -p .agents/x'`))
		r.says("up")
		other, err := OpenPlaceholders(l.path("other"))
		if err != nil {
			t.Fatal(err)
		}
		d := l.placed(other)
		d.Remove()
		again, err := OpenPlaceholders(l.path("home/.agent/state.sqlite.placeholders"))
		if err != nil {
			t.Fatal(err)
		}
		r.tell("go")
		compareEnds(t, r.end(), "git EROFS; agents EROFS")
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		other.Close()
		if got := l.names(); got != "" {
			t.Errorf("left: %s", got)
		}
	})
	t.Run("SB-103 a worktree that is made meanwhile", func(t *testing.T) {
		l := socketLab(t)
		change := granted(l)
		l.git("home/ws", "worktree", "add", "-q", l.path("home/first"))
		p, err := l.plan(change)
		if err != nil {
			t.Fatal(err)
		}
		r := l.start(launch, p, l.script(`echo up; read; try config 'echo x > .git/worktrees/second/config.worktree'; try head 'echo x > .git/worktrees/second/HEAD'`))
		r.says("up")
		l.git("home/ws", "worktree", "add", "-q", l.path("home/second"))
		before := l.host()
		r.tell("go")
		compareEnds(t, r.end(), "config EROFS; head EROFS")
		for _, line := range strings.Split(before, "\n") {
			if strings.Contains(line, "worktrees/second") && !strings.Contains(l.host(), line) {
				t.Errorf("changed: %s", line)
			}
		}
	})
	t.Run("SB-107 .git/config is replaced from outside", func(t *testing.T) {
		l := socketLab(t)
		p, err := l.plan(granted(l))
		if err != nil {
			t.Fatal(err)
		}
		r := l.start(launch, p, "echo up; read")
		r.says("up")
		l.git("home/ws", "config", "a.b", "c")
		if e := r.end(); len(e.changed) != 1 || e.changed[0] != l.path("home/ws/.git/config") {
			t.Errorf("named: %v", e.changed)
		}
	})
	modes(t, "PO-38 SB-9 .agents replaced by a link", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		l.link("/etc", "home/ws/.agents")
		if strings.HasSuffix(t.Name(), protocol.SandboxReadOnly) {
			if e := l.run(launch, in(nil), "echo runs"); e.out != "runs\n" {
				t.Errorf("got %+v", e)
			}
			return
		}
		if _, err := l.plan(nil); protocolCode(err) != protocol.SandboxDenied {
			t.Errorf("got %v", err)
		}
	})
	t.Run("SB-93 a workspace of the person's own that is read-only", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Log("root may write any folder; the run as an ordinary user tries it")
			return
		}
		l := socketLab(t)
		p, err := l.plan(func(s *Setting, _ *Call) { s.Mode = protocol.SandboxReadOnly })
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(l.ws, 0o555); err != nil {
			t.Fatal(err)
		}
		compareEnds(t, l.run(launch, p, l.script(`try chmod 'chmod u+w . && mkdir .git'`)), "chmod EROFS")
		if p, err = l.plan(nil); err != nil {
			t.Fatal(err)
		}
		_, _, err = l.placeholders().Place(p)
		if protocolCode(err) != protocol.SandboxDenied || !strings.Contains(err.Error(), "chmod u+w "+l.ws) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("PO-33 SB-60 launchers planted early on PATH", func(t *testing.T) {
		l := socketLab(t)
		for _, name := range []string{"bwrap", "sandbox-exec", "env"} {
			path := l.write("bin/"+name, "#!/bin/sh\necho $0 >> "+l.path("used")+"\n")
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", l.path("bin")+":"+os.Getenv("PATH"))
		p, err := l.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		if e := l.run(launcher(t), p, "echo hi"); e.out != "hi\n" || !e.ran {
			t.Errorf("got %+v", e)
		}
		if exists(l.path("used")) {
			t.Error("one of them was used")
		}
	})
	for name, dir := range map[string]string{"the home": "home", "a folder above the workspace": "home/above", "the root": "../../../../../.."} {
		t.Run("SB-84 the daemon's $TMPDIR is "+name, func(t *testing.T) {
			l := socketLab(t)
			l.ws = l.mkdir("home/above/ws")
			l.world.Tmpdir = l.path(dir)
			p, err := l.plan(nil)
			if err != nil {
				t.Fatal(err)
			}
			l.placeholders()
			before := l.host()
			compareEnds(t, l.run(launch, p, l.script(`try home 'echo x > ~/x'; try above 'echo x > ../x'; try etc 'echo x > /etc/agent-sandbox-test'`)), "home EROFS; above EROFS; etc EROFS")
			compareHosts(t, before, l.host(), nil)
		})
	}
	t.Run("a variable that holds a NUL is refused", func(t *testing.T) {
		l := socketLab(t)
		p, err := l.plan(func(s *Setting, _ *Call) { s.Mode = protocol.SandboxReadOnly })
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []string{"A=x\x00--bind\x00/\x00/", "A\x00=x"} {
			c, err := launch.Prepare(t.Context(), p, []string{"/bin/true"}, []string{v})
			if protocolCode(err) != protocol.SandboxDenied || c != nil {
				t.Errorf("%q: got %v", v, err)
			}
		}
	})
}

func protocolCode(err error) protocol.Code {
	if e, ok := err.(*protocol.Error); ok {
		return e.Code
	}
	return ""
}

// TestThreatsOfPrograms has the rows in which a program of a special kind is run.
func TestThreatsOfPrograms(t *testing.T) {
	launch := launcher(t)
	modes(t, "SB-32 a setuid program", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		program, want := os.Getenv(setuidProgram), os.Geteuid()
		if want == 0 {
			program = l.copySelf("setuid")
			if err := errorsOf(os.Chown(program, ordinaryUser, ordinaryUser), os.Chmod(program, 0o4755|os.ModeSetuid)); err != nil {
				t.Fatal(err)
			}
		}
		if program == "" {
			t.Log("only root can make a setuid program; root's run tries it for both")
			return
		}
		if err := exec.Command(program, tryVerb, "euid", fmt.Sprint(want)).Run(); err == nil {
			t.Logf("%s gains nothing outside either: a mount without setuid", program)
		}
		compareEnds(t, l.run(launch, in(nil), l.script(fmt.Sprintf(`try run '%s %s euid %d'`, program, tryVerb, want))), "run ok")
	})
	if runtime.GOARCH != "amd64" {
		return
	}
	for _, network := range []bool{false, true} {
		modes(t, fmt.Sprintf("PO-42 SB-51 SB-52 foreign system calls, network %v", network), func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
			p := in(func(s *Setting, _ *Call) { s.Network = network })
			compareEnds(t, l.run(launch, p, l.script(`try x32 '$TRY x32'`)), "x32 ENOSYS")
			for name, program := range map[string][]byte{"a 32-bit program": elf32(), "int 0x80": elf64()} {
				path := l.path("foreign")
				if err := os.WriteFile(path, program, 0o755); err != nil {
					t.Fatal(err)
				}
				outside := exec.Command(path)
				outside.Run()
				if outside.ProcessState == nil || outside.ProcessState.ExitCode() != 42 {
					t.Logf("%s: this kernel knows no such calls: %v", name, outside.ProcessState)
					continue
				}
				if e := l.run(launch, p, path+"; echo $?"); !strings.HasPrefix(e.out, fmt.Sprintln(128+int(unix.SIGSYS))) {
					t.Errorf("%s: got %+v", name, e)
				}
			}
		})
	}
}

// exit42 is: mov $1, %eax; mov $42, %ebx; int $0x80.
var exit42 = []byte{0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80}

// elf32 is the least i386 program, which leaves with 42.
func elf32() []byte {
	const base, head = 0x8048000, 52 + 32
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, 2) // a program
	b = le.AppendUint16(b, 3) // for the i386
	for _, w := range []uint32{1, base + head, 52, 0, 0} {
		b = le.AppendUint32(b, w)
	}
	for _, h := range []uint16{52, 32, 1, 0, 0, 0} {
		b = le.AppendUint16(b, h)
	}
	for _, w := range []uint32{1, 0, base, base, head + uint32(len(exit42)), head + uint32(len(exit42)), 5, 0x1000} {
		b = le.AppendUint32(b, w)
	}
	return append(b, exit42...)
}

// elf64 is the same for amd64.
func elf64() []byte {
	const base, head = 0x400000, 64 + 56
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, 2)
	b = le.AppendUint16(b, 62)
	b = le.AppendUint32(b, 1)
	for _, w := range []uint64{base + head, 64, 0} {
		b = le.AppendUint64(b, w)
	}
	b = le.AppendUint32(b, 0)
	for _, h := range []uint16{64, 56, 1, 0, 0, 0} {
		b = le.AppendUint16(b, h)
	}
	b = le.AppendUint32(b, 1)
	b = le.AppendUint32(b, 5)
	for _, w := range []uint64{0, base, base, head + uint64(len(exit42)), head + uint64(len(exit42)), 0x1000} {
		b = le.AppendUint64(b, w)
	}
	return append(b, exit42...)
}

// copySelf copies this program into the lab.
func (l *lab) copySelf(rel string) string {
	l.t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		l.t.Fatal(err)
	}
	path := l.write(rel, string(self))
	if err := os.Chmod(path, 0o755); err != nil {
		l.t.Fatal(err)
	}
	return path
}

func errorsOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	ordinaryUser  = 61234
	setuidProgram = "SANDBOX_TEST_SETUID" // a program of root's
	stageVerb     = "__stage"             // drops to the ordinary user; see stage
	sshTest       = "SANDBOX_TEST_SSH"    // set where ssh has a file to include
)

func init() { parts[stageVerb] = stage }

// stage is root in mounts of its own: it gives ssh a file to include, and goes on
// as an ordinary user with the arguments.
func stage(args []string) int {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		// ssh asks for its user's name.
		err = unix.Mount(args[0], "/etc/passwd", "", unix.MS_BIND, "")
		args = args[1:]
	}
	if err == nil && isDir(sshFolder) {
		err = errorsOf(unix.Mount("tmpfs", sshFolder, "tmpfs", 0, "mode=755"), os.WriteFile(sshFolder+"/test.conf", []byte("Host included\n\tHostName example.org\n"), 0o644), os.Setenv(sshTest, "1"))
	}
	if err == nil {
		err = errorsOf(syscall.Setgroups(nil), syscall.Setgid(ordinaryUser), syscall.Setuid(ordinaryUser))
	}
	if err == nil {
		err = syscall.Exec(args[0], args, os.Environ())
	}
	fmt.Println(err)
	return 1
}

// A command may close a folder that it cannot rename: what is in it must not
// count as missing. It is run as an ordinary user as well, since root sees all.
func TestThreatsOfClosedFolders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(*lab) func(*Setting, *Call)
		safe string // must not be writable where the plan is made
	}{
		"a root": {func(l *lab) func(*Setting, *Call) {
			l.mkdir("home/ws/a/b")
			l.closed("home/ws/a")
			return roots(l.path("home/ws/a/b"))
		}, "home/ws/a/b/.git/hooks/x"},
		"the store": {func(l *lab) func(*Setting, *Call) {
			l.world.Store = l.write("tmp/x/store/state.sqlite", "")
			l.closed("tmp/x")
			return nil
		}, "tmp/x/store/state.sqlite"},
		"a protected path": {func(l *lab) func(*Setting, *Call) {
			l.world = &World{Protect: []string{l.mkdir("home/ws/a/rules")}}
			l.closed("home/ws/a")
			return nil
		}, "home/ws/a/rules/x"},
		"a creator's folder": {func(l *lab) func(*Setting, *Call) {
			above := l.mkdir("home/ws/a/b")
			l.closed("home/ws/a")
			return func(s *Setting, _ *Call) { s.Above = []string{above} }
		}, "home/ws/a/b/.git/hooks/x"},
		"the git folder of a worktree": {func(l *lab) func(*Setting, *Call) {
			l.gitFolder("home/ws/a/main/.git")
			l.write("home/w2/.git", "gitdir: ../ws/a/main/.git\n")
			l.closed("home/ws/a")
			return roots(l.path("home/w2"))
		}, "home/ws/a/main/.git/config"},
		"a hidden folder": {func(l *lab) func(*Setting, *Call) {
			l.world = &World{Walls: []string{l.mkdir("home/ws/a/wall")}}
			l.closed("home/ws/a")
			return func(s *Setting, _ *Call) { s.Mode = protocol.SandboxReadOnly }
		}, "home/ws/a/wall/x"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p, err := l.plan(c.make(l))
			switch {
			case err == nil && os.Geteuid() == 0:
				if p.Inside(l.path(c.safe)) {
					t.Errorf("%s is writable:\n%s", c.safe, p)
				}
			case protocolCode(err) != protocol.SandboxDenied || !strings.Contains(err.Error(), "chmod u+rwx "+l.dir):
				t.Errorf("got %v\n%v", err, p)
			}
		})
	}
}

// A folder that a command closed keeps its placeholders until it is open again.
func TestThreatsOfClosingUnderPlaceholders(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	path := l.path("home/.agent/state.sqlite.placeholders")
	ph, err := OpenPlaceholders(path)
	if err != nil {
		t.Fatal(err)
	}
	placed := l.placed(ph)
	l.closed("home/ws")
	placed.Remove()
	if err := ph.Close(); err != nil {
		t.Fatal(err)
	}
	if ph, err = OpenPlaceholders(path); err != nil { // and not at a start, either
		t.Fatal(err)
	}
	os.Chmod(l.ws, 0o755)
	if err := ph.Close(); err != nil {
		t.Fatal(err)
	}
	if got := l.names(); got != "" {
		t.Errorf("left: %s", got)
	}
}

// TestThreatsAsAnOrdinaryUser runs the tests that start sandboxes once more, as a
// user without any rights of root's.
func TestThreatsAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("the other tests run as one")
		return
	}
	dir, err := os.MkdirTemp("", "sbu")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := newLabIn(t, dir)
	program, setuid := l.copySelf("sandbox.test"), l.copySelf("setuid")
	home := l.mkdir("user")
	if err := errorsOf(os.Chmod(dir, 0o755), os.Chmod(setuid, 0o755|os.ModeSetuid), os.Chown(home, ordinaryUser, ordinaryUser)); err != nil {
		t.Fatal(err)
	}
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	list := l.write("passwd", fmt.Sprintf("%s\nordinary:x:%d:%d::%s:/bin/sh\n", bytes.TrimSpace(users), ordinaryUser, ordinaryUser, home))
	cmd := exec.CommandContext(t.Context(), program, stageVerb, list, program, "-test.v", "-test.parallel=8", "-test.run=^(TestThreats|TestThreatsOf.*|TestProbe|TestConfinedCommand|TestPlaceholders|TestSSHInside|TestFileChanges.*|TestStrays)$")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, setuidProgram+"="+setuid)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestThreats/SB-1_")) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSSHInside(t *testing.T) {
	if os.Getenv(sshTest) == "" {
		t.Log("the run as an ordinary user, with a file for ssh to include, tries it")
		return
	}
	launch := launcher(t)
	modes(t, "SB-113 ssh with a file to include", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		e := l.run(launch, in(nil), "ssh -G included | grep ^hostname; echo x >> "+sshFolder+"/test.conf")
		if !strings.HasPrefix(e.out, "hostname example.org\n") || !strings.Contains(e.out, "Read-only file system") {
			t.Errorf("got %+v", e)
		}
	})
}

// secondMount is set in the child that has mounts of its own, to the lab's folder.
const secondMount = "SANDBOX_TEST_MOUNT"

// TestSecondMount is SB-90: the store's folder shows at a second place. Only root
// can mount it there, in a process with mounts of its own.
func TestSecondMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("root's run tries it")
		return
	}
	if os.Getenv(secondMount) == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^TestSecondMount$")
		cmd.Env = append(os.Environ(), secondMount+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestSecondMount/SB-90_")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	launch := launcher(t)
	modes(t, "SB-90 a second place of the store's folder", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		change := sockets(online)(l)
		l.write("home/.agent/run/secret", "x")
		l.mkdir("second place")
		l.mkdir("third")
		if err := errorsOf(unix.Mount(l.path("home/.agent"), l.path("second place"), "", unix.MS_BIND, ""), unix.Mount(l.path("home"), l.path("third"), "", unix.MS_BIND, "")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			unix.Unmount(l.path("second place"), unix.MNT_DETACH)
			unix.Unmount(l.path("third"), unix.MNT_DETACH)
		})
		mounts, err := HostMounts()
		if err != nil {
			t.Fatal(err)
		}
		p := in(func(s *Setting, c *Call) { change(s, c); c.Mounts = mounts })
		l.placeholders()
		before := l.host()
		compareEnds(t, l.run(launch, p, l.script(`
			for d in "$LAB/second place" "$LAB/third/.agent"; do cd "$d"
			try write 'echo x >> state.sqlite'; try new 'echo x > env'; try daemon '$TRY connect state.sqlite.sock'; try other '$TRY connect state.sqlite.sock.d/8'; try walled '$TRY connect run/x.sock'; try read 'cat run/secret'
			done`)),
			strings.Repeat("; write EROFS; new EROFS; daemon ECONNREFUSED/ENOTSOCK; other ENOENT; walled EACCES/ENOENT; read EACCES", 2)[2:])
		compareHosts(t, before, l.host(), nil)
		if p.Mode != protocol.SandboxWorkspace {
			return
		}
		_, err = l.plan(func(s *Setting, c *Call) { s.Roots, c.Mounts = []string{l.path("third")}, mounts })
		if protocolCode(err) != protocol.SandboxDenied {
			t.Errorf("a root that holds it: %v", err)
		}
	})
}

// A daemon that is killed while a sandbox is being made leaves no command that
// begins afterwards.
func TestSB57NoCommandBeginsWithoutItsDaemon(t *testing.T) {
	launch := launcher(t)
	l := newLab(t)
	p, err := l.plan(nil)
	if err != nil {
		t.Fatal(err)
	}
	placed, _, err := l.placeholders().Place(p)
	if err != nil {
		t.Fatal(err)
	}
	defer placed.Remove()
	c, err := launch.Prepare(t.Context(), placed.Plan, []string{"/bin/bash", "-c", "--", "touch began"}, l.env())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.life.Close() // as the daemon's death does
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = c.Env, c.Dir, c.Files
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 125 {
		t.Errorf("the command ended with %v", err)
	}
	if exists(l.ws + "/began") {
		t.Error("the command began")
	}
}
