package skill

import (
	"embed"
	"fmt"
	"strings"
	"time"

	"agent/client/instructions"
)

//go:embed roles/*.md
var roleFiles embed.FS

// BuiltInRoles are the texts of Sonny's own roles, by name: lead, home and cleanup.
func BuiltInRoles() map[string]string {
	all := map[string]string{}
	for _, name := range []string{"lead", "home", "cleanup"} {
		text, err := roleFiles.ReadFile("roles/" + name + ".md")
		if err != nil {
			panic("skill: " + err.Error())
		}
		all[name] = string(text)
	}
	return all
}

// Tasks is how a lead's tasks are started when it says nothing else.
type Tasks struct {
	Model, Effort string // "" for the lead's own
	Worktree      bool   // each in a worktree of its own, else in the lead's folder
}

// standing is what a lead is told of them.
func (t Tasks) standing() string {
	where := "work in your folder, beside you: give no two of them the same files"
	if t.Worktree {
		where = "have a worktree and a branch of their own, made from the last commit: what is not committed is not in it"
	}
	model := "your own model"
	if t.Model != "" {
		model = t.Model
	}
	effort := "your own effort"
	if t.Effort != "" {
		effort = "effort " + t.Effort
	}
	return fmt.Sprintf("Unless `start_task` says otherwise, your tasks run on %s at %s, and %s.", model, effort, where)
}

// Options say for what Compose composes.
type Options struct {
	Workspace string // the bot's folder; absolute
	Source    string // of a bot in a worktree, the top of the checkout that it was made of
	Top       string // of the worktree that it works in, where that is one of those made for bots
	Home      string // "" for the person's home folder
	Project   string // whose memory is read; "" for that of the folder
	Role      string // "" for none; lead, home and cleanup are built in
	Tasks     *Tasks // for a lead; nil for any other bot
	Texts
	OwnOnly bool      // nothing of the folder's: the person's own files alone
	Now     time.Time // zero for the present
}

// Texts is what the settings say of the texts that bots get.
type Texts struct {
	Disabled  []string // skills (skills.disabled)
	Fallbacks []string // files that stand in for an AGENTS.md (agents_md.fallbacks)
}

// Compose puts together the instructions of a bot that Sonny makes (section 22):
// what instructions.Compose gives, with the built-in roles, without the skills that
// the settings disable, and for a lead with what holds for its tasks. Errors are
// those of instructions.Compose.
func Compose(o Options) (*instructions.Composed, error) {
	of := instructions.Options{
		Workspace: o.Workspace, Source: o.Source, Top: o.Top, Home: o.Home, Project: o.Project, Role: o.Role,
		BuiltIn: BuiltInRoles(), HiddenSkills: o.Disabled, Fallbacks: o.Fallbacks, OwnOnly: o.OwnOnly, Now: o.Now,
	}
	if o.Tasks != nil {
		of.Standing = o.Tasks.standing()
	}
	return instructions.Compose(of)
}

// Notice says what went into a text, as the notice of a new bot does:
// "preamble, 2 AGENTS.md, 4 skills, 1 role, 7 facts, lead".
func Notice(c *instructions.Composed) string {
	p := c.Parts
	parts := []string{"preamble"}
	for _, count := range []struct {
		n         int
		one, many string
	}{
		{p.AgentsFiles, "AGENTS.md", "AGENTS.md"},
		{p.Skills, "skill", "skills"},
		{p.Roles, "role", "roles"},
		{p.Facts, "fact", "facts"},
		{p.Threads, "thread", "threads"},
	} {
		switch {
		case count.n == 1:
			parts = append(parts, "1 "+count.one)
		case count.n > 1:
			parts = append(parts, fmt.Sprint(count.n, " ", count.many))
		}
	}
	if c.Role != nil {
		parts = append(parts, c.Role.Name)
	}
	return strings.Join(parts, ", ")
}
