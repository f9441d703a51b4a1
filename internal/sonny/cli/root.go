package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"agent/internal/sonny/config"
	"agent/protocol"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// globals are the flags that every verb takes (sonny.md 2). A flag that was not given
// is "" or false, and the setting of the config stands.
type globals struct {
	store, socket, cd     string
	model, effort         string
	row, sandbox, network string
	fresh                 bool
	screen, theme         string
	noColor, noMotion     bool
	noMouse, ascii        bool
	set                   []string
	log                   string
	logContent            bool
}

// verb makes one subcommand of an app.
type verb func(a *app) *cobra.Command

// verbs are the subcommands in the order of help.
var verbs = []verb{
	(*app).resumeVerb,
	(*app).homeVerb,
	(*app).execVerb,
	(*app).sessionsVerb,
	(*app).tasksVerb,
	(*app).setupVerb,
	(*app).loginVerb,
	(*app).logoutVerb,
	(*app).statusVerb,
	(*app).doctorVerb,
	(*app).configVerb,
	(*app).modelsVerb,
	(*app).memoryVerb,
	(*app).skillsVerb,
	(*app).rolesVerb,
	(*app).rulesVerb,
	(*app).envVerb,
	(*app).instructionsVerb,
	(*app).usageVerb,
	(*app).pauseVerb,
	(*app).unpauseVerb,
	(*app).keysVerb,
	(*app).completionVerb,
	(*app).companionVerb,
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "sonny [flags] [FOLDER] [-- PROMPT]",
		Short:         "Work with bots in the terminal",
		Version:       Version,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, args []string) error { return a.open(cmd, args) },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := a.openLog()
			a.log.say("begin", cmd.CommandPath()+" "+Version)
			return err
		},

		SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate("sonny {{.Version}}\n")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if none := misnamed(cmd); none != nil {
			return none
		}
		return usagef("%s; %s --help lists the flags", flagWords(err), cmd.CommandPath())
	})
	a.globals(root.PersistentFlags())
	root.SetHelpCommand(a.helpVerb())
	root.SetHelpFunc(a.helps(root.HelpFunc()))
	for _, v := range verbs {
		cmd := v(a)
		asUsage(cmd)
		root.AddCommand(cmd)
	}
	return root
}

func (a *app) globals(f *pflag.FlagSet) {
	g := &a.flags
	f.StringVar(&g.store, "store", "", "`PATH` of the store (~/.agent/state.sqlite)")
	f.StringVar(&g.socket, "socket", "", "`PATH` of the daemon's socket; with it no daemon is started")
	f.StringVar(&g.cd, "cd", "", "work in `DIR` rather than the current folder")
	f.StringVar(&g.model, "model", "", "`P/M` for a bot made by this run")
	f.Var(oneOf(&g.effort, config.Words("effort")...), "effort", "reasoning effort: default, low, medium, high, xhigh, max")
	f.Var(oneOf(&g.row, config.Words("row")...), "row", "who is asked: auto, manual, look, full")
	f.Var(oneOf(&g.sandbox, config.Words("sandbox_mode")...), "sandbox", "read-only, workspace-write, danger-full-access")
	f.Var(oneOf(&g.network, "on", "off"), "network", "on or off")
	f.BoolVar(&g.fresh, "new", false, "a fresh lead even if the folder has one")
	f.Var(oneOf(&g.screen, config.Words("tui.screen")...), "screen", "full, inline or plain")
	f.StringVar(&g.theme, "theme", "", "auto, dark, light, ansi, none, or a `NAME` of ~/.agents/themes")
	f.BoolVar(&g.noColor, "no-color", false, "no colour")
	f.BoolVar(&g.noMotion, "no-motion", false, "nothing pulses")
	f.BoolVar(&g.noMouse, "no-mouse", false, "the terminal keeps the mouse")
	f.BoolVar(&g.ascii, "ascii", false, "draw with ASCII alone")
	f.StringArrayVarP(&g.set, "set", "c", nil, "one setting for this run, `KEY=VALUE`; repeatable")
	f.StringVar(&g.log, "log", "", "write a debug log to `FILE`, made 0600")
	f.BoolVar(&g.logContent, "log-content", false, "let the log hold prompts and tool output")
}

// asUsage makes a wrong count of arguments a usage error, in a verb and those below it.
func asUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			var e *protocol.Error
			if err == nil || errors.As(err, &e) {
				return err
			}
			return usagef("%s; %s --help says what it takes", err, cmd.CommandPath())
		}
	}
	for _, sub := range cmd.Commands() {
		asUsage(sub)
	}
}

// opening is what the screen is opened on.
type opening struct {
	folder, prompt string
	bot            string // a session's, "" for the folder's newest
	notice         string // said when the screen opens
}

// openingOf reads it: a folder, and a prompt after "--" or as the one argument that
// holds a space. A mistyped command never becomes a prompt (SO-121).
func openingOf(cmd *cobra.Command, args []string) (opening, error) {
	var o opening
	words := args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		words, o.prompt = args[:dash], strings.Join(args[dash:], " ")
	}
	if len(words) == 0 {
		return o, nil
	}
	info, err := os.Stat(words[0])
	switch {
	case len(words) > 1 && err == nil:
		return o, usagef("too many arguments: "+quotedPrompt, strings.Join(words, " "))
	case len(words) > 1:
		return o, unknownWord(cmd, words...)
	case err == nil && info.IsDir():
		o.folder = words[0]
	case err != nil && strings.Contains(words[0], " ") && o.prompt == "":
		o.prompt = words[0]
	case err == nil:
		return o, usagef("%s is no folder", words[0])
	default:
		return o, unknownWord(cmd, words[0])
	}
	return o, nil
}

// quotedPrompt says how a prompt of several words is given.
const quotedPrompt = "a prompt is one argument, in quotes (sonny %q), or stands after --"

// later are commands that come with companions which this version does not have.
var later = []string{"mcp", "trigger", "goal", "subscribe", "lookout", "commons", "backup", "programs", "browser", "trigger-fire"}

// unknownWord names the command that was meant, and how a prompt is given where more
// words stand behind it.
func unknownWord(cmd *cobra.Command, words ...string) error {
	word := words[0]
	detail := fmt.Sprintf("%q is no command and no folder", word)
	near := cmd.Root().SuggestionsFor(word)
	switch {
	case slices.Contains(later, word):
		detail = "sonny " + word + ": no such command in this version"
	case len(near) > 0:
		detail += fmt.Sprintf("; did you mean sonny %s?", near[0])
	default:
		detail += "; sonny --help lists the commands"
	}
	if len(words) > 1 {
		detail += "; " + fmt.Sprintf(quotedPrompt, strings.Join(words, " "))
	}
	return protocol.Fail(protocol.UsageError, detail)
}

// helps is help that is asked of a command: of one that there is.
func (a *app) helps(help func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		if a.helpless = misnamed(cmd); a.helpless == nil {
			help(cmd, args)
		}
	}
}

// misnamed is why what stands before a flag is no command of Sonny's; nil where it is
// one, or a folder.
func misnamed(cmd *cobra.Command) error {
	words := cmd.Flags().Args()
	if cmd != cmd.Root() || len(words) == 0 {
		return nil
	}
	_, err := openingOf(cmd, words)
	return err
}
