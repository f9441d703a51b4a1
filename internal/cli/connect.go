package cli

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"time"

	"agent/client"
	"agent/client/termsafe"
	"agent/internal/place"
	"agent/protocol"
)

// common are the flags of every verb that talks to a daemon.
type common struct {
	store, socket string
	pretty        bool
}

func (a *app) common(t *table) *common {
	c := &common{}
	t.path(&c.store, "store", "FILE", "the store; default AGENT_STORE, else ~/.agent/state.sqlite")
	t.path(&c.socket, "socket", "PATH", "the daemon's socket; default AGENT_SOCKET, else beside the store")
	t.toggle(&c.pretty, "pretty", "output for people instead of JSON")
	return c
}

// startMode is what a verb does when nobody listens (section 3).
type startMode int

const (
	startAny      startMode = iota // start a daemon; a missing store is made
	startExisting                  // start one only for a store that exists
	startNever                     // daemon_unavailable
)

// startup are the flags of a daemon that a verb may have to start (section 15).
type startup struct {
	providers      []string
	walls, protect []string
	limits         client.Limits
	noSpawn        bool
}

func (t *table) startup(s *startup) {
	most := int64(mostInteger)
	t.texts(&s.providers, "provider", "SPEC", "a model provider, NAME[=FAMILY[,URL[,KEY_ENV]]]; repeatable").in(ofDaemon)
	t.stated(&s.limits.MaxActive, "max-active", 0, most, "live turns; 0 unbounded, default 4096").in(ofDaemon)
	t.stated(&s.limits.MaxProcesses, "max-processes", 0, most, "child processes; 0 unbounded, default 64 for each CPU").in(ofDaemon)
	t.stated(&s.limits.MaxDetached, "max-detached", 0, most, "detached child processes; 0 unbounded, default 16").in(ofDaemon)
	t.stated(&s.limits.MaxConnecting, "max-connecting", 0, most, "model requests that await their response's headers; 0 unbounded, the default").in(ofDaemon)
	t.stated(&s.limits.MaxPending, "max-pending", 0, most, "submissions that wait; 0 unbounded, the default").in(ofDaemon)
	t.stated(&s.limits.MaxPendingBytes, "max-pending-bytes", 0, most, "bytes of their prompts; 0 unbounded, the default").in(ofDaemon)
	t.statedTime(&s.limits.StallTimeout, "stall-timeout", time.Second, 1, 86_400, "seconds until a silent model stream is tried again; default 120").in(ofDaemon)
	t.statedTime(&s.limits.IdleExit, "idle-exit", time.Second, 0, most, "seconds without a client and without work until the daemon ends; 0 never, the default").in(ofDaemon)
	t.pathsOf(&s.walls, "wall", "DIR", "a folder hidden from every sandboxed command; repeatable").in(ofDaemon)
	t.pathsOf(&s.protect, "protect-path", "PATH", "a path that is read-only in every sandbox; repeatable").in(ofDaemon)
}

// starts declares the startup flags on a verb that may start a daemon.
func (t *table) starts() *startup {
	s := &startup{}
	t.startup(s)
	t.noSpawn(s)
	return s
}

func (t *table) noSpawn(s *startup) {
	t.toggle(&s.noSpawn, "no-spawn", "start no daemon").in(ofDaemon)
}

// botDefaults are the daemon's defaults for bots, on serve and start.
func (t *table) botDefaults(s *startup) {
	l, most := &s.limits, int64(mostInteger)
	t.stated(&l.ContextBytes, "context-bytes", 1, most, "bytes of history a model is shown; raised to 1024, default 8388608").in(ofDaemon)
	t.stated(&l.ContextItems, "context-items", 1, most, "items of history a model is shown; raised to 2, default 4096").in(ofDaemon)
	t.stated(&l.NoteTurns, "note-turns", 0, most, "turns that a note is shown for; default 48").in(ofDaemon)
	t.stated(&l.CompactAt, "compact-at", 1, 100, "percent of the context at which it is compacted; default 75").in(ofDaemon)
	t.stated(&l.CompactKeep, "compact-keep", 1, 100, "percent of the context that compaction keeps as it is; default 25").in(ofDaemon)
	t.stated(&l.RetainTurns, "retain-turns", 1, most, "finished turns whose records are kept; default all").in(ofDaemon)
	t.stated(&l.MaxOutputTokens, "max-output-tokens", 1, 1<<32-1, "output tokens of one model call; default the model's own").in(ofDaemon)
	t.statedTime(&l.KeepWarm, "keep-warm", time.Second, 0, 299, "seconds between the calls that keep a prompt cache; 0 off, default 240").in(ofDaemon)
	var ttl string
	f := t.choice(&ttl, "cache-ttl", "how long a provider keeps a prompt cache; default 5m", "5m", "1h").in(ofDaemon)
	read := f.set
	f.set = func(v string) error {
		l.CacheTTL = &v
		return read(v)
	}
	hold := t.statedTime(&l.ApprovalHoldMS, "approval-hold-ms", time.Millisecond, 0, 600_000, "milliseconds a call waits for its verdict before the turn is parked; 0 at once, default 2000").in(ofDaemon)
	t.alias(hold, "approval-hold", unitRequired("approval-hold", hold.set))
}

// unitRequired is an alias that takes no bare number but 0.
func unitRequired(name string, read func(string) error) func(string) error {
	return func(v string) error {
		if _, bare := digits(v); bare && v != "0" {
			return usagef("--%s %s: it needs a unit: ms, s, m or h", name, v)
		}
		return read(v)
	}
}

// limitsOf are a daemon's limits: what was stated, over the defaults
// (protocol.md 4).
func (s *startup) limitsOf() (protocol.Limits, error) {
	l := &s.limits
	set := protocol.Limits{
		Processes: or(l.MaxProcesses, 64*int64(runtime.NumCPU())), Detached: or(l.MaxDetached, 16), Active: or(l.MaxActive, 4096),
		Connecting: or(l.MaxConnecting, 0), Pending: or(l.MaxPending, 0), PendingBytes: or(l.MaxPendingBytes, 0),
		StallTimeoutSeconds: or(l.StallTimeout, 120), KeepWarmSeconds: or(l.KeepWarm, 240),
		ContextBytes: max(or(l.ContextBytes, 8<<20), 1024), ContextItems: max(or(l.ContextItems, 4096), 2),
		NoteTurns: or(l.NoteTurns, 48), CompactAt: or(l.CompactAt, 75), CompactKeep: or(l.CompactKeep, 25),
		RetainTurns: l.RetainTurns, OutputTokens: l.MaxOutputTokens, ApprovalHoldMS: or(l.ApprovalHoldMS, 2000), CacheTTL: "5m",
	}
	if l.CacheTTL != nil {
		set.CacheTTL = *l.CacheTTL
	}
	if l.IdleExit != nil && *l.IdleExit != 0 {
		set.IdleExitSeconds = l.IdleExit
	}
	set.Connections = 64
	if set.Active > 0 {
		set.Connections = min(max((set.Active+63)/64, 1), 256)
	}
	if set.CompactKeep >= set.CompactAt {
		return set, usagef("--compact-keep %d: it is less than --compact-at, which is %d", set.CompactKeep, set.CompactAt)
	}
	return set, nil
}

func or(stated *int64, def int64) int64 {
	if stated == nil {
		return def
	}
	return *stated
}

// link is a verb's way to its daemon.
type link struct {
	*client.Client
	target  client.Target
	ready   *protocol.Ready
	started bool
}

// connect meets the daemon, or starts it where the verb may. It is the first
// thing that touches anything.
func (a *app) connect(ctx context.Context, c *common, s *startup, mode startMode) (*link, error) {
	target, err := client.Resolve(c.store, c.socket)
	if err != nil {
		return nil, err
	}
	bin, err := os.Executable()
	if err != nil {
		return nil, err
	}
	starter := &client.Starter{Bin: bin, ExistingOnly: mode == startExisting, NoSpawn: mode == startNever}
	if s != nil {
		starter.Providers, starter.Walls, starter.Protect, starter.Limits = s.providers, s.walls, s.protect, s.limits
		starter.NoSpawn = starter.NoSpawn || s.noSpawn
	}
	l := &link{Client: &client.Client{Target: target, Starter: starter}, target: target}
	l.ready, l.started, err = l.Start(ctx, starter)
	if err != nil {
		return l, err
	}
	// From here on it is this daemon or none: a later connection of the same
	// command must not start another.
	l.Starter = &client.Starter{NoSpawn: true}
	return l, nil
}

// raw is an answer as the daemon wrote it.
func (l *link) raw(ctx context.Context, op string, params any) (json.RawMessage, error) {
	var answer json.RawMessage
	if err := l.Do(ctx, op, params, &answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// targetFlags are what a command shown to a person needs to reach the same
// daemon from anywhere (section 2): nothing where the defaults do.
func targetFlags(target client.Target) string {
	flags := ""
	if def, err := defaultStore(); err != nil || def != target.Store {
		flags += " --store " + termsafe.ShellWord(target.Store)
	}
	if derived, err := client.SocketFor(target.Store); err != nil || derived != target.Socket {
		flags += " --socket " + termsafe.ShellWord(target.Socket)
	}
	return flags
}

func defaultStore() (string, error) {
	path, err := place.DefaultStore()
	if err != nil {
		return "", err
	}
	return place.Canonical(path)
}
