package allow

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agent/client"
	"agent/internal/place"
	"agent/internal/rules"
	"agent/protocol"
)

// Reach says whom a rule is for.
type Reach int

// The reaches, the narrower first: that is what is offered.
const (
	Session    Reach = iota // a lead and its tasks
	Everywhere              // every bot, in every folder
)

func (r Reach) String() string {
	if r == Everywhere {
		return "every bot, every folder"
	}
	return "this session"
}

// Other is the reach that Tab changes to.
func (r Reach) Other() Reach { return Everywhere - r }

// The names of the files that are written: among the person's own, and as the file of a
// session's rules is called where it is sent (sonny.md 4).
const (
	everywhereFile = "sonny.rules"
	sessionName    = "session.rules"
)

// Place is where rules are kept. It may be copied.
type Place struct {
	Rules    string // the person's: ~/.agent/rules
	Sessions string // those of sessions: ~/.agent/sonny/rules
}

// File is the file to which a rule is written. bot is the lead's identity.
func (p Place) File(r Reach, bot int64) string {
	if r == Everywhere {
		return filepath.Join(p.Rules, everywhereFile)
	}
	return filepath.Join(p.Sessions, strconv.FormatInt(bot, 10)+".rules")
}

// Read is what is sent for a lead: the person's rules and those of its session. bot is
// 0 for one that is yet to be made. Rules that cannot be read are the mark that refuses
// every command.
func (p Place) Read(bot int64) *protocol.Rules {
	list, err := ReadFolder(p.Rules)
	if err != nil {
		return client.UnreadableRules(err)
	}
	if bot == 0 {
		return list
	}
	text, _, err := place.ReadOwn(p.File(Session, bot), protocol.MaxRuleText)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return list
	case err != nil:
		return client.UnreadableRules(err)
	}
	list.Files = append(list.Files, protocol.RuleFile{Name: sessionName, Text: string(text)})
	return list
}

// Write adds a rule that allows commands which begin with words.
func (p Place) Write(r Reach, bot int64, words []string) error {
	return p.Add(r, bot, Rule{Decision: rules.Allow.String(), Words: words})
}

// Add adds a rule. One that is there already stays alone.
func (p Place) Add(r Reach, bot int64, rule Rule) error {
	return p.Change(r, bot, func(text string) (string, error) {
		line := rule.Line()
		if slices.Contains(strings.SplitAfter(text, "\n"), line) {
			return text, nil
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text + line, nil
	})
}

// Change changes the text of a file of rules, which is replaced whole; other programs
// that change it wait. A text with which the rules would not be read is not written.
func (p Place) Change(r Reach, bot int64, change func(text string) (string, error)) error {
	path := p.File(r, bot)
	if err := place.MakePrivateDir(filepath.Dir(path)); err != nil {
		return err
	}
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
	if err := p.wouldRead(r, bot, text); err != nil {
		return err
	}
	return place.WritePrivate(path, []byte(text))
}

// wouldRead refuses a file's new text with which a bot's rules would not be read.
func (p Place) wouldRead(r Reach, bot int64, text string) error {
	name := everywhereFile
	if r == Session {
		name = sessionName
	}
	list := p.Read(bot)
	list.Files = slices.DeleteFunc(list.Files, func(f protocol.RuleFile) bool { return f.Name == name })
	list.Files = append(list.Files, protocol.RuleFile{Name: name, Text: text})
	_, err := parse(list, nil)
	var bad *rules.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad) && bad.Limit:
		return protocol.Fail(protocol.RulesLimit, err.Error()+"; take rules out of "+p.File(r, bot))
	}
	return protocol.Fail(protocol.InvalidRules, err.Error())
}

// Forget takes away the rules of a session that is deleted.
func (p Place) Forget(bot int64) error {
	path := p.File(Session, bot)
	return errors.Join(gone(path), gone(path+".lock"))
}

// Rule is a rule as it is written.
type Rule struct {
	Decision string // allow, prompt, forbidden
	Words    []string
	Why      string // "": nothing is said
}

// Line is the rule in the language of rule files, with its line's end.
func (r Rule) Line() string {
	line := r.Beginning()
	if r.Why != "" {
		line += ", justification=" + strconv.Quote(r.Why)
	}
	return line + ")\n"
}

// Beginning is what the lines of all rules share that differ in Why alone.
func (r Rule) Beginning() string {
	quoted := make([]string, len(r.Words))
	for i, w := range r.Words {
		quoted[i] = strconv.Quote(w)
	}
	return "prefix_rule(pattern=[" + strings.Join(quoted, ", ") + "], decision=" + strconv.Quote(r.Decision)
}

func gone(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
