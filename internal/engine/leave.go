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
}

// place decides where a call runs, by the bot's sandbox and rules as they are now
// (sandbox.md 7), or refuses it: then it never starts.
func (t *task) place(call *model.Call) (w where, refusal *tool.Result, err error) {
	if !tool.Confined(call.Name) {
		return w, nil, nil
	}
	h, err := t.held()
	if err != nil {
		return w, nil, err
	}
	w.confinement = t.e.confinement(&h, t.bot, t.name)
	w.sandboxed = w.confinement != nil
	if call.Name != "shell" {
		return w, nil, nil
	}
	set, unreadable, err := t.e.rulesOf(t.ctx, h.rules)
	if err != nil {
		return w, nil, err
	}
	if unreadable != "" {
		return w, t.refusal(protocol.CommandForbidden, unreadable), nil
	}
	script, escalated := tool.Script(call.Arguments)
	verdict := rules.Verdict{}
	if set != nil {
		verdict = set.Decide(script)
	}
	switch {
	case verdict.Decision == rules.Forbidden:
		return w, t.refusal(protocol.CommandForbidden, "a command rule forbids this: "+named(verdict.Matches)), nil
	case verdict.Decision == rules.Prompt:
		return w, t.refusal(protocol.EscalationRefused, promptDetail(&verdict)), nil
	case !w.sandboxed:
	case verdict.Decision == rules.Allow:
		w.confinement, w.path = nil, trustedPath(t.e.cfg.Environ, t.e.world(), &h.setting)
	case escalated:
		return w, t.refusal(protocol.EscalationRefused,
			"the command asks to run outside the sandbox, and no approval gate of this bot covers shell: run it inside, or say what you need"), nil
	}
	return w, nil, nil
}

// gateServed refuses a gated tool of a client to a sandboxed bot that nobody can
// be asked for: what its server does, it does outside (protocol.md 11).
func (t *task) gateServed(decl *protocol.ClientTool) (*tool.Result, error) {
	if decl.Gated != nil && !*decl.Gated {
		return nil, nil
	}
	h, err := t.held()
	if err != nil || !h.setting.Confines() {
		return nil, err
	}
	return t.refusal(protocol.EscalationRefused, decl.Name+" works outside the sandbox, and no approval gate of this bot covers it"), nil
}

// held is how the bot is held now.
func (t *task) held() (h hold, err error) {
	err = t.e.read(t.ctx, "hold", func(c *store.Conn) (err error) {
		h, err = t.e.holdOf(c, t.bot)
		return err
	})
	return h, err
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
	return why + "; no approval gate of this bot covers shell, so that nobody can be asked"
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
