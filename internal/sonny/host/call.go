package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"agent/client"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/host/action"
	"agent/protocol"
)

// The codes that the host gives beside those of the rooms that it asks.
const (
	invalidArguments protocol.Code = "invalid_arguments"
	outcomeUnknown   protocol.Code = "outcome_unknown"
	noPerson         protocol.Code = "no_person"
)

// Call is one call under way. It belongs to the goroutine that runs it.
type Call struct {
	*client.ToolCall
	h     *host
	bot   *protocol.Bot // the caller, read when the call began
	set   Settings
	unset error           // why set is not to be gone by where it confines
	ctx   context.Context // ends with the call: cancelled, or out of time
	stop  context.CancelCauseFunc
	clock *stopwatch
	in    bool // it has a place
	noted bool // something was done
}

// newCall reads the caller anew and waits for a place.
func (h *host) newCall(ctx context.Context, tc *client.ToolCall, def toolDef) (*Call, error) {
	c := &Call{ToolCall: tc, h: h}
	c.ctx, c.stop = context.WithCancelCause(ctx)
	var err error
	if tc.ArgumentsTruncated {
		err = protocol.Fail(invalidArguments, "the arguments are longer than 512 KiB")
	} else {
		c.bot, err = h.bot(c.ctx, tc.Bot, tc.BotID)
	}
	if err == nil {
		err = c.enter()
	}
	if err != nil {
		c.stop(err)
		return nil, err
	}
	folder := ""
	if c.bot.Workspace != nil {
		folder = *c.bot.Workspace
	}
	c.set, c.unset = h.Settings(folder)
	limit := def.limit(c.set)
	c.clock = startWatch(limit, func() {
		c.stop(protocol.Fail(protocol.ToolFailed, fmt.Sprintf("%s was not done within %v", tc.Name, limit)))
	})
	return c, nil
}

// run runs the tool. Its value becomes JSON text unless it is text already.
func (c *Call) run(def toolDef) (client.ToolOutput, error) {
	value, err := def.run(c)
	if err != nil {
		if cause := context.Cause(c.ctx); cause != nil && !isCoded(err) {
			err = cause
		}
		if fault.OfDisk(err) && !isCoded(err) {
			err = protocol.Fail(protocol.ToolFailed, fault.Verb.Words(err))
		}
		return client.ToolOutput{}, err
	}
	out, ok := value.(client.ToolOutput)
	if !ok {
		text, err := json.Marshal(value)
		if err != nil {
			return client.ToolOutput{}, err
		}
		out.Text = string(text)
	}
	out.Text = fit(strings.ToValidUTF8(out.Text, "\uFFFD"))
	return out, nil
}

func isCoded(err error) bool {
	var coded *protocol.Error
	return errors.As(err, &coded)
}

// end gives the call's place back.
func (c *Call) end() {
	c.clock.stop()
	c.leave()
	c.stop(nil)
}

func (c *Call) enter() error {
	err := c.h.places.enter(c.ctx, c.BotID)
	c.in = err == nil
	return err
}

func (c *Call) leave() {
	if c.in {
		c.in = false
		c.h.places.leave(c.BotID)
	}
}

// waits does something that waits for a person or a judge: meanwhile the call has no
// place and its time stands still.
func (c *Call) waits(do func() error) error {
	c.clock.pause()
	c.leave()
	err := do()
	if again := c.enter(); err == nil {
		err = again
	}
	c.clock.goOn()
	return err
}

// maxResult is how long a result may be, in bytes.
const maxResult = 512 << 10

// fit cuts a result that is too long in its middle.
func fit(text string) string {
	if len(text) <= maxResult {
		return text
	}
	const note = "\n[%d bytes are left out here]\n"
	half := (maxResult - len(note) - 20) / 2
	head := action.Cut(text, half)
	tail := text[len(text)-half:]
	for len(tail) > 0 && tail[0]&0xC0 == 0x80 {
		tail = tail[1:]
	}
	return head + fmt.Sprintf(note, len(text)-len(head)-len(tail)) + tail
}

// decode reads the arguments. What the schema has refused already does not come here;
// a field that no tool has, or bytes after the object, are refused once more.
func (c *Call) decode(into any) error {
	d := json.NewDecoder(bytes.NewReader([]byte(c.Arguments)))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err := d.Token(); err != io.EOF {
			return protocol.Fail(invalidArguments, "the arguments are one JSON object and nothing after it")
		}
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return invalid(wrong.Field, "it is no "+wrong.Type.String())
	}
	return protocol.Fail(invalidArguments, strings.TrimPrefix(err.Error(), "json: "))
}

// invalid names the field that is wrong.
func invalid(field, why string) *protocol.Error {
	return protocol.Fail(invalidArguments, field+": "+why)
}

// begin notes that the call is about to do something: when the host ends from here on,
// the call is not run again. subject is what it does it to.
func (c *Call) begin(subject string) error {
	if err := context.Cause(c.ctx); err != nil {
		return err
	}
	c.noted = true
	return c.h.notes.begin(noteKey(c.ToolCall), &note{
		Bot: c.Bot, BotID: c.BotID, Turn: c.Turn, CallID: c.CallID, Tool: c.Name, Subject: subject,
	})
}

// Step is a step that was allowed.
type Step struct {
	c  *Call
	id string
}

// maxDetail bounds what of a step's outcome is recorded, in bytes; maxReason a step's
// reason.
const (
	maxDetail = 2048
	maxReason = 1024
)

// step shows an action and waits for the verdict, as long as that takes. An error says
// that the action must not happen: approval_denied with the reason, approval_expired,
// step_cancelled, or the end of the call. reason are the model's own words.
func (c *Call) step(name string, shown *action.Action, reason string) (*Step, error) {
	arguments, err := shown.Bytes()
	if err != nil {
		return nil, err
	}
	s := &Step{c: c, id: fmt.Sprintf("%d-%d", c.h.began, c.h.steps.Add(1))}
	var verdict *protocol.StepVerdict
	err = c.waits(func() (err error) {
		verdict, err = c.ApproveStep(c.ctx, protocol.Step{
			Step: s.id, Name: name, Arguments: arguments, Reason: action.Cut(reason, maxReason),
		})
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case verdict.Decision == protocol.Allow:
		return s, nil
	case verdict.Decision == protocol.Expired:
		return nil, protocol.Fail(protocol.ApprovalExpired, name+" was not judged in time, and was not done")
	}
	return nil, protocol.Fail(protocol.ApprovalDenied, verdict.Reason)
}

// recordWithin bounds how long the record of a step may take.
const recordWithin = 10 * time.Second

// done records what came of the step. It is recorded of a call that was cancelled, too.
func (s *Step) done(err error, detail string) {
	ok := err == nil
	switch {
	case context.Cause(s.c.ctx) != nil && !ok:
		detail = "cancelled"
	case !ok:
		detail = fault.Verb.Words(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.c.ctx), recordWithin)
	defer cancel()
	detail = action.Cut(strings.ToValidUTF8(detail, "\uFFFD"), maxDetail)
	if err := s.c.StepResult(ctx, s.id, ok, detail); err != nil {
		s.c.h.logf("the outcome of a step of %s was not recorded: %s", s.c.Name, protocol.CodeOf(err))
	}
}

// stopwatch ends a call that has worked too long. Its methods are safe for concurrent
// use.
type stopwatch struct {
	mu    sync.Mutex
	left  time.Duration // 0: without a limit
	since time.Time
	timer *time.Timer
	over  func()
}

func startWatch(limit time.Duration, over func()) *stopwatch {
	w := &stopwatch{left: limit, over: over}
	w.goOn()
	return w
}

func (w *stopwatch) goOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left > 0 && w.timer == nil {
		w.since, w.timer = time.Now(), time.AfterFunc(w.left, w.over)
	}
}

func (w *stopwatch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil && w.timer.Stop() {
		w.left = max(w.left-time.Since(w.since), time.Nanosecond)
		w.timer = nil
	}
}

func (w *stopwatch) stop() { w.pause() }
