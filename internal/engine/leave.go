package engine

import (
	"fmt"
	"slices"
	"strings"

	"agent/internal/model"
	"agent/internal/rules"
	"agent/internal/sandbox"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// where is where a call runs.
type where struct {
	confinement *tool.Confinement // nil: outside
	path        string            // PATH of a command that an allow rule lets out; "" for the daemon's
	sandboxed   bool              // the bot has a sandbox, whether or not the call is in it
	allowed     bool              // every gate allowed it to leave
	outside     []string          // the files that it was allowed to change, though they lie outside
}

// The causes for which a call waits (approvals.md 3).
const (
	causeTool       = "tool"
	causeEscalation = "escalation"
	causeOutside    = "outside_write"
	causePrompt     = "rule_prompt"
	causeServed     = "served"
)

// judgement is what the bot's sandbox and rules, as they are now, say of a call
// (approvals.md 3, sandbox.md 7).
type judgement struct {
	where
	refusal *tool.Result // whatever the gates say

	cause     string       // why it waits where a gate names its tool; "": it does not
	lacking   *tool.Result // its refusal where no gate does; nil: then it runs
	escalated bool         // an allow lets it leave the sandbox
	// What must still be so when the verdict comes.
	folder string
	paths  []string

	target        []string // the files outside
	justification string
	rules         []protocol.RuleMatch
}

// judge decides by the bot's sandbox and rules as they are in h. It looks at the
// file system, and is asked when a call is planned and again before it starts.
// gated says that what was shown to a gate counts.
func (t *task) judge(h *hold, call *model.Call, gated bool) (j judgement, err error) {
	if gated {
		j.folder = t.env(call).Folder(t.ctx)
	}
	j.confinement = t.e.confinement(h, t.bot, t.name)
	j.sandboxed = j.confinement != nil
	if decl := t.clientTool(call.Name); decl != nil {
		t.judgeServed(&j, decl)
		return j, nil
	}
	if !j.sandboxed {
		j.cause = causeTool
	}
	switch {
	case call.Name == "shell":
		return j, t.judgeShell(&j, h, call)
	case tool.Changes(call.Name):
		if gated || j.sandboxed {
			t.judgeChange(&j, call)
		}
	case call.Name == "write_stdin":
		if j.sandboxed && t.e.procs.outside(t.bot, tool.InputHandle(call.Arguments)) {
			j.cause, j.escalated = causeEscalation, true
			j.lacking = t.refusal(protocol.EscalationRefused, "the command runs outside the sandbox, so that input to it leaves the sandbox, and no approval gate of this bot covers write_stdin"+askPerson)
		}
	case !tool.Confined(call.Name):
		j.confinement = nil // the daemon does its work itself
	}
	return j, nil
}

// askPerson ends the detail of a refusal for want of a gate.
const askPerson = "; the person may set a gate (agent configure --approval manual)"

// judgeServed is judge for a client's tool: what its server does, it does outside
// every sandbox (protocol.md 11).
func (t *task) judgeServed(j *judgement, decl *protocol.ClientTool) {
	sandboxed := j.sandboxed
	j.confinement = nil
	if decl.Gated != nil && !*decl.Gated {
		return
	}
	j.cause, j.escalated = causeServed, sandboxed
	if sandboxed {
		j.lacking = t.refusal(protocol.EscalationRefused, decl.Name+" works outside the sandbox, and no approval gate of this bot covers it"+askPerson)
	}
}

func (t *task) judgeShell(j *judgement, h *hold, call *model.Call) error {
	set, unreadable, err := t.e.rulesOf(t.ctx, h.rules)
	if err != nil {
		return err
	}
	if unreadable != "" {
		j.refusal = t.refusal(protocol.CommandForbidden, unreadable)
		return nil
	}
	script, escalated := tool.Script(call.Arguments)
	j.justification = tool.Justification(call.Arguments)
	verdict := rules.Verdict{}
	if set != nil {
		verdict = set.Decide(script)
	}
	switch {
	case verdict.Decision == rules.Forbidden:
		j.refusal = t.refusal(protocol.CommandForbidden, "a command rule forbids this: "+named(verdict.Matches))
	case verdict.Decision == rules.Prompt:
		j.cause, j.escalated = causePrompt, j.sandboxed && escalated
		j.rules, j.lacking = matched(verdict.Matches), t.refusal(protocol.EscalationRefused, promptDetail(&verdict))
		if escalated {
			j.confinement = nil
		}
	case !j.sandboxed:
	case verdict.Decision == rules.Allow:
		j.confinement, j.path = nil, trustedPath(t.e.cfg.Environ, t.e.world(), &h.setting)
	case escalated:
		j.cause, j.escalated, j.confinement = causeEscalation, true, nil
		j.lacking = t.refusal(protocol.EscalationRefused,
			"the command asks to run outside the sandbox, and no approval gate of this bot covers shell: run it inside, or say what you need"+askPerson)
	}
	return nil
}

// judgeChange is judge for what changes files. Where its paths cannot be found
// out the tool says why.
func (t *task) judgeChange(j *judgement, call *model.Call) {
	env := t.env(call)
	env.Confinement = j.confinement
	paths, outside, err := env.Targets(t.ctx, call.Name, call.Arguments)
	if err != nil {
		return
	}
	j.paths, j.target = paths, outside
	if len(outside) > 0 {
		j.cause, j.escalated = causeOutside, true
		j.lacking = t.refusal(protocol.EscalationRefused, fmt.Sprintf("%s is outside what this bot may write, and no approval gate of it covers %s: "+
			"nothing was written; write below a writable folder, or say what you need"+askPerson, outside[0], call.Name))
	}
}

// matched are rules as a request for a verdict shows them.
func matched(list []*rules.Rule) (out []protocol.RuleMatch) {
	for _, r := range list {
		m := protocol.RuleMatch{Decision: rules.Prompt.String(), Justification: r.Justification, Prefix: []string{}}
		for _, alternatives := range r.Pattern {
			m.Prefix = append(m.Prefix, strings.Join(alternatives, "|"))
		}
		out = append(out, m)
	}
	return out
}

// held is how the bot is held now, and whether a gate covers a tool now.
func (t *task) held(name string) (h hold, covered bool, err error) {
	err = t.e.read(t.ctx, "hold", func(c *store.Conn) (err error) {
		if h, err = t.e.holdOf(c, t.bot); err != nil {
			return err
		}
		raw, err := store.BotGates(c, t.bot)
		if err != nil {
			return err
		}
		gates, err := gatesIn(t.bot, raw)
		covered = len(naming(gates, name)) > 0
		return err
	})
	return h, covered, err
}

func (t *task) refusal(code protocol.Code, detail string) *tool.Result {
	r := tool.Fail(string(code), string(t.e.cfg.Redact.Bytes([]byte(detail))))
	return &r
}

// named is rules for the detail of a refusal, each with where it stands and why.
func named(matches []*rules.Rule) string {
	var all []string
	for _, r := range matches {
		text := fmt.Sprintf("%s (%s:%d)", r, r.File, r.Line)
		if r.Justification != "" {
			text += ": " + r.Justification
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func promptDetail(v *rules.Verdict) string {
	why := "the script cannot be taken apart, and this bot has rules that forbid or ask"
	if len(v.Matches) > 0 {
		why = "a command rule asks for approval: " + named(v.Matches)
	}
	return why + "; no approval gate of this bot covers shell, so that nobody can be asked" + askPerson
}

// trustedPath is the daemon's PATH for a command that runs outside because a rule
// allows it: without what a bot could have put a program into.
func trustedPath(environ []string, w *sandbox.World, s *sandbox.Setting) string {
	for _, v := range environ {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			if path = w.TrustedPath(path, s); path != "" {
				return path
			}
		}
	}
	return "/usr/bin:/bin"
}

// into has a call run there.
func (w where) into(env *tool.Env) {
	env.Confinement = w.confinement
	env.Outside = w.outside
	if w.path == "" {
		return
	}
	env.Environ = slices.Clone(env.Environ)
	for i, v := range env.Environ {
		if strings.HasPrefix(v, "PATH=") {
			env.Environ[i] = "PATH=" + w.path
		}
	}
}
