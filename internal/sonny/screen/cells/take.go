package cells

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"agent/client/items"
	"agent/client/termsafe"
	"agent/internal/sonny/fault"
	"agent/protocol"
)

// About is what is known of a turn beside its items.
type About struct {
	From   string // another bot that asked for it
	Origin string // a service that did
}

// Item takes a stored item at its place. steered tells of a prompt that joined a turn.
func (t *Transcript) Item(node, turn int64, item json.RawMessage, about About, steered bool) {
	parts := items.Parts(item)
	if fromModel(parts) {
		t.settle()
	}
	for _, p := range parts {
		switch p.Kind {
		case items.User:
			t.add(&Cell{Kind: User, Node: node, Turn: turn, From: about.From, Origin: about.Origin, Steer: steered, Text: message(p.Text, about)})
		case items.Thinking:
			if strings.TrimSpace(p.Text) != "" {
				t.add(t.inherit(&Cell{Kind: Thought, Node: node, Turn: turn, Text: clean(p.Text), Took: t.thoughtTook()}))
			}
		case items.Assistant:
			t.add(t.inherit(&Cell{Kind: Reply, Node: node, Turn: turn, doc: wholeDoc(t.o, p.Text)}))
		case items.Call:
			t.planned(node, turn, p)
		case items.Result:
			t.result(p)
		}
	}
}

func fromModel(parts []items.Part) bool {
	return slices.ContainsFunc(parts, func(p items.Part) bool {
		return p.Kind == items.Assistant || p.Kind == items.Thinking || p.Kind == items.Call
	})
}

// message is a prompt without the line that the daemon puts before one that is not
// the person's: who sent it is shown otherwise.
func message(prompt string, about About) string {
	if about.From != "" || about.Origin != "" {
		if _, rest, ok := strings.Cut(prompt, "\n"); ok {
			return clean(rest)
		}
	}
	return clean(prompt)
}

// clean is text that came from outside, as it may be shown.
func clean(s string) string {
	return strings.ReplaceAll(termsafe.Prose.Text(s), "\t", "    ")
}

// streams reports whether a cell is of what the model is saying, and goes when that is
// whole.
func streams(c *Cell) bool { return c.Live && c.Kind != Shell }

// settle takes away what streamed, for the durable items that come now.
func (t *Transcript) settle() {
	if t.Streaming() {
		t.heirs = nil
	}
	for _, c := range t.cells {
		if streams(c) {
			t.heirs = append(t.heirs, c)
		}
	}
	t.cells = slices.DeleteFunc(t.cells, streams)
	t.thought, t.reply = nil, nil
}

// Delta takes streamed text.
func (t *Transcript) Delta(turn int64, thinking bool, s string) {
	if thinking {
		if t.thought == nil {
			t.since = t.now()
			t.thought = t.add(&Cell{Kind: Thought, Turn: turn, Live: true})
		}
		t.thought.Text += clean(s)
		t.thought.Changed()
		return
	}
	if t.reply == nil {
		t.reply = t.add(&Cell{Kind: Reply, Turn: turn, Live: true, doc: newDoc(t.o)})
		if t.thought != nil {
			t.thought.Took = t.now().Sub(t.since)
			t.thought.Changed()
		}
	}
	t.reply.doc.append(s)
}

// Streaming reports whether text streams now.
func (t *Transcript) Streaming() bool { return t.thought != nil || t.reply != nil }

// Void takes away what a failed attempt had streamed. Where Take has given some of it, a
// notice says that it does not hold.
func (t *Transcript) Void() { t.drop("that attempt failed; trying again") }

// Notice adds a dim line.
func (t *Transcript) Notice(turn int64, line, detail string) {
	t.add(&Cell{Kind: Notice, Turn: turn, Text: clean(line), Detail: clean(detail)})
}

// Fail adds an error.
func (t *Transcript) Fail(turn int64, line, detail string) {
	t.add(&Cell{Kind: Error, Turn: turn, Text: clean(line), Detail: clean(detail)})
}

// Used tells what a turn used. It looks back no further than to the turn before it.
func (t *Transcript) Used(turn int64, words string) {
	for i := len(t.cells) - 1; i >= 0; i-- {
		c := t.cells[i]
		if c.Turn != 0 && c.Turn < turn {
			return
		}
		if c.Kind == User && c.Turn == turn && !c.Steer {
			c.Used = words
			c.Changed()
			return
		}
	}
}

// Prepend puts an older transcript's cells before this one's.
func (t *Transcript) Prepend(older *Transcript) {
	t.takeIn(older)
	t.cells = append(slices.Clone(older.cells), t.cells...)
}

// takeIn makes another transcript's calls this one's.
func (t *Transcript) takeIn(other *Transcript) {
	for _, c := range other.cells {
		for _, call := range c.Calls {
			call.cards = t.card
		}
	}
	for id, call := range other.calls {
		if t.calls[id] == nil {
			t.calls[id] = call
			t.home[call] = other.home[call]
		}
	}
}

// thoughtTook is how long the thinking took that streamed before, once; 0 where none
// was seen.
func (t *Transcript) thoughtTook() time.Duration {
	if t.since.IsZero() {
		return 0
	}
	took := t.now().Sub(t.since)
	t.since = time.Time{}
	return took
}

// planned takes a call that the model made.
func (t *Transcript) planned(node, turn int64, p items.Part) {
	if t.calls[p.CallID] != nil {
		return // it has started before its item was read
	}
	call := newCall(p.CallID, p.Name, p.Text, t.now)
	call.cards = t.card
	t.place(node, turn, call)
}

// place gives a call its cell: one of its own, or a place in the run of reads before.
func (t *Transcript) place(node, turn int64, call *ToolCall) {
	t.calls[call.ID] = call
	if last := t.last(); call.reads() && last != nil && last.Kind == Reads && last.Turn == turn {
		last.Calls = append(last.Calls, call)
		last.joined = node
		last.Changed()
		t.home[call] = last
		return
	}
	kind := Call
	if call.reads() {
		kind = Reads
	}
	t.home[call] = t.add(&Cell{Kind: kind, Node: node, Turn: turn, Calls: []*ToolCall{call}})
}

func (t *Transcript) last() *Cell {
	if len(t.cells) == 0 {
		return nil
	}
	return t.cells[len(t.cells)-1]
}

// result takes what a call came to.
func (t *Transcript) result(p items.Part) {
	t.heirs = nil // the reply that made the call is whole
	call := t.calls[p.CallID]
	if call == nil {
		return // its call is older than what was loaded
	}
	call.finish(p.Text)
	t.Changed(call)
}

// Event takes a durable event of the bot that tells of a call.
func (t *Transcript) Event(e *protocol.Event) {
	switch e.Kind {
	case protocol.KindToolStarted:
		var d protocol.ToolStarted
		if e.Decode(&d) != nil {
			return
		}
		call := t.calls[d.CallID]
		if call == nil {
			call = newCall(d.CallID, d.Name, d.Arguments, t.now)
			call.cards = t.card
			t.place(0, e.Turn, call)
		}
		call.start(&d, t.now())
		if call.Outside && len(d.Approvals) == 0 && t.Rule != nil {
			call.Rule, call.ByRule = t.Rule(call.args.Command)
		}
		t.Changed(call)
	case protocol.KindApprovalRequested:
		var d protocol.ApprovalRequested
		if e.Decode(&d) != nil {
			return
		}
		for _, r := range d.Calls {
			t.Ask(r)
		}
	case protocol.KindStepDecided:
		var d protocol.StepDecided
		if e.Decode(&d) == nil && t.calls[d.CallID] != nil {
			t.calls[d.CallID].decided(&d)
			t.Changed(t.calls[d.CallID])
		}
	case protocol.KindStepCompleted:
		var d protocol.StepCompleted
		if e.Decode(&d) == nil && t.calls[d.CallID] != nil {
			t.calls[d.CallID].stepped(&d)
			t.Changed(t.calls[d.CallID])
		}
	case protocol.KindToolCompleted:
		var d protocol.ToolCompleted
		if e.Decode(&d) == nil && t.calls[d.CallID] != nil {
			t.calls[d.CallID].completed(&d, t.now())
			t.Changed(t.calls[d.CallID])
		}
	}
}

// Ask takes a call, or a step, that waits for a verdict.
func (t *Transcript) Ask(r protocol.RequestedCall) {
	if call := t.calls[r.CallID]; call != nil && !call.done {
		call.ask(&r)
		t.Changed(call)
	}
}

// Ended tells how a turn ended, where that needs a word.
func (t *Transcript) Ended(turn int64, status, code, detail string) {
	detail = fault.Screen.Told(protocol.Fail(protocol.Code(code), detail)).Detail
	t.drop("the turn ended before that reply did; what was shown of it is not kept")
	switch status {
	case protocol.StatusFailed:
		t.Fail(turn, "failed: "+code, detail)
	case protocol.StatusInterrupted:
		known := protocol.Code(code)
		switch {
		case known == protocol.Paused:
			t.Notice(turn, "interrupted: paused", detail)
		case Outage(&known, detail):
			t.add(&Cell{Kind: Fault, Turn: turn, Text: OutageWords, Detail: clean(detail)})
		case known == protocol.ApprovalDenied, strings.HasPrefix(detail, breakerWords):
			t.Fail(turn, detail, "")
		default:
			t.Notice(turn, "interrupted", detail)
		}
	}
}
