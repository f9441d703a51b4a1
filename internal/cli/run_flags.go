package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

	"agent/client/worktree"
	"agent/protocol"
)

// runFlags are the flags of every run (section 8).
type runFlags struct {
	bot, delivery, requestID string
	model, workspace, origin string
	modelSource              string // where the model came from, when not from its flag
	new, detach              bool
	botID, turn              int64
	pictures                 []string
}

// newBotFlags are those that only a new bot takes.
type newBotFlags struct {
	instructions, instructionsFile string
	hasInstructions                bool
	agents                         bool
	profile                        string
	worktree                       bool
	base                           string
	compaction, compactionFile     string
	hasCompaction, noCompaction    bool
	compactionModel                string
	tools                          []string
	reasoning                      string
	sandbox                        sandboxFlags
	rules                          string
	gate                           gateFlags
	budget                         int64
	fallbacks                      bool
	clientTools                    string
	settings                       botSettings
	search                         string // what config.toml says of web_search
}

func (r *run) declare(t *table) {
	t.filled(&r.bot, "bot", "NAME", "the bot to go on with; without it a fresh one is made")
	t.toggle(&r.new, "new", "make the bot")
	t.number(&r.botID, "bot-id", 1, mostInteger, "only the bot of this id, whoever has the name")
	t.toggle(&r.detach, "detach", "print the submission and exit")
	t.filled(&r.delivery, "delivery", "MODE", "when the bot is busy: reject, queue or steer; default AGENT_DELIVERY, else reject").words = deliveries
	t.number(&r.turn, "turn", 1, mostInteger, "with --delivery steer: for that turn or nobody")
	t.filled(&r.requestID, "request-id", "ID", "idempotency key: the same line with the same id again answers the first time's")
	t.filled(&r.model, "model", "P/M", "PROVIDER/MODEL: a new bot's, default AGENT_MODEL; for a continued one of this turn only")
	t.path(&r.workspace, "workspace", "DIR", "the folder: a new bot's, default this one; for a continued one of this turn only")
	t.pathsOf(&r.pictures, "picture", "FILE", "a PNG, JPEG, GIF or WebP to show with the prompt; again for more, at most 8")
	t.filled(&r.origin, "origin", "NAME", "what sent it when neither a person nor a bot's turn did")

	n := &r.newBot
	t.text(&n.instructions, "instructions", "TEXT", "its instructions; default a preamble on delegating with this command").in(ofNewBot)
	t.path(&n.instructionsFile, "instructions-file", "FILE", "the same from a file of at most 64 KiB").in(ofNewBot)
	t.toggle(&n.agents, "agents", "instructions put together from AGENTS.md files, skills, roles and memory").in(ofNewBot)
	t.alias(t.filled(&n.profile, "profile", "ROLE", "the same, in a role: .agents/agents/ROLE.md of the folder, else of your home").in(ofNewBot), "role", nil)
	t.toggle(&n.worktree, "worktree", "give it a git worktree of its own, made of the folder's repository").in(ofNewBot)
	t.filled(&n.base, "base", "REV", "with --worktree: the commit that it begins at; default HEAD").in(ofNewBot)
	t.list(&n.tools, "tools", "LIST", "its tools; default shell,read,write,edit,web_fetch,wait,history as far as the daemon has them").in(ofNewBot)
	reasoning := t.choice(&n.reasoning, "reasoning", "how long the model thinks; default its own", reasoningLevels...).in(ofNewBot)
	t.alias(reasoning, "effort", nil)
	t.number(&n.budget, "budget-tokens", 1, mostInteger, "tokens it may use in all; default no bound").in(ofNewBot)
	t.text(&n.compaction, "compaction-instructions", "TEXT", "how its history is summarized when the context is nearly full; default built in").in(ofNewBot)
	t.path(&n.compactionFile, "compaction-instructions-file", "FILE", "the same from a file of at most 64 KiB").in(ofNewBot)
	t.filled(&n.compactionModel, "compaction-model", "P/M", "the model that summarizes; default its own").in(ofNewBot)
	t.toggle(&n.noCompaction, "no-compaction", "never summarize").in(ofNewBot)
	t.toggle(&n.fallbacks, "fallbacks", "let the provider answer with another model").in(ofNewBot)
	n.gate.declare(t, ofNewBot, gateOfNew)
	n.sandbox.declare(t, ofNewBot, sandboxOfNew)
	t.rulesFlag(&n.rules, ofNewBot)
	t.path(&n.clientTools, "client-tools", "FILE", "tools that programs serve to it: a JSON list").in(ofNewBot)
	n.settings.shorthands(t, ofNewBot)
	n.settings.set(t, ofNewBot)
	r.start = t.starts()
}

var reasoningLevels = []string{protocol.ReasoningLow, protocol.ReasoningMedium, protocol.ReasoningHigh, protocol.ReasoningXHigh, protocol.ReasoningMax}

var deliveries = []string{string(protocol.Reject), string(protocol.Queue), string(protocol.Steer)}

// check is what the line must keep beyond each flag's own rule, and what the
// environment adds to it. It touches nothing.
func (r *run) check() error {
	if err := r.conflicts(); err != nil {
		return err
	}
	if err := r.checkDelivery(); err != nil {
		return err
	}
	if r.making() {
		if err := r.checkNew(); err != nil {
			return err
		}
	}
	return r.checkNames()
}

// conflicts are flags that exclude each other.
func (r *run) conflicts() error {
	given := r.table.given
	switch {
	case r.botID != 0 && r.new:
		return usagef("--bot-id with --new: a new bot has no id yet; leave one out")
	case r.botID != 0 && r.bot == "":
		return usagef("--bot-id needs --bot")
	case r.turn != 0 && r.making():
		return usagef("--turn with a new bot: it names a turn that runs; leave --turn out, or name the bot with --bot and without --new")
	case given("instructions") && given("instructions-file"):
		return usagef("--instructions with --instructions-file: give one")
	case (given("instructions") || given("instructions-file")) && (given("agents") || given("profile")):
		return usagef("--instructions and --instructions-file are the whole text; --agents and --profile put one together; leave the ones or the others out")
	case given("base") && !given("worktree"):
		return usagef("--base goes with --worktree")
	case given("compaction-instructions") && given("compaction-instructions-file"):
		return usagef("--compaction-instructions with --compaction-instructions-file: give one")
	case len(r.pictures) > protocol.MaxPictures:
		return usagef("--picture %d times; a prompt has at most %d", len(r.pictures), protocol.MaxPictures)
	case r.origin != "" && inside():
		return usagef("--origin inside a bot's shell: what is sent there comes from the bot")
	}
	if r.newBot.noCompaction {
		for _, name := range []string{"compaction-instructions", "compaction-instructions-file", "compaction-model"} {
			if given(name) {
				return usagef("--no-compaction with --%s: a bot without compaction has no use for it; leave one out", name)
			}
		}
	}
	if f := r.table.givenIn(ofNewBot); f != nil && !r.making() {
		return usagef("--%s is for a new bot; an existing one keeps its own (--new makes one)", f.name)
	}
	if err := r.newBot.sandbox.check(r.table, false); err != nil {
		return err
	}
	return r.newBot.settings.check()
}

// checkDelivery resolves the mode: it is always sent.
func (r *run) checkDelivery() error {
	source := "--delivery"
	if r.delivery == "" {
		r.delivery, source = os.Getenv("AGENT_DELIVERY"), "AGENT_DELIVERY"
	}
	if r.delivery == "" {
		r.delivery = string(protocol.Reject)
	}
	if !slices.Contains(deliveries, r.delivery) {
		return protocol.Fail(protocol.InvalidDelivery, source+" "+r.delivery+": it is reject, queue or steer")
	}
	if r.turn != 0 && r.delivery != string(protocol.Steer) {
		return usagef("--turn needs --delivery steer")
	}
	return nil
}

// checkNew resolves what a new bot takes from the environment.
func (r *run) checkNew() error {
	if r.model == "" {
		r.model, r.modelSource = os.Getenv("AGENT_MODEL"), "AGENT_MODEL"
	}
	if r.model == "" && r.newBot.profile == "" {
		return errNoModel("")
	}
	return r.newBot.gate.check(r.table, true)
}

// errNoModel is for a new bot without a model; role says why a role gives none.
func errNoModel(role string) error {
	return usagef("a new bot needs a model: give --model PROVIDER/MODEL or set AGENT_MODEL%s", role)
}

// checkNames refuses here what the daemon would refuse after it was started or
// the bot was made.
func (r *run) checkNames() error {
	if r.bot != "" && !protocol.ValidBotName(r.bot) {
		return protocol.Fail(protocol.InvalidName, "--bot "+r.bot+": a bot's name is 1 to 128 of A-Z a-z 0-9 - _ . and begins with neither - nor .")
	}
	if r.newBot.worktree && r.bot != "" {
		if err := worktree.CheckName(r.bot); err != nil {
			return err
		}
	}
	if err := checkFolder(r.workspace); err != nil {
		return err
	}
	if err := r.checkPictures(); err != nil {
		return err
	}
	if r.requestID != "" && !protocol.ValidName(r.requestID) {
		return protocol.Fail(protocol.InvalidName, "--request-id "+r.requestID+": it is 1 to 128 of A-Z a-z 0-9 - _ .")
	}
	if r.origin != "" && !protocol.ValidName(r.origin) {
		return protocol.Fail(protocol.InvalidOrigin, "--origin "+r.origin+": it is 1 to 128 of A-Z a-z 0-9 - _ .")
	}
	if err := checkModel(cmp.Or(r.modelSource, "--model"), r.model); err != nil {
		return err
	}
	return checkModel("--compaction-model", r.newBot.compactionModel)
}

// checkModel refuses a model that is none. "" is a flag that was not given.
func checkModel(source, ref string) error {
	if _, _, ok := protocol.ParseModelRef(ref); ref != "" && !ok {
		return protocol.Fail(protocol.InvalidModel, source+" "+ref+": a model is PROVIDER/MODEL")
	}
	return nil
}

// checkFolder refuses a workspace that is no folder. One that cannot be looked
// at from here is the daemon's to judge.
func checkFolder(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return protocol.Fail(protocol.WorkspaceMustExistAndBeAbsolute, "--workspace "+path+" is no folder")
	}
	return nil
}

// checkPictures sees to it that no bot is made for a picture that is not there.
// A bot that is continued may have had this very request, with its pictures:
// the daemon knows, and looks at no file then.
func (r *run) checkPictures() error {
	if !r.making() {
		return nil
	}
	for _, path := range r.pictures {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			return protocol.Fail(protocol.InvalidPicture, "--picture "+path+" is no file")
		}
	}
	return nil
}
