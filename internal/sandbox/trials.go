package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"agent/protocol"
)

// trials are what came of what a command tried in a sandbox: the number of the
// error, 0 where it went through, -1 for an error without a number.
type trials struct {
	WroteRoot    int `json:"wrote_root"` // the one that must go through
	WroteSibling int `json:"wrote_sibling"`
	MadeGit      int `json:"made_git"`
	MovedPinned  int `json:"moved_pinned"`
	ListedWall   int `json:"listed_wall"`
	ReadWall     int `json:"read_wall"`
	Connected    int `json:"connected"`
}

// fault is what is wrong with the sandbox, or "". A thing that failed for another
// reason than a refusal proves nothing, and is a fault.
func (t *trials) fault() string {
	if t.WroteRoot != 0 {
		return fmt.Sprintf("it keeps commands from writing in a writable folder (error %d)", t.WroteRoot)
	}
	for _, c := range []struct {
		what   string
		number int
	}{
		{"write outside of the writable folders", t.WroteSibling},
		{"make a .git", t.MadeGit},
		{"rename a folder around a protected one", t.MovedPinned},
		{"list a hidden folder", t.ListedWall},
		{"read in a hidden folder", t.ReadWall},
		{"connect to a socket in a hidden folder", t.Connected},
	} {
		switch syscall.Errno(c.number) {
		case 0:
			return "it lets commands " + c.what
		case syscall.EPERM, syscall.EACCES:
		default:
			return fmt.Sprintf("whether it lets commands %s could not be found out (error %d)", c.what, c.number)
		}
	}
	return ""
}

// trialGround is a temporary folder in which a sandbox is tried:
//
//	outer          a writable folder
//	outer/mid      pinned
//	outer/mid/ws   the workspace
//	outer/wall     hidden, with a file and a listening socket
//	sibling        not writable
type trialGround struct {
	dir  string // real
	wall net.Listener
}

// newTrialGround makes one in /tmp, whose path is short enough for a socket's.
func newTrialGround() (g *trialGround, err error) {
	g = &trialGround{}
	if g.dir, err = os.MkdirTemp("/tmp", "agent-probe-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if g.dir, err = RealPath(g.dir); err != nil {
		return nil, err
	}
	for _, dir := range []string{"outer/mid/ws", "outer/wall", "sibling"} {
		if err = os.MkdirAll(filepath.Join(g.dir, dir), 0o700); err != nil {
			return nil, err
		}
	}
	if err = os.WriteFile(filepath.Join(g.dir, "outer/wall/file"), []byte("hidden\n"), 0o600); err != nil {
		return nil, err
	}
	g.wall, err = net.Listen("unix", filepath.Join(g.dir, "outer/wall/s"))
	return g, err
}

func (g *trialGround) close() {
	if g.wall != nil {
		g.wall.Close()
	}
	os.RemoveAll(g.dir)
}

// plan is that of a bot with the network on.
func (g *trialGround) plan() (*Plan, error) {
	ws := filepath.Join(g.dir, "outer/mid/ws")
	w := &World{Walls: []string{filepath.Join(g.dir, "outer/wall")}}
	s := &Setting{
		Mode: protocol.SandboxWorkspace, Workspace: ws, Roots: []string{filepath.Join(g.dir, "outer")},
		Network: true, NoSlashTmp: true, NoTmpdir: true,
	}
	return NewPlan(w, s, Call{Cwd: ws})
}

// tryAll tries everything on a trial ground, in whose workspace it runs.
func tryAll() (t trials) {
	t.WroteRoot = errnoOf(os.WriteFile("file", []byte("x"), 0o600))
	t.WroteSibling = errnoOf(os.WriteFile("../../../sibling/file", []byte("x"), 0o600))
	t.MadeGit = errnoOf(os.Mkdir(".git", 0o700))
	t.MovedPinned = errnoOf(os.Rename("../../mid", "../../moved"))
	_, err := os.ReadDir("../../wall")
	t.ListedWall = errnoOf(err)
	_, err = os.ReadFile("../../wall/file")
	t.ReadWall = errnoOf(err)
	c, err := net.Dial("unix", "../../wall/s")
	if t.Connected = errnoOf(err); err == nil {
		c.Close()
	}
	return t
}

func errnoOf(err error) int {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return int(errno)
	}
	return -1
}
