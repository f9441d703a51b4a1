package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"agent/internal/sonny/connect"
	"agent/internal/sonny/live"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// reach finds the settings and the daemon, which it starts where that is allowed. link
// is nil where there is no store yet: there is nothing to read then, and nothing is
// made. The caller closes the link.
func (a *app) reach(cmd *cobra.Command) (w *around, link *connect.Link, err error) {
	if w, err = a.lookAnywhere(cmd); err != nil {
		return nil, nil, err
	}
	link, err = w.reach(cmd.Context())
	return w, link, err
}

// reach is the daemon's link; nil where there is no store yet.
func (w *around) reach(ctx context.Context) (*connect.Link, error) {
	if _, err := os.Stat(w.target.Store); errors.Is(err, fs.ErrNotExist) && !w.socket {
		return nil, nil
	}
	return connect.Open(ctx, w.link())
}

// reachRunning is reach for what starts no daemon: daemon_unavailable where none runs.
func (a *app) reachRunning(cmd *cobra.Command) (*around, *connect.Link, error) {
	w, err := a.lookAnywhere(cmd)
	if err != nil {
		return nil, nil, err
	}
	o := w.link()
	o.Explicit, o.Companions = true, nil
	link, err := connect.Open(cmd.Context(), o)
	return w, link, err
}

// world is the daemon's bots as they are now.
func worldOf(ctx context.Context, link *connect.Link) (*live.World, error) {
	world := live.New(link.Ready)
	for b, err := range link.Bots(ctx) {
		if err != nil {
			return nil, err
		}
		world.Page([]protocol.Bot{*b})
	}
	for call, err := range link.Approvals(ctx, everyApproval) {
		if err != nil {
			return nil, err
		}
		world.Wait(call)
	}
	return world, nil
}
