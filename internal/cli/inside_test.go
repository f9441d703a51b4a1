package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAParentThatWasReplaced: a name says nothing of who has it.
func TestAParentThatWasReplaced(t *testing.T) {
	t.Parallel()
	g := newGround(t, "AGENT_MODEL=t/do")
	t.Run("CL-63 a bot pins its creator by the id", func(t *testing.T) {
		g.must("run", "--new", "--bot", "Bob", `run "$AGENT_BIN" run --detach --new --bot Ann -- hi`)
		g.must("wait", "turn:Ann/2")
		g.must("rm", "--bot", "Bob")
		g.must("run", "--new", "--bot", "Bob", "hi")
		before := g.must("show", "--bot", "Bob")
		g.must("run", "--bot", "Ann", `run "$AGENT_BIN" run --detach --bot "$AGENT_PARENT" --bot-id "$AGENT_PARENT_ID" -- question`)
		if said := g.must("history", "--bot", "Ann", "--limit", "1"); !strings.Contains(said, "bot_not_found") {
			t.Errorf("Ann said %s", said)
		}
		if after := g.must("show", "--bot", "Bob"); after != before {
			t.Errorf("Bob is %s, and was %s", after, before)
		}
	})
}

// environment is what a bot's shell has, as the shell says.
func (g *ground) environment(bot string) []string {
	g.t.Helper()
	path := filepath.Join(g.dir, "environment")
	g.must("run", "--bot", bot, "run env -0 > "+path)
	text, err := os.ReadFile(path)
	if err != nil {
		g.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}
