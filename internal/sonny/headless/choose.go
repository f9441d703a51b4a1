package headless

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"agent/client/instructions"
	"agent/internal/sonny/lead"
	"agent/protocol"
)

// choose finds the bot, or makes it.
func (r *run) choose(ctx context.Context) error {
	switch {
	case r.Which.fresh():
		return r.makeNew(ctx)
	case r.Which.Continue:
		return r.newest(ctx)
	case r.Which.Fork != "":
		return r.fork(ctx)
	}
	f, err := r.find(ctx, r.Which.Session)
	if err != nil {
		return err
	}
	return r.resume(ctx, f)
}

// sessions are all of the store, the newest used first.
func (r *run) sessions(ctx context.Context) ([]lead.Found, error) {
	page, broken, err := r.Book.Read()
	if err != nil {
		return nil, err
	}
	if broken != nil {
		r.out.note("sessions", "the list of sessions is unreadable and is passed over: "+broken.Error())
	}
	var bots []protocol.Bot
	for b, err := range r.c.Bots(ctx) {
		if err != nil {
			return nil, err
		}
		bots = append(bots, *b)
	}
	return lead.Sessions(r.Link.Ready.Store.Identity, page, bots), nil
}

func (r *run) find(ctx context.Context, word string) (*lead.Found, error) {
	all, err := r.sessions(ctx)
	if err != nil {
		return nil, err
	}
	return lead.OneNamed(word, all, lead.Titles(ctx, r.c))
}

// newest is the session of the folder that was used last.
func (r *run) newest(ctx context.Context) error {
	all, err := r.sessions(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(f lead.Found) bool {
		return f.WorksIn(r.Folder.Path) && !f.Archived && !f.Gone() && f.Kind != lead.KindHome && f.Kind != lead.KindTask
	})
	if i < 0 {
		return protocol.Fail(protocol.BotNotFound, "no session works in "+r.Folder.Path+"; without --continue a new one is made")
	}
	return r.resume(ctx, &all[i])
}

// resume goes on with a session.
func (r *run) resume(ctx context.Context, f *lead.Found) (err error) {
	r.kept = f.Session
	r.bot, err = r.c.Inspect(ctx, f.Bot)
	if err != nil {
		return err
	}
	if r.bot.ID != f.BotID {
		return protocol.Fail(lead.SessionGone, "the bot of session "+f.Bot+" is gone, and its name is another's now")
	}
	if err := lost(f, r.bot); err != nil {
		return err
	}
	return r.keep()
}

// fork makes a session that goes on from another's history.
func (r *run) fork(ctx context.Context) error {
	f, err := r.find(ctx, r.Which.Fork)
	if err != nil {
		return err
	}
	source, err := r.c.Inspect(ctx, f.Bot)
	if err != nil {
		return err
	}
	if err := lost(f, source); err != nil {
		return err
	}
	req := &protocol.Fork{Source: f.Bot, Bot: f.Bot + "-fork-" + suffix()}
	if source.Workspace != nil {
		req.Workspace = *source.Workspace
	}
	if r.bot, err = r.c.Fork(ctx, req); err != nil {
		return err
	}
	r.made = true
	r.kept = f.Forked(r.bot)
	return r.keep()
}

// lost says that a session cannot go on where it works: its bot's folder, or the repository
// that this was of, is not there any more.
func lost(f *lead.Found, b *protocol.Bot) error {
	if b.Workspace == nil {
		return nil
	}
	return lead.Lost(*b.Workspace, f.Repo)
}

// suffix tells runs of one moment apart.
func suffix() string { return strings.ToLower(rand.Text()[:6]) }

// makeNew makes a bot for the folder, in a worktree of its own where one was asked for.
// What fails leaves neither.
func (r *run) makeNew(ctx context.Context) error {
	model, err := r.pickModel(ctx)
	if err != nil {
		return err
	}
	project, err := r.project(ctx)
	if err != nil {
		return err
	}
	p := &lead.Plan{
		Folder: r.Folder, Project: project, Name: lead.HeadlessName(project, suffix()), Store: r.Store,
		Model: model, Effort: r.Effort, Settings: r.Settings, Tools: r.Link.Ready.Tools, ClientTools: r.ClientTools, Only: r.Only,
	}
	if err := p.CheckOnly(); err != nil {
		return err
	}
	if r.Worktree != nil {
		if err := r.plant(ctx, p); err != nil {
			return err
		}
	}
	if err := r.makeBot(ctx, p); err != nil {
		return errors.Join(err, r.tree.undo(ctx))
	}
	return nil
}

func (r *run) makeBot(ctx context.Context, p *lead.Plan) error {
	if err := r.Link.Covers(p.Sandbox(), p.Folder.Path, p.Roots()); err != nil {
		return err
	}
	c, err := r.Compose(p.Folder, p.Project, r.Role)
	if err != nil {
		return err
	}
	for _, l := range c.Left {
		r.out.note("not_taken", l.Path+" was not taken: "+l.Why)
	}
	p.Instructions, p.Rules = c.Text, r.Rules(0)
	r.inRole(p, c.Role)
	if r.Schema != nil {
		p.Instructions += "\n" + r.Schema.Standing()
	}
	if err := r.Book.Change(func(page *lead.Page) error {
		page.Projects[r.Folder.Home] = p.Project
		return nil
	}); err != nil {
		return err
	}
	if r.bot, err = p.Make(ctx, r.c); err != nil {
		return err
	}
	r.made = true
	r.kept = lead.Session{
		Store: r.Link.Ready.Store.Identity, BotID: r.bot.ID, Bot: r.bot.Name, Folder: p.Folder.Path,
		Project: p.Project, Kind: lead.KindExec, Repo: p.Folder.Repo,
	}
	if r.Ephemeral {
		return nil
	}
	return r.keep()
}

// inRole takes from a role what the line does not say.
func (r *run) inRole(p *lead.Plan, role *instructions.Role) {
	if role == nil {
		return
	}
	if r.UseModel == "" && role.Model != "" {
		p.Model, r.suggest = role.Model, false
	}
	if r.UseEffort == "" && role.Effort != "" {
		p.Effort = role.Effort
	}
	if p.Only == nil {
		p.Only = role.Tools
	}
}

// keep notes in the book that the session was used.
func (r *run) keep() error {
	r.kept.Opened = r.out.now().UTC()
	return r.Book.Change(func(page *lead.Page) error {
		page.Put(r.kept)
		return nil
	})
}

// project is the name of the folder's project, as far as no other folder has it.
func (r *run) project(ctx context.Context) (string, error) {
	page, _, err := r.Book.Read()
	if err != nil {
		return "", err
	}
	name := r.Project
	if name == "" {
		if name = page.Projects[r.Folder.Home]; name == "" {
			name = r.Folder.PlainName()
		}
	}
	var failed error
	name, _, taken, err := r.Folder.Free(name, func(bot string) *protocol.Bot {
		b, err := r.c.Inspect(ctx, bot)
		if err != nil && !errors.Is(err, protocol.BotNotFound) {
			failed = err
		}
		return b
	})
	if failed != nil || err != nil {
		return "", errors.Join(failed, err)
	}
	if taken {
		r.out.note("project_name", "another folder's lead has the plain name; this project is "+name)
	}
	return name, nil
}

// pickModel is the model of a new bot: the one that is set, else the suggestion.
func (r *run) pickModel(ctx context.Context) (string, error) {
	if r.Model != "" {
		return r.Model, nil
	}
	r.suggest = true
	return lead.SuggestFrom(ctx, r.c, r.Link.Ready.Providers, r.Models)
}

// tellSession says which bot works.
func (r *run) tellSession() {
	b := r.bot
	r.model = b.ModelRef()
	if !r.Which.fresh() && r.UseModel != "" {
		r.model = r.UseModel
	}
	e := &sessionEvent{
		BotID: b.ID, Session: r.kept.Title, Model: r.model, Suggested: r.suggest, Effort: "default",
		Row: rowOf(b), Sandbox: lead.Confined(b).Sandbox, Network: b.Network, Created: r.made, Version: r.Version,
	}
	if e.Session == "" {
		e.Session = b.Name
	}
	if b.Workspace != nil {
		e.Workspace = *b.Workspace
	}
	if b.Reasoning != nil {
		e.Effort = *b.Reasoning
	}
	if e.Sandbox == protocol.SandboxFull {
		e.Network = true
	}
	if r.tree != nil {
		e.Branch = r.tree.made.Branch
	}
	r.out.tell(e)
}

// rowOf is the row of a bot as a run without anybody to ask has it.
func rowOf(b *protocol.Bot) string {
	c := lead.Confined(b)
	switch row := c.Row(); {
	case row == lead.Manual, row == "" && c.Gate == "" && c.Other == "" && c.Sandbox == protocol.SandboxWorkspace:
		return string(lead.Deny)
	case row != "":
		return string(row)
	}
	return "custom"
}

// prepare readies the bot for the turn: its rules, its budget, who judges its calls.
func (r *run) prepare(ctx context.Context, stats *protocol.Stats) error {
	if !r.made {
		if err := r.freshRules(ctx); err != nil {
			return err
		}
	}
	if err := r.capTokens(ctx); err != nil {
		return err
	}
	if lead.Confined(r.bot).Gate == lead.Auto {
		return r.judged(ctx, stats)
	}
	return nil
}

// freshRules sends the command rules that hold now to a session that is taken up. A bot
// that another's rules bind has none of its own.
func (r *run) freshRules(ctx context.Context) error {
	_, err := lead.SendRules(ctx, r.c, r.bot, r.Rules(r.bot.ID))
	if errors.Is(err, protocol.RulesInherited) {
		return nil
	}
	return err
}

// capTokens gives the bot the run's budget, which the daemon holds it to.
func (r *run) capTokens(ctx context.Context) error {
	if r.Budget == 0 {
		return nil
	}
	most := r.bot.TokensUsed + r.Budget
	if own := r.bot.BudgetTokens; own != nil && *own < most {
		return nil // its own is narrower
	}
	b, err := r.c.Configure(ctx, &protocol.Configure{Bot: r.bot.Name, BotID: r.bot.ID, BudgetTokens: protocol.Set(most)})
	if err != nil {
		return err
	}
	r.capped, r.budget, r.bot = true, r.bot.BudgetTokens, b
	return nil
}

// uncap gives the bot its own budget back.
func (r *run) uncap(ctx context.Context) error {
	if !r.capped {
		return nil
	}
	change := &protocol.Configure{Bot: r.bot.Name, BotID: r.bot.ID, BudgetTokens: protocol.Null[int64]()}
	if r.budget != nil {
		change.BudgetTokens = protocol.Set(*r.budget)
	}
	_, err := r.c.Configure(ctx, change)
	return err
}

// judged sees to it that somebody judges the bot's calls. A companion that is down is
// started again; the prompt is sent all the same, since an unjudged call only expires.
func (r *run) judged(ctx context.Context, stats *protocol.Stats) error {
	if slices.Contains(stats.Approvers, lead.Auto.Tag()) {
		return nil
	}
	const approver = "approver"
	if slices.ContainsFunc(stats.Companions, func(c protocol.Companion) bool { return c.Name == approver && c.PID == nil }) {
		if _, err := r.c.RestartCompanions(ctx, approver); err != nil {
			return err
		}
	}
	r.out.note("approver_down", "nobody judges calls that leave the sandbox yet; one that nobody judges expires and is not run")
	return nil
}
