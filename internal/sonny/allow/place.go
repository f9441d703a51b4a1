package allow

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agent/client"
	"agent/internal/place"
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
	list, err := client.ReadRules(p.Rules)
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

// Write adds a rule that allows commands which begin with words. The file is replaced
// whole; other programs that write it wait. A rule that is there already stays alone.
func (p Place) Write(r Reach, bot int64, words []string) error {
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
	text, line := string(old), Line(words)
	if slices.Contains(strings.Split(text, "\n"), strings.TrimSuffix(line, "\n")) {
		return nil
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if len(text)+len(line) > protocol.MaxRuleText {
		return protocol.Fail(protocol.RulesLimit, fmt.Sprintf("%s would have over %d bytes; take rules out of it", path, protocol.MaxRuleText))
	}
	return place.WritePrivate(path, []byte(text+line))
}

// Forget takes away the rules of a session that is deleted.
func (p Place) Forget(bot int64) error {
	path := p.File(Session, bot)
	return errors.Join(gone(path), gone(path+".lock"))
}

// Line is a rule in the language of rule files, with its line's end.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	return "prefix_rule(pattern=[" + strings.Join(quoted, ", ") + "], decision=\"allow\")\n"
}

func gone(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
