package cli

import (
	"cmp"
	"fmt"
	"strings"

	"agent/client/instructions"
	"agent/client/termsafe"
	"agent/client/worktree"
	"agent/internal/sonny/config"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/skill"

	"github.com/spf13/cobra"
)

// instructionsVerb is sonny instructions: what a bot made here would be told, and from
// where (sonny.md 22).
func (a *app) instructionsVerb() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use: "instructions", Short: "The text that a bot made here would get, and its sources", Args: cobra.NoArgs,
		Long: "The text goes to standard output and its sources to standard error. Without --role it is that of a lead; --role \"\" is a bot in no role.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.instructions(cmd, role) },
	}
	cmd.Flags().StringVar(&role, "role", "lead", "the `ROLE` that it is started in")
	cmd.Flags().BoolVar(&a.json, "json", false, "one JSON object: text, sources, role")
	return cmd
}

// composedText is the answer with --json.
type composedText struct {
	Text    string       `json:"text"`
	Bytes   int          `json:"bytes"`
	Role    string       `json:"role,omitempty"`
	Notice  string       `json:"notice"`
	Sources []sourceLine `json:"sources"`
	Left    []leftLine   `json:"not_taken,omitempty"` // AGENTS.md files that were not taken
}

type sourceLine struct {
	Layer string `json:"layer"`
	Path  string `json:"path"` // "" for what is built in
	Bytes int    `json:"bytes"`
}

type leftLine struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

func (a *app) instructions(cmd *cobra.Command, role string) error {
	w, err := a.lookToShow(cmd)
	if err != nil {
		return err
	}
	project, err := w.project()
	if err != nil {
		return err
	}
	c, err := compose(w, project, role)
	if err != nil {
		return err
	}
	if a.json {
		out := composedText{Text: c.Text, Bytes: len(c.Text), Role: role, Notice: skill.Notice(c)}
		for _, s := range c.Sources {
			out.Sources = append(out.Sources, sourceLine(s))
		}
		for _, l := range c.Left {
			out.Left = append(out.Left, leftLine(l))
		}
		return a.printJSON(out)
	}
	to := termsafe.NewWriter(a.stdout)
	if !isTerminal(a.stdout) {
		_, err = fmt.Fprint(a.stdout, c.Text) // byte for byte, for whoever compares
	} else {
		_, err = fmt.Fprint(to, c.Text)
	}
	for _, s := range c.Sources {
		fmt.Fprintf(a.stderr, "%-9s %6d  %s\n", s.Layer, s.Bytes, termsafe.OneLine(cmp.Or(s.Path, "built in")))
	}
	for _, l := range c.Left {
		fmt.Fprintf(a.stderr, "%-9s %6s  %s: %s\n", "not taken", "", termsafe.OneLine(l.Path), termsafe.OneLine(l.Why))
	}
	fmt.Fprintf(a.stderr, "%-9s %6d  of %d: %s\n", "all", len(c.Text), instructions.MaxBytes, skill.Notice(c))
	return err
}

// compose gives the instructions of a bot that is made in a folder, in a role, with
// what holds for its tasks where that is the lead's.
func compose(w *around, project, role string) (*instructions.Composed, error) {
	o := skill.Options{
		Workspace: w.folder.Path, Source: source(w.folder), Top: worktree.TopAt(worktree.RootOf(w.target.Store), w.folder.Path),
		Project: project, Role: role, Texts: texts(w.config), OwnOnly: w.own,
	}
	if role == "lead" {
		t := &w.config.Tasks
		o.Tasks = &skill.Tasks{Model: t.Model, Effort: t.Effort, Worktree: t.In == "worktree" && w.folder.Repo.There()}
	}
	return skill.Compose(o)
}

// texts is what the settings say of the texts that bots get.
func texts(c *config.Config) skill.Texts {
	return skill.Texts{Disabled: c.Skills.Disabled, Fallbacks: c.AgentsMD.Fallbacks}
}

// source is the top of the checkout that a folder's worktree was made of, "" for one
// that is no linked worktree.
func source(f *lead.Folder) string {
	if f.Repo.Linked() {
		return f.Repo.Source()
	}
	return ""
}

// parts say what is in a lead's instructions, as the start screen shows it.
func parts(c *instructions.Composed) string {
	words := strings.Split(skill.Notice(c), ", ")[1:]
	if c.Role != nil {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		words = []string{"the preamble alone"}
	}
	if n := len(c.Left); n > 0 {
		words = append(words, fmt.Sprintf("%d not taken, or not whole: sonny instructions", n))
	}
	return strings.Join(words, " · ")
}
