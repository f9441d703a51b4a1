package screen

import (
	"os"
	"os/exec"
	"strings"

	"agent/internal/sonny/fault"
	"agent/protocol"
)

// setupCommands hand the terminal to the verbs of sonny that ask for themselves
// (sonny.md 19).
var setupCommands = feature{
	commands: []slashCommand{
		{"setup", "", "the first-run screen again", func(a *App, _ string) error { return a.verb("setup") }},
		{"login", "", "sign in with a ChatGPT plan", func(a *App, _ string) error { return a.verb("login", "chatgpt") }},
		{"logout", "", "forget the ChatGPT sign-in", func(a *App, _ string) error { return a.verb("logout", "chatgpt") }},
	},
}

// verb gives the terminal to a verb of this program until it ends.
func (a *App) verb(args ...string) error {
	words := "sonny " + strings.Join(args, " ")
	if len(a.o.Self) == 0 {
		return protocol.Fail("failed", "it cannot be run from here; leave the screen and run "+words)
	}
	argv := append(a.o.Self[:len(a.o.Self):len(a.o.Self)], args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "SONNY_SCREEN="+string(a.mode()))
	if err := a.lend(cmd); err != nil {
		return protocol.Fail("failed", words+": "+fault.Screen.Words(err))
	}
	a.notes.say(words + " is done; what it changed holds for leads that are made from the next start on")
	return nil
}
