package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agent/client"
	"agent/internal/place"
	"agent/internal/sonny/config"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/doctor"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/theme"

	"github.com/spf13/cobra"
)

// doctorVerb is sonny doctor (sonny.md 19.3).
func (a *app) doctorVerb() *cobra.Command {
	var fix bool
	var dial string
	var o doctor.Options
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check that all is as it should be", Args: cobra.NoArgs,
		Long: "Makes every check and prints a line for each: ok, warn, fail or skip. It exits with 1 where one fails.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dial != "" {
				return doctor.Dial(cmd.Context(), dial)
			}
			return a.doctor(cmd.Context(), o, fix)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&a.json, "json", false, "one JSON object")
	f.BoolVar(&fix, "fix", false, "mend what can be mended, after asking for each")
	f.BoolVar(&o.Offline, "offline", false, "ask no provider")
	f.BoolVar(&o.MCP, "mcp", false, "start the MCP servers too")
	f.StringVar(&dial, "dial", "", "connect to a socket, as the sandbox's check has it done")
	_ = f.MarkHidden("dial")
	return cmd
}

func (a *app) doctor(ctx context.Context, o doctor.Options, fix bool) error {
	if fix {
		if err := person("sonny doctor --fix"); err != nil {
			return err
		}
	}
	if err := a.examined(ctx, &o, ""); err != nil {
		return err
	}
	d := doctor.Open(ctx, o)
	defer d.Close()
	r := d.Run(ctx)
	if fix {
		answers := bufio.NewScanner(a.stdin)
		d.Mend(ctx, r, func(question string) bool { return a.yes(answers, question) }, a.notice)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := a.sayReport(r); err != nil {
		return err
	}
	if r.Failed() {
		return exit(exitFailed)
	}
	return nil
}

// yes asks on stderr, so that stdout has the report alone. No answer is no.
func (a *app) yes(answers *bufio.Scanner, question string) bool {
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	if !answers.Scan() {
		fmt.Fprintln(a.stderr)
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(answers.Text()))
	return answer == "y" || answer == "yes"
}

// sayReport prints it: JSON, or a line for each check.
func (a *app) sayReport(r *doctor.Report) error {
	if a.json {
		return a.printJSON(r)
	}
	for _, c := range r.Checks {
		line := fmt.Sprintf("%-4s  %-16s  %s", c.Status, c.ID, c.Summary)
		if c.Status != doctor.OK && c.Remedy != "" {
			line += "  →  " + c.Remedy
		}
		a.say("%s", line)
	}
	a.say("%s", r.Overall)
	return nil
}

// examined is what doctor looks at: as look gives it to other verbs, but that nothing is
// made and what is wrong is no reason to stop. folder "" is the current one, or that of
// --cd.
func (a *app) examined(ctx context.Context, o *doctor.Options, folder string) (err error) {
	if o.Home, err = place.Home(); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(o.Home); err == nil {
		o.Home = real
	}
	o.Version, o.Environ, o.Companions = Version, os.Environ(), companionNames
	o.Editor, _ = a.editor()
	home := o.Home
	if folder == "" {
		if folder, err = a.orHome(); err != nil {
			return err
		}
	}
	if f, err := a.locate(ctx, folder); err == nil {
		o.Folder, o.Repo, home = f.Path, f.Repo, f.Home
	} else if o.Folder, err = os.Getwd(); err != nil {
		return err
	}
	if o.ConfigPath, err = config.Path(o.Environ); err != nil {
		return err
	}
	project, projectErr := config.FindProject(home)
	o.Config, o.Notices, o.ConfigErr = config.Resolve(config.Sources{
		Path: o.ConfigPath, Project: project, Environ: o.Environ, Stated: a.stated(), Terminal: isTerminal(a.stdin), Further: reads,
	})
	for _, fault := range reads(o.Config) {
		o.Notices = append(o.Notices, config.Notice{Text: fault.Detail})
	}
	if o.ConfigErr == nil {
		o.ConfigErr = projectErr
	}
	o.Reach, o.ReachErr = a.reached(o.Config, o.ConfigPath)
	if o.ReachErr != nil {
		store := filepath.Join(o.Home, ".agent", "state.sqlite")
		o.Reach.Target = client.Target{Store: store, Socket: store + ".sock"}
	}
	o.Agent, o.AgentErr = agentProgram()
	if self, err := os.Executable(); err == nil {
		o.Dialer = []string{self, "doctor", "--dial"}
	}
	o.Tmux = term.AskTmux(ctx, os.Getenv)
	if isTerminal(a.stdin) && isTerminal(a.stdout) {
		o.Terminal = func() (*doctor.Terminal, error) { return a.askTerminal(o.Config, o.Tmux) }
	}
	return nil
}

// reached is the daemon that the settings and the line name.
func (a *app) reached(c *config.Config, path string) (connect.Options, error) {
	target, err := a.target(c)
	return connect.Options{Target: target, Config: path, Walls: c.Agent.Wall, Protect: c.Agent.ProtectPath}, err
}

// askTerminal opens the terminal for as long as it takes to answer.
func (a *app) askTerminal(c *config.Config, tmux term.Tmux) (*doctor.Terminal, error) {
	depth := theme.DepthOf(os.Getenv, a.flags.noColor)
	t, err := term.Open(term.Options{In: os.Stdin, Out: os.Stdout, Inline: true, Tmux: tmux, Theme: theme.None(), Depth: depth})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return a.terminalOf(t, c), nil
}

// terminalOf is what a terminal that is open said of itself.
func (a *app) terminalOf(t *term.Terminal, c *config.Config) *doctor.Terminal {
	return &doctor.Terminal{
		Features: t.Features(), Depth: theme.DepthOf(os.Getenv, a.flags.noColor), UTF8: utf8Locale(), Wide: c.TUI.AmbiguousWide,
	}
}

// checks are doctor's for the screen, which has the terminal.
func (a *app) checks(w *around, t *term.Terminal) func(context.Context) (*doctor.Report, error) {
	return func(ctx context.Context) (*doctor.Report, error) {
		var o doctor.Options
		if err := a.examined(ctx, &o, w.folder.Path); err != nil {
			return nil, err
		}
		o.Terminal = func() (*doctor.Terminal, error) { return a.terminalOf(t, o.Config), nil }
		d := doctor.Open(ctx, o)
		defer d.Close()
		return d.Run(ctx), ctx.Err()
	}
}
