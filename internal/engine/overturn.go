package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"agent/internal/model"
	"agent/internal/rules"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// A person may allow, after it was denied, that a call runs once when the model
// makes it again: exactly that tool, arguments, folder, files and cause; and that a
// step does when its server asks for it again: exactly that tool, action and
// arguments, in whatever call (approvals.md 6). A bot's row keeps those allows, and
// which calls and steps were its newest gated ones.

const (
	keptGated    = 50
	overturnLife = 60 * 60 * 1000 // milliseconds
)

type overturns struct {
	Recent []gatedCall `json:"recent,omitempty"` // oldest first
	Allows []overturn  `json:"allows,omitempty"`
}

type gatedCall struct {
	Turn   int64  `json:"turn"`
	CallID string `json:"call_id"`
	Step   string `json:"step,omitempty"`
}

// overturn is an allow for one call or step. It holds while the bot's gates, rules and
// sandbox, also those that it has from its creators, are what it was given under.
type overturn struct {
	Call  string `json:"call"` // a digest of what must be the same
	Under string `json:"under"`
	By    string `json:"by,omitempty"`
	AtMS  int64  `json:"at_ms"`
}

func overturnsOf(c *store.Conn, bot int64) (o overturns, err error) {
	raw, err := store.Overturns(c, bot)
	if err != nil || raw == nil {
		return o, err
	}
	if json.Unmarshal(raw, &o) != nil {
		return o, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("bots %d: overturns cannot be read", bot))
	}
	return o, nil
}

func (o *overturns) keep(tx *store.Tx, bot int64) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return tx.SetOverturns(bot, raw)
}

// sameCall digests what makes a call the same as another.
func sameCall(name string, args json.RawMessage, folder, cause string, paths []string) string {
	return digest(append([]string{name, string(args), folder, cause}, paths...)...)
}

// sameJudge digests what an allow holds under: the gates, and what holds the bot.
func sameJudge(gates, hold []byte) string { return digest(string(gates), string(hold)) }

// dropAllows ends a bot's allows, since what they were given under changes: it may
// be as it was again before they are used.
func dropAllows(tx *store.Tx, bot int64) error {
	o, err := overturnsOf(tx.Conn(), bot)
	if err != nil || len(o.Allows) == 0 {
		return err
	}
	o.Allows = nil
	return o.keep(tx, bot)
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// rememberGated notes calls and steps among the newest that gates were asked about.
func rememberGated(tx *store.Tx, bot, turn int64, list []announcement) error {
	o, err := overturnsOf(tx.Conn(), bot)
	if err != nil {
		return err
	}
	for _, one := range list {
		if one.row.Request == 1 {
			o.Recent = append(o.Recent, gatedCall{turn, one.callID, one.step()})
		}
	}
	if n := len(o.Recent) - keptGated; n > 0 {
		o.Recent = slices.Delete(o.Recent, 0, n)
	}
	return o.keep(tx, bot)
}

// overturned uses up the allow that a person gave for this very call, if there is
// one: then every gate of row has its verdict.
func (t *task) overturned(tx *store.Tx, call *model.Call, row *approvalRow, gates, hold []byte) (bool, error) {
	same := sameCall(call.Name, call.Arguments, row.Folder, row.Cause, row.Paths)
	used, err := t.e.overturned(tx, t.bot, same, sameJudge(gates, hold), row)
	if err != nil || !used {
		return false, err
	}
	return true, setApproval(tx, t.turn, call.ID, row)
}

// overturned uses up an allow for what has a digest, if there is one. The row is
// to be kept by the caller.
func (e *Engine) overturned(tx *store.Tx, bot int64, same, under string, row *approvalRow) (bool, error) {
	o, err := overturnsOf(tx.Conn(), bot)
	if err != nil {
		return false, err
	}
	now := e.nowMS()
	at := slices.IndexFunc(o.Allows, func(a overturn) bool {
		return a.Call == same && a.Under == under && now >= a.AtMS && now < a.AtMS+overturnLife
	})
	if at < 0 {
		return false, nil
	}
	by := o.Allows[at].By
	for i := range row.Gates {
		g := &row.Gates[i]
		g.Decision, g.AnsweredMS = protocol.Allow, now
		if by != "" {
			g.By = &by
		}
	}
	row.OverturnedBy = &by
	o.Allows = slices.Delete(o.Allows, at, at+1)
	return true, o.keep(tx, bot)
}

// overturn records a one-time allow for a call, or a step, that ended denied.
func (e *Engine) overturn(r *protocol.Answer) (*protocol.Answered, *protocol.Error) {
	var forbidden error
	err := e.read(e.looks.ctx, "overturn", func(c *store.Conn) error {
		bot, err := findBot(c, r.Bot, 0)
		if err != nil {
			return err
		}
		if err := checkAnswer(r); err != nil {
			return err
		}
		if r.Decision != protocol.Allow {
			return protocol.Fail(protocol.InvalidDecision, "an overturn is an allow")
		}
		d, err := e.deniedOf(c, &bot, r)
		if err != nil || !d.shell {
			return err
		}
		h, err := e.holdOf(c, bot.ID)
		if err != nil {
			return err
		}
		forbidden = e.forbids(h.rules, d.args)
		return nil
	})
	if err == nil {
		err = forbidden
	}
	if err != nil {
		return nil, asError(err)
	}
	answer := &protocol.Answered{
		Bot: r.Bot, Turn: r.Turn, CallID: r.CallID, Request: r.Request, Tag: r.Tag, Decision: r.Decision, Pending: []string{},
	}
	err = e.store.Do("overturn", func(tx *store.Tx) error {
		bot, err := findBot(tx.Conn(), r.Bot, 0)
		if err != nil {
			return err
		}
		d, err := e.deniedOf(tx.Conn(), &bot, r)
		if err != nil {
			return err
		}
		h, err := e.holdOf(tx.Conn(), bot.ID)
		if err != nil {
			return err
		}
		o, err := overturnsOf(tx.Conn(), bot.ID)
		if err != nil {
			return err
		}
		now := e.nowMS()
		o.Allows = slices.DeleteFunc(o.Allows, func(a overturn) bool { return a.Call == d.same || now >= a.AtMS+overturnLife })
		o.Allows = append(o.Allows, overturn{Call: d.same, Under: sameJudge(bot.Gates, encodeHold(h)), By: r.By, AtMS: now})
		if n := len(o.Allows) - keptGated; n > 0 {
			o.Allows = slices.Delete(o.Allows, 0, n)
		}
		return o.keep(tx, bot.ID)
	})
	if err != nil {
		return nil, asError(err)
	}
	return answer, nil
}

// forbids says that a rule forbids a command, or that nobody can tell.
func (e *Engine) forbids(ref string, args json.RawMessage) error {
	set, unreadable, err := e.rulesOf(e.looks.ctx, ref)
	if err != nil {
		return err
	}
	script, _ := tool.Script(args)
	if unreadable != "" || set != nil && set.Decide(script).Decision == rules.Forbidden {
		return protocol.Fail(protocol.OverturnNotPossible, "a command rule forbids it")
	}
	return nil
}

// denied is a call, or a step, that ended denied and that may be overturned.
type denied struct {
	same  string // the digest of what must be the same
	shell bool   // a call of shell
	args  json.RawMessage
}

// deniedOf is what an overturn is of.
func (e *Engine) deniedOf(c *store.Conn, bot *store.Bot, r *protocol.Answer) (d denied, err error) {
	o, err := overturnsOf(c, bot.ID)
	if err != nil {
		return d, err
	}
	if !slices.Contains(o.Recent, gatedCall{r.Turn, r.CallID, r.Step}) {
		return d, notOverturned(fmt.Sprintf("it is none of the newest %d gated calls and steps of %s", keptGated, bot.Name))
	}
	call, ok, err := store.CallByID(c, r.Turn, r.CallID)
	if err != nil {
		return d, err
	}
	gates, err := gatesIn(bot.ID, bot.Gates)
	if err != nil {
		return d, err
	}
	switch {
	case !ok:
		return d, notOverturned("its record is gone")
	case len(naming(gates, call.Name)) == 0:
		return d, notOverturned("no gate of " + bot.Name + " covers " + call.Name + " now")
	case r.Step != "":
		return deniedStep(c, r)
	}
	return e.deniedCall(c, bot, &call, r)
}

func notOverturned(why string) error { return protocol.Fail(protocol.OverturnNotPossible, why) }

func (e *Engine) deniedCall(c *store.Conn, bot *store.Bot, call *store.ToolCall, r *protocol.Answer) (d denied, err error) {
	row, err := approvalOf(call)
	if err != nil {
		return d, err
	}
	if row == nil || row.standing() != deniedByOne || call.Status != "completed" || r.Request != row.Request {
		return d, notOverturned(fmt.Sprintf("the call did not end denied at request %d", r.Request))
	}
	item, err := e.itemAt(c, bot.Family, row.Node)
	if err != nil {
		return d, err
	}
	for i := range item.Calls {
		if item.Calls[i].ID == r.CallID {
			args := item.Calls[i].Arguments
			return denied{sameCall(call.Name, args, row.Folder, row.Cause, row.Paths), call.Name == "shell", args}, nil
		}
	}
	return d, notOverturned("its arguments are gone")
}

// deniedStep is a step that was denied, whatever became of the call around it.
func deniedStep(c *store.Conn, r *protocol.Answer) (d denied, err error) {
	steps, err := stepsOf(c, r.Turn, r.CallID)
	if err != nil {
		return d, err
	}
	step := steps.find(r.Step)
	if step == nil || step.Approval.standing() != deniedByOne || r.Request != step.Approval.Request {
		return d, notOverturned(fmt.Sprintf("the step was not denied at request %d", r.Request))
	}
	return denied{same: step.Same}, nil
}
