package cells

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/diff"
	"agent/internal/sonny/screen/text"
)

// layout is the call's line, what was decided about it, and its result (sonny.md 8.5).
func (c *ToolCall) layout(l Look, open bool) []text.Line {
	out := c.lines(l.Width)
	for _, s := range c.Steps {
		out = append(out, s.line(c.now()).Cut(l.Width))
	}
	if card := c.card(); card != nil && !open {
		return append(out, card.lines(l.Width)...)
	}
	body, keep := c.body(l), l.Fold.Output
	open = open || c.diffs() && l.Fold.Diff == FoldOpen
	switch {
	case open:
	case c.failed == "" && (c.reads() || c.diffs() && l.Fold.Diff == FoldLine):
		body = nil
	case c.diffs():
		keep = foldedDiff
	}
	if fromEnd := !c.ok() && c.shell != nil; fromEnd && !open && len(body) > keep+1 {
		out = append(out, body[len(body)-keep:]...)
		out = append(out, more(len(body)-keep))
	} else {
		out = append(out, folded(body, keep, open)...)
	}
	if c.shell != nil && c.shell.Hint != "" {
		out = append(out, text.Wrap([]text.Span{{Text: clean(c.shell.Hint), Role: text.Wait}}, indent(l.Width))...)
	}
	return out
}

func indent(width int) text.Frame {
	in := []text.Span{{Text: "  ", Chrome: true}}
	return text.Frame{Width: width, First: in, Rest: in}
}

// lines name the call, with its state at the right, or below where the reason of a
// denial leaves no room for both.
func (c *ToolCall) lines(width int) []text.Line {
	left, state := c.naming(), text.Line{Spans: c.state()}
	room := width - state.Width() - 2
	if left.Width() <= room || room >= leastNaming {
		return []text.Line{left.Right(state, width)}
	}
	return append([]text.Line{left.Cut(width)}, text.Wrap(state.Spans, indent(width))...)
}

// leastNaming is how many cells of what names a call stay beside its state.
const leastNaming = 24

// naming is what the call is.
func (c *ToolCall) naming() text.Line {
	glyph := "▸ "
	if c.Name == "wait" && !c.done {
		glyph = "◐ "
	}
	left := []text.Span{{Text: glyph, Role: text.Dim, Chrome: true}, {Text: c.verb(), Role: text.Accent}}
	if subject := c.Subject(); subject != "" {
		left = append(left, text.Span{Text: "  " + subject})
	}
	for _, mark := range c.marks() {
		left = append(left, text.Span{Text: "  " + mark, Role: text.Dim})
	}
	if stat := c.stat(); len(stat) > 0 {
		left = append(left, text.Span{Text: "  "})
		left = append(left, stat...)
	}
	return text.Line{Spans: left}
}

func (c *ToolCall) verb() string {
	switch c.Name {
	case "web_fetch":
		return "fetch"
	case "write_stdin":
		return "stdin →"
	case "wait":
		return "waiting on"
	case "apply_patch":
		return "edit"
	}
	return termsafe.OneLine(c.Name)
}

func (c *ToolCall) marks() (out []string) {
	if c.args.Background {
		out = append(out, "background")
	}
	if c.args.Detach {
		out = append(out, "detached")
	}
	if c.Outside {
		out = append(out, "outside")
	}
	if c.shell != nil && len(c.shell.LeftRunning) > 0 {
		out = append(out, "left running")
	}
	return out
}

// stat is +n −m of a call that changed files.
func (c *ToolCall) stat() []text.Span {
	added, removed := c.changed()
	if added == 0 && removed == 0 {
		return nil
	}
	out := []text.Span{{Text: fmt.Sprintf("+%d", added), Role: text.Add}}
	if removed > 0 {
		out = append(out, text.Span{Text: fmt.Sprintf(" −%d", removed), Role: text.Del})
	}
	return out
}

// state is what the right end of the line says.
func (c *ToolCall) state() (out []text.Span) {
	say := func(role text.Role, format string, args ...any) {
		if len(out) > 0 {
			out = append(out, text.Span{Text: "  "})
		}
		out = append(out, text.Span{Text: termsafe.OneLine(fmt.Sprintf(format, args...)), Role: role})
	}
	if !c.done {
		asking(c.Asks, c.now().Sub(c.Asked), say)
	}
	c.verdict(say)
	switch {
	case !c.done:
		return out
	case c.shell != nil && c.shell.TimedOut:
		say(text.Fail, "✘ timed out")
	case c.shell != nil && len(c.shell.Signal) > 0:
		say(text.Fail, "✘ signal %s", strings.Trim(string(c.shell.Signal), `"`))
	case c.shell != nil && c.shell.ExitCode != nil && *c.shell.ExitCode != 0:
		say(text.Fail, "✘ %d", *c.shell.ExitCode)
	case c.failed != "" && !c.judged():
		say(text.Fail, "✘ %s", c.failed)
	case c.Cancelled:
		say(text.Dim, "cancelled")
	}
	if took := c.took(c.Ended); took > 1500*time.Millisecond {
		say(text.Dim, "%s", Span(took))
	}
	return out
}

// body is the result: output, a diff, an error's detail.
func (c *ToolCall) body(l Look) []text.Line {
	width := l.Width
	switch {
	case !c.done && !c.diffs():
		return nil
	case c.diffs() && c.failed == "":
		return c.diff(width)
	case c.shell != nil:
		out := shellLines(*c.shell.Stdout, text.Plain, l)
		return append(out, shellLines(c.shell.Stderr, text.Wait, l)...)
	case c.failed != "" && c.judged():
		return nil
	case c.failed != "":
		return outputLines(c.why, text.Fail, width)
	case c.Name == "note":
		return outputLines(c.args.Text+c.args.Note, text.Plain, width)
	case c.Name == "wait" || c.Name == "web_fetch" || c.Name == "plan":
		return nil
	}
	return outputLines(pretty(c.Result), text.Plain, width)
}

// outputLines are a text's lines, wrapped and indented by two.
func outputLines(s string, role text.Role, width int) []text.Line {
	return spannedLines(s, width, func(line string) []text.Span { return []text.Span{{Text: clean(line), Role: role}} })
}

// shellLines are those of what a command wrote, in its colours where they are kept.
func shellLines(s string, role text.Role, l Look) []text.Line {
	if !l.Colours {
		return outputLines(s, role, l.Width)
	}
	t := &tint{role: role, now: role}
	return spannedLines(s, l.Width, t.spans)
}

func spannedLines(s string, width int, spans func(line string) []text.Span) (out []text.Line) {
	s = strings.TrimRight(s, "\n")
	if s == "" {
		return nil
	}
	for line := range strings.SplitSeq(s, "\n") {
		out = append(out, text.Wrap(spans(line), indent(width))...)
	}
	return out
}

// pretty indents what is JSON.
func pretty(s string) string {
	if !json.Valid([]byte(s)) || !strings.HasPrefix(strings.TrimSpace(s), "{") {
		return s
	}
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return s
	}
	return string(text)
}

// diffs reports whether the call changes files.
func (c *ToolCall) diffs() bool {
	return c.Name == "edit" || c.Name == "write" || c.Name == "apply_patch"
}

// changed counts the lines that the call adds and removes, by its own record.
func (c *ToolCall) changed() (added, removed int) {
	for _, f := range c.files() {
		added, removed = added+f.Added, removed+f.Removed
	}
	return added, removed
}

// files are what the call does to each file, as its own arguments say: a diff shows what
// the call did, not the file as it is now (sonny.md 8.6).
func (c *ToolCall) files() []*diff.File {
	if c.diffed {
		return c.did
	}
	c.diffed = true
	switch c.Name {
	case "edit":
		c.did = []*diff.File{diff.Edit(c.args.Path, c.args.Old, c.args.New, 0)}
	case "write":
		c.did = []*diff.File{diff.Write(c.args.Path, nil, c.args.Content)}
	case "apply_patch":
		c.did = diff.Patch(c.args.Patch)
	}
	return c.did
}

// diff is what the call did.
func (c *ToolCall) diff(width int) (out []text.Line) {
	in := []text.Span{{Text: "  ", Chrome: true}}
	files := c.files()
	for _, f := range files {
		if len(files) > 1 {
			out = append(out, text.Of(text.Dim, "  "+termsafe.OneLine(f.Path())).Cut(width))
		}
		for _, line := range diff.Unified(f, max(10, width-2), diff.Options{Words: true}).Lines {
			out = append(out, text.Line{Spans: append(in[:1:1], line.Spans...), End: line.End})
		}
	}
	return out
}

// OneLine is text from outside for a line that it shares.
func OneLine(s string) string { return termsafe.OneLine(s) }

// Changes is what a call with these arguments would do to files, laid out; nil for a
// call that changes none.
func Changes(name, arguments string, width int) []text.Line {
	c := newCall("", name, arguments, time.Now)
	if !c.diffs() {
		return nil
	}
	return c.diff(width)
}
