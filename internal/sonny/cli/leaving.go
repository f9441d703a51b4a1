package cli

import (
	"fmt"
	"strings"

	"agent/client/termsafe"
	"agent/internal/sonny/config"
	"agent/internal/sonny/screen"
	"agent/internal/sonny/usage"
)

// sayLeft is the block on the normal screen when Sonny is left (sonny.md 7.4).
func (a *app) sayLeft(s *screen.Sitting, c *config.Config) {
	if s.Bot == "" || c.TUI.OnExit == "nothing" {
		return
	}
	name := termsafe.OneLine(s.Bot)
	if s.Title != s.Bot {
		name = termsafe.OneLine(s.Title) + " (" + name + ")"
	}
	fmt.Fprintf(a.stdout, "%s\n", name)
	if s.Reply != "" && c.TUI.OnExit == "reply" {
		fmt.Fprintf(a.stdout, "%s\n", strings.TrimRight(termsafe.Prose.Text(s.Reply), "\n"))
	}
	for _, of := range []struct {
		bots  []string
		state string
	}{{s.Running, "still works"}, {s.Waiting, "waits for you"}} {
		if len(of.bots) > 0 {
			fmt.Fprintf(a.stdout, "%s: %s\n", of.state, termsafe.OneLine(strings.Join(of.bots, ", ")))
		}
	}
	if s.Used.All() > 0 {
		used := usage.Short(s.Used.Input) + " in, " + usage.Short(s.Used.Output) + " out"
		if c.Usage.ShowCost {
			used += ", " + s.Used.CostBrief()
		}
		fmt.Fprintf(a.stdout, "used this time: %s\n", used)
	}
	fmt.Fprintf(a.stdout, "open it again: sonny resume %s\n", termsafe.ShellWord(s.Bot))
}
