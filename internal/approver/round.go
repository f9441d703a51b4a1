package approver

import (
	"errors"

	"agent/protocol"
)

// round is what is judged with one request: every waiting call of one turn, in
// the order of its announcement (approvals.md 10).
type round struct {
	bot   string
	botID int64
	turn  int64
	calls []protocol.Approval
}

// evidence is what the judge is shown of a round: one JSON document, redacted,
// with every character visible (approvals.md 11, 15).
type evidence struct {
	document string
	// shown are the calls that the document holds: ids[i] names calls[shown[i]].
	ids   []string
	shown []int
	// refused are the calls that cannot be shown whole, by their place in the
	// round, with the reason they are denied for.
	refused map[int]string
}

// errTooMuch says that a round cannot be shown as it must be: its evidence is too
// long, words of the person are cut, or who asked cannot be followed. It is
// denied as "not reviewed: too much to show".
var errTooMuch = errors.New("too much to show")
