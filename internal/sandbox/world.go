package sandbox

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

// Places are where a daemon's things are, as paths that exist or are to.
type Places struct {
	Home, Store, Socket    string
	Instance               string // the store's identity
	SocketDir, FallbackDir string
	Protect, Walls         []string
	Tmpdir                 string // the daemon's $TMPDIR; "" for none
}

// NewWorld makes what the plans of a daemon have in common. It resolves every
// path, and makes the folder of sockets in /tmp where that is missing, so that
// nobody puts another there. A $TMPDIR that is no use is left out with a line in
// the log (sandbox.md 3.1).
func NewWorld(p Places, log *slog.Logger) *World {
	w := &World{
		Home: real(p.Home), Store: real(p.Store), Socket: real(p.Socket), SocketDir: real(p.SocketDir), FallbackDir: real(p.FallbackDir),
		Tmp: real("/tmp"), Instance: p.Instance,
	}
	if w.Home != "" {
		w.AgentDir = real(filepath.Join(w.Home, ".agent"))
	}
	if w.FallbackDir != "" {
		_ = os.Mkdir(w.FallbackDir, 0o700)
	}
	for _, path := range p.Protect {
		w.Protect = append(w.Protect, real(path))
	}
	walls := p.Walls
	if runtime.GOOS == "linux" && isDir("/run/WSL") {
		walls = append(walls[:len(walls):len(walls)], "/run/WSL")
	}
	for _, path := range walls {
		w.Walls = append(w.Walls, real(path))
	}
	if p.Tmpdir != "" {
		if why := w.uselessTmpdir(p.Tmpdir); why != "" {
			log.Warn("$TMPDIR is no writable folder of sandboxed commands", "tmpdir", p.Tmpdir, "reason", why)
		} else if dir := real(p.Tmpdir); dir != w.Tmp {
			w.Tmpdir = dir
		}
	}
	return w
}

// real is Real, or the cleaned path where that cannot be found out.
func real(path string) string {
	if path == "" {
		return ""
	}
	if r, err := Real(path); err == nil {
		return r
	}
	return filepath.Clean(path)
}

func (w *World) uselessTmpdir(path string) string {
	if !filepath.IsAbs(path) {
		return "it is not absolute"
	}
	dir := real(path)
	switch {
	case !isDir(dir):
		return "it is no folder"
	case dir == "/" || dir == w.Home:
		return "it is / or the home folder"
	}
	for _, guarded := range append(append([]string{w.AgentDir, filepath.Dir(w.Store), w.SocketDir}, w.Protect...), w.Walls...) {
		if guarded != "" && within(guarded, dir) {
			return "it holds " + guarded
		}
	}
	return ""
}
