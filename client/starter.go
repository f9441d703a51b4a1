package client

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"agent/client/envfile"
	"agent/internal/place"
	"agent/protocol"
)

// Starter says how to start a daemon. The zero Starter uses the agent binary
// beside this program, else AGENT_BIN, else agent on PATH, implied providers
// and ~/.agent/env, and always walls ~/.agent/run and protects ~/.agent/rules.
type Starter struct {
	Bin          string
	Providers    []string      // stated specs; nil: the implied ones, which are never compared
	Limits       Limits        // stated ones only
	Walls        []string      // besides ~/.agent/run
	Protect      []string      // besides ~/.agent/rules
	Config       string        // the config.toml that the daemon reads; "": its default
	Env          []string      // nil: os.Environ, filled up from ~/.agent/env
	ExistingOnly bool          // store_not_found rather than a new store
	NoSpawn      bool          // only look for one within the window: daemon_unavailable
	Window       time.Duration // for connecting, starting and the ready line; 0: ten seconds
}

// Limits are the startup flags of a daemon (section 15) that were stated; nil
// ones were not. Times are seconds where the flag's are.
type Limits struct {
	MaxProcesses, MaxDetached, MaxActive, MaxConnecting *int64
	MaxPending, MaxPendingBytes                         *int64
	StallTimeout, IdleExit                              *int64 // seconds

	// The daemon's defaults for bots.
	ContextBytes, ContextItems, NoteTurns *int64
	CompactAt, CompactKeep                *int64 // percent
	RetainTurns, MaxOutputTokens          *int64
	KeepWarm                              *int64 // seconds
	ApprovalHoldMS                        *int64
	CacheTTL                              *string
}

// numbers lists the stated number flags with the daemon's value of each.
func (l *Limits) numbers(has protocol.Limits) []numberFlag {
	orZero := func(p *int64) *int64 {
		if p == nil {
			return new(int64)
		}
		return p
	}
	all := []numberFlag{
		{"max-processes", l.MaxProcesses, &has.Processes, 0},
		{"max-detached", l.MaxDetached, &has.Detached, 0},
		{"max-active", l.MaxActive, &has.Active, 0},
		{"max-connecting", l.MaxConnecting, &has.Connecting, 0},
		{"max-pending", l.MaxPending, &has.Pending, 0},
		{"max-pending-bytes", l.MaxPendingBytes, &has.PendingBytes, 0},
		{"stall-timeout", l.StallTimeout, &has.StallTimeoutSeconds, 0},
		{"idle-exit", l.IdleExit, orZero(has.IdleExitSeconds), 0},
		{"context-bytes", l.ContextBytes, &has.ContextBytes, 1024},
		{"context-items", l.ContextItems, &has.ContextItems, 2},
		{"note-turns", l.NoteTurns, &has.NoteTurns, 0},
		{"compact-at", l.CompactAt, &has.CompactAt, 0},
		{"compact-keep", l.CompactKeep, &has.CompactKeep, 0},
		{"retain-turns", l.RetainTurns, has.RetainTurns, 0},
		{"max-output-tokens", l.MaxOutputTokens, has.OutputTokens, 0},
		{"keep-warm", l.KeepWarm, &has.KeepWarmSeconds, 0},
		{"approval-hold-ms", l.ApprovalHoldMS, &has.ApprovalHoldMS, 0},
	}
	return slices.DeleteFunc(all, func(f numberFlag) bool { return f.stated == nil })
}

// numberFlag is a stated flag. What is below least the daemon raises to it.
type numberFlag struct {
	name        string
	stated, has *int64 // has nil: unset
	least       int64
}

// Check compares stated options with a ready line (section 4). Each difference
// is named in one daemon_configuration_mismatch. Defaults, AGENT_PROVIDER and
// key variables never conflict.
func (s *Starter) Check(r *protocol.Ready) error {
	var out []string
	env := s.Env
	if env == nil {
		env = os.Environ()
	}
	for _, spec := range s.Providers {
		p := parseProvider(spec, env)
		if has, ok := r.Providers[p.name]; ok {
			out = append(out, p.differences(has)...)
		} else {
			out = append(out, "--provider "+p.name+": not registered")
		}
	}
	for _, f := range s.Limits.numbers(r.Limits) {
		switch {
		case f.has == nil:
			out = append(out, mismatch(f.name, *f.stated, "none"))
		case max(*f.stated, f.least) != *f.has:
			out = append(out, mismatch(f.name, *f.stated, *f.has))
		}
	}
	if ttl := s.Limits.CacheTTL; ttl != nil && *ttl != r.Limits.CacheTTL {
		out = append(out, mismatch("cache-ttl", *ttl, r.Limits.CacheTTL))
	}
	out = append(out, unlisted("wall", s.Walls, r.Walls)...)
	out = append(out, unlisted("protect-path", s.Protect, r.Protected)...)
	if len(out) == 0 {
		return nil
	}
	return protocol.Fail(protocol.DaemonConfigurationMismatch, strings.Join(out, "; ")+
		" (leave the flag out, or end the daemon first: agent shutdown)")
}

func mismatch(flag string, requested, has any) string {
	return fmt.Sprintf("--%s: requested %v but daemon has %v", flag, requested, has)
}

// unlisted names the stated paths whose real path the daemon does not list.
func unlisted(flag string, stated, listed []string) []string {
	var out []string
	for _, path := range stated {
		if !slices.Contains(listed, realPath(path)) {
			out = append(out, mismatch(flag, path, "["+strings.Join(listed, " ")+"]"))
		}
	}
	return out
}

// realPath resolves as much of a path as exists.
func realPath(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return abs
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// Program is the agent program that is started: Bin, else the one beside this program,
// else AGENT_BIN, else agent on PATH. daemon_start_failed where there is none.
func (s *Starter) Program() (string, error) {
	if s.Bin != "" {
		return s.Bin, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "agent")
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	if bin := os.Getenv("AGENT_BIN"); bin != "" {
		return bin, nil
	}
	bin, err := exec.LookPath("agent")
	if err != nil {
		return "", coded(protocol.DaemonStartFailed, "no agent program beside this one, in AGENT_BIN or on PATH", err)
	}
	return bin, nil
}

// environment is what the daemon gets: the caller's, filled up from
// ~/.agent/env, without what says that the caller is a bot.
func (s *Starter) environment() ([]string, error) {
	env := s.Env
	if env == nil {
		path, err := envfile.DefaultPath()
		if err != nil {
			return nil, placeError(err)
		}
		vars, err := envfile.Read(path)
		if err != nil {
			return nil, err
		}
		env = envfile.Fill(os.Environ(), vars)
	}
	return DaemonEnv(env), nil
}

// DaemonEnv is an environment, as os.Environ gives it, without what says that the
// caller is a bot. It is a copy.
func DaemonEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasPrefix(name, "AGENT_BOT") || strings.HasPrefix(name, "AGENT_PARENT") ||
			name == "AGENT_TURN" || name == "AGENT_SHELL_CONTEXT"
	})
}

// arguments are those of agent serve.
func (s *Starter) arguments(target Target, providers []string) ([]string, error) {
	home, err := place.Home()
	if err != nil {
		return nil, placeError(err)
	}
	args := []string{"serve", "--store=" + target.Store, "--socket=" + target.Socket}
	for _, spec := range providers {
		args = append(args, "--provider="+spec)
	}
	for _, f := range s.Limits.numbers(protocol.Limits{}) {
		args = append(args, "--"+f.name+"="+strconv.FormatInt(*f.stated, 10))
	}
	if s.Limits.CacheTTL != nil {
		args = append(args, "--cache-ttl="+*s.Limits.CacheTTL)
	}
	if s.Config != "" {
		args = append(args, "--config="+absolute(s.Config))
	}
	for _, path := range append([]string{filepath.Join(home, ".agent", "run")}, s.Walls...) {
		args = append(args, "--wall="+absolute(path))
	}
	for _, path := range append([]string{filepath.Join(home, ".agent", "rules")}, s.Protect...) {
		args = append(args, "--protect-path="+absolute(path))
	}
	return args, nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
