package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"agent/client/items"
	"agent/protocol"
)

// The modes of approval (approvals.md 9). The daemon knows none of them: each is
// one gate, or none.
const (
	approvalFull   = "full"
	approvalManual = "manual"
	approvalAuto   = "auto"
)

// What --approval says of a line that does not give it: only a bot that is made
// takes the environment's.
const (
	gateOfNew   = "default AGENT_APPROVAL, else full"
	gateOfFork  = "this gate is added to its source's; default AGENT_APPROVAL, else full"
	gateOfKnown = "in place of the gates it has, which stay when this is left out"
)

// autoExpireMS is how long a call waits for the automatic approver.
const autoExpireMS = 120_000

// gateFlags are the flags of a bot's gate.
type gateFlags struct {
	mode   string
	tools  []string
	expire *int64
}

// declare declares them; without says what a bot has whose line has no
// --approval.
func (g *gateFlags) declare(t *table, in group, without string) {
	t.choice(&g.mode, "approval", "who judges its calls; full: nobody, manual: a person, auto: a model; "+without, approvalFull, approvalManual, approvalAuto).in(in)
	t.list(&g.tools, "approve", "LIST", "the tools whose calls wait; default all but history, wait, note, echo and web_search").in(in)
	t.statedTime(&g.expire, "approve-expire-ms", time.Millisecond, 1, protocol.MaxApproveExpireMS, "milliseconds until a call that nobody judged is denied; default never, for auto 120000").in(in)
}

// check resolves the mode, from the environment where environ says so, and
// refuses what does not go together. It touches nothing.
func (g *gateFlags) check(t *table, environ bool) error {
	source := "--approval"
	if g.mode == "" && environ {
		g.mode, source = os.Getenv("AGENT_APPROVAL"), "AGENT_APPROVAL"
	}
	switch g.mode {
	case "", approvalFull:
		for _, name := range []string{"approve", "approve-expire-ms"} {
			if t.given(name) {
				return usagef("--%s goes with --approval manual or auto", name)
			}
		}
	case approvalManual, approvalAuto:
	default:
		return usagef("%s is %s; it is full, manual or auto", source, g.mode)
	}
	if t.given("approve") && len(g.tools) == 0 {
		return usagef("--approve is empty; name the tools whose calls are to wait")
	}
	return nil
}

// gate is the gate of a bot with these tools, nil for none.
func (g *gateFlags) gate(tools []string) (*protocol.Gate, error) {
	if g.mode == "" || g.mode == approvalFull {
		return nil, nil
	}
	gate := &protocol.Gate{Tag: g.mode, Tools: g.tools, ExpireMS: g.expire}
	if gate.Tools == nil {
		gate.Tools = slices.DeleteFunc(slices.Clone(tools), func(name string) bool {
			return slices.Contains([]string{"history", "wait", "note", "echo", "web_search"}, name)
		})
	}
	if len(gate.Tools) == 0 {
		return nil, protocol.Fail(protocol.InvalidGate, "--approval "+g.mode+": the bot has no tool whose calls a gate would have wait; give --approval full, or name some with --approve")
	}
	if g.mode == approvalAuto {
		return gate, autoExpiry(gate)
	}
	return gate, nil
}

// autoExpiry gives the gate its expiry, which the judge's deadline must come well
// before: else calls expire while they are judged.
func autoExpiry(gate *protocol.Gate) error {
	config, err := readJudgeConfig()
	if err != nil {
		return err
	}
	least := config.leastAutoExpireMS()
	if gate.ExpireMS == nil {
		ms := max(int64(autoExpireMS), least)
		gate.ExpireMS = &ms
	}
	if *gate.ExpireMS < least {
		return protocol.Fail(protocol.InvalidApproveExpiry, fmt.Sprintf(
			"--approve-expire-ms %d: with --approval auto it is at least %d, which leaves the judge its time", *gate.ExpireMS, least))
	}
	return nil
}

// asked puts a gate into the fields of create and fork.
func asked(gate *protocol.Gate, approve *[]string, approver *string, expire *protocol.Opt[int64]) {
	if gate == nil {
		return
	}
	*approve, *approver = gate.Tools, gate.Tag
	if gate.ExpireMS != nil {
		*expire = protocol.Set(*gate.ExpireMS)
	}
}

// gateable are all tools of a bot.
func gateable(b *protocol.Bot) []string {
	names := slices.Clone(b.Tools)
	for i := range b.ClientTools {
		names = append(names, b.ClientTools[i].Name)
	}
	return names
}

// replaced is the whole list of gates that configure's flags stand for.
func (f *configure) replaced(ctx context.Context, l *link) (gates protocol.Opt[[]protocol.Gate], err error) {
	switch {
	case f.gatesFile != "":
		list, err := readList[protocol.Gate](f.app, "--gates", f.gatesFile, protocol.InvalidGate, "gates with tag, tools and expire_ms")
		return protocol.Set(list), err
	case !f.table.given("approval"):
		return gates, nil
	case f.gates.mode == approvalFull:
		return protocol.Set([]protocol.Gate{}), nil
	}
	record, err := l.Inspect(ctx, f.bot)
	if err != nil {
		return gates, err
	}
	gate, err := f.gates.gate(gateable(record))
	if err != nil {
		return gates, err
	}
	return protocol.Set([]protocol.Gate{*gate}), nil
}

// wholeArguments are a call's arguments as its node keeps them.
func (l *link) wholeArguments(ctx context.Context, c *protocol.Approval) (json.RawMessage, bool) {
	if c.Whole() || c.Step != "" { // no node has a step's arguments
		return c.Arguments, c.Whole()
	}
	item, err := l.Item(ctx, c.Bot, c.Node)
	if err != nil {
		return c.Arguments, false
	}
	for _, part := range items.Parts(item) {
		if part.Kind == items.Call && part.CallID == c.CallID && json.Valid([]byte(part.Text)) {
			return json.RawMessage(part.Text), true
		}
	}
	return c.Arguments, false
}
