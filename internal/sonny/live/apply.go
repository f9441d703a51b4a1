package live

import (
	"time"

	"agent/protocol"
)

// Apply takes an event, durable or live, and returns the bot that it is of; nil where
// it is of none or the bot is gone.
func (w *World) Apply(e *protocol.Event) *Bot {
	switch e.Kind {
	case protocol.KindPaused:
		var p protocol.PauseInfo
		if e.Decode(&p) == nil {
			w.Paused = &p
		}
		return nil
	case protocol.KindResumed:
		w.Paused = nil
		return nil
	case protocol.KindDeleted:
		w.drop(e.Bot)
		return nil
	}
	if e.Bot == "" || e.Bot == "*" {
		return nil
	}
	b := w.byName[e.Bot]
	if b == nil {
		b = &Bot{Seen: true, Stale: true, Record: protocol.Bot{Name: e.Bot}}
		w.byName[e.Bot] = b
	}
	if e.Durable {
		w.told[e.Bot] = true
		b.At = w.now()
	}
	if take, ok := takers[e.Kind]; ok {
		take(w, b, e)
	}
	return b
}

func (w *World) drop(name string) {
	if b := w.byName[name]; b != nil {
		w.gone[b.Record.ID] = true
		delete(w.byName, name)
		delete(w.told, name)
		w.Kin++
	}
}

// takers say what each event changes. An event that does not decode changes nothing:
// the record, when it is read next, is the truth.
var takers = map[string]func(*World, *Bot, *protocol.Event){
	protocol.KindCreated: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.Created
		if e.Decode(&d) == nil {
			w.Kin++
			b.born(d.ID, d.Provider, d.Model, d.Workspace, d.CreatedBy, d.CreatedByID, d.Gates)
		}
	},
	protocol.KindForked: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.Forked
		if e.Decode(&d) == nil {
			w.Kin++
			b.born(d.ID, d.Provider, d.Model, d.Workspace, d.CreatedBy, d.CreatedByID, d.Gates)
		}
	},
	protocol.KindConfigured: func(w *World, b *Bot, e *protocol.Event) { b.Stale = true },
	protocol.KindQueued: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.Queued
		if e.Decode(&d) == nil {
			b.Queue = append(b.Queue, Turn{ID: e.Turn, Request: d.RequestID, Steer: d.Delivery == protocol.Steer})
		}
	},
	protocol.KindAccepted: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.Accepted
		if e.Decode(&d) == nil {
			b.Origin = sender(d.From, d.Origin)
		}
		b.leaveLine(e.Turn)
		b.Turn, b.Since, b.Ended = e.Turn, w.now(), nil
		b.going()
	},
	protocol.KindMessage: func(w *World, b *Bot, e *protocol.Event) { b.going() },
	protocol.KindUsage: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.Usage
		if e.Decode(&d) != nil {
			return
		}
		b.Here.add(d)
		b.Total.add(d)
		if d.Purpose == "" {
			b.Usage = d
		}
	},
	protocol.KindApprovalRequested: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.ApprovalRequested
		if e.Decode(&d) == nil {
			for _, c := range d.Calls {
				b.wait(c)
			}
		}
	},
	protocol.KindToolStarted: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.ToolStarted
		if e.Decode(&d) == nil {
			b.settled(d.CallID)
			b.uses(d.CallID, d.Name, d.Arguments)
		}
		b.going()
	},
	protocol.KindToolRequested: func(w *World, b *Bot, e *protocol.Event) { // of a tool that a client serves
		var d protocol.ToolRequested
		if e.Decode(&d) == nil {
			b.uses(d.CallID, d.Name, "")
		}
	},
	protocol.KindStepDecided: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.StepDecided
		if e.Decode(&d) == nil {
			delete(b.Waits, waitKey(d.CallID, d.Step))
		}
	},
	protocol.KindToolCompleted: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.ToolCompleted
		if e.Decode(&d) == nil {
			b.settled(d.CallID)
			if d.CallID == b.planning {
				b.planning = ""
				b.Plans++
			}
		}
	},
	protocol.KindTurnWaiting: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.TurnWaiting
		if e.Decode(&d) == nil {
			b.Handles = d.Handles
		}
	},
	protocol.KindTurnPaced: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.TurnPaced
		if e.Decode(&d) == nil {
			b.Until = time.UnixMilli(d.ResumeAtMS)
		}
	},
	protocol.KindRetry: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.Retry
		if e.Decode(&d) == nil {
			b.Retry, b.Until = &d, w.now().Add(time.Duration(d.DelayMS)*time.Millisecond)
		}
	},
	protocol.KindTextDelta:     func(w *World, b *Bot, e *protocol.Event) { b.held() },
	protocol.KindThinkingDelta: func(w *World, b *Bot, e *protocol.Event) { b.held() },
	protocol.KindTurnResumed:   func(w *World, b *Bot, e *protocol.Event) { b.going() },
	protocol.KindSteered: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.Steered
		if e.Decode(&d) == nil {
			b.leaveLine(d.From)
		}
	},
	protocol.KindTurnFinished: func(w *World, b *Bot, e *protocol.Event) {
		var d protocol.TurnFinished
		if e.Decode(&d) != nil {
			return
		}
		b.leaveLine(e.Turn)
		if d.Status == protocol.StatusSteered || d.Missed() || b.Turn != 0 && e.Turn != b.Turn {
			return // a steer that was taken in or came too late, or a turn that ended in line
		}
		b.Turn, b.Ended, b.EndedOf, b.Seen, b.Waits = 0, &d, e.Turn, false, nil
		b.going()
	},
}

// born is a bot as its first event tells of it. The rest of its record is read.
func (b *Bot) born(id int64, provider, model string, workspace, by *string, byID *int64, gates []protocol.Gate) {
	b.Record.ID, b.Record.Provider, b.Record.Model = id, provider, model
	b.Record.Workspace, b.Record.CreatedBy, b.Record.CreatedByID, b.Record.Gates = workspace, by, byID, gates
	b.Stale = true
}

// going is a turn that is neither parked nor held up.
func (b *Bot) going() {
	b.Handles = nil
	b.held()
}

// held ends what held a call up.
func (b *Bot) held() { b.Until, b.Retry = time.Time{}, nil }

// leftMost bounds the turns that are remembered to have left a line which was not listed
// yet: those of the time that a listing takes.
const leftMost = 64

func (b *Bot) leaveLine(turn int64) {
	if !b.lined {
		b.left = append(b.left, turn)
		b.left = b.left[max(0, len(b.left)-leftMost):]
	}
	for i, t := range b.Queue {
		if t.ID == turn {
			b.Queue = append(b.Queue[:i:i], b.Queue[i+1:]...)
			return
		}
	}
}
