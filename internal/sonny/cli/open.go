package cli

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/internal/sonny/screen/ahead"

	"agent/client"
	"agent/internal/place"
	"agent/internal/sonny/allow"
	"agent/internal/sonny/config"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/host/questions"
	"agent/internal/sonny/host/tools"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen"
	"agent/internal/sonny/screen/decide"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/theme"
	"agent/internal/sonny/snapshot"
	"agent/protocol"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"
)

// open opens the screen (sonny.md 3.2).
func (a *app) open(cmd *cobra.Command, args []string) error {
	if err := person("the screen"); err != nil {
		return err
	}
	o, err := openingOf(cmd, args)
	if err != nil {
		return err
	}
	return a.show(cmd, o, lead.KindLead)
}

// needsTerminal refuses the screen where there is none.
func (a *app) needsTerminal() error {
	if isTerminal(a.stdin) && isTerminal(a.stdout) {
		return nil
	}
	return protocol.Fail(notATerminal, "the screen needs a terminal on its input and output; sonny exec runs a prompt without one")
}

func isTerminal(stream any) bool {
	f := file(stream)
	return f != nil && xterm.IsTerminal(int(f.Fd()))
}

// show runs the screen on the terminal: what has to be asked first, then the daemon,
// then the bot.
func (a *app) show(cmd *cobra.Command, o opening, kind lead.Kind) error {
	ctx := cmd.Context()
	w, err := a.lookOutside(cmd, o.folder)
	if err != nil {
		return err // a wrong value of the line is named with a terminal and without
	}
	if err := a.needsTerminal(); err != nil {
		return err
	}
	w.tmux = term.AskTmux(ctx, os.Getenv)
	for {
		sitting, err := a.drawn(ctx, w, o, kind)
		if err != nil || sitting == nil {
			return err
		}
		if sitting.Again == "" {
			a.sayLeft(sitting, w.config)
			return nil
		}
		w.again, o = sitting.Again, opening{bot: sitting.Bot}
	}
}

// drawn opens the terminal for the way to draw that holds, and runs the screen on it.
func (a *app) drawn(ctx context.Context, w *around, o opening, kind lead.Kind) (*screen.Sitting, error) {
	t, err := a.openTerminal(w)
	if err != nil {
		return nil, err
	}
	defer w.guard.Watch()()
	defer w.guard.Catch()
	defer t.Close()
	if w.again == "" {
		if goesOn, err := a.askFirst(ctx, w, t, o.bot == "" && kind == lead.KindLead); err != nil || !goesOn {
			return nil, err
		}
	}
	if w.home {
		kind = lead.KindHome
	}
	return a.sit(ctx, w, t, o, kind)
}

// askFirst asks what must be known before anything of the folder is read or a daemon is
// started: a provider, where leads are to be opened whether the home folder is meant, and
// whether the folder's own files are used. It reports whether the screen goes on.
func (a *app) askFirst(ctx context.Context, w *around, t *term.Terminal, leads bool) (bool, error) {
	a.looks(w, t, &w.config.TUI.Theme)(t.Background())
	asked, end := w.asking(t)
	defer end()
	if there, err := w.hasProvider(); err != nil && !w.socket {
		return false, err
	} else if !there && !w.socket {
		if err := a.setupScreen(ctx, w, asked, t); err != nil {
			return false, err
		}
	}
	if leads {
		if goesOn, err := a.askHome(ctx, w, asked); err != nil || !goesOn {
			return false, err
		}
	}
	goesOn, err := a.askTrust(ctx, w, asked)
	if err != nil || !goesOn {
		return false, err
	}
	return a.folderSettings(ctx, w, asked)
}

// askHome asks what is meant by the home folder, before it has a lead. It reports whether the
// screen goes on; w.home is set where it is the person's own agent.
func (a *app) askHome(ctx context.Context, w *around, t ahead.Terminal) (bool, error) {
	if w.folder.Path != place.Real(filepath.Dir(w.agent)) {
		return true, nil
	}
	page, _, err := lead.BookIn(w.sonny).Read()
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(page.Sessions, func(s lead.Session) bool { return s.Folder == w.folder.Path && s.Kind == lead.KindLead }) {
		return true, nil
	}
	ask := &ahead.HomeFolder{Term: t}
	verdict, err := ask.Ask(ctx)
	w.home = verdict == ahead.OwnAgent
	return err == nil && verdict != ahead.Leave, err
}

// folderSettings resolves the settings with the folder's project.toml, and with what
// setup set. One that is invalid can be left out (sonny.md 3.4); it reports whether the
// screen goes on.
func (a *app) folderSettings(ctx context.Context, w *around, t ahead.Terminal) (bool, error) {
	err := a.settings(w)
	if protocol.CodeOf(err) != config.ProjectInvalid {
		return err == nil, err
	}
	ask := &ahead.InvalidProject{Term: t, Fault: err}
	goesOn, err := ask.Ask(ctx)
	if err != nil || !goesOn {
		return false, err
	}
	w.noProject = true
	return true, a.settings(w)
}

// sit reaches the daemon and shows the bot.
func (a *app) sit(ctx context.Context, w *around, t *term.Terminal, o opening, kind lead.Kind) (*screen.Sitting, error) {
	freshSkills(w)
	options, err := a.screenOptions(w, kind)
	if err != nil {
		return nil, err
	}
	reach := w.link()
	link, err := connect.Open(ctx, reach)
	if err != nil {
		return nil, err
	}
	defer link.Close()
	options.Heard = w.log.heard
	options.Term, options.Link, options.Prompt = t, link, o.prompt
	options.Mode, options.Why, options.Crashed = w.mode, w.why, w.guard.Catch
	options.Questions = asked(link.Client, w.sonny)
	options.NewLead = func() (screen.NewLead, error) { return a.newLead(w, kind) }
	options.PlanTask = a.planTask(w, link, kind)
	if options.Bot = o.bot; o.notice != "" {
		options.Notices = append(options.Notices, o.notice)
	}
	options.Start = func(ctx context.Context) error {
		s, err := reach.Starter()
		if err == nil {
			_, _, err = link.Client.Start(ctx, s)
		}
		return err
	}
	options.Doctor = a.checks(w, t)
	options.Fresh = options.Fresh && o.bot == ""
	if self, err := os.Executable(); err == nil {
		options.Self = []string{self}
	}
	shown := &tasting{config: w.config, notices: w.notices, theme: w.config.TUI.Theme}
	options.Look = a.looks(w, t, &shown.theme)
	options.Home, options.Config, options.Reads = filepath.Dir(w.agent), w.path, reads
	options.Held = func() (*config.Config, error) {
		now := *w
		err := a.settings(&now)
		return now.config, err
	}
	options.Themes = func() ([]string, string) { return themes(w), shown.theme }
	options.Theme = func(name string) *protocol.Error {
		shown.theme = name
		return options.Look(t.Background())
	}
	options.Tastes = a.tastes(w, shown, func() *protocol.Error { return options.Look(t.Background()) })
	if fault := options.Look(t.Background()); fault != nil {
		options.Notices = append(options.Notices, fault.Error())
	}
	sitting, err := screen.Run(ctx, *options)
	w.config = shown.config // for the next sitting, and for what is said at the end
	return sitting, err
}

// screenOptions are what the settings and the folder say.
func (a *app) screenOptions(w *around, kind lead.Kind) (*screen.Options, error) {
	made, err := w.newLead(kind)
	if err != nil {
		return nil, err
	}
	settings := made.Settings
	list, err := models()
	if err != nil { // sessions that are there need none of it
		w.notices = append(w.notices, config.Notice{Text: err.Error()})
	}
	taste, faults := a.taste(w, w.config)
	role, served := "lead", tools.Lead
	if kind == lead.KindHome {
		role, served = "home", tools.Home
	}
	return &screen.Options{
		Kind: kind, Own: w.own, NoProject: w.own || w.noProject, Folder: w.folder, Book: lead.BookIn(w.sonny), Settings: settings, Store: w.target.Store,
		Model: made.Model, Effort: made.Effort, Models: list,
		Picked: w.picked,
		Compose: func(project string) (string, string, error) {
			c, err := compose(w, project, role)
			if err != nil {
				return "", "", err
			}
			return c.Text, parts(c), nil
		},
		Rules: w.rules(),
		Kept:  w.sonny, ModelNotes: modelNotes(), Taste: taste,
		ClientTools: tools.For(served, settings.Tasks.SetupTimeout),
		Snapshots:   snapshots(w),
		Notices:     said(w.told(), faults),
		Clock:       shownClock(),
		PaneSplit:   w.config.Panes.Split,
		Fresh:       a.flags.fresh, Version: Version,
	}, nil
}

// newLead is what the settings say of a lead that is made.
func (w *around) newLead(kind lead.Kind) (screen.NewLead, error) {
	settings, err := w.lead()
	if kind == lead.KindHome {
		settings.Home()
	}
	return screen.NewLead{
		Settings: settings, Model: cmp.Or(w.config.Model, w.state.Model), Effort: cmp.Or(w.config.Effort, w.state.Effort),
	}, err
}

// newLead is the same by the settings as they are now. It leaves w as it is, and may run
// beside its other uses.
func (a *app) newLead(w *around, kind lead.Kind) (screen.NewLead, error) {
	now := *w
	if err := a.settings(&now); err != nil {
		return screen.NewLead{}, err
	}
	if err := now.readState(); err != nil {
		return screen.NewLead{}, err
	}
	if err := now.askedAbout(); err != nil {
		return screen.NewLead{}, err
	}
	return now.newLead(kind)
}

// asked are the open questions of bots, as the tool host keeps them.
func asked(c *client.Client, sonny string) screen.Questions {
	return func(ctx context.Context) ([]decide.Question, error) {
		list, err := questions.Open(ctx, c)
		out := make([]decide.Question, 0, len(list))
		for _, q := range list {
			out = append(out, decide.Question{
				ID: q.ID(), Bot: q.Bot, Text: q.Text, Choices: q.Choices, Multiple: q.Multiple, FreeText: q.FreeText, Announced: q.Announced,
				Answer: func(r decide.Reply) error {
					return questions.Answer(sonny, q, questions.Reply{Choices: r.Choices, Text: r.Text, NotNow: r.NotNow})
				},
			})
		}
		return out, err
	}
}

// snapshots are where files are kept before each message; nil where they are not to be.
func snapshots(w *around) *snapshot.Store {
	set := &w.config.Snapshots
	if !set.Enabled {
		return nil
	}
	return &snapshot.Store{Dir: filepath.Join(w.agent, "snapshots"), Keep: set.Keep, Bytes: set.MaxBytes}
}

// said are notices of the settings and of the key map, as lines.
func said(notices []config.Notice, faults []*protocol.Error) (lines []string) {
	for _, n := range notices {
		lines = append(lines, n.Text)
	}
	for _, f := range faults {
		lines = append(lines, f.Error())
	}
	return lines
}

// picked keeps the model that was picked, for the next lead.
func (w *around) picked(model string) {
	_, _ = config.ChangeState(filepath.Join(w.sonny, "state.json"), func(s *config.State) { s.Model = model }) // it is asked for again then
}

// rules is where the person's command rules are kept, and those of sessions.
func (w *around) rules() allow.Place {
	return allow.Place{Rules: filepath.Join(w.agent, "rules"), Sessions: filepath.Join(w.sonny, "rules")}
}

// looks sets the terminal's theme by the name that holds and by what the terminal says of
// its background (sonny.md 13).
func (a *app) looks(w *around, t *term.Terminal, name *string) func(term.Background, bool) *protocol.Error {
	return func(b term.Background, known bool) *protocol.Error {
		th, fault := theme.Choose(*name, theme.Ground{
			Known: known, Dark: b.Dark, Color: b.Color, Depth: theme.DepthOf(os.Getenv, a.flags.noColor),
			Dir: themesDir(filepath.Dir(w.agent)),
		})
		t.SetTheme(th)
		return fault
	}
}

// themesDir is where the person's own themes are.
func themesDir(home string) string { return filepath.Join(home, ".agents", "themes") }

// themes are the names that tui.theme can have, the built-in ones first.
func themes(w *around) []string {
	names := theme.Builtin()
	entries, err := os.ReadDir(themesDir(filepath.Dir(w.agent)))
	if err != nil {
		return names // there are none of the person's
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".toml"); ok {
			names = append(names, name)
		}
	}
	return names
}

// utf8Locale reports whether the person's locale is UTF-8.
func utf8Locale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
