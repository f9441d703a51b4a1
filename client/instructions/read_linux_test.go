package instructions

import (
	"testing"

	"agent/protocol"
)

// A checkout may hold links to what the system tells this process of itself.
func TestTheEnvironmentIsNoInstructions(t *testing.T) {
	t.Setenv("SOME_KEY", "a secret")
	for _, name := range []string{
		"code/demo/AGENTS.md", "code/demo/.agents/skills/a/SKILL.md", "code/demo/.agents/agents/a.md",
		"code/demo/.agents/project.toml", "home/.agents/memory/MEMORY.md", "home/.agents/commons/threads/t/thread.json",
	} {
		for _, target := range []string{"/proc/self/environ", "/proc/self/cmdline"} {
			t.Run(name+" as "+target, func(t *testing.T) {
				w := newWorld(t)
				w.link(target, name)
				if _, err := Compose(Options{Workspace: w.workspace, Home: w.home}); protocol.CodeOf(err) != protocol.InstructionsUnreadable {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}
