package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"agent/protocol"
)

// The daemon's helper children are its own program with one of these hidden
// verbs, and with helperMark in their environment, which for all but verbHeld is
// the whole of it: without that the verb is refused, so that nobody comes upon
// one by accident.
const (
	verbRead    = "internal-read"    // PATH: copies the file to stdout
	verbPicture = "internal-picture" // stdin, a picture, to stdout as it is to be kept
	verbHeld    = "internal-held"    // PROGRAM [ARGUMENT...]: becomes it, once it may (group.go)
)

const (
	helperVar  = "AGENT_HELPER"
	helperMark = helperVar + "=1"
)

// Exit codes of a helper that refused; what was wrong is on its stderr.
const (
	exitFailed  = 1
	exitUsage   = 2 // Go's own, too, for a program that ran out of memory
	exitRefused = 3 // the picture is damaged, the file is not regular
	exitLimit   = 4 // the picture is too large
)

// helperTime bounds a helper's life.
const helperTime = 60 * time.Second

// IsHelper reports whether a command's first argument is a helper's verb.
func IsHelper(verb string) bool {
	return verb == verbRead || verb == verbPicture || verb == verbHeld
}

// HelperMain is the main function of a helper child: args are its verb and what
// follows. It returns the exit code.
func HelperMain(args []string) int {
	var code int
	var err error
	meant := os.Getenv(helperVar) != ""
	switch {
	case meant && len(args) == 2 && args[0] == verbRead:
		code, err = copyFile(args[1], os.Stdout)
	case meant && len(args) == 1 && args[0] == verbPicture:
		if err = limitChild(); err != nil {
			code = exitFailed
			break
		}
		code, err = pictureChild(os.Stdin, os.Stdout)
	case meant && len(args) >= 2 && args[0] == verbHeld:
		return heldMain(args[1:])
	default:
		code, err = exitUsage, errors.New("a helper of the daemon; not for direct use")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// copyFile writes a regular file of at most 4 MiB to w, and one byte more of a
// longer one, so that the reader sees that it is.
func copyFile(path string, w io.Writer) (int, error) {
	env := &Env{}
	f, _, err := env.openRegular(path, os.O_RDONLY)
	if err != nil {
		var refused *Failure
		if errors.As(err, &refused) {
			return exitRefused, errors.New(refused.Detail)
		}
		return exitFailed, bare(err)
	}
	defer f.Close()
	if _, err := io.Copy(w, io.LimitReader(f, maxFile+1)); err != nil {
		return exitFailed, bare(err)
	}
	return 0, nil
}

// helperRead has a helper child read a file and gives its content to use.
// Nothing of the file is opened in this process.
func (e *Env) helperRead(ctx context.Context, path string, use func(io.Reader) error) error {
	code, says, err := e.helper(ctx, []string{verbRead, path}, use)
	switch {
	case err != nil:
		return err
	case code == exitRefused:
		return failuref(protocol.FileNotRegular, "%s", says)
	case code != 0:
		return errors.New(says)
	}
	return nil
}

// helper runs a helper child and gives its output to use, and its exit code
// with the first of what it wrote to stderr. It takes a place among the
// daemon's children. A child that does not even die, since its file hangs,
// keeps that place and is left behind with it.
func (e *Env) helper(ctx context.Context, args []string, use func(io.Reader) error) (int, string, error) {
	if err := e.Processes.Acquire(ctx); err != nil {
		return 0, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	end, err := beside(ctx, fileWork, func() helperEnd {
		defer e.Processes.Release()
		return e.runHelper(ctx, args, nil, use)
	})
	if err != nil && !errors.As(err, new(leftBehind)) {
		e.Processes.Release()
	}
	if err != nil {
		return 0, "", err
	}
	return end.code, end.says, end.err
}

// helperEnd is how a helper ended.
type helperEnd struct {
	code int
	says string
	err  error
}

// runHelper starts a helper child with input, if not nil, as its stdin, and
// waits for its end, or ends it with its group when ctx ends.
func (e *Env) runHelper(ctx context.Context, args []string, input *os.File, use func(io.Reader) error) helperEnd {
	cmd := exec.CommandContext(ctx, e.SelfExe, args...)
	cmd.Env = []string{helperMark} // it needs nothing else, and gets no key
	cmd.Dir = "/"                  // whatever becomes of the daemon's own folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if input != nil {
		cmd.Stdin = input
	}
	var says firstBytes
	cmd.Stderr = &says
	out, err := cmd.StdoutPipe()
	if err != nil {
		return helperEnd{err: err}
	}
	if err := cmd.Start(); err != nil {
		return helperEnd{err: err}
	}
	used := use(out)
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return helperEnd{err: context.Cause(ctx)}
	case errors.As(err, &exit):
		return helperEnd{code: exit.ExitCode(), says: strings.TrimSpace(string(says))}
	case err != nil:
		return helperEnd{err: err}
	}
	return helperEnd{err: used}
}

// firstBytes keeps the first KiB that is written to it.
type firstBytes []byte

func (b *firstBytes) Write(p []byte) (int, error) {
	if room := 1<<10 - len(*b); room > 0 {
		*b = append(*b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}
