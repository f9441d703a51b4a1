package approver

import "agent/protocol"

// The breaker's limits (approvals.md 14).
const (
	mostInRow  = 3
	mostRecent = 10
	window     = 50
)

// counts is where a turn stands with the breaker.
type counts struct {
	inRow, recent int64
	// expired says that the counts came to where they are by deadlines that
	// nobody met.
	expired bool
}

// countsAfter are those of an announcement and the verdicts given since, in
// order: true is a denial. Which of the earlier denials have left the window by
// then is not known, so that none has: the breaker may be early by those, and is
// never late.
func countsAfter(announced protocol.Denials, since []bool) counts {
	c := counts{inRow: announced.InRow, recent: announced.Recent, expired: announced.Expired > 0}
	for _, denied := range since {
		c.expired = false
		if !denied {
			c.inRow = 0
			continue
		}
		c.inRow++
		c.recent++
	}
	if len(since) >= window { // only these are in the window
		c.recent = 0
		for _, denied := range since[len(since)-window:] {
			if denied {
				c.recent++
			}
		}
	}
	return c
}

func (c counts) reached() bool { return c.inRow >= mostInRow || c.recent >= mostRecent }

// stopSentence is why a turn is stopped: its detail, and how the reason of the
// denial that stopped it begins. An outage is named as one, so that nobody takes
// it for a verdict.
func (c counts) stopSentence(outage bool) string {
	text := "stopped: "
	if outage {
		text += "judge unavailable, "
	}
	if c.inRow >= mostInRow {
		return text + "3 denials in a row."
	}
	return text + "10 of the last 50 denied."
}
