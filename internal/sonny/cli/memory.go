package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"agent/client/instructions"
	"agent/client/termsafe"
	"agent/internal/place"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/memory"

	"github.com/spf13/cobra"
)

// memoryVerb is sonny memory: what agents and the person keep (sonny.md 25). An agent
// saves by the memory tool, which records who saved what; so in an agent's shell the
// facts can be read alone.
func (a *app) memoryVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "memory", Short: "Facts that outlast a conversation: yours, and the projects'",
		Long: "SCOPE is user, or project NAME. Without one, the project of the current folder is meant; of a worktree, that of its source checkout.",
		Args: cobra.NoArgs, RunE: needsOne,
	}
	cmd.PersistentFlags().BoolVar(&a.json, "json", false, "one JSON object")
	cmd.AddCommand(
		&cobra.Command{
			Use: "show [SCOPE]", Short: "Show the indexes: yours, and the project's", Args: cobra.MaximumNArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error { return a.memoryShow(cmd, args) },
		},
		&cobra.Command{
			Use: "save NAME TYPE DESCRIPTION SOURCE TEXT [SCOPE]", Short: "Save a fact; TEXT - is read from standard input",
			Long: "TYPE is user, feedback, project or reference. DESCRIPTION is the one line that the index shows. SOURCE says where the fact comes from; \"\" stands for you and today's date.",
			Args: cobra.RangeArgs(5, 7),
			RunE: personal(func(cmd *cobra.Command, args []string) error { return a.memorySave(cmd, args) }),
		},
		&cobra.Command{
			Use: "rm NAME [SCOPE]", Short: "Remove a fact", Args: cobra.RangeArgs(1, 3),
			RunE: personal(func(cmd *cobra.Command, args []string) error { return a.memoryRemove(cmd, args) }),
		},
		&cobra.Command{
			Use: "recall QUERY [SCOPE]", Short: "Find facts by their words", Args: cobra.RangeArgs(1, 3),
			RunE: func(cmd *cobra.Command, args []string) error { return a.memoryRecall(cmd, args) },
		},
		&cobra.Command{
			Use: "index [SCOPE]", Short: "Write the index anew", Args: cobra.MaximumNArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error { return a.memoryIndex(cmd, args) },
		},
		&cobra.Command{
			Use: "check [SCOPE]", Short: "Say what is wrong; nothing is changed", Args: cobra.MaximumNArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error { return a.memoryCheck(cmd, args) },
		},
		&cobra.Command{
			Use: "trust NAME [SCOPE]", Short: "Take the mark of outside content off a fact", Args: cobra.RangeArgs(1, 3),
			RunE: personal(func(cmd *cobra.Command, args []string) error { return a.memoryTrust(cmd, args) }),
		},
		a.memoryCleanupVerb(),
	)
	return cmd
}

// facts are the person's memory.
func facts() (*memory.Memory, error) {
	home, err := place.Home()
	return memory.Open(home, time.Now), err
}

// project is the folder's, "" outside one: the home folder and the root belong to none
// unless a file says so.
func (w *around) project() (string, error) {
	page, broken, err := lead.BookIn(w.sonny).Read()
	if err == nil && broken != nil {
		err = broken
	}
	if err != nil {
		return "", err
	}
	recorded := page.Projects[w.folder.Home]
	home, err := place.Home()
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	if recorded == "" && (w.folder.Home == home || w.folder.Home == "/") {
		name, stated, err := instructions.StatedProject(w.folder.Home)
		if err != nil || stated {
			return name, err
		}
		return "", nil
	}
	return w.folder.ProjectName(recorded)
}

// scope is the memory, and the scope that the words name.
func (a *app) scope(cmd *cobra.Command, words []string) (*memory.Memory, memory.Scope, error) {
	m, err := facts()
	if err != nil {
		return nil, memory.Scope{}, err
	}
	project := ""
	if len(words) == 0 {
		w, err := a.lookToShow(cmd)
		if err == nil {
			project, err = w.project()
		}
		if err != nil {
			return nil, memory.Scope{}, err
		}
	}
	s, err := memory.ParseScope(strings.Join(words, " "), project)
	return m, s, err
}

func (a *app) memoryShow(cmd *cobra.Command, words []string) error {
	m, err := facts()
	if err != nil {
		return err
	}
	var s memory.Scope
	if len(words) > 0 {
		s, err = memory.ParseScope(strings.Join(words, " "), "")
	} else if w, lookErr := a.lookToShow(cmd); lookErr != nil {
		err = lookErr
	} else {
		s.Project, err = w.project()
	}
	if err != nil {
		return err
	}
	shown, err := m.Show(s.Project)
	if err != nil || a.json {
		return a.orJSON(shown, err)
	}
	for _, index := range []*memory.Index{shown.User, shown.Project} {
		if index == nil {
			continue
		}
		a.say("%s (%s)", index.Scope, index.Folder)
		a.lines(index.Index)
		a.problems(index.Problems)
	}
	return nil
}

// orJSON prints an answer, unless there is an error.
func (a *app) orJSON(v any, err error) error {
	if err != nil {
		return err
	}
	return a.printJSON(v)
}

// say prints a line.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.stdout, termsafe.OneLine(fmt.Sprintf(format, args...)))
}

// lines prints a text line by line.
func (a *app) lines(text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		fmt.Fprintln(a.stdout, termsafe.Block.Text(line))
	}
}

func (a *app) problems(list []memory.Problem) {
	for _, p := range list {
		a.notice(p.String())
	}
}

func (a *app) memorySave(cmd *cobra.Command, args []string) error {
	m, s, err := a.scope(cmd, args[5:])
	if err != nil {
		return err
	}
	d := memory.Draft{Name: args[0], Type: args[1], Description: args[2], Source: args[3], Text: args[4]}
	if d.Source == "" {
		d.Source = "the person, " + time.Now().Format(time.DateOnly)
	}
	if d.Text == "-" {
		text, err := io.ReadAll(io.LimitReader(a.stdin, memory.MaxFact+1))
		if err != nil {
			return err
		}
		d.Text = string(text)
	}
	saved, err := m.Save(s, d)
	if err != nil || a.json {
		return a.orJSON(saved, err)
	}
	what := "saved"
	switch {
	case saved.Duplicate:
		what = "as it was; its date is today's now"
	case saved.Replaced:
		what = "replaced"
	}
	a.say("%s: %s in %s, %d bytes; the index has %d of %d", saved.Name, what, s, saved.Bytes, saved.IndexBytes, memory.MaxIndex)
	return nil
}

func (a *app) memoryRemove(cmd *cobra.Command, args []string) error {
	m, s, err := a.scope(cmd, args[1:])
	if err != nil {
		return err
	}
	removed, err := m.Remove(s, args[0])
	if err != nil || a.json {
		return a.orJSON(removed, err)
	}
	if removed.Duplicate {
		a.say("%s: not in %s", removed.Name, s)
	} else {
		a.say("%s: removed from %s", removed.Name, s)
	}
	a.problems(removed.Problems)
	return nil
}

func (a *app) memoryRecall(cmd *cobra.Command, args []string) error {
	m, s, err := a.scope(cmd, args[1:])
	if err != nil {
		return err
	}
	r, err := m.Recall(s, args[0])
	if err != nil || a.json {
		return a.orJSON(r, err)
	}
	if len(r.Facts)+len(r.External) == 0 {
		a.say("nothing in %s", s)
	}
	a.facts(r.Facts)
	if r.Outside != "" {
		a.say("%s", r.Outside)
		a.say("")
	}
	a.facts(r.External)
	return nil
}

func (a *app) facts(list []memory.Fact) {
	for i := range list {
		a.lines(list[i].Line())
		a.lines(list[i].Text)
		a.say("")
	}
}

func (a *app) memoryIndex(cmd *cobra.Command, words []string) error {
	m, s, err := a.scope(cmd, words)
	if err != nil {
		return err
	}
	done, err := m.Index(s)
	if err != nil || a.json {
		return a.orJSON(done, err)
	}
	a.say("%s: %d facts, %d of %d bytes", done.Path, done.Facts, done.IndexBytes, memory.MaxIndex)
	return nil
}

func (a *app) memoryCheck(cmd *cobra.Command, words []string) error {
	m, s, err := a.scope(cmd, words)
	if err != nil {
		return err
	}
	k, err := m.Check(s)
	switch {
	case err != nil:
		return err
	case a.json:
		err = a.printJSON(k)
	default:
		a.say("%s: %d facts, %d of %d bytes", k.Folder, k.Facts, k.IndexBytes, memory.MaxIndex)
		for _, p := range k.Problems {
			a.say("%s", p)
		}
	}
	if err == nil && len(k.Problems) > 0 {
		return exit(exitFailed)
	}
	return err
}

func (a *app) memoryTrust(cmd *cobra.Command, args []string) error {
	m, s, err := a.scope(cmd, args[1:])
	if err != nil {
		return err
	}
	trusted, err := m.Trust(s, args[0])
	if err != nil || a.json {
		return a.orJSON(trusted, err)
	}
	if trusted.Duplicate {
		a.say("%s: had no mark", trusted.Name)
	} else {
		a.say("%s: is no longer marked as outside content", trusted.Name)
	}
	return nil
}
