package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"agent/protocol"
)

// launcherEnv is the launcher's own environment: what a bot gives its commands
// must not load into it before there is a sandbox.
var launcherEnv = []string{"PATH=/usr/bin:/bin", "LANG=C"}

func unavailable(err error) error {
	var known *protocol.Error
	if errors.As(err, &known) {
		return known
	}
	return protocol.Fail(protocol.SandboxUnavailable, err.Error())
}

// cutText is what a failed launcher said, else why it failed.
func cutText(said string, err error) string {
	said = strings.TrimSpace(said)
	if said == "" {
		return err.Error()
	}
	return said[:min(len(said), 400)]
}

// limited keeps the first 64 KiB of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, 64<<10-l.Len()))])
	return len(p), nil
}

// Change carries out changes of files inside the plan's sandbox, in order. The
// error says that the helper could not be asked, and nothing may be known of what
// it did; a refusal is in the reply.
func (l *Launcher) Change(ctx context.Context, p *Plan, ops []Op) (Reply, error) {
	program, err := l.ready(ctx)
	if err != nil {
		return Reply{}, err
	}
	input, err := encodeRequest(ops)
	if err != nil {
		return Reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	out, said, err := program.helper(ctx, p.forHelper(), l.Helper, "file", input)
	if err != nil {
		return Reply{}, fmt.Errorf("the sandbox's helper failed: %s", cutText(said, err))
	}
	return decodeReply(out)
}

// ChangeOutside carries out changes of files outside every sandbox, by the same
// helper and by the same rules: no link is followed, on the way or at the end, so
// that the paths must be real. It is for changes that somebody allowed.
func (l *Launcher) ChangeOutside(ctx context.Context, ops []Op) (Reply, error) {
	program, err := l.itself()
	if err != nil {
		return Reply{}, err
	}
	input, err := encodeRequest(ops)
	if err != nil {
		return Reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, HelperVerb, "file")
	cmd.Env, cmd.Dir = launcherEnv, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr limited
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		err = errors.New("it did not end in time")
	}
	if err != nil {
		return Reply{}, fmt.Errorf("the helper failed: %s", cutText(stderr.String(), err))
	}
	return decodeReply(stdout.Bytes())
}
