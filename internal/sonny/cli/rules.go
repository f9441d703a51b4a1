package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agent/client"
	"agent/client/termsafe"
	"agent/internal/place"
	"agent/internal/rules"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// rulesFile is the file, among those of ~/.agent/rules, that Sonny writes.
const rulesFile = "sonny.rules"

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
		Use: "add allow|prompt|forbidden WORD…", Short: "Add a rule for commands that begin with these words", Args: cobra.MinimumNArgs(2),
		RunE: personal(func(_ *cobra.Command, args []string) error { return a.rulesAdd(args[0], args[1:], reason) }),
	}
	add.Flags().StringVar(&reason, "why", "", "why, for whoever is asked or refused")
	add.Flags().SetInterspersed(false)
	rm := &cobra.Command{
		Use: "rm allow|prompt|forbidden WORD…", Short: "Take out a rule that sonny rules add wrote", Args: cobra.MinimumNArgs(2),
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
	read, err := client.ReadRules(dir)
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

// ruleLine is a rule in the language of rule files.
func ruleLine(decision string, words []string, why string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	line := "prefix_rule(pattern=[" + strings.Join(quoted, ", ") + "], decision=" + strconv.Quote(decision)
	if why != "" {
		line += ", justification=" + strconv.Quote(why)
	}
	return line + ")\n"
}

func (a *app) rulesAdd(decision string, words []string, why string) error {
	if !slices.Contains(decisions, decision) {
		return usagef("%q is no decision: allow, prompt or forbidden", decision)
	}
	line := ruleLine(decision, words, why)
	dir, err := rulesDir()
	if err != nil {
		return err
	}
	err = changeRules(dir, func(text string) (string, error) {
		if slices.Contains(strings.SplitAfter(text, "\n"), line) {
			return text, nil
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text + line, nil
	})
	if err == nil {
		a.notice("bots have it from their next message on, while a screen or the tool host runs")
	}
	return err
}

// changeRules changes Sonny's file of rules. One that would not check is not written.
func changeRules(dir string, change func(string) (string, error)) error {
	if _, err := place.MakeAgentDir(); err != nil {
		return err
	}
	if err := place.MakePrivateDir(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, rulesFile)
	lock, err := place.WaitLock(path + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	old, _, err := place.ReadOwn(path, protocol.MaxRuleText)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := change(string(old))
	if err != nil || text == string(old) {
		return err
	}
	read, err := client.ReadRules(dir)
	if err != nil {
		return err
	}
	if err := wouldCheck(read, text); err != nil {
		return err
	}
	return place.WritePrivate(path, []byte(text))
}

// wouldCheck refuses a text of Sonny's file with which the whole would not be read.
func wouldCheck(read *protocol.Rules, text string) error {
	i := slices.IndexFunc(read.Files, func(f protocol.RuleFile) bool { return f.Name == rulesFile })
	if i < 0 {
		read.Files = append(read.Files, protocol.RuleFile{Name: rulesFile})
		i = len(read.Files) - 1
	}
	read.Files[i].Text = text
	_, err := parseRules(read)
	return err
}

func (a *app) rulesRemove(decision string, words []string) error {
	dir, err := rulesDir()
	if err != nil {
		return err
	}
	beginning := strings.TrimSuffix(ruleLine(decision, words, ""), ")\n")
	return changeRules(dir, func(text string) (string, error) {
		lines := strings.SplitAfter(text, "\n")
		kept := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
			rest, ok := strings.CutPrefix(line, beginning)
			return ok && (strings.HasPrefix(rest, ")") || strings.HasPrefix(rest, ", justification="))
		})
		if len(kept) == len(lines) {
			return "", usagef("%s holds no rule %s %s; sonny rules list says where each stands, and other files are yours to edit",
				filepath.Join(dir, rulesFile), decision, strings.Join(words, " "))
		}
		return strings.Join(kept, ""), nil
	})
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
