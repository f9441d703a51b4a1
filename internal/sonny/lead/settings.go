package lead

import (
	"time"

	"agent/protocol"
)

// Settings are what of the config a new bot takes (sonny.md 20). The zero value is
// not the default: DefaultSettings is.
type Settings struct {
	Row           Row
	Sandbox       string // "": the row's
	WritableRoots []string
	Network       bool
	Git           bool // commits and worktrees
	NoTmpdir      bool // leave $TMPDIR unwritable
	NoTmp         bool // leave /tmp unwritable
	UnixSockets   []string

	AutoExpiry    time.Duration
	ManualExpiry  time.Duration // 0: never
	JudgeDeadline time.Duration

	WebSearch string   // live, cached, disabled
	Disabled  []string // tools left out

	Compaction string // the instructions by which history is summarized; "": it never is

	Tasks TaskSettings
}

// TaskSettings are what a lead's tasks take.
type TaskSettings struct {
	Model, Effort string // "": the lead's
	InFolder      bool   // they work in the lead's folder
	BudgetTokens  int64  // 0: none
	SetupTimeout  time.Duration
}

// DefaultSettings are those of a config that says nothing.
func DefaultSettings() Settings {
	return Settings{
		Row: Auto, Network: true, Git: true,
		AutoExpiry: 120 * time.Second, JudgeDeadline: 30 * time.Second,
		WebSearch: "live",
		Tasks:     TaskSettings{SetupTimeout: 10 * time.Minute},
	}
}

// judgeMargin is how much later than the judge's deadline a gate expires at least
// (sonny.md 20).
const judgeMargin = 15 * time.Second

// expiryMS is how long a call of a row waits, in milliseconds; 0 is without end.
func (s *Settings) expiryMS(r Row) int64 {
	if r == Manual {
		return s.ManualExpiry.Milliseconds()
	}
	return max(s.AutoExpiry, s.JudgeDeadline+judgeMargin).Milliseconds()
}

// Home makes the settings those of the home bot: it asks the judge, may write nothing
// of its folder, which is all of the person's, and has the network, without which its
// messages could not leave (sonny.md 3.6).
func (s *Settings) Home() {
	s.Row, s.Sandbox, s.Network = Auto, protocol.SandboxReadOnly, true
}

// HomeBot is the name of the person's own agent.
const HomeBot = "home"
