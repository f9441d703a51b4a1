package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agent/client"
	"agent/client/termsafe"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/usage"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// everyApproval picks all calls that wait.
var everyApproval = client.ApprovalFilter{}

// sessionsVerb is sonny sessions (sonny.md 26).
func (a *app) sessionsVerb() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: "sessions", Short: "The folder's sessions, and what is done with them", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sessionsList(cmd, all) },
	}
	list := &cobra.Command{
		Use: "list", Short: "List them: pinned ones first, then those that need you, then the newest", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sessionsList(cmd, all) },
	}
	for _, c := range []*cobra.Command{cmd, list} {
		c.Flags().BoolVar(&all, "all", false, "of every folder, archived ones and the judges' bots too")
		c.Flags().BoolVar(&a.json, "json", false, "one JSON list")
	}
	yes := false
	rm := &cobra.Command{
		Use: "rm SESSION", Short: "Delete a session and its bot", Args: cobra.ExactArgs(1),
		RunE: personal(func(cmd *cobra.Command, args []string) error { return a.sessionsRemove(cmd, args[0], yes) }),
	}
	rm.Flags().BoolVar(&yes, "yes", false, "ask nothing")
	mark := func(use, short string, change func(*lead.Session)) *cobra.Command {
		return &cobra.Command{
			Use: use + " SESSION", Short: short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return a.sessionsChange(cmd, args[0], change) },
		}
	}
	cmd.AddCommand(
		list,
		&cobra.Command{
			Use: "rename SESSION TITLE", Short: "Give it a title", Args: cobra.MinimumNArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				title := strings.Join(strings.Fields(strings.Join(args[1:], " ")), " ")
				if len(title) > maxTitleBytes {
					return usagef("a title has at most %d bytes", maxTitleBytes)
				}
				return a.sessionsChange(cmd, args[0], func(s *lead.Session) { s.Title = title })
			},
		},
		mark("archive", "Hide it from lists and from opening by itself", func(s *lead.Session) { s.Archived = true }),
		mark("unarchive", "Show it again", func(s *lead.Session) { s.Archived = false }),
		&cobra.Command{
			Use: "fork SESSION [NAME]", Short: "Make a session that goes on from its history", Args: cobra.RangeArgs(1, 2),
			RunE: func(cmd *cobra.Command, args []string) error { return a.sessionsFork(cmd, args) },
		},
		rm,
		a.exportCommand(),
	)
	return cmd
}

// maxTitleBytes bounds a title.
const maxTitleBytes = 256

// shownSession is one session of sessions --json.
type shownSession struct {
	Title    string    `json:"title"`
	Bot      string    `json:"bot"`
	BotID    int64     `json:"bot_id"`
	State    string    `json:"state"`         // gone: its bot is no more
	Last     time.Time `json:"last,omitzero"` // activity; UTC
	Turns    int64     `json:"turns"`
	Tokens   int64     `json:"tokens"`
	Folder   string    `json:"folder"`
	Project  string    `json:"project"`
	Kind     string    `json:"kind"`
	Archived bool      `json:"archived"`
	Pinned   bool      `json:"pinned"`
	ForkOf   int64     `json:"fork_of,omitempty"`
}

// state says gone for a session whose bot is no more.
const gone = "gone"

func (a *app) sessionsList(cmd *cobra.Command, all bool) error {
	w, link, err := a.reach(cmd)
	if err != nil {
		return err
	}
	shown := []shownSession{}
	all = all || w.nowhere
	if link != nil {
		defer link.Close()
		if shown, err = a.shownSessions(cmd.Context(), w, link, all); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(shown)
	}
	headings := []string{"TITLE", "BOT", "STATE", "LAST", "TURNS", "TOKENS"}
	if all {
		headings = append(headings, "FOLDER")
	}
	var rows [][]string
	for _, s := range shown {
		title := s.Title
		if s.Pinned {
			title = "* " + title
		}
		row := []string{title, s.Bot, s.State, when(s.Last), strconv.FormatInt(s.Turns, 10), usage.Short(s.Tokens)}
		if all {
			row = append(row, s.Folder)
		}
		rows = append(rows, row)
	}
	a.table(headings, rows)
	return nil
}

// shownSessions are those of the folder, or all, in the order of lists.
func (a *app) shownSessions(ctx context.Context, w *around, link *connect.Link, all bool) ([]shownSession, error) {
	world, err := worldOf(ctx, link)
	if err != nil {
		return nil, err
	}
	found, err := a.found(w, link, world)
	if err != nil {
		return nil, err
	}
	title := lead.Titles(ctx, link.Client)
	shown := []shownSession{}
	for i := range found {
		f := &found[i]
		if !all && (f.Folder != w.folder.Path || f.Archived) {
			continue
		}
		s, err := shownOf(ctx, link, world, f, title(f))
		if err != nil {
			return nil, err
		}
		shown = append(shown, s)
	}
	if all {
		shown = append(shown, judges(world)...)
	}
	slices.SortStableFunc(shown, func(x, y shownSession) int {
		return cmp.Or(after(x.Pinned, y.Pinned), after(x.State == live.NeedsYou.String(), y.State == live.NeedsYou.String()), y.Last.Compare(x.Last))
	})
	return shown, nil
}

// after puts what is true first.
func after(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// found are the sessions of the store. An unreadable list of them is a notice.
func (a *app) found(w *around, link *connect.Link, world *live.World) ([]lead.Found, error) {
	page, broken, err := lead.BookIn(w.sonny).Read()
	if err != nil {
		return nil, err
	}
	if broken != nil {
		a.notice("the list of sessions is unreadable and is passed over: " + broken.Error())
	}
	return lead.Sessions(link.Ready.Store.Identity, page, world.Records()), nil
}

func shownOf(ctx context.Context, link *connect.Link, world *live.World, f *lead.Found, title string) (shownSession, error) {
	s := shownSession{
		Title: cmp.Or(title, f.Bot), Bot: f.Bot, BotID: f.BotID, State: gone, Folder: f.Folder, Project: f.Project,
		Kind: string(f.Kind), Archived: f.Archived, Pinned: f.Pinned, ForkOf: f.ForkOf,
	}
	s.Last = f.Opened.UTC()
	if f.Gone() {
		return s, nil
	}
	s.Bot, s.Tokens = f.Record.Name, f.Record.TokensUsed
	if b := world.Bot(f.Record.Name); b != nil {
		s.State = b.State(world.Paused != nil).String()
	}
	for t, err := range link.Turns(ctx, f.Record.Name, 0) {
		if err != nil {
			return s, err
		}
		s.Turns++
		for _, ms := range []*int64{t.StartedMS, t.FinishedMS} {
			if ms != nil && time.UnixMilli(*ms).After(s.Last) {
				s.Last = time.UnixMilli(*ms).UTC()
			}
		}
	}
	return s, nil
}

// judges are the bots that the automatic approver judges by.
func judges(world *live.World) (out []shownSession) {
	for b := range world.Bots() {
		if lead.Judge(&b.Record) {
			out = append(out, shownSession{
				Title: b.Record.Name, Bot: b.Record.Name, BotID: b.Record.ID, State: b.State(world.Paused != nil).String(),
				Tokens: b.Record.TokensUsed, Kind: "judge",
			})
		}
	}
	return out
}

// one reaches the daemon and finds the session that a word names. A session whose bot
// is gone is found too. The caller closes the link.
func (a *app) one(cmd *cobra.Command, word string) (*around, *connect.Link, *lead.Found, *live.World, error) {
	w, link, err := a.reach(cmd)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	if link == nil {
		return nil, nil, nil, nil, protocol.Fail(protocol.BotNotFound, "there are no sessions yet")
	}
	world, err := worldOf(cmd.Context(), link)
	if err == nil {
		var all []lead.Found
		if all, err = a.found(w, link, world); err == nil {
			var f *lead.Found
			if f, err = lead.OneNamed(word, all, lead.Titles(cmd.Context(), link.Client)); err == nil {
				return w, link, f, world, nil
			}
		}
	}
	link.Close()
	return nil, nil, nil, nil, err
}

// sessionsChange changes what Sonny keeps of a session.
func (a *app) sessionsChange(cmd *cobra.Command, word string, change func(*lead.Session)) error {
	w, link, f, _, err := a.one(cmd, word)
	if err != nil {
		return err
	}
	defer link.Close()
	return lead.BookIn(w.sonny).Change(func(p *lead.Page) error {
		s := f.Session
		if kept := p.Of(s.Store, s.BotID); kept != nil {
			s = *kept
		}
		change(&s)
		p.Put(s)
		return nil
	})
}

func (a *app) sessionsFork(cmd *cobra.Command, args []string) error {
	w, link, f, world, err := a.one(cmd, args[0])
	if err != nil {
		return err
	}
	defer link.Close()
	req := &protocol.Fork{Source: f.Record.Name, Workspace: f.Folder}
	if len(args) > 1 {
		req.Bot = args[1]
	} else {
		req.Bot = lead.ForkName(f.Record.Name, func(name string) bool { return world.Bot(name) != nil })
	}
	bot, err := link.Fork(cmd.Context(), req)
	if err != nil {
		return err
	}
	s := f.Forked(bot)
	if err := lead.BookIn(w.sonny).Change(func(p *lead.Page) error {
		p.Put(s)
		return nil
	}); err != nil {
		return err
	}
	a.say("%s", bot.Name)
	return nil
}

func (a *app) sessionsRemove(cmd *cobra.Command, word string, yes bool) error {
	w, link, err := a.reach(cmd)
	if err != nil {
		return err
	}
	if link == nil {
		return protocol.Fail(protocol.BotNotFound, "there are no sessions yet")
	}
	defer link.Close()
	ctx := cmd.Context()
	world, err := worldOf(ctx, link)
	if err != nil {
		return err
	}
	all, err := a.found(w, link, world)
	if err != nil {
		return err
	}
	f, err := a.removable(ctx, link, word, all)
	if err != nil {
		return err
	}
	if err := a.confirmRemoval(world, f, lead.Hidden(all), yes); err != nil {
		return err
	}
	if !f.Gone() {
		if _, err := link.Delete(ctx, f.Record.Name); err != nil {
			return err
		}
		a.notice(f.Record.Name + " is deleted; the free pages of the store's file are not scrubbed")
	}
	return lead.BookIn(w.sonny).Change(func(p *lead.Page) error {
		p.Forget(f.Store, f.BotID)
		return nil
	})
}

// removable is the session that a word names, one that is gone too.
func (a *app) removable(ctx context.Context, link *connect.Link, word string, all []lead.Found) (*lead.Found, error) {
	title := lead.Titles(ctx, link.Client)
	named := lead.Named(word, all, title)
	if len(named) == 1 {
		return &named[0], nil
	}
	return lead.OneNamed(word, all, title)
}

// confirmRemoval asks, and names the tasks that stay.
func (a *app) confirmRemoval(world *live.World, f *lead.Found, own map[int64]bool, yes bool) error {
	if f.Gone() || yes {
		return nil
	}
	if !isTerminal(a.stdin) {
		return usagef("rm deletes the bot %s for good: give --yes where nobody can be asked", f.Record.Name)
	}
	var stay []string
	for _, t := range lead.Tasks(f.Record, f.Project, world.Records(), own) {
		stay = append(stay, t.Name)
	}
	question := "delete " + f.Record.Name + " and all that was said with it?"
	if len(stay) > 0 {
		question += " Its tasks stay: " + strings.Join(stay, ", ") + "."
	}
	fmt.Fprintf(a.stderr, "%s [y/N] ", termsafe.OneLine(question))
	answer, _ := bufio.NewReader(a.stdin).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return protocol.Fail("failed", "nothing was deleted")
	}
	return nil
}
