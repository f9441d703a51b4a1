package bedrock

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"agent/internal/model"
	"agent/internal/secret"
)

const (
	commandTime = 30 * time.Second
	// afterEnd is how long a killed command's pipes may stay open.
	afterEnd     = time.Second
	stdoutLimit  = 64 << 10
	stderrLimit  = 8 << 10
	stderrDetail = 512 // characters
)

// export asks the aws command on PATH for keys: it knows profiles, single
// sign-on and roles. Its output is never shown, but for what it says on stderr
// when it fails.
func export(ctx context.Context, redact func(string) string) (*pair, *model.Error) {
	path, err := exec.LookPath("aws")
	if err != nil {
		return nil, unavailable("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set, and there is no aws command on PATH to ask: %v", reason(err))
	}
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "configure", "export-credentials", "--format", "process")
	stdout, stderr := &limited{most: stdoutLimit}, &limited{most: stderrLimit}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	// A group of its own, so that what it started ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = afterEnd
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, unavailable("aws configure export-credentials did not answer in %s", commandTime)
	case err != nil:
		said := clean(redact(string(stderr.kept)))
		return nil, unavailable("aws configure export-credentials failed (%v)%s", err, said)
	case stdout.cut:
		return nil, unavailable("aws configure export-credentials answered with more than %d KiB", stdoutLimit>>10)
	}
	return parse(stdout.kept)
}

// clean is what the command said as one line behind a colon, cut; "" when it
// said nothing.
func clean(said string) string {
	said = strings.Join(strings.Fields(strings.ToValidUTF8(said, "")), " ")
	if runes := []rune(said); len(runes) > stderrDetail {
		said = string(runes[:stderrDetail])
	}
	if said == "" {
		return ""
	}
	return ": " + said
}

// hidden is a secret in the command's answer.
type hidden struct{ secret.Value }

func (h *hidden) UnmarshalText(text []byte) error {
	h.Value = secret.NewValue(strings.TrimSpace(string(text)))
	return nil
}

// parse reads the command's answer. No error quotes it.
func parse(text []byte) (*pair, *model.Error) {
	var in struct {
		Version    int
		ID         hidden `json:"AccessKeyId"`
		Key        hidden `json:"SecretAccessKey"`
		Token      hidden `json:"SessionToken"`
		Expiration string
	}
	if json.Unmarshal(text, &in) != nil {
		return nil, unavailable("what aws configure export-credentials answered is not the JSON of keys")
	}
	if in.Version != 1 {
		return nil, unavailable("aws configure export-credentials answered in version %d, and this program reads version 1", in.Version)
	}
	if !headerSafe(in.ID.Reveal()) || !headerSafe(in.Key.Reveal()) || in.Token.Reveal() != "" && !headerSafe(in.Token.Reveal()) {
		return nil, unavailable("aws configure export-credentials answered without usable keys")
	}
	p := &pair{id: in.ID.Value, key: in.Key.Value, token: in.Token.Value}
	if in.Expiration != "" {
		at, err := time.Parse(time.RFC3339, in.Expiration)
		if err != nil {
			return nil, unavailable("aws configure export-credentials answered with an expiration that is no time")
		}
		p.expires = at
	}
	return p, nil
}

// headerSafe reports a text that may stand in a header.
func headerSafe(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < '!' || r > '~' })
}

// limited keeps the first bytes that are written. It has no other method than
// Write, so that nothing is copied into it by another way.
type limited struct {
	kept []byte
	most int
	cut  bool
}

func (l *limited) Write(p []byte) (int, error) {
	keep := p[:min(len(p), l.most-len(l.kept))]
	l.cut = l.cut || len(keep) < len(p)
	l.kept = append(l.kept, keep...)
	return len(p), nil
}

// reason is an error without the name that the caller gives already.
func reason(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
