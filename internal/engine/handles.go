package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// anyBot is who asks on the daemon's own socket: every process handle resolves.
const anyBot = 0

// handleValue is what a handle has resolved to, durably; done is false while it
// has not. A handle that can never resolve is done with an error value.
func (e *Engine) handleValue(c *store.Conn, handle string, bot int64) (value json.RawMessage, done bool, err error) {
	h, err := protocol.ParseHandle(handle)
	if err != nil {
		return handleError(protocol.InvalidHandle, err.Error()), true, nil
	}
	if h.Proc != 0 {
		return e.processValue(c, h.Proc, bot)
	}
	b, ok, err := store.BotByName(c, h.Bot)
	if err != nil {
		return nil, false, err
	}
	if !ok {
		return handleError(protocol.TurnNotFound, "no bot "+h.Bot), true, nil
	}
	out, err := e.outcome(c, &b, h.Turn)
	if err != nil {
		p := asError(err)
		if p.Code != protocol.TurnNotFound && p.Code != protocol.TurnResultPruned {
			return nil, false, err
		}
		return handleError(p.Code, p.Detail), true, nil
	}
	if !out.Finished {
		return nil, false, nil
	}
	value, err = protocol.Append(nil, *out)
	return value, true, err
}

func (e *Engine) processValue(c *store.Conn, id, bot int64) (json.RawMessage, bool, error) {
	p, ok, err := store.ProcessByID(c, id)
	switch {
	case err != nil:
		return nil, false, err
	case !ok:
		return handleError(protocol.UnknownHandle, fmt.Sprintf("no background command %d", id)), true, nil
	case bot != anyBot && p.BotID != bot:
		return handleError(protocol.HandleUnavailable, "another bot's command"), true, nil
	}
	switch p.Status {
	case "running":
		return nil, false, nil
	case "lost":
		return handleError(protocol.ProcessLost, "an earlier daemon supervised the command; it may still run: look before you repeat it"), true, nil
	case "stopped":
		return handleError(protocol.ProcessStopped, "a pause ended the command"), true, nil
	}
	return p.Result, true, nil
}

func handleError(code protocol.Code, detail string) json.RawMessage {
	return newObject().str("error", string(code)).orNull("detail", detail).done()
}

// pendingValue stands for a handle that has not resolved.
var pendingValue = json.RawMessage(`{"pending":true}`)

// maxWaitResult bounds what one wait result puts before a model, in bytes. An
// outcome that does not fit is left pending: a later wait gives it.
const maxWaitResult = 512 << 10

// gather assembles the values of handles, in their order and each once.
func (e *Engine) gather(ctx context.Context, handles []string, bot int64, outcomes map[string]json.RawMessage, most int) (results map[string]json.RawMessage, pending []string, err error) {
	results = map[string]json.RawMessage{}
	size := 0
	err = e.read(ctx, "gather", func(c *store.Conn) error {
		for _, h := range handles {
			if _, twice := results[h]; twice {
				continue
			}
			value, done := outcomes[h], outcomes[h] != nil
			if !done {
				var err error
				if value, done, err = e.handleValue(c, h, bot); err != nil {
					return err
				}
			}
			if !done || most > 0 && size > 0 && size+len(value) > most {
				results[h] = pendingValue
				pending = append(pending, h)
				continue
			}
			size += len(value)
			results[h] = value
		}
		return nil
	})
	return results, pending, err
}

// wait runs a call of the wait tool: at once when its condition is met or it
// only polls, else by parking the turn with the calls behind it.
func (t *task) wait(call *model.Call, rest []model.Call) error {
	w, err := tool.ParseWait(call.Arguments)
	if err != nil {
		return t.finishCall(call, tool.Fail(string(protocol.InvalidToolArguments), err.Error()))
	}
	if f := t.refuseHandles(w.Handles); f != nil {
		return t.finishCall(call, tool.Fail(f.Code, f.Detail))
	}
	results, pending, err := t.e.gather(t.ctx, w.Handles, t.bot, nil, 0)
	if err != nil {
		return err
	}
	if met := len(pending) == 0 || w.Any && len(pending) < len(results); met || w.Timeout == 0 {
		res, procs, err := t.waitResult(w.Handles, nil)
		if err != nil {
			return err
		}
		return t.finishCallWith(call, res, procs)
	}
	rec := parkRecord{Kind: parkWait, CallID: call.ID, Handles: unique(w.Handles), Any: w.Any, Pending: toParked(rest)}
	if w.Timeout > 0 {
		rec.DeadlineMS = t.e.nowMS() + w.Timeout.Milliseconds()
	}
	return t.park(rec)
}

// refuseHandles refuses handles that no wait of this turn may name.
func (t *task) refuseHandles(handles []string) *tool.Failure {
	own := protocol.TurnHandle(t.name, t.turn).String()
	for _, h := range handles {
		if _, err := protocol.ParseHandle(h); err != nil {
			return &tool.Failure{Code: string(protocol.InvalidHandle), Detail: asError(err).Detail}
		}
		if h == own {
			return &tool.Failure{Code: string(protocol.InvalidHandle), Detail: h + " is this turn itself"}
		}
	}
	return nil
}

// waitResult is a wait's result for the model, with the commands whose results
// it delivers.
func (t *task) waitResult(handles []string, outcomes map[string]json.RawMessage) (tool.Result, []int64, error) {
	results, pending, err := t.e.gather(t.ctx, handles, t.bot, outcomes, maxWaitResult)
	if err != nil {
		return tool.Result{}, nil, err
	}
	all := newObject()
	var procs []int64
	for _, h := range unique(handles) {
		all.member(h, results[h])
		if p, err := protocol.ParseHandle(h); err == nil && p.Proc != 0 && !contains(pending, h) {
			procs = append(procs, p.Proc)
		}
	}
	out := newObject().raw("results", all.done()).strs("pending", pending).done()
	return tool.Result{Output: string(out)}, procs, nil
}

func unique(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		if !contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Wait is the wait op. done is called once, from a goroutine of its own; the
// returned function forgets the wait when its session has closed. Another bot's
// process is none of an owner's.
func (e *Engine) Wait(by *Owner, req *protocol.Wait, done func(*protocol.Waited, *protocol.Error)) (forget func()) {
	nothing := func() {}
	fail := func(code protocol.Code, detail string) func() {
		done(nil, protocol.Fail(code, detail))
		return nothing
	}
	if len(req.Handles) == 0 || len(req.Handles) > protocol.MaxHandles {
		return fail(protocol.InvalidHandles, fmt.Sprintf("a wait names 1 to %d handles", protocol.MaxHandles))
	}
	for _, h := range req.Handles {
		if _, err := protocol.ParseHandle(h); err != nil {
			done(nil, asError(err))
			return nothing
		}
	}
	timeout, bounded := req.TimeoutMS.Get()
	if bounded && (timeout < 0 || timeout > protocol.MaxWaitMS) {
		return fail(protocol.InvalidTimeout, fmt.Sprintf("timeout_ms is 0 to %d", protocol.MaxWaitMS))
	}
	handles := unique(req.Handles)
	if bounded && timeout == 0 {
		done(e.waited(by, handles, nil))
		return nothing
	}
	var deadline time.Time
	if bounded {
		deadline = time.Now().Add(time.Duration(timeout) * time.Millisecond)
	}
	var w *waiter
	w = newWaiter(handles, req.Any, deadline, func() {
		go func() { done(e.waited(by, handles, w.outcomes)) }()
	})
	w.client = true
	e.waits.add(w)
	for _, h := range handles {
		var resolved bool
		err := e.read(context.Background(), "handle", func(c *store.Conn) (err error) {
			_, resolved, err = e.handleValue(c, h, by.id())
			return err
		})
		if err != nil {
			if e.waits.drop(w) {
				done(nil, asError(err))
			}
			return nothing
		}
		if resolved {
			e.waits.resolveFor(w, h)
		}
	}
	return func() { e.waits.drop(w) }
}

func (e *Engine) waited(by *Owner, handles []string, outcomes map[string]json.RawMessage) (*protocol.Waited, *protocol.Error) {
	if by != nil {
		outcomes = maps.Clone(outcomes)
		maps.DeleteFunc(outcomes, func(h string, _ json.RawMessage) bool {
			return strings.HasPrefix(h, "proc:") // whose command it was stands in its row
		})
	}
	results, pending, err := e.gather(context.Background(), handles, by.id(), outcomes, 0)
	if err != nil {
		return nil, asError(err)
	}
	out := &protocol.Waited{Results: map[string]protocol.Resolved{}, Pending: pending}
	for h, v := range results {
		out.Results[h] = protocol.Resolved{Raw: v}
	}
	return out, nil
}
