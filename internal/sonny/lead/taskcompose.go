package lead

import (
	"fmt"
	"os"
	"strings"

	"agent/client"
	"agent/client/instructions"
	"agent/internal/sonny/skill"
	"agent/protocol"
)

// TaskComposer composes the instructions of tasks. home is the person's home folder. It is
// the one place that says of what.
func TaskComposer(home string, texts skill.Texts) func(TaskText) (*instructions.Composed, error) {
	return func(t TaskText) (*instructions.Composed, error) {
		return skill.Compose(skill.Options{
			Workspace: t.Workspace, Source: t.Source, Top: t.Top, Home: home, Project: t.Project, Role: t.Role, Texts: texts,
			OwnOnly: t.NoFiles,
		})
	}
}

// KeyVariables are those that a setup does not get: of the providers that the
// environment names, and of those that the daemon has.
func KeyVariables(ready *protocol.Ready) []string {
	keys := client.KeyVariables(strings.Fields(os.Getenv("AGENT_PROVIDER")))
	for _, p := range ready.Providers {
		if p.KeyEnv != "" {
			keys = append(keys, p.KeyEnv)
		}
	}
	return keys
}

// maxMade bounds a name that is made of a brief, in bytes.
const maxMade = 24

// TaskName makes a task's name of the first words of its brief, with a number where
// that is taken (sonny.md 5): what & does.
func TaskName(brief string, taken func(name string) bool) string {
	name := ""
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	for _, word := range strings.FieldsFunc(strings.ToLower(brief), odd) {
		longer := strings.TrimPrefix(name+"-"+word, "-")
		if len(longer) > maxMade && name != "" {
			break
		}
		name = longer[:min(len(longer), maxMade)]
	}
	if name == "" {
		name = "task"
	}
	free := name
	for n := 2; taken(free) && n < maxNumber; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}
