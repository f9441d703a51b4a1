package cli

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"agent/client/termsafe"
	"agent/internal/place"
	"agent/internal/sonny/config"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// configVerb is sonny config: the person's settings (sonny.md 20).
func (a *app) configVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show and change the settings of ~/.agent/config.toml",
		Args: cobra.NoArgs, RunE: needsOne,
	}
	list := &cobra.Command{
		Use: "list", Short: "List what is set, as TOML", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.configList(boolFlag(cmd, "defaults")) },
	}
	list.Flags().Bool("defaults", false, "list every setting, with its default")
	list.Flags().BoolVar(&a.json, "json", false, "one JSON list")
	set := &cobra.Command{
		Use: "set KEY VALUE", Short: "Change one setting; the rest of the file stays as it is", Args: cobra.ExactArgs(2),
		RunE: personal(func(_ *cobra.Command, args []string) error { return a.configSet(args[0], args[1]) }),
	}
	set.Flags().SetInterspersed(false) // what stands after the key is a value, -1 too
	cmd.AddCommand(
		set,
		&cobra.Command{
			Use: "get KEY", Short: "Print the value that holds", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return a.configGet(args[0]) },
		},
		&cobra.Command{
			Use: "unset KEY", Short: "Take out one setting, or a whole table", Args: cobra.ExactArgs(1),
			RunE: personal(func(_ *cobra.Command, args []string) error { return a.configUnset(args[0]) }),
		},
		list,
		&cobra.Command{
			Use: "path", Short: "Print the file's path", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return a.configPath() },
		},
		&cobra.Command{
			Use: "edit", Short: "Open the file in your editor; what does not check is not taken", Args: cobra.NoArgs,
			RunE: personal(func(cmd *cobra.Command, _ []string) error { return a.configEdit(cmd) }),
		},
		&cobra.Command{
			Use: "reference", Short: "Print docs/SETTINGS.md", Hidden: true, Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				_, err := io.WriteString(a.stdout, config.Reference())
				return err
			},
		},
	)
	return cmd
}

// needsOne is a verb that only those below it can carry out.
func needsOne(cmd *cobra.Command, _ []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return usagef("%s needs one of %s", cmd.CommandPath(), strings.Join(names, ", "))
}

func boolFlag(cmd *cobra.Command, name string) bool {
	given, _ := cmd.Flags().GetBool(name)
	return given
}

// held are the settings that hold in the current folder. What is wrong with them is told;
// with a config_invalid they can still be shown, before the error is returned.
func (a *app) held() (*config.Config, error) {
	path, err := config.Path(os.Environ())
	if err != nil {
		return nil, err
	}
	folder, err := a.orHome()
	if err == nil && folder == "" {
		folder, err = filepath.Abs(a.flags.cd)
	}
	if err != nil {
		return nil, err
	}
	project, err := config.FindProject(folder)
	if err != nil {
		a.notice(coded(err).Error())
	}
	c, notices, err := config.Resolve(config.Sources{Path: path, Project: project, Environ: os.Environ(), Stated: a.stated(), Terminal: isTerminal(a.stdin), Further: reads})
	for _, n := range notices {
		a.notice(n.Text)
	}
	if err != nil && protocol.CodeOf(err) != protocol.ConfigInvalid {
		return nil, err // the line's own
	}
	return c, err
}

// notice tells the person what stops nothing.
func (a *app) notice(text string) {
	fmt.Fprintf(a.stderr, "sonny: %s\n", termsafe.OneLine(text))
}

func (a *app) configGet(name string) error {
	c, err := a.held()
	if c == nil {
		return err
	}
	s, ok := c.Get(name)
	if !ok {
		return config.Unknown(name)
	}
	switch v := s.Value.(type) {
	case nil:
	case string:
		fmt.Fprintln(a.stdout, termsafe.OneLine(v))
	default:
		fmt.Fprintln(a.stdout, termsafe.OneLine(s.Text()))
	}
	return err
}

func (a *app) configSet(name, value string) error {
	path, err := config.Path(os.Environ())
	if err != nil {
		return err
	}
	return config.Set(path, name, value, reads)
}

func (a *app) configUnset(name string) error {
	path, err := config.Path(os.Environ())
	if err != nil {
		return err
	}
	there, err := config.Unset(path, name, reads)
	if err == nil && !there {
		a.notice(name + " is not set in " + path)
	}
	return err
}

func (a *app) configPath() error {
	path, err := config.Path(os.Environ())
	if err == nil {
		fmt.Fprintln(a.stdout, termsafe.OneLine(path))
	}
	return err
}

// shownSetting is one setting of config list --json.
type shownSetting struct {
	Key       string        `json:"key"`
	Value     any           `json:"value"` // null: it is not set and has no default
	From      config.Origin `json:"from"`
	Confining bool          `json:"confining"`
	Live      bool          `json:"live"`
}

func (a *app) configList(defaults bool) error {
	c, err := a.held()
	if c == nil {
		return err
	}
	all := c.Settings(defaults)
	if !a.json {
		for _, s := range all {
			fmt.Fprintln(a.stdout, termsafe.OneLine(s.Line()))
		}
		return err
	}
	list := make([]shownSetting, len(all))
	for i, s := range all {
		list[i] = shownSetting{s.Name, s.Value, s.From, s.Key.Confining(), s.Key.Live}
	}
	return errors.Join(a.printJSON(list), err)
}

// printJSON prints a value on one line, as nothing that a terminal acts on.
func (a *app) printJSON(v any) error {
	line, err := json.Marshal(v)
	if err == nil {
		_, err = fmt.Fprintf(a.stdout, "%s\n", termsafe.AppendJSON(nil, line))
	}
	return err
}

// configEdit lets the person's editor at a copy, and takes the copy when it checks.
func (a *app) configEdit(cmd *cobra.Command) error {
	path, err := config.Path(os.Environ())
	if err != nil {
		return err
	}
	old, err := config.Text(path)
	if err != nil {
		return err
	}
	if _, err := place.MakeAgentDir(); err != nil {
		return err
	}
	copied := filepath.Join(filepath.Dir(path), "config-"+rand.Text()[:8]+".toml")
	if err := place.CreatePrivate(copied, old); err != nil {
		return err
	}
	if err := a.edit(cmd, copied); err != nil {
		os.Remove(copied)
		return err
	}
	now, _, err := place.ReadOwn(copied, config.MaxSize)
	if err == nil {
		err = config.Replace(path, old, now)
	}
	if err != nil {
		e := *coded(err)
		e.Detail = strings.ReplaceAll(e.Detail, path+":", copied+":") + fmt.Sprintf("; %s stays as it was, and what you wrote is in %s", path, copied)
		return &e
	}
	return os.Remove(copied)
}

// edit runs the person's editor on a file and waits for it. The editor may come with
// arguments, so a shell reads it. not_a_terminal where nobody named one and there is no
// terminal, which vi needs.
func (a *app) edit(cmd *cobra.Command, path string) error {
	editor, named := a.editor()
	if !named && (!isTerminal(a.stdin) || !isTerminal(a.stdout)) {
		return protocol.Fail(notATerminal, cmd.CommandPath()+" opens vi, which needs a terminal on its input and output; set VISUAL to an editor that needs none")
	}
	run := exec.CommandContext(cmd.Context(), "/bin/sh", "-c", editor+` "$1"`, "sonny", path)
	run.Stdin, run.Stdout, run.Stderr = a.stdin, a.lent(), a.stderr
	if err := run.Run(); err != nil {
		return protocol.Fail("failed", fmt.Sprintf("the editor (%s) ended with %v; set VISUAL or tui.editor to another", editor, err))
	}
	return nil
}

// editor is the person's: tui.editor, VISUAL, EDITOR; vi where none is named. A config.toml
// that does not check is no reason not to mend it.
func (a *app) editor() (editor string, named bool) {
	path, err := config.Path(os.Environ())
	if err == nil {
		if c, _, _ := config.Load(path); c.TUI.Editor != "" {
			return c.TUI.Editor, true
		}
	}
	if editor = cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")); editor != "" {
		return editor, true
	}
	return "vi", false
}
