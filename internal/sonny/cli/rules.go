package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agent/client/termsafe"
	"agent/internal/place"
	"agent/internal/rules"
	"agent/internal/sonny/allow"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// rulesVerb is sonny rules: the person's command rules (sonny.md 4).
func (a *app) rulesVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rules", Short: "Command rules: what runs unasked, what asks, what never runs", Args: cobra.NoArgs, RunE: needsOne,
	}
	list := &cobra.Command{
		Use: "list", Short: "List them, with where they stand", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.rulesList() },
	}
	reason := ""
	add := &cobra.Command{
		Use: "add allow|prompt|forbidden [--] WORD…", Short: "Add a rule for commands that begin with these words", Args: cobra.MinimumNArgs(2),
		RunE: personal(func(_ *cobra.Command, args []string) error { return a.rulesAdd(args[0], args[1:], reason) }),
	}
	add.Flags().StringVar(&reason, "why", "", "why, for whoever is asked or refused")
	add.Flags().SetInterspersed(false)
	rm := &cobra.Command{
		Use: "rm allow|prompt|forbidden [--] WORD…", Short: "Take out a rule that sonny rules add wrote", Args: cobra.MinimumNArgs(2),
		RunE: personal(func(_ *cobra.Command, args []string) error { return a.rulesRemove(args[0], args[1:]) }),
	}
	rm.Flags().SetInterspersed(false)
	test := &cobra.Command{
		Use: "test -- COMMAND", Short: "Say what the rules decide about a command", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.rulesTest(args) },
	}
	for _, c := range []*cobra.Command{list, test} {
		c.Flags().BoolVar(&a.json, "json", false, "JSON")
	}
	cmd.AddCommand(list, add, rm, test)
	return cmd
}

func rulesDir() (string, error) {
	dir, err := place.AgentDir()
	return filepath.Join(dir, "rules"), err
}

// heldRules are the person's rules as the daemon reads them.
func heldRules() (*rules.Set, error) {
	dir, err := rulesDir()
	if err != nil {
		return nil, err
	}
	read, err := allow.ReadFolder(dir)
	if err != nil {
		return nil, err
	}
	return parseRules(read)
}

func parseRules(read *protocol.Rules) (*rules.Set, error) {
	files := make([]rules.File, len(read.Files))
	for i, f := range read.Files {
		files[i] = rules.File{Name: f.Name, Text: f.Text}
	}
	set, err := rules.Parse(files)
	var e *rules.Error
	if errors.As(err, &e) {
		code := protocol.InvalidRules
		if e.Limit {
			code = protocol.RulesLimit
		}
		return nil, protocol.Fail(code, e.Error()+"; until it is mended every command of new bots is refused")
	}
	return set, err
}

// shownRule is one rule of rules list --json.
type shownRule struct {
	Decision      string `json:"decision"`
	Pattern       string `json:"pattern"`
	Justification string `json:"justification,omitempty"`
	File          string `json:"file"`
	Line          int    `json:"line"`
}

func shownRuleOf(r *rules.Rule) shownRule {
	return shownRule{r.Decision.String(), r.String(), r.Justification, r.File, r.Line}
}

func (a *app) rulesList() error {
	set, err := heldRules()
	if err != nil {
		return err
	}
	shown := []shownRule{}
	for _, r := range set.Rules() {
		shown = append(shown, shownRuleOf(&r))
	}
	if a.json {
		return a.printJSON(shown)
	}
	a.sayRules(shown)
	return nil
}

func (a *app) sayRules(shown []shownRule) {
	var rows [][]string
	for _, r := range shown {
		rows = append(rows, []string{r.Decision, r.Pattern, r.File + ":" + strconv.Itoa(r.Line), r.Justification})
	}
	a.table([]string{"DECISION", "COMMAND", "WHERE", "WHY"}, rows)
}

// decisions are those that a rule may have.
var decisions = []string{rules.Allow.String(), rules.Prompt.String(), rules.Forbidden.String()}

func (a *app) rulesAdd(decision string, words []string, why string) error {
	if !slices.Contains(decisions, decision) {
		return usagef("%q is no decision: allow, prompt or forbidden", decision)
	}
	words, err := ruleWords(words)
	if err != nil {
		return err
	}
	if len(words) == 1 && strings.ContainsAny(words[0], " \t\n") {
		return usagef("%q is one word with blanks in it, and no command begins so; give the words apart: sonny rules add %s %s", words[0], decision, strings.Join(strings.Fields(words[0]), " "))
	}
	place, err := rulesPlace()
	if err != nil {
		return err
	}
	if err := place.Add(allow.Everywhere, 0, allow.Rule{Decision: decision, Words: words, Why: why}); err != nil {
		return err
	}
	a.notice("bots have it from their next message on, while a screen or the tool host runs")
	return nil
}

// ruleWords are the words of a command: all that stand after a --, else all, where none
// is a flag that was meant for sonny. No command begins with one, and --why stands before
// the decision.
func ruleWords(words []string) ([]string, error) {
	if words[0] == "--" {
		if len(words) == 1 {
			return nil, usagef("-- is followed by no word of a command")
		}
		return words[1:], nil
	}
	for i, w := range words {
		if i == 0 && strings.HasPrefix(w, "-") || w == "--" || w == "--why" || strings.HasPrefix(w, "--why=") {
			return nil, usagef("%s looks like a flag of sonny's, and those stand before the decision; where it is a word of the command, say -- after the decision: sonny rules add allow -- COMMAND", w)
		}
	}
	return words, nil
}

// rulesPlace is where the person's rules are kept. ~/.agent is there afterwards.
func rulesPlace() (allow.Place, error) {
	if _, err := place.MakeAgentDir(); err != nil {
		return allow.Place{}, err
	}
	dir, err := rulesDir()
	return allow.Place{Rules: dir}, err
}

func (a *app) rulesRemove(decision string, words []string) error {
	words, err := ruleWords(words)
	if err != nil {
		return err
	}
	place, err := rulesPlace()
	if err != nil {
		return err
	}
	found, err := place.Remove(allow.Everywhere, 0, allow.Rule{Decision: decision, Words: words})
	if err == nil && !found {
		return usagef("%s holds no rule %s %s; sonny rules list says where each stands, and other files are yours to edit",
			place.File(allow.Everywhere, 0), decision, strings.Join(words, " "))
	}
	return err
}

// shownDecision is the answer of rules test --json.
type shownDecision struct {
	Decision   string      `json:"decision"` // none: no rule matches
	Unreadable bool        `json:"unreadable"`
	Rules      []shownRule `json:"rules"`
}

func (a *app) rulesTest(args []string) error {
	set, err := heldRules()
	if err != nil {
		return err
	}
	script := args[0]
	if len(args) > 1 {
		words := make([]string, len(args))
		for i, w := range args {
			words[i] = termsafe.ShellWord(w)
		}
		script = strings.Join(words, " ")
	}
	v := set.Decide(script)
	out := shownDecision{Decision: v.Decision.String(), Unreadable: v.Unreadable, Rules: []shownRule{}}
	for _, r := range v.Matches {
		out.Rules = append(out.Rules, shownRuleOf(r))
	}
	if a.json {
		return a.printJSON(out)
	}
	a.say("%s%s", out.Decision, decisionWords(v))
	if len(out.Rules) > 0 {
		a.sayRules(out.Rules)
	}
	return nil
}

// decisionWords say what comes of a decision.
func decisionWords(v rules.Verdict) string {
	switch {
	case v.Unreadable:
		return ": the command cannot be taken apart, so that it asks"
	case v.Decision == rules.Allow:
		return ": it runs, outside the sandbox too, and nobody is asked"
	case v.Decision == rules.Prompt:
		return ": it waits on the bot's gate; without one it is refused"
	case v.Decision == rules.Forbidden:
		return ": it never runs"
	}
	return ": no rule matches; it runs in the sandbox, and asks to leave it"
}
