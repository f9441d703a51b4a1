package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// stage is a model server and a daemon that uses it.
type stage struct {
	model     *modelServer
	daemon    *daemon
	serve     serveOptions
	store     string
	workspace string
}

// staging says how a stage is set.
type staging struct {
	filled string   // the store to begin with a copy of, "" for an empty one
	flags  []string // further ones for the daemon
	env    []string // further variables for it
	model  []string // the model server's arguments, its word first
	socket bool     // the daemon is on a socket, else on standard input and output
	looks  looks
	probed *probedSpec // the daemon is a probed one; it is on a socket, and flags do not count
}

// stage starts both, on standard input and output and an empty store. args are
// the model server's.
func (b *bench) stage(ctx context.Context, args ...string) (*stage, error) {
	return b.stageOn(ctx, "", nil, args...)
}

// stageOn starts both on a copy of a filled store, "" for an empty one, with
// further flags for the daemon.
func (b *bench) stageOn(ctx context.Context, filled string, flags []string, args ...string) (*stage, error) {
	return b.set(ctx, staging{filled: filled, flags: flags, model: append([]string{modelWord}, args...)})
}

// set starts both.
func (b *bench) set(ctx context.Context, o staging) (*stage, error) {
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return nil, err
	}
	s := &stage{store: filepath.Join(dir, "state.sqlite"), workspace: filepath.Join(dir, "w")}
	if err := os.Mkdir(s.workspace, 0o755); err != nil {
		return nil, err
	}
	if o.filled != "" {
		if err := copyFile(s.store, o.filled); err != nil {
			return nil, err
		}
	}
	if s.model, err = startModel(ctx, b.self, o.model...); err != nil {
		return nil, err
	}
	s.serve = serveOptions{
		agent: b.agent, dir: dir, store: s.store, socket: o.socket || o.probed != nil, flags: o.flags, env: o.env, looks: o.looks,
		provider: "fake=" + b.family + "," + s.model.url, probed: o.probed, self: b.self,
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.model.close())
	}
	return s, nil
}

// start starts the daemon and watches every bot of it.
func (s *stage) start(ctx context.Context) (err error) {
	if s.daemon, err = serve(ctx, s.serve); err != nil {
		return err
	}
	if err := s.daemon.startWatch(ctx); err != nil {
		return s.daemon.failed(err)
	}
	return nil
}

// close ends both; an error of either is no figure.
func (s *stage) close() (usage, error) {
	u, err := s.daemon.stop()
	return u, errors.Join(err, s.model.close())
}

// end is close, for a run that went wrong already or did not.
func (s *stage) end(err error) (usage, error) {
	u, end := s.close()
	return u, errors.Join(err, end)
}
