// Package sandbox confines what a bot's commands and file changes may touch
// (sandbox.md): it plans which paths are writable, protected and hidden, starts
// commands under bubblewrap on Linux and Seatbelt on macOS, carries out file
// changes inside, and finds out whether the machine can do all that.
package sandbox

import (
	"slices"

	"agent/protocol"
)

// Setting is how a bot is confined, as its record says. The zero value is a bot
// without a sandbox.
type Setting struct {
	Mode string `json:"mode"` // protocol.Sandbox…; "" is danger-full-access
	// Workspace is the bot's own folder, a real path; the first writable root.
	Workspace string `json:"workspace"`
	// Roots are the further writable folders: real paths, or, for one that did not
	// exist, its longest real prefix and the rest.
	Roots []string `json:"roots,omitempty"`
	// Git are those of the folders that the bot may commit to: they were git folders
	// when they were given, and are treated as such whatever a command has made of
	// them since. NoteGit fills it in.
	Git []string `json:"git,omitempty"`
	// Above are the writable folders of the bots that made this one: what is
	// protected in them stays so, whatever its own folders are (sandbox.md 9).
	Above []string `json:"above,omitempty"`
	// Network allows IP and Unix sockets; UnixSockets are the paths that may be
	// reached without it.
	Network     bool     `json:"network,omitempty"`
	UnixSockets []string `json:"unix_sockets,omitempty"`
	// NoSlashTmp and NoTmpdir leave /tmp and the daemon's $TMPDIR out of the roots.
	NoSlashTmp bool `json:"exclude_slash_tmp,omitempty"`
	NoTmpdir   bool `json:"exclude_tmpdir_env_var,omitempty"`
}

// Confines reports whether s holds anything back.
func (s *Setting) Confines() bool {
	return s.Mode == protocol.SandboxReadOnly || s.Mode == protocol.SandboxWorkspace
}

// NoteGit fills in Git, once the setting's folders are settled: the git folders
// among them, and those of before.
func (s *Setting) NoteGit(before []string) {
	git := slices.Clone(before)
	for _, root := range s.own() {
		if isGitFolder(root) {
			git = append(git, root)
		}
	}
	slices.Sort(git)
	s.Git = slices.Compact(git)
}

// isGit reports whether a root was given as a git folder. What is, or lies in, a
// .git is accepted as nothing else.
func (s *Setting) isGit(root string) bool { return slices.Contains(s.Git, root) || inGit(root) }

// Class is which sockets a command may make (sandbox.md 4.6).
type Class int

const (
	Closed Class = iota // no Unix sockets, and a network namespace of its own
	Unix                // the same with Unix sockets
	Open                // the host's network
)

// Class is the setting's.
func (s *Setting) Class() Class {
	switch {
	case s.Network:
		return Open
	case len(s.UnixSockets) > 0:
		return Unix
	}
	return Closed
}

// World is what every plan of a daemon has in common. All paths are absolute and
// real; it is made once, at start, and never changed.
type World struct {
	Home     string // the person's
	AgentDir string // ~/.agent
	Store    string // the store's file
	Instance string // its identity
	Socket   string // the daemon's; "" in stdio mode
	// SocketDir holds the bots' own sockets, FallbackDir is /tmp/agent-UID.
	SocketDir, FallbackDir string
	// Protect are the paths of --protect-path, Walls the folders of --wall.
	Protect, Walls []string
	// Tmp is /tmp, /private/tmp on macOS; Tmpdir the daemon's own $TMPDIR, "" for
	// one that is no use.
	Tmp, Tmpdir string
}

// Denied is sandbox_denied: a call that cannot be confined safely. reason names
// the path and says what to do.
func denied(reason string) error { return protocol.Fail(protocol.SandboxDenied, reason) }
