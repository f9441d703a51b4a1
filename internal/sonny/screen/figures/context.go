package figures

import (
	"fmt"
	"strings"

	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/usage"
)

// Context is what fills a bot's context, for /context.
type Context struct {
	Meter    usage.Meter     // of the newest call
	Cached   int64           // its tokens that came from the cache
	Contents *usage.Contents // nil: it is being read
	Compacts int64           // tokens at which a summary is made; 0: never
	Whole    bool            // the whole history was counted
}

// Rows are the context's; bar is how many cells the meter's bar has.
func (c *Context) Rows(bar int) (rows []lists.Row) {
	say := func(name, value string) {
		rows = append(rows, lists.Row{ID: name, Line: text.Join(text.Span{Text: text.Pad(name, 34), Role: text.Dim}, text.Span{Text: value})})
	}
	m := c.Meter
	if m.Window > 0 {
		rows = append(rows, lists.Row{Line: meterBar(m, c.Compacts, bar)})
	}
	say("newest call", callWords(m, c.Cached))
	if c.Contents == nil {
		return append(rows, lists.Row{}, lists.Row{Line: text.Of(text.Dim, "counting…")})
	}
	say("compaction", c.compactionWords())
	rows = append(rows, lists.Row{}, lists.Row{Line: text.Of(text.Dim, "about, at four bytes a token")})
	for _, s := range c.Contents.Shares(m.Tokens) {
		if s.Tokens == 0 {
			continue
		}
		value := fmt.Sprintf("%8s", usage.Short(s.Tokens))
		if s.Name == "pictures" && c.Contents.Pictures > 0 {
			value += "  " + human.Count(int(c.Contents.Pictures), "picture", "pictures")
		}
		say(s.Name, value)
	}
	if !c.Whole {
		rows = append(rows, lists.Row{Line: text.Of(text.Dim, "what came before is no longer in it, or is more than was counted")})
	}
	return rows
}

// callWords say what the newest call took.
func callWords(m usage.Meter, cached int64) string {
	words := usage.Short(m.Tokens)
	switch {
	case m.Tokens == 0:
		return "none is known yet"
	case m.Window == 0:
		words += " tokens, of a window that is not known"
	default:
		words += " of " + usage.Short(m.Window) + " tokens"
	}
	return words + " · " + usage.Short(cached) + " from the cache"
}

// compactionWords say how far it is to the next summary.
func (c *Context) compactionWords() string {
	m := c.Meter
	switch {
	case c.Compacts == 0:
		return "never: this bot was made without instructions for it"
	case m.Window > 0 && c.Compacts > m.Window:
		return "begins at about " + usage.Short(c.Compacts) + ", past the window"
	case m.Tokens >= c.Compacts:
		return "due at the next round: it begins at about " + usage.Short(c.Compacts)
	}
	return "begins at about " + usage.Short(c.Compacts) + ", in " + usage.Short(c.Compacts-m.Tokens)
}

// meterBar is the meter in so many cells, with a mark where compaction begins.
func meterBar(m usage.Meter, compacts int64, w int) text.Line {
	share, _ := m.Percent()
	full := min(w, (share*w+99)/100)
	bar := strings.Repeat("█", full) + strings.Repeat("░", w-full)
	mark := w
	if compacts > 0 {
		mark = int(min(int64(w), compacts*int64(w)/m.Window))
	}
	cut := func(from, to int) string { return string([]rune(bar)[from:to]) }
	role := levelRole(m)
	line := text.Join(text.Span{Text: cut(0, mark), Role: role})
	if mark < w {
		line.Spans = append(line.Spans, text.Span{Text: "│", Role: text.Accent}, text.Span{Text: cut(mark+1, w), Role: role})
	}
	line.Spans = append(line.Spans, text.Span{Text: fmt.Sprintf("  %d%%", share), Role: role})
	return line
}
