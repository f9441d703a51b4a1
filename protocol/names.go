package protocol

import (
	"strconv"
	"strings"
)

// ValidName reports whether s keeps the name rule (section 5): 1 to 128 bytes
// of A-Z a-z 0-9 - _ and the dot. Request ids, gate and tool tags, origins,
// companion and step names keep it.
func ValidName(s string) bool {
	if len(s) == 0 || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) && s[i] != '.' {
			return false
		}
	}
	return true
}

// ValidBotName is ValidName, and no leading - or dot: a bot's name must never
// read as a flag or a hidden file.
func ValidBotName(s string) bool {
	return ValidName(s) && s[0] != '-' && s[0] != '.'
}

// ValidToolName reports whether s may name a client's tool (section 11): the
// name rule without dots, at most 64 bytes.
func ValidToolName(s string) bool {
	return len(s) <= MaxToolName && ValidName(s) && strings.IndexByte(s, '.') < 0
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// ParseModelRef splits PROVIDER/MODEL at the first slash (providers.md 2). The
// provider is 1 to 64 bytes of letters, digits, - and _; the model is 1 to 256
// bytes of UTF-8 without control characters and may hold slashes. ok is false
// for anything else, which is invalid_model.
func ParseModelRef(ref string) (provider, model string, ok bool) {
	provider, model, found := strings.Cut(ref, "/")
	if !found || !ValidProviderName(provider) || len(model) == 0 || len(model) > MaxModel {
		return "", "", false
	}
	for _, r := range model {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\uFFFD' {
			return "", "", false
		}
	}
	return provider, model, true
}

// ValidProviderName reports whether s may name a provider: 1 to 64 letters,
// digits, - and _.
func ValidProviderName(s string) bool {
	if len(s) == 0 || len(s) > MaxProvider {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

// The reasoning levels of create's reasoning.
const (
	ReasoningLow    = "low"
	ReasoningMedium = "medium"
	ReasoningHigh   = "high"
	ReasoningXHigh  = "xhigh"
	ReasoningMax    = "max"
)

// ValidReasoning reports whether s is one of the five levels.
func ValidReasoning(s string) bool {
	switch s {
	case ReasoningLow, ReasoningMedium, ReasoningHigh, ReasoningXHigh, ReasoningMax:
		return true
	}
	return false
}

// The sandbox modes of create's sandbox.
const (
	SandboxFull      = "danger-full-access"
	SandboxReadOnly  = "read-only"
	SandboxWorkspace = "workspace-write"
)

// ValidSandbox reports whether s is one of the three modes.
func ValidSandbox(s string) bool {
	return s == SandboxFull || s == SandboxReadOnly || s == SandboxWorkspace
}

// Delivery is how a submission meets a busy bot (section 8).
type Delivery string

const (
	Reject Delivery = "reject" // start now or refuse; also when left out
	Queue  Delivery = "queue"  // wait in the bot's line
	Steer  Delivery = "steer"  // join the running turn at its next round
)

// Valid reports whether d is one of the three modes. The empty one is not: it
// stands for Reject only where a request left delivery out.
func (d Delivery) Valid() bool { return d == Reject || d == Queue || d == Steer }

// The values of a bot's and a turn's status.
const (
	StatusIdle        = "idle" // a bot that has not run
	StatusQueued      = "queued"
	StatusReady       = "ready"
	StatusRunning     = "running"
	StatusWaiting     = "waiting"
	StatusPaced       = "paced"
	StatusCompleted   = "completed"
	StatusFailed      = "failed"
	StatusInterrupted = "interrupted"
	StatusSteered     = "steered"
	StatusDeleting    = "deleting" // a bot under way to be deleted
)

// Finished reports whether a turn of that status is over.
func Finished(status string) bool {
	switch status {
	case StatusCompleted, StatusFailed, StatusInterrupted, StatusSteered:
		return true
	}
	return false
}

// PageLimit is the page size to use: def when limit was not given, else
// limit. ok is false when that is not within 1 and most.
func PageLimit(limit Opt[int64], def, most int) (n int, ok bool) {
	v := limit.Or(int64(def))
	if v < 1 || v > int64(most) {
		return 0, false
	}
	return int(v), true
}

// A Handle names something a wait can wait for: a turn of a bot, as
// turn:BOT/N, or a process, as proc:N. Exactly one of Turn and Proc is set.
type Handle struct {
	Bot  string
	Turn int64
	Proc int64
}

// TurnHandle is the handle of a bot's turn.
func TurnHandle(bot string, turn int64) Handle { return Handle{Bot: bot, Turn: turn} }

// ParseHandle accepts only what String prints again; anything else is
// invalid_handle.
func ParseHandle(s string) (Handle, error) {
	if digits, ok := strings.CutPrefix(s, "proc:"); ok {
		if n, ok := handleNumber(digits); ok {
			return Handle{Proc: n}, nil
		}
		return Handle{}, badHandle(s)
	}
	if rest, ok := strings.CutPrefix(s, "turn:"); ok {
		bot, digits, _ := strings.Cut(rest, "/")
		if n, ok := handleNumber(digits); ok && ValidBotName(bot) {
			return Handle{Bot: bot, Turn: n}, nil
		}
	}
	return Handle{}, badHandle(s)
}

// handleNumber reads a plain positive decimal below 2^53: no sign, no leading
// zero.
func handleNumber(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 16 || s[0] == '0' {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, n <= MaxInteger
}

func badHandle(s string) error {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return Fail(InvalidHandle, strconv.Quote(s)+" is neither turn:BOT/N nor proc:N")
}

// String is the handle's spelling on the wire.
func (h Handle) String() string {
	if h.Proc != 0 {
		return "proc:" + strconv.FormatInt(h.Proc, 10)
	}
	return "turn:" + h.Bot + "/" + strconv.FormatInt(h.Turn, 10)
}
