package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"agent/client/instructions"
	"agent/internal/outlet"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/headless"
	"agent/internal/sonny/host/tools"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/usage"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// execFlags are those of sonny exec alone.
type execFlags struct {
	deltas, quiet          bool
	last, schema           string
	retries                int
	session, fork          string
	goOn, ephemeral        bool
	row, role              string
	writable, tools        []string
	worktree               string
	waitTasks              bool
	timeout                time.Duration
	budget                 int64
	images                 []string
	ownOnly                bool
	delivery               string
	failOnDenied, detach   bool
	print                  bool
	hasWorktree, hasBudget bool
	hasTimeout             bool
}

// execVerb is sonny exec: one prompt without a terminal (sonny.md 18).
func (a *app) execVerb() *cobra.Command {
	f := &execFlags{}
	cmd := &cobra.Command{
		Use: "exec [flags] [PROMPT | -]", Short: "Run one prompt without a screen, and exit when it is done",
		Long: "Runs one prompt to its end: the arguments, standard input for -, or both, with what a pipe\n" +
			"brings appended under a line stdin:. Without --session, --continue or --fork a new bot is made.\n\n" +
			"It exits with 0 when the turn completed, 1 when it failed, 2 for a wrong line, 3 after a timeout\n" +
			"or past a budget, 4 for denied calls, 5 for a reply that does not fit the schema, 6 when no\n" +
			"provider or model is there, 7 without a sandbox, 75 without a daemon, 130 or 143 after a signal.",
		RunE: func(cmd *cobra.Command, args []string) error { return a.exec(cmd, f, args) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		a.json = a.json || slices.Contains(a.args, "--json")
		return exit(a.output(f).Refuse(usagef("%s; sonny exec --help lists the flags", flagWords(err))))
	})
	v := cmd.Flags()
	v.BoolVar(&a.json, "json", false, "one JSON object a line on standard output, and nothing else there")
	v.BoolVar(&f.deltas, "deltas", false, "with --json: text and thinking as they stream, too")
	v.BoolVar(&f.quiet, "quiet", false, "print the final reply alone")
	v.StringVar(&f.last, "last", "", "write the final reply to `FILE`, whole or not at all")
	v.StringVar(&f.schema, "schema", "", "the reply must be a JSON value that satisfies the JSON Schema in `FILE`")
	v.IntVar(&f.retries, "schema-retries", 2, "how often a reply that does not fit is asked for again")
	v.StringVar(&f.session, "session", "", "go on with a session: its title, bot `NAME` or id")
	v.BoolVar(&f.goOn, "continue", false, "go on with the folder's newest session")
	v.StringVar(&f.fork, "fork", "", "work in a fork of session `NAME`")
	v.BoolVar(&f.ephemeral, "ephemeral", false, "delete the bot when the run ends")
	v.StringVar(&f.row, "row", "", "who is asked: auto, look, full; deny: nothing leaves the sandbox")
	v.StringVar(&f.role, "role", "lead", "the role of a new bot; \"\" for none")
	v.StringSliceVar(&f.writable, "writable", nil, "a further `DIR` that a new bot may write; repeatable")
	v.StringVar(&f.worktree, "worktree", "", "work in a new git worktree, which begins at `BASE`, named with = alone (--worktree=main), or at HEAD")
	v.Lookup("worktree").NoOptDefVal = "HEAD"
	v.BoolVar(&f.waitTasks, "wait-tasks", false, "end only when the tasks that were started have ended too")
	v.DurationVar(&f.timeout, "timeout", 0, "end the turn after `DUR`, such as 90s or 10m")
	v.Int64Var(&f.budget, "budget-tokens", 0, "end the turn when `N` tokens went in and came out")
	v.StringArrayVar(&f.images, "image", nil, "send a picture `FILE` along; repeatable, at most 8")
	v.BoolVar(&f.ownOnly, "ignore-folder-files", false, "use none of the folder's AGENTS.md and .agents")
	v.StringSliceVar(&f.tools, "tools", nil, "the tools of a new bot, a `LIST` with commas")
	v.StringVar(&f.delivery, "delivery", "reject", "to a session that works: reject, queue or steer")
	v.BoolVar(&f.failOnDenied, "fail-on-denied", false, "exit 4 when a call was denied, refused or expired")
	v.BoolVar(&f.detach, "detach-on-close", false, "leave the turn running when standard output closes")
	v.BoolVar(&f.print, "print-schema", false, "print the JSON Schema of the events")
	return cmd
}

// output is how a run is told.
func (a *app) output(f *execFlags) *headless.Output {
	return &headless.Output{
		Stdout: a.stdout, Stderr: a.stderr, JSON: a.json, Deltas: f.deltas, Quiet: f.quiet,
		Terminal: isTerminal(a.stdout), Colour: isTerminal(a.stderr) && os.Getenv("NO_COLOR") == "" && !a.flags.noColor,
	}
}

func (a *app) exec(cmd *cobra.Command, f *execFlags, args []string) error {
	if f.print {
		_, err := a.stdout.Write(headless.Schema())
		return err
	}
	out := a.output(f)
	o, err := a.execOptions(cmd, f, args)
	if err != nil {
		return exit(out.Refuse(fault.Exec.Told(err)))
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE) // a closed stdout is an error of a write
	o.Signals = signals
	if file := file(a.stdout); file != nil {
		o.Gone = outlet.Gone(file)
	}
	if status := headless.Run(cmd.Context(), o, out); status != 0 {
		return exit(status)
	}
	return nil
}

// execOptions reads the line. Nothing is touched by it.
func (a *app) execOptions(cmd *cobra.Command, f *execFlags, args []string) (*headless.Options, error) {
	given := cmd.Flags().Changed
	f.hasWorktree, f.hasBudget, f.hasTimeout = given("worktree"), given("budget-tokens"), given("timeout")
	if err := person("sonny exec"); err != nil {
		return nil, protocol.Fail(insideABot, err.(*protocol.Error).Detail+"; a bot starts another with \"$AGENT_BIN\" run")
	}
	if err := f.check(given); err != nil {
		return nil, err
	}
	if err := looseBase(a.args, args); err != nil {
		return nil, err
	}
	var row lead.Row
	var err error
	if given("row") {
		row, err = a.execRow(f)
	}
	if err != nil {
		return nil, err
	}
	o := &headless.Options{
		Which: headless.Which{Session: f.session, Continue: f.goOn, Fork: f.fork}, Role: f.role, UseModel: a.flags.model,
		UseEffort: a.flags.effort, Only: f.tools, Retries: f.retries, Ephemeral: f.ephemeral, WaitTasks: f.waitTasks,
		FailOnDenied: f.failOnDenied, DetachOnEnd: f.detach, Timeout: f.timeout, Budget: f.budget, Last: f.last,
		Delivery: protocol.Delivery(f.delivery), Version: Version,
		Ground: func(ctx context.Context) (*headless.Ground, error) { return a.ground(ctx, cmd, f, row) },
	}
	if f.hasWorktree {
		o.Worktree = &f.worktree
	}
	if o.Pictures, err = pictures(f.images); err != nil {
		return nil, err
	}
	if f.schema != "" {
		if o.Schema, err = readFit(f.schema); err != nil {
			return nil, err
		}
	}
	o.Prompt, err = a.execPrompt(args)
	return o, err
}

// ofNewBots are the flags that say something of a bot that is made.
var ofNewBots = []string{"role", "effort", "sandbox", "network", "writable", "worktree", "tools", "ignore-folder-files"}

// check refuses flags that contradict each other.
func (f *execFlags) check(given func(string) bool) error {
	var which []string
	for _, name := range []string{"session", "continue", "new", "fork"} {
		if given(name) {
			which = append(which, "--"+name)
		}
	}
	switch {
	case len(which) > 1:
		return usagef("%s: one of them says which bot works", strings.Join(which, " and "))
	case given("session") && f.session == "", given("fork") && f.fork == "":
		return usagef("%s needs the name of a session", which[0])
	case f.retries < 0 || f.retries > 10:
		return usagef("--schema-retries is 0 to 10")
	case f.hasTimeout && f.timeout <= 0:
		return usagef("--timeout is a time such as 90s or 10m")
	case f.hasBudget && f.budget <= 0:
		return usagef("--budget-tokens is a number above 0")
	case !protocol.Delivery(f.delivery).Valid():
		return usagef("--delivery is reject, queue or steer")
	case len(f.images) > protocol.MaxPictures:
		return usagef("at most %d pictures go with a message", protocol.MaxPictures)
	case f.ephemeral && (given("session") || given("continue")):
		return usagef("--ephemeral would delete a session that was there before; use --fork to work in a copy")
	}
	if len(which) == 0 || which[0] == "--new" {
		return nil
	}
	for _, name := range ofNewBots {
		if given(name) {
			return usagef("--%s is of a new bot, and %s takes one that is there", name, which[0])
		}
	}
	return nil
}

// looseBase refuses a line that may mean the word after --worktree as its base: that flag
// takes one with = alone, and the word would be the first of the prompt.
func looseBase(line, prompt []string) error {
	at := slices.Index(line, "--worktree") + 1
	if at == 0 || at == len(line) || len(prompt) < 2 {
		return nil
	}
	word := line[at]
	if word != prompt[0] || strings.ContainsAny(word, " \t\n") {
		return nil
	}
	return usagef("--worktree %s: a base goes with =, as in --worktree=%[1]s; where %[1]s begins the prompt, put the prompt in quotes or -- before it", word)
}

// execRow is the row that the line names. Nobody is here to be asked, so
// that manual is none of exec's.
func (a *app) execRow(f *execFlags) (lead.Row, error) {
	row := lead.Row(f.row)
	old := f.session != "" || f.goOn || f.fork != ""
	switch row {
	case lead.Deny:
	case lead.Auto, lead.Look, lead.Full:
		if old {
			return "", usagef("--row %s is of a new bot; a session that is there keeps its own", row)
		}
		a.flags.row = string(row)
	case lead.Manual:
		return "", usagef("--row manual: nobody is here to be asked; take auto, deny, look or full")
	default:
		return "", usagef("%q is no row of exec: auto, deny, look or full", string(row))
	}
	if row == lead.Deny && a.flags.sandbox == protocol.SandboxFull {
		return "", usagef("--row deny refuses what leaves the sandbox, and --sandbox %s is none; say --row full", protocol.SandboxFull)
	}
	return row, nil
}

// pictures are paths that the daemon reads. What it would refuse is refused before there is
// a bot.
func pictures(files []string) (paths []string, err error) {
	for _, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, usagef("--image: %s", fault.Exec.Words(err))
		case !info.Mode().IsRegular():
			return nil, usagef("--image %s is no file", file)
		case info.Size() > protocol.MaxPictureBytes:
			return nil, protocol.Fail("picture_unsupported", fmt.Sprintf("%s has %d bytes; a picture has at most %d: make it smaller", file, info.Size(), protocol.MaxPictureBytes))
		}
		if err := pen.CheckPicture(path); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func readFit(path string) (*headless.Fit, error) {
	text, err := instructions.ReadFile(path, headless.MaxSchema)
	if err != nil {
		return nil, usagef("the schema: %s", coded(err).Detail)
	}
	return headless.NewFit(path, []byte(text))
}

// execPrompt is the prompt of the line: the arguments, standard input for -, or both. It
// never waits on a terminal.
func (a *app) execPrompt(args []string) (string, error) {
	dash := slices.Contains(args, "-")
	words := slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "-" })
	prompt := strings.Join(words, " ")
	if strings.TrimSpace(prompt) == "" && !dash {
		return "", usagef("sonny exec needs a prompt: as arguments, or - for standard input")
	}
	piped := ""
	switch file, ok := a.stdin.(*os.File); {
	case ok && isTerminal(file):
		if dash {
			return "", usagef("- reads standard input, which is a terminal here: pipe the prompt in")
		}
	case dash || !ok || feeds(file):
		text, err := io.ReadAll(io.LimitReader(a.stdin, protocol.MaxPrompt+1))
		if err != nil {
			return "", err
		}
		piped = string(text)
	}
	switch {
	case strings.TrimSpace(prompt) == "":
		prompt = piped
	case strings.TrimSpace(piped) != "":
		prompt += "\n\nstdin:\n" + piped
	}
	switch {
	case strings.TrimSpace(prompt) == "":
		return "", usagef("standard input holds no prompt")
	case !utf8.ValidString(prompt):
		return "", usagef("the prompt is no UTF-8")
	case len(prompt) > protocol.MaxPrompt:
		return "", protocol.Fail("paste_too_large", fmt.Sprintf("the prompt is over %d KiB: put it in a file and name that", protocol.MaxPrompt>>10))
	}
	return prompt, nil
}

// feeds reports whether a file is one that text is sent through: a pipe, a socket or a
// file, and no device.
func feeds(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0)
}

// ground is what a run stands on: the settings, the folder, the daemon.
func (a *app) ground(ctx context.Context, cmd *cobra.Command, f *execFlags, row lead.Row) (*headless.Ground, error) {
	w, err := a.lookAt(cmd, "", f.ownOnly)
	if err != nil {
		return nil, err
	}
	freshSkills(w)
	g := &headless.Ground{
		Folder: w.folder, Book: lead.BookIn(w.sonny), Store: w.target.Store, Model: w.config.Model, Effort: w.config.Effort,
		Prices: usage.PricesOf(w.config.Pricing), Rules: w.rules().Read, NoSetup: f.ownOnly,
		Compose: func(folder *lead.Folder, project, role string) (*instructions.Composed, error) {
			there := *w
			there.folder = folder
			return compose(&there, project, role)
		},
	}
	for _, n := range w.told() {
		g.Notices = append(g.Notices, n.Text)
	}
	if g.Settings, err = w.lead(); err != nil {
		return nil, err
	}
	a.withoutPerson(&g.Settings, row)
	roots, err := folders(f.writable)
	if err != nil {
		return nil, err
	}
	g.Settings.WritableRoots = append(g.Settings.WritableRoots, roots...)
	if !f.ownOnly {
		if g.Project, err = w.stated(); err != nil {
			return nil, err
		}
	}
	if g.Models, err = models(); err != nil && f.session == "" && !f.goOn && f.fork == "" { // a session that is there needs none
		return nil, err
	}
	g.ClientTools = tools.For(tools.Lead, g.Settings.Tasks.SetupTimeout)
	g.Link, err = connect.Open(ctx, w.link())
	return g, err
}

// withoutPerson is what a row means where nobody can be asked: manual becomes deny,
// which is a sandbox without a gate.
func (a *app) withoutPerson(s *lead.Settings, row lead.Row) {
	if row == lead.Deny || s.Row == lead.Manual {
		s.Row = lead.Deny
	}
	if s.Row == lead.Deny && s.Sandbox == protocol.SandboxFull {
		s.Sandbox = protocol.SandboxWorkspace // with neither gate nor sandbox nothing would be refused
	}
}

// folders are those that a bot may write besides its own, as real paths.
func folders(named []string) (out []string, err error) {
	for _, dir := range named {
		path, err := filepath.Abs(dir)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return nil, usagef("--writable: %s", fault.Exec.Words(err))
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return nil, usagef("--writable %s is no folder", dir)
		}
		out = append(out, path)
	}
	return out, nil
}

// stated is what the folder's project.toml says its project is called; "" where there is
// none.
func (w *around) stated() (string, error) {
	name, stated, err := instructions.StatedProject(w.folder.Home)
	if err != nil || !stated {
		return "", err
	}
	return name, nil
}
