package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// Again is how long an approval waits unanswered until it is told of once more.
const Again = 10 * time.Minute

// BurstFor is how long what comes after a note is held, to go out as one.
const BurstFor = 2 * time.Second

// Of is what an event of the daemon's is told as. It asks after the world has taken the
// event; b is the event's bot then, nil where it has none. now is by the world's clock,
// minTurn how long a turn must have taken to be told as done.
func Of(b *live.Bot, e *protocol.Event, now time.Time, minTurn time.Duration) (n Note, ok bool) {
	if e.Kind == protocol.KindPaused {
		var p protocol.PauseInfo
		if e.Decode(&p) != nil {
			return Note{}, false
		}
		n = Note{Event: "paused", Body: fault.PausedBy(&p)}
		return n, true
	}
	if b == nil {
		return Note{}, false
	}
	switch e.Kind {
	case protocol.KindApprovalRequested:
		n = asks(b.Record.Name, e)
	case protocol.KindAccepted:
		var d protocol.Accepted
		if e.Decode(&d) == nil && d.Origin == "trigger" {
			n = Note{Event: "trigger", Body: b.Record.Name + " was woken by a trigger"}
		}
	case protocol.KindTurnFinished:
		n = ended(b, e, now, minTurn)
	}
	n.Bot = b.Record.Name
	return n, n.Event != ""
}

// asks is of the first call of a round that waits for somebody who is not the judge.
func asks(bot string, e *protocol.Event) Note {
	var d protocol.ApprovalRequested
	if e.Decode(&d) != nil {
		return Note{}
	}
	for _, c := range d.Calls {
		if slices.ContainsFunc(c.Gates, func(tag string) bool { return tag != "auto" }) {
			return Note{Event: "approval", Body: bot + " asks to use " + c.Name, Request: c.Request}
		}
	}
	return Note{}
}

func ended(b *live.Bot, e *protocol.Event, now time.Time, minTurn time.Duration) Note {
	var d protocol.TurnFinished
	if e.Decode(&d) != nil || d.Status == protocol.StatusSteered || d.Missed() {
		return Note{}
	}
	detail := ""
	if d.Detail != nil {
		detail = *d.Detail
	}
	name := b.Record.Name
	switch {
	case d.Status == protocol.StatusFailed:
		return Note{Event: "failed", Body: name + " failed"}
	case strings.HasPrefix(detail, "stopped: ") || d.Error != nil && *d.Error == protocol.ApprovalsUnserved:
		return Note{Event: "breaker", Body: name + " was stopped by its approver"}
	case d.Status == protocol.StatusCompleted && b.Origin == "" && now.Sub(b.Since) >= minTurn:
		return Note{Event: "done", Body: name + " is done"}
	}
	return Note{}
}

// Question is the note of a bot that asks the person.
func Question(bot string) Note {
	return Note{Event: "question", Bot: bot, Body: bot + " asks you something"}
}

// Burst makes one note of those that come soon after another. Its zero value is ready;
// it is not safe for concurrent use.
type Burst struct {
	on    bool
	waits []Note
}

// Add takes a note and reports whether it goes out now. With it a burst begins: Over is
// to be called after BurstFor.
func (b *Burst) Add(n Note) bool {
	if b.on {
		b.waits = append(b.waits, n)
		return false
	}
	b.on = true
	return true
}

// Over ends the burst. What came meanwhile is one note, which is to be added anew.
func (b *Burst) Over() (n Note, ok bool) {
	waits := b.waits
	*b = Burst{}
	if len(waits) == 0 {
		return Note{}, false
	}
	n = waits[len(waits)-1]
	if len(waits) > 1 {
		n.Body = fmt.Sprintf("%s, and %d more", n.Body, len(waits)-1)
	}
	return n, true
}
