package daemon

import (
	"errors"
	"os"
	"runtime"

	"agent/internal/engine"
	"agent/internal/place"
	"agent/internal/sandbox"
	"agent/protocol"
)

// openSandbox makes what bots are confined with, and takes away the placeholders
// that a killed daemon left.
func (d *Daemon) openSandbox() (*engine.Sandbox, error) {
	ph, err := sandbox.OpenPlaceholders(d.opt.Store + ".placeholders")
	if err != nil {
		return nil, protocol.Fail(protocol.StorageError, err.Error())
	}
	at := sandbox.Places{
		Store: d.opt.Store, Socket: d.opt.Socket, Protect: d.opt.Protect, Walls: d.opt.Walls,
		Tmpdir: os.Getenv("TMPDIR"), FallbackDir: place.FallbackDir(),
	}
	at.Instance, _ = d.store.Identity()
	if at.Home, err = os.UserHomeDir(); err != nil {
		at.Home = ""
	}
	if d.opt.Socket != "" {
		at.SocketDir = place.BotSocketDir(d.opt.Socket, d.opt.Store)
	}
	box := &engine.Sandbox{
		World:        sandbox.NewWorld(at, d.opt.Log),
		Launcher:     &sandbox.Launcher{Helper: d.opt.Engine.Self, Owner: d.lockID},
		Placeholders: ph,
	}
	if d.opt.Socket == "" {
		return box, nil
	}
	if d.bots, err = openBotSockets(d, at.SocketDir, box.World.SocketDir); err != nil {
		return nil, errors.Join(err, ph.Close())
	}
	box.BotSocket, box.Deleted = d.bots.use, d.bots.end
	return box, nil
}

// own is told that the store is this daemon's: what a killed one left of its sandboxes
// ends before anything is taken away that they may mount on.
func (d *Daemon) own(lock string) {
	d.lockID = lock
	ended, left := sandbox.EndStrays(lock)
	if ended > 0 {
		d.opt.Log.Info("sandboxes of an earlier daemon were ended", "processes", ended)
	}
	if len(left) > 0 {
		d.opt.Log.Warn("sandboxes of an earlier daemon do not end", "pids", left)
	}
}

// sandboxInfo is what the ready line says of the sandbox.
func (d *Daemon) sandboxInfo() protocol.SandboxInfo {
	kind := "bubblewrap"
	if runtime.GOOS == "darwin" {
		kind = "seatbelt"
	}
	info := protocol.SandboxInfo{Kind: &kind}
	tried, err := d.sandbox.Launcher.State()
	if !tried {
		return info
	}
	available := err == nil
	info.Available = &available
	if err != nil {
		info.Detail = err.Error()
	}
	return info
}
