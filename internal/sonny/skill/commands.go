package skill

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"agent/client/instructions"
	"agent/protocol"
)

// A Command is a word that the person may type after a slash and that Sonny does not
// know by itself: a message template, or a skill that is called.
type Command struct {
	Name        string
	Description string
	Hint        string // of its arguments; "" for none
	Path        string
	Skill       bool  // a skill; else a template
	Err         error // what keeps it from being read; Message then fails with it
}

// Commands are a folder's, by name (10.6): the NAME.md of .agents/commands, and the
// skills that are not kept from being called. The workspace's win over the person's,
// and of either a template over a skill, which is a command only by the way. A
// built-in command of the name wins over all, which is the caller's to see to. Both
// folders are real paths. instructions_limit, instructions_unreadable for what
// concerns a whole folder.
func Commands(workspace, home string) ([]Command, error) {
	templates, err := instructions.Files(workspace, home, "commands")
	if err != nil {
		return nil, err
	}
	skills, err := instructions.Skills(workspace, home)
	if err != nil {
		return nil, err
	}
	found := map[string]Command{}
	for _, e := range templates {
		found[e.Name] = commandOf(e, false)
	}
	near := func(c Command) bool {
		return workspace != home && strings.HasPrefix(c.Path, filepath.Join(workspace, ".agents")+"/")
	}
	for _, e := range skills {
		if e.Front != nil && strings.EqualFold(e.Front.Text("user-invocable"), "false") {
			continue
		}
		c := commandOf(e, true)
		if t, taken := found[e.Name]; !taken || near(c) && !near(t) {
			found[e.Name] = c
		}
	}
	var list []Command
	for _, c := range found {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func commandOf(e instructions.Entry, skill bool) Command {
	c := Command{Name: e.Name, Description: e.Description, Path: e.Path, Skill: skill, Err: e.Err}
	if e.Front != nil {
		c.Hint = e.Front.Text("argument-hint")
	}
	return c
}

// Message is what is sent when the command is typed with arguments: of a skill a
// message that names it and carries them, of a template its body with them put in.
// instructions_limit, instructions_unreadable.
func (c Command) Message(args string) (string, error) {
	args = strings.TrimSpace(args)
	if c.Err != nil {
		return "", c.Err
	}
	if c.Skill {
		text := "Use the skill " + c.Name + " (" + c.Path + ")."
		if args != "" {
			text += "\n\n" + args
		}
		return text, nil
	}
	text, err := instructions.ReadFile(c.Path, instructions.MaxBytes)
	if err != nil {
		return "", err
	}
	_, body, closed := instructions.ParseFrontMatter(text)
	if !closed {
		return "", protocol.Fail(protocol.InstructionsUnreadable, c.Path+": its front matter has no end; close it with a line ---")
	}
	return Expand(strings.TrimSpace(body), args), nil
}

// placeholder is where an argument goes.
var placeholder = regexp.MustCompile(`\$(?:ARGUMENTS\b|[1-9])`)

// Expand puts arguments into a template: $ARGUMENTS is all of them as they were
// typed, $1 to $9 are the words, a quoted one without its quotes, and "" where there
// are fewer. What is put in is not looked at again: no shell, no file. Arguments for
// which the template has no place follow it, so that nothing typed is lost.
func Expand(template, args string) string {
	args = strings.TrimSpace(args)
	if args != "" && !placeholder.MatchString(template) {
		return strings.TrimSpace(template + "\n\n" + args)
	}
	words := split(args)
	return placeholder.ReplaceAllStringFunc(template, func(p string) string {
		if p == "$ARGUMENTS" {
			return args
		}
		if n := int(p[1] - '1'); n < len(words) {
			return words[n]
		}
		return ""
	})
}

var argument = regexp.MustCompile(`"([^"]*)"|'([^']*)'|(\S+)`)

// split are the words of arguments; one in quotes may hold spaces.
func split(args string) (words []string) {
	for _, m := range argument.FindAllStringSubmatch(args, -1) {
		words = append(words, cmp.Or(m[1], m[2], m[3]))
	}
	return words
}
