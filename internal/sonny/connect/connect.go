// Package connect reaches Sonny's daemon, or starts it with what Sonny needs of one
// (sonny.md 30): the settings file, the walls, the protected paths, the companions.
package connect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"agent/client"
	"agent/internal/place"
	"agent/protocol"
)

// Options say which daemon, and how one is started.
type Options struct {
	Target client.Target

	// Explicit is set where a socket was named: then no daemon is started.
	Explicit bool

	Config  string // of config.toml: the daemon reads its part of it
	Limits  client.Limits
	Walls   []string // besides Sonny's own
	Protect []string

	// Companions are set again at every start of a daemon or of Sonny, so that a newer
	// program takes over. nil leaves them as they are.
	Companions []protocol.CompanionSpec

	Logf func(format string, args ...any)
}

// Link is a daemon that answers.
type Link struct {
	*client.Client
	Ready   *protocol.Ready
	Started bool // this program started it
	Missing []Missing
}

// Missing is a wall or a protected path that the running daemon does not have. No
// sandboxed bot whose writable folders hold it is made meanwhile.
type Missing struct {
	Path string
	Wall bool
}

// Open reaches the daemon, starting one where that is allowed and none answers. The
// caller closes the link.
func Open(ctx context.Context, o Options) (*Link, error) {
	c := &client.Client{Target: o.Target, Logf: o.Logf}
	link := &Link{Client: c}
	var err error
	link.Ready, err = c.Ready(ctx)
	if absent(err) && !o.Explicit {
		err = link.start(ctx, &o)
	}
	if err != nil {
		if errors.Is(err, protocol.DaemonProtocolMismatch) && link.Ready == nil {
			link.Ready = announced(ctx, c)
		}
		c.Close()
		return nil, versions(link.Ready, err)
	}
	if err := link.look(&o); err != nil {
		c.Close()
		return nil, err
	}
	if o.Companions != nil && link.Ready.Has("companions") {
		// With a full disk the list stays as it was, and all that needs no room goes on.
		if _, err := c.SetCompanions(ctx, o.Companions); err != nil && !errors.Is(err, protocol.StorageError) {
			c.Close()
			return nil, err
		}
	}
	return link, nil
}

// announced is what a daemon of another protocol says of itself; nil for a listener that
// is none. It starts nothing.
func announced(ctx context.Context, c *client.Client) *protocol.Ready {
	ready, _, err := c.Start(ctx, &client.Starter{NoSpawn: true})
	if errors.Is(err, protocol.DaemonProtocolMismatch) {
		return ready
	}
	return nil
}

func absent(err error) bool { return errors.Is(err, protocol.DaemonUnavailable) }

// start starts a daemon. Where another program was faster its daemon is taken as it
// is, and what it lacks is in Missing.
func (l *Link) start(ctx context.Context, o *Options) error {
	s, err := o.Starter()
	if err != nil {
		return err
	}
	l.Ready, l.Started, err = l.Client.Start(ctx, s)
	if errors.Is(err, protocol.DaemonConfigurationMismatch) {
		l.Started = false
		l.Ready, err = l.Client.Ready(ctx)
	}
	return err
}

// Starter is how a daemon of these options is started.
func (o *Options) Starter() (*client.Starter, error) {
	walls, protect, err := o.paths()
	if err != nil {
		return nil, err
	}
	return &client.Starter{Config: o.Config, Limits: o.Limits, Walls: walls, Protect: protect}, nil
}

// paths are the walls and the protected paths that Sonny wants of a daemon.
func (o *Options) paths() (walls, protect []string, err error) {
	home, err := place.Home()
	if err != nil {
		return nil, nil, err
	}
	agent := filepath.Join(home, ".agent")
	walls = append([]string{filepath.Join(agent, "run")}, o.Walls...)
	protect = []string{
		filepath.Join(agent, "rules"), filepath.Join(agent, "triggers"), filepath.Join(agent, "sonny"), SchedulerDir(home),
	}
	if filepath.Dir(o.Target.Store) != agent {
		protect = append(protect, agent)
	}
	return walls, append(protect, o.Protect...), nil
}

// SchedulerDir is where the system's scheduler keeps a person's jobs.
func SchedulerDir(home string) string {
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "LaunchAgents")
	}
	return filepath.Join(home, ".config", "systemd", "user")
}

// look finds out what the daemon lacks.
func (l *Link) look(o *Options) error {
	walls, protect, err := o.paths()
	if err != nil {
		return err
	}
	for _, path := range walls {
		if !slices.Contains(l.Ready.Walls, place.Real(path)) {
			l.Missing = append(l.Missing, Missing{Path: place.Real(path), Wall: true})
		}
	}
	for _, path := range protect {
		if !slices.Contains(l.Ready.Protected, place.Real(path)) {
			l.Missing = append(l.Missing, Missing{Path: place.Real(path)})
		}
	}
	return nil
}

// Covers refuses a sandboxed bot that could write a path which the daemon does not
// keep from it: daemon_options (sonny.md 30).
func (l *Link) Covers(sandbox, workspace string, roots []string) error {
	if sandbox != protocol.SandboxWorkspace {
		return nil
	}
	var open []string
	for _, m := range l.Missing {
		if slices.ContainsFunc(append([]string{workspace}, roots...), func(root string) bool { return holds(place.Real(root), m.Path) }) {
			open = append(open, m.Path)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return protocol.Fail("daemon_options", "the running daemon does not protect what this bot could write: "+strings.Join(open, ", ")+
		"; end the daemon (agent shutdown) and let sonny start it")
}

// holds reports whether a path is a folder or lies in it.
func holds(folder, path string) bool {
	below, err := filepath.Rel(folder, path)
	return err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(os.PathSeparator))
}

// versions tells an older daemon from a newer one (sonny.md 1).
func versions(ready *protocol.Ready, err error) error {
	if !errors.Is(err, protocol.DaemonProtocolMismatch) || ready == nil || ready.Protocol == protocol.Version {
		return err
	}
	if ready.Protocol > protocol.Version {
		return protocol.Fail("daemon_newer", "the running daemon is of a newer version ("+ready.Version+"); update sonny")
	}
	return protocol.Fail("daemon_older", "the running daemon is of an older version ("+ready.Version+"); end it with agent shutdown, and sonny starts the new one")
}
