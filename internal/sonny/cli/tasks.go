package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"agent/client"
	"agent/client/termsafe"
	"agent/internal/place"
	"agent/internal/sonny/config"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/lead"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// tasksVerb is sonny tasks: the work that a lead has given away (sonny.md 5).
func (a *app) tasksVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tasks [LEAD]", Short: "The tasks of a folder's lead: list, start, stop, look at, merge, remove",
		Long: "Without another word it lists the tasks of LEAD, by default the folder's newest lead.\nA task is named without its project's prefix, or whole.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			of := ""
			if len(args) == 1 {
				of = args[0]
			}
			return a.withTasks(cmd, of, func(t *taskDesk) error { return t.list() })
		},
	}
	var of string
	cmd.PersistentFlags().BoolVar(&a.json, "json", false, "one JSON object")
	on := func(use, short string, args int, run func(*taskDesk, []string) error) *cobra.Command {
		sub := &cobra.Command{
			Use: use, Short: short, Args: cobra.ExactArgs(args),
			RunE: personal(func(cmd *cobra.Command, args []string) error {
				return a.withTasks(cmd, of, func(t *taskDesk) error { return run(t, args) })
			}),
		}
		sub.Flags().StringVar(&of, "lead", "", "whose task; the folder's newest `LEAD`")
		cmd.AddCommand(sub)
		return sub
	}
	a.taskStart(on)
	on("stop NAME", "Interrupt what a task does", 1, func(t *taskDesk, args []string) error { return t.stop(args[0]) })
	a.taskRemove(on)
	diff := on("diff NAME", "Show what a task has changed", 1, func(t *taskDesk, args []string) error { return t.diff(args[0]) })
	diff.Long = "Against the newest commit that its branch and the lead's folder share; what the task has not committed is in it."
	a.taskMerge(on)
	return cmd
}

// adding adds a subcommand that works on a lead's tasks.
type adding func(use, short string, args int, run func(*taskDesk, []string) error) *cobra.Command

func (a *app) taskStart(on adding) {
	var r lead.TaskRequest
	var worktree, yes bool
	cmd := on("start NAME BRIEF", "Start a task", 2, func(t *taskDesk, args []string) error {
		r.Name, r.Brief = args[0], args[1]
		if t.cmd.Flags().Changed("worktree") {
			r.Worktree = &worktree
		}
		r.Model, r.Effort, r.Sandbox = a.flags.model, a.flags.effort, a.flags.sandbox
		if a.flags.network != "" {
			network := a.flags.network == "on"
			r.Network = &network
		}
		return t.start(r, yes)
	})
	f := cmd.Flags()
	f.StringVar(&r.Role, "role", "", "start it in `ROLE`")
	f.BoolVar(&worktree, "worktree", true, "a worktree and a branch of its own; --worktree=false: in the lead's folder")
	f.StringVar(&r.Base, "base", "", "the `COMMIT` that its worktree begins at (HEAD)")
	f.StringVar(&r.Folder, "folder", "", "work in `DIR`, one that the lead may write")
	f.Int64Var(&r.BudgetTokens, "budget-tokens", 0, "end it after `N` tokens")
	f.BoolVar(&yes, "yes", false, "run the repository's setup without asking")
}

func (a *app) taskRemove(on adding) {
	var worktree, branch, yes bool
	cmd := on("rm NAME", "Remove a task that has ended", 1, func(t *taskDesk, args []string) error {
		return t.remove(args[0], worktree || branch, branch, yes)
	})
	cmd.Flags().BoolVar(&worktree, "worktree", false, "remove its worktree, too")
	cmd.Flags().BoolVar(&branch, "branch", false, "remove its worktree and its branch, too")
	cmd.Flags().BoolVar(&yes, "yes", false, "even if work is lost that is not committed or not merged")
}

func (a *app) taskMerge(on adding) {
	how := string(lead.MergeCommit)
	var commit, without bool
	cmd := on("merge NAME", "Bring a task's commits to the branch of the lead's folder", 1, func(t *taskDesk, args []string) error {
		return t.merge(args[0], lead.MergeStrategy(how), commit, without)
	})
	cmd.Flags().Var(oneOf(&how, string(lead.MergeCommit), string(lead.MergeSquash), string(lead.MergeRebase)), "strategy", "merge, squash or rebase")
	cmd.Flags().BoolVar(&commit, "commit", false, "first commit what the task has left uncommitted")
	cmd.Flags().BoolVar(&without, "without-uncommitted", false, "merge without what the task has left uncommitted")
}

// taskDesk is one command on a lead's tasks.
type taskDesk struct {
	a     *app
	w     *around
	cmd   *cobra.Command
	ctx   context.Context
	link  *connect.Link
	store string // the store's path
	lead  lead.Found
	bots  []protocol.Bot
	own   map[int64]bool  // bots that are sessions of their own
	waits map[string]bool // bots that wait for a verdict
}

// withTasks finds the lead and runs a command on its tasks.
func (a *app) withTasks(cmd *cobra.Command, of string, run func(*taskDesk) error) error {
	w, err := a.lookToShow(cmd)
	if err != nil {
		return err
	}
	o := w.link()
	if os.Getenv("AGENT_BOT") != "" {
		o.Companions = nil // a bot looks, and sets nothing
	}
	link, err := connect.Open(cmd.Context(), o)
	if err != nil {
		return err
	}
	defer link.Close()
	t := &taskDesk{a: a, w: w, cmd: cmd, ctx: cmd.Context(), link: link, store: link.Target.Store, waits: map[string]bool{}}
	if err := t.read(of); err != nil {
		return err
	}
	return run(t)
}

// read reads the bots and finds the lead: the folder's newest, or one by its name.
func (t *taskDesk) read(of string) error {
	for b, err := range t.link.Bots(t.ctx) {
		if err != nil {
			return err
		}
		t.bots = append(t.bots, *b)
	}
	for call, err := range t.link.Approvals(t.ctx, client.ApprovalFilter{}) {
		if err != nil {
			return err
		}
		t.waits[call.Bot] = true
	}
	page, broken, err := lead.BookIn(t.w.sonny).Read()
	if err != nil {
		return err
	}
	if broken != nil {
		fmt.Fprintf(t.a.stderr, "sonny: %s\n", termsafe.OneLine(broken.Error()))
	}
	all := lead.Sessions(t.link.Ready.Store.Identity, page, t.bots)
	t.own = lead.Hidden(all)
	found := lead.Leads(t.w.folder.Path, t.link.Ready.Store.Identity, page, t.bots)
	if of != "" {
		found = all
	}
	for _, f := range found {
		if !f.Gone() && (of == "" || f.Bot == of || f.Title == of) {
			t.lead = f
			return nil
		}
	}
	if of != "" {
		return protocol.Fail(protocol.BotNotFound, of+" is no lead; sonny sessions lists them")
	}
	return protocol.Fail(protocol.BotNotFound, t.w.folder.Path+" has no lead yet; sonny makes one, or name one of another folder")
}

// task is a task of the lead by its name, with or without the prefix.
func (t *taskDesk) task(name string) (*protocol.Bot, error) {
	for _, b := range lead.Tasks(t.lead.Record, t.lead.Project, t.bots, t.own) {
		if b.Name == name || b.Name == t.lead.Project+"."+name {
			return b, nil
		}
	}
	return nil, protocol.Fail(protocol.BotNotFound, name+" is no task of "+t.lead.Bot+"; sonny tasks lists them")
}

// treeOf is the worktree of a task that has one.
func (t *taskDesk) treeOf(b *protocol.Bot) (*lead.TaskTree, error) {
	tree, err := lead.TreeOf(t.w.sonny, t.store, b)
	if err == nil && tree == nil {
		err = protocol.Fail(protocol.WorktreeNeedsGit, b.Name+" works in no worktree that Sonny made; its changes are in its folder")
	}
	return tree, err
}

// taskRow is a task as a list has it.
type taskRow struct {
	Bot       string  `json:"bot"`
	BotID     int64   `json:"bot_id"`
	State     string  `json:"state"`
	Workspace *string `json:"workspace"`
	Branch    string  `json:"branch,omitempty"`
	Model     string  `json:"model"`
	Tokens    int64   `json:"tokens_used"`
	Budget    *int64  `json:"budget_tokens,omitempty"`
	*lead.TreeState
}

func (t *taskDesk) list() error {
	rows := []taskRow{}
	for _, b := range lead.Tasks(t.lead.Record, t.lead.Project, t.bots, t.own) {
		row := taskRow{Bot: b.Name, BotID: b.ID, State: b.Status, Workspace: b.Workspace, Model: b.ModelRef(), Tokens: b.TokensUsed, Budget: b.BudgetTokens}
		if t.waits[b.Name] {
			row.State = "needs you"
		}
		if tree, err := lead.TreeOf(t.w.sonny, t.store, b); err == nil && tree != nil {
			row.Branch = tree.Branch()
			row.TreeState, _ = tree.State(t.ctx) // a worktree that is gone has none
		}
		rows = append(rows, row)
	}
	if t.a.json {
		return t.print(struct {
			Lead  string    `json:"lead"`
			Tasks []taskRow `json:"tasks"`
		}{t.lead.Bot, rows})
	}
	if len(rows) == 0 {
		fmt.Fprintf(t.a.stdout, "%s has no tasks\n", termsafe.OneLine(t.lead.Bot))
		return nil
	}
	out := tabwriter.NewWriter(t.a.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "TASK\tSTATE\tUNMERGED\tUNCOMMITTED\tFOLDER")
	for _, r := range rows {
		unmerged, uncommitted, folder := "-", "-", "-"
		if r.TreeState != nil {
			unmerged, uncommitted = fmt.Sprint(r.Unmerged), fmt.Sprint(len(r.Uncommitted))
		}
		if r.Workspace != nil {
			folder = *r.Workspace
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", termsafe.OneLine(r.Bot), r.State, unmerged, uncommitted, termsafe.OneLine(folder))
	}
	return out.Flush()
}

// print prints one JSON object.
func (t *taskDesk) print(v any) error { return t.a.printJSON(v) }

// starter starts tasks as the person.
func (t *taskDesk) starter() (*lead.TaskStarter, error) {
	settings, err := t.w.lead()
	if err != nil {
		return nil, err
	}
	home, err := place.Home()
	if err != nil {
		return nil, err
	}
	without, err := config.OpenedWithout(t.w.trustFile(), t.lead.Folder)
	return &lead.TaskStarter{
		Client: t.link.Client, Store: t.store, Sonny: t.w.sonny, Lead: t.lead.Record, Project: t.lead.Project,
		Repo: t.lead.Repo, Settings: settings, Compose: lead.TaskComposer(home, texts(t.w.config)), NoFolderFiles: without,
		Keys: lead.KeyVariables(t.link.Ready),
	}, err
}

// start starts a task. The person is asked where the repository's setup would run.
func (t *taskDesk) start(r lead.TaskRequest, yes bool) error {
	s, err := t.starter()
	if err != nil {
		return err
	}
	start, err := s.Resolve(t.ctx, r)
	if err != nil {
		return err
	}
	if start.Setup != nil && !yes {
		if err := t.askSetup(start); err != nil {
			return err
		}
	}
	out := termsafe.NewWriter(t.a.stderr)
	s.Output = out
	started, err := start.Do(t.ctx)
	out.Flush()
	if err != nil {
		return err
	}
	if t.a.json {
		return t.print(started)
	}
	fmt.Fprintf(t.a.stdout, "%s works in %s\n", termsafe.OneLine(started.Bot), termsafe.OneLine(started.Workspace))
	if started.Note != "" {
		fmt.Fprintf(t.a.stderr, "sonny: %s\n", termsafe.OneLine(started.Note))
	}
	return nil
}

// askSetup shows the setup and asks whether it is to run.
func (t *taskDesk) askSetup(start *lead.TaskStart) error {
	refused := protocol.Fail(protocol.ApprovalDenied, start.Setup.Path+" would run unconfined, as you, and you did not say yes; nothing was made")
	if !isTerminal(t.a.stdin) {
		refused.Detail += ". Read it, and say --yes"
		return refused
	}
	fmt.Fprintf(t.a.stderr, "%s would run in %s, unconfined, as you:\n\n%s\n\nRun it? [y/N] ",
		termsafe.OneLine(start.Setup.Path), termsafe.OneLine(start.Tree.Path), termsafe.Prose.Text(string(start.Setup.Text)))
	var answer string
	_, _ = fmt.Fscanln(t.a.stdin, &answer)
	if answer != "y" && answer != "yes" {
		return refused
	}
	return nil
}

func (t *taskDesk) stop(name string) error {
	b, err := t.task(name)
	if err != nil {
		return err
	}
	if b.RunningTurn == nil {
		return t.said(b.Name, "is at rest already", nil)
	}
	if _, err = t.link.Interrupt(t.ctx, b.Name, *b.RunningTurn, "sonny tasks stop"); err != nil {
		return err
	}
	return t.said(b.Name, "is stopped", nil)
}

// said tells what was done.
func (t *taskDesk) said(bot, what string, more map[string]any) error {
	if t.a.json {
		out := map[string]any{"bot": bot, "done": what}
		for key, value := range more {
			out[key] = value
		}
		return t.print(out)
	}
	fmt.Fprintf(t.a.stdout, "%s %s\n", termsafe.OneLine(bot), termsafe.OneLine(what))
	return nil
}

// rests refuses what must not happen under a task that works.
func rests(b *protocol.Bot) error {
	if b.RunningTurn != nil {
		return protocol.Fail(protocol.BotBusy, b.Name+" is at work; wait for it, or sonny tasks stop it")
	}
	return nil
}

// remove removes the bot, and on demand its worktree and its branch. Work that would be
// lost is named, and is lost only when the person says so.
func (t *taskDesk) remove(name string, worktree, branch, yes bool) error {
	b, err := t.task(name)
	if err == nil {
		err = rests(b)
	}
	if err != nil {
		return err
	}
	tree, err := lead.TreeOf(t.w.sonny, t.store, b)
	if err != nil {
		return err
	}
	if tree != nil && worktree && !yes {
		if err := t.mayLose(tree, branch); err != nil {
			return err
		}
	}
	if _, err := t.link.Delete(t.ctx, b.Name); err != nil && !errors.Is(err, protocol.BotNotFound) {
		return err
	}
	switch {
	case tree == nil:
		return t.said(b.Name, "is removed", nil)
	case branch:
		err = tree.Remove(t.ctx)
	case worktree:
		err = tree.RemoveFolder(t.ctx)
	default:
		return t.said(b.Name, "is removed; "+tree.Tree.Top+" and the branch "+tree.Branch()+" are left", nil)
	}
	if err != nil {
		return err
	}
	tree.Forget(t.w.sonny)
	if !branch {
		return t.said(b.Name, "is removed with its worktree; the branch "+tree.Branch()+" is left", nil)
	}
	return t.said(b.Name, "is removed with its worktree and its branch", nil)
}

// mayLose names the work that would be lost.
func (t *taskDesk) mayLose(tree *lead.TaskTree, branch bool) error {
	state, err := tree.State(t.ctx)
	if err != nil {
		return err
	}
	var lost []string
	if n := len(state.Uncommitted); n > 0 {
		lost = append(lost, fmt.Sprintf("%d uncommitted paths (%s)", n, few(state.Uncommitted)))
	}
	if branch && state.Unmerged > 0 {
		lost = append(lost, fmt.Sprintf("%d unmerged commits of %s", state.Unmerged, tree.Branch()))
	}
	if len(lost) == 0 {
		return nil
	}
	return protocol.Fail("work_lost", strings.Join(lost, " and ")+" would be lost; merge it (sonny tasks merge), or say --yes. Nothing was removed")
}

// few names the first of many paths.
func few(paths []string) string {
	const most = 5
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return strings.Join(paths[:most], ", ") + fmt.Sprintf(" and %d more", len(paths)-most)
}

func (t *taskDesk) diff(name string) error {
	b, err := t.task(name)
	if err != nil {
		return err
	}
	tree, err := t.treeOf(b)
	if err != nil {
		return err
	}
	text, cut, err := tree.Diff(t.ctx)
	if err != nil {
		return err
	}
	if t.a.json {
		return t.print(struct {
			Bot  string `json:"bot"`
			Diff string `json:"diff"`
			Cut  bool   `json:"cut"`
		}{b.Name, text, cut})
	}
	if isTerminal(t.a.stdout) {
		text = termsafe.Prose.Text(text)
	}
	if text != "" {
		fmt.Fprintln(t.a.stdout, text)
	}
	if cut {
		fmt.Fprintf(t.a.stderr, "sonny: the diff is longer than 1 MiB and is cut; look with git in %s\n", termsafe.OneLine(tree.Tree.Top))
	}
	return nil
}

// merge brings the task's commits to the lead's branch, as the person's own command.
func (t *taskDesk) merge(name string, how lead.MergeStrategy, commit, without bool) error {
	if how != lead.MergeCommit && how != lead.MergeSquash && how != lead.MergeRebase {
		return usagef("--strategy is merge, squash or rebase")
	}
	b, err := t.task(name)
	if err == nil {
		err = rests(b)
	}
	if err != nil {
		return err
	}
	tree, err := t.treeOf(b)
	if err != nil {
		return err
	}
	state, err := tree.State(t.ctx)
	if err != nil {
		return err
	}
	if len(state.Uncommitted) > 0 && !without {
		if !commit {
			return protocol.Fail("merge_refused", fmt.Sprintf("%s has left %d paths uncommitted (%s); say --commit to commit them there first, or --without-uncommitted",
				b.Name, len(state.Uncommitted), few(state.Uncommitted)))
		}
		if err := tree.CommitAll(t.ctx, "What "+b.Name+" left uncommitted", t.bots); err != nil {
			return err
		}
		state.Unmerged++
	}
	if state.Unmerged == 0 {
		return t.said(b.Name, "has nothing to merge", map[string]any{"commits": 0})
	}
	if err := tree.Merge(t.ctx, how, t.bots); err != nil {
		return err
	}
	return t.said(b.Name, "is merged; sonny tasks rm "+name+" --branch removes it", map[string]any{"commits": state.Unmerged})
}
