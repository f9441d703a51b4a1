package cells

import (
	"fmt"
	"strings"
	"time"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/text"
)

// Words are the call in sentences, for who reads it aloud (sonny.md 14): what it is,
// who let it run, and what it came to.
func (c *ToolCall) Words() string {
	what := c.verb()
	if subject := c.Subject(); subject != "" {
		what += " " + subject
	}
	for _, mark := range c.marks() {
		what += ", " + mark
	}
	if added, removed := c.changed(); c.diffs() && c.failed == "" {
		what += fmt.Sprintf(", %d added", added)
		if removed > 0 {
			what += fmt.Sprintf(", %d removed", removed)
		}
	}
	out := []string{what}
	c.verdict(func(_ text.Role, format string, args ...any) {
		out = append(out, termsafe.OneLine(fmt.Sprintf(format, args...)))
	})
	if end := c.endWords(); end != "" {
		out = append(out, end)
	}
	return strings.Join(out, ". ") + "."
}

// endWords say how a call ended that came to something else than what was wanted, or
// took its time.
func (c *ToolCall) endWords() string {
	var out []string
	sh := c.shell
	switch {
	case !c.done:
		out = append(out, "no result")
	case sh != nil && sh.TimedOut:
		out = append(out, "failed, timed out")
	case sh != nil && len(sh.Signal) > 0:
		out = append(out, "failed, signal "+termsafe.OneLine(strings.Trim(string(sh.Signal), `"`)))
	case sh != nil && sh.ExitCode != nil && *sh.ExitCode != 0:
		out = append(out, fmt.Sprintf("failed, exit %d", *sh.ExitCode))
	case c.failed != "" && !c.judged():
		out = append(out, "failed, "+termsafe.OneLine(c.failed))
	case c.Cancelled:
		out = append(out, "cancelled")
	case c.Unknown:
		out = append(out, "nobody knows whether it ran")
	}
	if took := c.took(c.Ended); took > 1500*time.Millisecond {
		out = append(out, SpanWords(took))
	}
	return strings.Join(out, ", ")
}

// Words are what was decided about a step, and what it came to.
func (s *Step) Words() string { return strings.TrimSpace(s.line().String()) }

// SpanWords is a duration in words: 1 second, 6 seconds, 2 minutes 5 seconds.
func SpanWords(d time.Duration) string {
	total := max(0, int(d.Seconds()+0.5))
	count := func(n int, word string) string {
		if n == 1 {
			return "1 " + word
		}
		return fmt.Sprintf("%d %ss", n, word)
	}
	var out []string
	if h := total / 3600; h > 0 {
		out = append(out, count(h, "hour"))
	}
	if m := total / 60 % 60; m > 0 {
		out = append(out, count(m, "minute"))
	}
	if s := total % 60; s > 0 || total == 0 {
		out = append(out, count(s, "second"))
	}
	return strings.Join(out, " ")
}
