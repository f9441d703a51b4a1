package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// program is what the probe finds.
type program = bubblewrap

// itself is the program that runs now, whatever its path leads to by now.
func (l *Launcher) itself() (string, error) { return "/proc/self/exe", nil }

// Command is a command that is ready to start confined. The caller starts Argv
// with Env in a session of its own, with Files behind the three standard ones,
// and calls Started once it has, or Close when it does not.
type Command struct {
	Argv  []string
	Env   []string
	Files []*os.File // the child's descriptors from 3 on
	Dir   string

	status *os.File // what the launcher says about the command
	said   []byte
	life   *os.File // the daemon's end of a pipe that is open while it lives
}

// Prepare makes argv, which is run in the plan's folder with env, ready to start
// confined. Errors are sandbox_unavailable and sandbox_denied.
func (l *Launcher) Prepare(ctx context.Context, p *Plan, argv, env []string) (*Command, error) {
	program, err := l.ready(ctx)
	if err != nil {
		return nil, err
	}
	return program.prepare(p, argv, env, "")
}

func inRoot(p *Plan, path string) (string, bool) {
	i := slices.IndexFunc(p.Roots, func(r string) bool { return within(path, r) })
	if i < 0 {
		return "", false
	}
	return p.Roots[i], true
}

// prepare makes a command; helper is the daemon's own program where the command
// is that.
func (b *bubblewrap) prepare(p *Plan, argv, env []string, helper string) (c *Command, err error) {
	c = &Command{Env: launcherEnv, Dir: "/"}
	defer func(made *Command) {
		if err != nil {
			made.Close()
			err = unavailable(err)
		}
	}(c)
	if root, in := inRoot(p, b.path); in {
		return nil, denied("the sandbox program " + b.path + " lies in the writable folder " + root)
	}
	l := &launch{plan: p, env: env, root: os.Geteuid() == 0, helper: helper, sources: map[string]int{}}
	code, err := filter(p.Class)
	if err != nil {
		return nil, err
	}
	if l.filter, err = c.give(memory("filter", code)); err != nil {
		return nil, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.status = from
	if l.status, err = c.give(to, nil); err != nil {
		return nil, err
	}
	if err = b.sources(c, l); err != nil {
		return nil, err
	}
	if !l.root {
		if err = c.giveSSH(l); err != nil {
			return nil, err
		}
	}
	list := l.args()
	for _, word := range list {
		if strings.IndexByte(word, 0) >= 0 {
			// What follows would be an argument of its own, and mount what it likes.
			return nil, denied(fmt.Sprintf("%.100q holds a NUL byte", word))
		}
	}
	args, err := c.give(memory("arguments", []byte(strings.Join(list, "\x00")+"\x00")))
	if err != nil {
		return nil, err
	}
	if helper == "" {
		if argv, err = c.aliveOnly(argv); err != nil {
			return nil, err
		}
	}
	c.Argv = slices.Concat([]string{b.path}, mark(b.owner), []string{"--args", fmt.Sprint(args), "--"}, argv)
	return c, nil
}

// aliveOnly has a command that a bash runs begin only while the daemon lives. The
// launcher dies with the daemon from when it has set that up, and looks at no
// death before: a daemon that is killed meanwhile would leave the command behind,
// with nobody to keep its placeholders. A pipe of which the daemon has the other
// end tells the command itself.
// The sandbox's first process sets the same up, for itself and so for all, only
// after it has begun the command: the command waits until that one waits for it.
func (c *Command) aliveOnly(argv []string) ([]string, error) {
	if filepath.Base(argv[0]) != "bash" {
		return argv, nil // other shells cannot look without waiting
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.life = to
	fd, _ := c.give(from, nil)
	look := fmt.Sprintf(`while read -r _ _ state _ < /proc/1/stat && [[ $state == [RD] ]]; do :; done
if read -t 0 -u %d; then exit 125; fi; exec %d<&-; exec "$@"`, fd, fd)
	return append([]string{argv[0], "-p", "-c", look, argv[0]}, argv...), nil // -p: no file is read first
}

// sources opens what is mounted and might be swapped for a link meanwhile.
func (b *bubblewrap) sources(c *Command, l *launch) error {
	if !b.bindsFD {
		return nil
	}
	if l.helper != "" {
		// This very program, whatever its path leads to by now.
		f, err := os.OpenFile("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
		if l.helperFD, err = c.give(f, err); err != nil {
			return err
		}
	}
	for _, e := range l.plan.Entries {
		if e.Kind == AbsentFolder || e.Kind == Walled {
			continue
		}
		how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
		fd, err := unix.Openat2(unix.AT_FDCWD, e.Path, how)
		if err != nil {
			return denied(e.Path + " changed as the command was about to start: " + err.Error())
		}
		if l.sources[e.Path], err = c.give(os.NewFile(uintptr(fd), e.Path), nil); err != nil {
			return err
		}
	}
	return nil
}

// giveSSH hands over the files that ssh includes.
func (c *Command) giveSSH(l *launch) error {
	list, err := os.ReadDir(sshFolder)
	if err != nil {
		return nil // none
	}
	for _, d := range list {
		path := filepath.Join(sshFolder, d.Name())
		text, err := os.ReadFile(path)
		if err != nil || len(text) > 1<<20 {
			continue // ssh could not read it either
		}
		if l.sshFiles == nil {
			l.sshFiles = map[string]int{}
		}
		if l.sshFiles[path], err = c.give(memory("ssh", text)); err != nil {
			return err
		}
	}
	return nil
}

// give adds a file to those of the child and says its number there.
func (c *Command) give(f *os.File, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	c.Files = append(c.Files, f)
	return 2 + len(c.Files), nil
}

// Started closes what the child has now.
func (c *Command) Started() {
	for _, f := range c.Files {
		f.Close()
	}
	c.Files = nil
}

// Close gives up everything.
func (c *Command) Close() {
	c.Started()
	for _, f := range []*os.File{c.status, c.life} {
		if f != nil {
			f.Close()
		}
	}
	c.status, c.life = nil, nil
}

// Pid is the process that leads the command's own group, which signals for the
// command go to; 0 while the launcher has not said it.
func (c *Command) Pid() int {
	pid, _, _ := c.read()
	return pid
}

// Ran reports, once the launcher has ended by itself, whether it ran the command
// to its end: the launcher says the command's exit code last.
func (c *Command) Ran() bool {
	_, _, ran := c.read()
	return ran
}

// read takes what the launcher has said so far. It does not wait.
func (c *Command) read() (pid, code int, ran bool) {
	if c.status == nil {
		return 0, 0, false
	}
	if raw, err := c.status.SyscallConn(); err == nil {
		raw.Read(func(fd uintptr) bool {
			buf := make([]byte, 4096)
			for len(c.said) < 64<<10 {
				n, err := unix.Read(int(fd), buf)
				if n <= 0 || err != nil {
					break
				}
				c.said = append(c.said, buf[:n]...)
			}
			return true
		})
	}
	docs := json.NewDecoder(strings.NewReader(string(c.said)))
	for {
		var d struct {
			Pid  int  `json:"child-pid"`
			Code *int `json:"exit-code"`
		}
		if err := docs.Decode(&d); err != nil {
			return pid, code, ran
		}
		if d.Pid != 0 {
			pid = d.Pid
		}
		if d.Code != nil {
			code, ran = *d.Code, true
		}
	}
}
