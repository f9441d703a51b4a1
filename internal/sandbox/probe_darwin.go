package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const probeTime = 10 * time.Second

func probe(ctx context.Context, helper, _ string) (*seatbelt, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	s, err := findSeatbelt(ctx)
	if err != nil {
		return nil, err
	}
	ground, err := newTrialGround()
	if err != nil {
		return nil, fmt.Errorf("the sandbox could not be tried: %w", err)
	}
	defer ground.close()
	p, err := ground.plan()
	if err != nil {
		return nil, fmt.Errorf("the sandbox could not be tried: %w", err)
	}
	out, said, err := s.helper(ctx, p, helper, "probe", nil)
	if err != nil {
		return nil, fmt.Errorf("%s cannot confine commands here%s: %s", sandboxExec, seatbeltHint(said), cutText(said, err))
	}
	var t trials
	if err := json.Unmarshal(out, &t); err != nil {
		return nil, fmt.Errorf("%s was started, and its probe said nothing that can be read: %w", sandboxExec, err)
	}
	if fault := t.fault(); fault != "" {
		return nil, fmt.Errorf("%s does not confine as it must on this machine: %s", sandboxExec, fault)
	}
	return s, nil
}

// findSeatbelt finds the launcher, at its one place.
func findSeatbelt(ctx context.Context) (*seatbelt, error) {
	info, err := os.Lstat(sandboxExec)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return nil, fmt.Errorf("there is no program %s on this machine, and nothing else confines commands", sandboxExec)
	}
	return &seatbelt{cacheDir: userCacheDir(ctx)}, nil
}

// userCacheDir is the folder in which the system's libraries keep what they
// learnt about certificates; "" where the machine names none.
func userCacheDir(ctx context.Context) string {
	cmd := exec.CommandContext(ctx, "/usr/bin/getconf", "DARWIN_USER_CACHE_DIR")
	cmd.Env = launcherEnv
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	dir, err := RealPath(strings.TrimSpace(string(out)))
	if err != nil || !filepath.IsAbs(dir) || !isDir(dir) {
		return ""
	}
	return dir
}

// helper runs the daemon's own program inside the sandbox, as a child that is
// told what to do on its input, and gives what it prints.
func (s *seatbelt) helper(ctx context.Context, p *Plan, program, mode string, input []byte) (out []byte, said string, err error) {
	if program, err = RealPath(program); err != nil {
		return nil, "", err
	}
	c, err := s.prepare(p, []string{program, HelperVerb, mode}, nil)
	if err != nil {
		return nil, "", err
	}
	defer c.Close()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin = bytes.NewReader(input)
	var stdout, stderr limited
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	c.Started()
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end in time")
	}
	return stdout.Bytes(), stderr.String(), err
}
