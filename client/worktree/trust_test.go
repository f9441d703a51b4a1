package worktree

import (
	"testing"

	"agent/protocol"
)

func TestWhoMayConfigureARepository(t *testing.T) {
	t.Parallel()
	at := func(workspace string, roots ...string) *protocol.Bot {
		return &protocol.Bot{Sandbox: protocol.SandboxWorkspace, Workspace: &workspace, WritableRoots: roots}
	}
	reads, full := at("/src"), at("/src")
	reads.Sandbox, full.Sandbox = protocol.SandboxReadOnly, protocol.SandboxFull
	for name, row := range map[string]struct {
		bot    *protocol.Bot
		common string
		may    bool
	}{
		"the one at the top of its folder":       {at("/src/demo"), "/src/demo/.git", false},
		"one of a subfolder":                     {at("/src/demo"), "/src/demo/nested/.git", true},
		"one below its folder of many":           {at("/src"), "/src/demo/.git", true},
		"one elsewhere":                          {at("/src/demo"), "/src/demo2/.git", false},
		"one of another root":                    {at("/x", "/src"), "/src/demo/.git", true},
		"the git folder that it was given":       {at("/src/demo/sub", "/src/demo/.git"), "/src/demo/.git", false},
		"a submodule of that":                    {at("/x", "/src/demo/.git"), "/src/demo/.git/modules/sub", false},
		"a submodule at the top":                 {at("/src/demo"), "/src/demo/.git/modules/sub", false},
		"a git folder put into a given one":      {at("/x", "/src/demo/.git"), "/src/demo/.git/objects/x", true},
		"a bare one that it was given":           {at("/x", "/src/demo.git"), "/src/demo.git", false},
		"its own folder, made to look like one":  {at("/src/demo"), "/src/demo", true},
		"one of a bot that only reads":           {reads, "/src/demo/.git", false},
		"one of a bot that is not held anywhere": {full, "/src/demo/.git", false},
	} {
		if MayConfigure(row.bot, row.common) != row.may {
			t.Errorf("%s: %v", name, !row.may)
		}
	}
}
