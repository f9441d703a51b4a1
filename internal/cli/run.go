package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agent/client"
	"agent/client/instructions"
	"agent/client/termsafe"
	"agent/client/worktree"
	"agent/protocol"
)

var runVerb = verb{
	name: "run", operands: "[--] PROMPT…", most: -1,
	short: "send a prompt; make a bot with --new; print the turn",
	long: "Sends a prompt to a bot and prints what its turn does, to its end. Without --bot a\n" +
		"fresh bot is made; --bot NAME goes on with one; --new --bot NAME makes one. The\n" +
		"prompt is the operands, or standard input for a single - and where it is no\n" +
		"terminal.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		r := &run{app: a, common: a.common(t), table: t}
		r.declare(t)
		return r.run
	},
}

// run is one run under way.
type run struct {
	app    *app
	common *common
	table  *table
	start  *startup
	runFlags
	newBot newBotFlags

	prompt string
	link   *link
	made   *protocol.Bot // by this run
	plan   *worktree.Plan
	tree   *worktree.Tree // made by this run, for the bot it made
}

// making reports that this run makes a bot.
func (r *run) making() bool { return r.new || r.bot == "" }

// run goes through section 8's order: the line, the files it names, the
// daemon, the worktree, create, submit, follow.
func (r *run) run(ctx context.Context, operands []string) error {
	if err := r.check(); err != nil {
		return err
	}
	if !r.detach {
		if err := refuseBlocking("run"); err != nil {
			return err
		}
	}
	self, err := r.identity()
	if err != nil {
		return err
	}
	if r.prompt, err = r.app.readPrompt(ctx, operands); err != nil {
		return err
	}
	if r.requestID == "" {
		r.requestID = fmt.Sprintf("run-%d-%d-%s", time.Now().UnixMilli(), os.Getpid(), strconv.FormatUint(rand.Uint64(), 36))
	}
	create, err := r.composed()
	if err != nil {
		return err
	}
	if err := r.planTree(ctx, create); err != nil {
		return err
	}
	if r.link, err = r.app.connect(ctx, r.common, r.start, startAny); err != nil {
		return err
	}
	defer r.link.Close()
	r.link.Bot = self
	switch {
	case r.plan != nil:
		err = r.createInTree(ctx, create)
	case create != nil:
		err = r.create(ctx, create)
	default:
		err = r.served(ctx)
	}
	if err != nil {
		return err
	}
	return r.send(ctx)
}

// identity is the bot in whose shell this runs. A create names it whole.
func (r *run) identity() (*client.BotEnv, error) {
	if r.making() {
		return creator()
	}
	return author()
}

// composed is the request that makes the bot, but for its tools; nil when one
// is continued.
func (r *run) composed() (*protocol.Create, error) {
	if !r.making() {
		return nil, nil
	}
	n := &r.newBot
	n.hasInstructions, n.hasCompaction = r.table.given("instructions"), r.table.given("compaction-instructions")
	text, err := n.text(instructions.Preamble())
	if err != nil {
		return nil, err
	}
	summary, err := n.summary(instructions.Compaction())
	if err != nil {
		return nil, err
	}
	c := &protocol.Create{
		Bot: r.bot, Model: r.model, Instructions: text, Tools: n.tools, Workspace: r.workspace,
		Reasoning: n.reasoning, CompactionInstructions: summary, CompactionModel: n.compactionModel,
		Fallbacks: n.fallbacks,
	}
	n.sandbox.create(c)
	if n.budget > 0 {
		c.BudgetTokens = protocol.Set(n.budget)
	}
	if c.Settings, err = n.ownSettings(); err != nil {
		return nil, err
	}
	if n.rules != "" {
		if c.Rules, err = rulesAt(n.rules); err != nil {
			return nil, err
		}
	}
	if n.clientTools != "" {
		if c.ClientTools, err = r.app.readClientTools(n.clientTools); err != nil {
			return nil, err
		}
	}
	if c.Bot == "" {
		c.Bot = fmt.Sprintf("bot-%d-%d", time.Now().UnixMilli(), os.Getpid())
	}
	if c.Workspace == "" {
		if c.Workspace, err = os.Getwd(); err != nil {
			return nil, usagef("there is no folder to work in: %v; name one with --workspace", err)
		}
	}
	if !utf8.ValidString(c.Workspace) {
		return nil, usagef("the folder %q is not UTF-8, and no bot can be told of it; name another with --workspace", c.Workspace)
	}
	if n.worktree {
		return c, nil // what it reads lies in a folder that is still to be made
	}
	return c, r.instruct(c, nil)
}

// ownSettings are what the line sets for the bot, and what config.toml does
// where the line is silent.
func (n *newBotFlags) ownSettings() (_ *protocol.Settings, err error) {
	if n.search, err = webSearch(); err != nil {
		return nil, err
	}
	if n.search == searchCached && n.settings.values["web_search"] == "" {
		if err := n.settings.name("web_search", "web_search", `"cached"`); err != nil {
			return nil, err
		}
	}
	return n.settings.wire()
}

// served sees to it that the bot's calls are judged, when it is one that the
// automatic approver answers for. A bot that cannot be looked at is the
// submission's to refuse.
func (r *run) served(ctx context.Context) error {
	if inside() {
		return nil
	}
	bot, err := r.link.Inspect(ctx, r.bot)
	if err != nil || !automatic(bot) {
		return nil
	}
	return r.app.approverServes(ctx, r.link)
}

// defaultTools are a new bot's, as far as the daemon has them.
var defaultTools = []string{"shell", "read", "write", "edit", "web_fetch", "wait", "history"}

func (r *run) create(ctx context.Context, c *protocol.Create) error {
	if c.Tools == nil {
		c.Tools = slices.DeleteFunc(slices.Clone(defaultTools), func(tool string) bool {
			return r.newBot.off(tool) || !slices.Contains(r.link.ready.Tools, tool)
		})
	}
	tools := slices.Clone(c.Tools)
	for i := range c.ClientTools {
		tools = append(tools, c.ClientTools[i].Name)
	}
	gate, err := r.newBot.gate.gate(tools)
	if err != nil {
		return err
	}
	asked(gate, &c.Approve, &c.Approver, &c.ApproveExpireMS)
	if r.newBot.gate.mode == approvalAuto {
		if err := r.app.approverServes(ctx, r.link); err != nil {
			return err
		}
	}
	r.bot = c.Bot
	bot, err := r.link.Create(ctx, c)
	if err != nil {
		return r.unanswered(ctx, err)
	}
	r.made = bot
	r.app.noteSandbox(&r.newBot.sandbox)
	r.botID = bot.ID
	// What the line says of model and folder is sent with the prompt too, so
	// that the line without --new repeats this very submission (section 8).
	if r.modelSource != "" {
		r.model = ""
	}
	return nil
}

// send submits the prompt and, unless detached, follows its turn.
func (r *run) send(ctx context.Context) error {
	s := &protocol.Submit{
		Bot: r.bot, BotID: r.botID, RequestID: r.requestID, Prompt: r.prompt, Workspace: r.workspace,
		Model: r.model, Delivery: protocol.Delivery(r.delivery), ExpectedTurn: r.turn, Origin: r.origin,
		Pictures: r.pictures,
	}
	if !r.detach {
		return r.follow(ctx, s)
	}
	sub, err := r.link.Submit(ctx, s)
	if err != nil {
		return r.unanswered(ctx, r.madeFacts(err))
	}
	answer, err := protocol.Append(nil, sub)
	if err != nil {
		return err
	}
	if err := r.app.printObject(r.withTree(answer)); err != nil {
		return withFact(r.madeFacts(err), "handle", sub.Handle) // the work goes on, seen or not
	}
	return nil
}

// unanswered is err, or, when a signal ended the wait for an answer, how to find
// out what came of the request.
func (r *run) unanswered(ctx context.Context, err error) error {
	if endedBy(ctx) == nil {
		return err
	}
	again := "this line"
	if r.making() {
		again = "this line without --new and what is for a new bot, with --bot " + termsafe.ShellWord(r.bot)
	}
	return stopped{err, spot{bot: r.bot, made: r.made, requestID: r.requestID, again: again + " and --request-id " + termsafe.ShellWord(r.requestID)}}
}

// madeFacts tells of a failure after which the new bot stands.
func (r *run) madeFacts(err error) error {
	if _, silent := err.(exit); silent || err == nil || r.made == nil {
		return err
	}
	if s, ok := err.(stopped); ok {
		s.at.bot, s.at.made = r.made.Name, r.made
		return stopped{r.madeFacts(s.error), s.at}
	}
	if r.app.pretty { // which shows no facts
		made := *coded(err)
		made.Detail = strings.TrimPrefix(made.Detail+"; ", "; ") + "the new bot " + r.made.Name + " was made and stays"
		err = &made
	}
	err = withFact(err, "bot", r.made.Name)
	err = withFact(err, "bot_id", r.made.ID)
	return withFact(err, "created", true)
}

// follow submits the prompt and shows what happens from the submission's own
// event to the turn's end. A reader of stdout who goes away keeps nobody from
// submitting.
func (r *run) follow(ctx context.Context, s *protocol.Submit) error {
	w := r.app.watch(r.link, s.Bot, 0, r.made != nil)
	shown, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := w.show(shown, r.link.SubmitFollow(shown, s, func(sub *protocol.Submitted) {
		w.submitted(sub, r.tree)
		r.app.onOutputClosed(cancel)
	}))
	switch {
	case w.turn == 0:
		w.view.finish()
		return r.unanswered(ctx, r.madeFacts(err))
	case err != nil:
		return r.madeFacts(w.broken(err))
	}
	return r.madeFacts(w.verdict())
}
