package cli

import (
	"context"
	"fmt"
	"slices"

	"agent/protocol"
)

var configureVerb = verb{
	name: "configure", short: "change an existing bot",
	long: "Changes what is named of a bot and leaves the rest, and prints its record. A turn\n" +
		"under way meets new settings, reasoning and budget at its next model call, and new\n" +
		"rules at its next command; model and folder are those of later turns. How a bot is\n" +
		"confined changes between turns; the folders and sockets named here are then all\n" +
		"that it has.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		f := &configure{app: a, table: t, common: a.common(t)}
		f.declare()
		f.start = t.starts()
		return f.run
	},
}

// configure is one change under way.
type configure struct {
	app    *app
	table  *table
	common *common
	start  *startup

	bot, model, workspace, reasoning   string
	clientTools, rules                 string
	id, budget                         int64
	noWorkspace, noBudget, noReasoning bool
	noRules                            bool
	settings                           botSettings
	sandbox                            sandboxFlags
	gates                              gateFlags
	gatesFile                          string
}

func (f *configure) declare() {
	t := f.table
	t.filled(&f.bot, "bot", "NAME", "the bot; required")
	t.number(&f.id, "bot-id", 1, mostInteger, "only the bot of this id, whoever has the name")
	f.settings.set(t, ofVerb)
	f.settings.unset(t, ofVerb)
	t.filled(&f.model, "model", "P/M", "PROVIDER/MODEL of the same family")
	t.path(&f.workspace, "workspace", "DIR", "the folder it works in")
	t.toggle(&f.noWorkspace, "no-workspace", "it has no folder: each prompt must name one")
	t.number(&f.budget, "budget-tokens", 1, mostInteger, "tokens it may use in all, those it has used included")
	t.toggle(&f.noBudget, "no-budget", "it may use any number of tokens")
	reasoning := t.choice(&f.reasoning, "reasoning", "how long the model thinks", reasoningLevels...)
	t.alias(reasoning, "effort", nil)
	t.toggle(&f.noReasoning, "no-reasoning", "the model thinks as long as it does by itself")
	f.sandbox.declare(t, ofVerb, sandboxOfBot)
	t.rulesFlag(&f.rules, ofVerb)
	t.toggle(&f.noRules, "no-rules", "it has no command rules")
	f.gates.declare(t, ofVerb, gateOfKnown)
	t.filled(&f.gatesFile, "gates", "FILE", "its gates: a JSON list in place of those it has; - for standard input, [] for none")
	t.path(&f.clientTools, "client-tools", "FILE", "the tools that programs serve to it: a JSON list in place of the one it has; [] for none")
}

// changes are the flags of which a line needs one.
var changes = append([]string{
	"set", "unset", "model", "workspace", "no-workspace", "budget-tokens", "no-budget", "reasoning", "no-reasoning",
	"rules", "no-rules", "client-tools", "approval", "gates",
}, sandboxFlagNames...)

func (f *configure) run(ctx context.Context, _ []string) error {
	if err := f.check(); err != nil {
		return err
	}
	if inside() {
		return protocol.Fail(protocol.InsideABot, "configure widens what a bot may do, and a bot's shell runs it; ask the person")
	}
	r, err := f.request()
	if err != nil {
		return err
	}
	l, err := f.app.connect(ctx, f.common, f.start, startExisting)
	if err != nil {
		return err
	}
	defer l.Close()
	if r.Gates, err = f.replaced(ctx, l); err != nil {
		return err
	}
	if f.gates.mode == approvalAuto {
		if err := f.app.approverServes(ctx, l); err != nil {
			return err
		}
	}
	if err := f.app.ask(ctx, l, protocol.OpConfigure, r); err != nil {
		return err
	}
	f.notes()
	return nil
}

func (f *configure) check() error {
	given := f.table.given
	if err := f.table.require("bot"); err != nil {
		return err
	}
	changed := false
	for _, name := range changes {
		changed = changed || given(name)
	}
	if !changed {
		return usagef("configure needs a change; agent configure --help lists them")
	}
	for _, name := range []string{"workspace", "budget-tokens", "reasoning", "rules"} {
		no := "no-" + name
		if name == "budget-tokens" {
			no = "no-budget"
		}
		if given(name) && given(no) {
			return usagef("--%s with --%s: the one sets what the other takes away; leave one out", name, no)
		}
	}
	if err := f.sandbox.check(f.table, true); err != nil {
		return err
	}
	if given("gates") && (given("approval") || given("approve") || given("approve-expire-ms")) {
		return usagef("--gates with --approval: the one is a whole list, the other one gate; leave one out")
	}
	if err := f.gates.check(f.table, false); err != nil {
		return err
	}
	if err := f.settings.check(); err != nil {
		return err
	}
	if err := checkModel("--model", f.model); err != nil {
		return err
	}
	return checkFolder(f.workspace)
}

// notes tell a person what the new record does not.
func (f *configure) notes() {
	f.app.noteSandbox(&f.sandbox)
	if f.app.pretty && slices.ContainsFunc(sandboxFlagNames, f.table.given) {
		fmt.Fprintln(f.app.stderr, "agent: background commands of this bot that run already keep the sandbox they started with")
	}
}

// request is the change on the wire. It reads the files that the line names.
func (f *configure) request() (*protocol.Configure, error) {
	r := &protocol.Configure{
		Bot: f.bot, BotID: f.id,
		Workspace:    change(f.workspace, f.noWorkspace),
		BudgetTokens: change(f.budget, f.noBudget),
		Reasoning:    change(f.reasoning, f.noReasoning),
		Model:        change(f.model, false),
	}
	f.sandbox.configure(r)
	if f.noRules {
		r.Rules = protocol.Null[protocol.Rules]()
	} else if f.rules != "" {
		rules, err := rulesAt(f.rules)
		if err != nil {
			return nil, err
		}
		r.Rules = protocol.Set(*rules)
	}
	set, err := f.settings.wire()
	if err != nil {
		return nil, err
	}
	if set != nil {
		r.Settings = protocol.Set(*set)
	}
	if f.clientTools != "" {
		list, err := f.app.readClientTools(f.clientTools)
		if err != nil {
			return nil, err
		}
		r.ClientTools = protocol.Set(list)
	}
	return r, nil
}

// change is a field of configure: a value, null, or absent.
func change[T comparable](value T, clear bool) protocol.Opt[T] {
	var none T
	switch {
	case clear:
		return protocol.Null[T]()
	case value == none:
		return protocol.Opt[T]{}
	}
	return protocol.Set(value)
}

// readClientTools reads a list of tools that programs serve.
func (a *app) readClientTools(path string) ([]protocol.ClientTool, error) {
	return readList[protocol.ClientTool](a, "--client-tools", path, protocol.InvalidClientTool,
		"tools with name, description, parameters, tag, gated and expire_ms")
}
