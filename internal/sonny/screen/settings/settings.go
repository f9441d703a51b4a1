// Package settings is how the settings look in their panels (sonny.md 20): all of them as
// rows, and one with its value, where that is from, what holds otherwise and what it takes.
// It changes none.
package settings

import (
	"fmt"
	"slices"
	"strings"

	"agent/internal/sonny/config"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// Ids of the rows of One that are no choice.
const (
	Write = "\x00write" // another value, which is typed
	Unset = "\x00unset" // back to what holds otherwise
)

const (
	nameWidth  = 26
	valueWidth = 28
	fullWidth  = 36 // of a name with its table; a value beside it takes less
	besideFull = 24
	factWidth  = 10
)

// All are the rows of settings: those of no table first, then each table under its name.
// full gives every row its whole name and no headings, for a list that is filtered. What is
// set in no place is dim.
func All(of []config.Setting, full bool) (rows []lists.Row) {
	var last string
	for _, s := range ordered(of) {
		table, name := parts(s.Name)
		width, beside := nameWidth, valueWidth
		if full {
			name, width, beside = s.Name, fullWidth, besideFull
		} else if table != last {
			rows = append(rows, lists.Row{Line: text.Of(text.Dim, "["+cells.OneLine(table)+"]")})
			last = table
		}
		rows = append(rows, lists.Row{
			ID: s.Name, Match: s.Name + " " + s.Text() + " " + Source(s) + " " + s.Key.Means,
			Line: text.Join(
				text.Span{Text: text.Pad(cells.OneLine(name), width) + " "},
				text.Span{Text: text.Pad(Value(s), beside) + " ", Role: valueRole(s)},
				text.Span{Text: Source(s), Role: text.Dim},
			),
		})
	}
	return rows
}

// ordered are settings as they would stand in a file: those without a table first.
func ordered(of []config.Setting) []config.Setting {
	of = slices.Clone(of)
	rank := func(s config.Setting) int {
		if table, _ := parts(s.Name); table == "" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(of, func(x, y config.Setting) int { return rank(x) - rank(y) })
	return of
}

// parts are the table of a name, "" for none, and the name in it.
func parts(name string) (table, rest string) {
	if table, rest, ok := strings.Cut(name, "."); ok {
		return table, rest
	}
	return "", name
}

// Value is what holds, in a line: a text as it is, everything else as TOML, and in words
// where nothing is set.
func Value(s config.Setting) string {
	switch v := s.Value.(type) {
	case nil:
		return cells.OneLine(s.Key.Otherwise())
	case string:
		if v != "" {
			return cells.OneLine(v)
		}
	}
	return cells.OneLine(s.Text())
}

func valueRole(s config.Setting) text.Role {
	if s.From == config.FromDefault {
		return text.Dim
	}
	return text.Plain
}

// sources are the words for where a value is from.
var sources = map[config.Origin]string{config.FromFlag: "command line"}

// Source is where a setting's value is from.
func Source(s config.Setting) string {
	if words, ok := sources[s.From]; ok {
		return words
	}
	return string(s.From)
}

// Typed is the value as it is typed: what stands in a field before it is changed.
func Typed(s config.Setting) string {
	if v, ok := s.Value.(string); ok && !strings.ContainsAny(v, "\r\n") {
		return v
	}
	return s.Text()
}

// About says what a setting is, in a few lines for below a list.
func About(s config.Setting, width int) (lines []text.Line) {
	say := func(role text.Role, words string) {
		lines = append(lines, text.Wrap([]text.Span{{Text: cells.OneLine(words), Role: role}}, text.Frame{Width: width})...)
	}
	say(text.Plain, s.Key.Means)
	if s.From != config.FromDefault {
		say(text.Dim, "default: "+s.Key.Otherwise())
	}
	say(text.Dim, "takes: "+s.Key.Must())
	say(text.Dim, "a change counts "+counts(s.Key))
	return lines
}

// counts says for what a change of a setting counts.
func counts(k *config.Key) string {
	switch {
	case k.Live:
		return "at once"
	case k.Confining():
		return "for bots that are made after it; ◆ it confines them"
	}
	return "for bots that are made after it"
}

// One are the rows of one setting: what there is to know of it, folded to a width, and below
// that what it can be changed to.
func One(s config.Setting, width int) (rows []lists.Row) {
	say := func(name, words string) {
		label := text.Pad(name, factWidth)
		for _, line := range text.Wrap([]text.Span{{Text: cells.OneLine(words)}}, text.Frame{
			Width: max(20, width), First: []text.Span{{Text: label, Role: text.Dim}}, Rest: text.Indent(factWidth),
		}) {
			rows = append(rows, lists.Row{Line: line})
		}
	}
	say("value", Value(s))
	say("from", Source(s))
	say("default", s.Key.Otherwise())
	say("takes", s.Key.Must())
	say("does", s.Key.Means)
	say("counts", counts(s.Key))
	if s.Key.Family() && s.From == config.FromDefault {
		return append(rows, lists.Row{}, lists.Row{Line: text.Of(text.Dim, "give it its name: /config "+cells.OneLine(s.Name)+" VALUE, with yours for what is in capitals")})
	}
	return append(append(rows, lists.Row{}), choices(s)...)
}

// choices are the rows of what a setting can be changed to.
func choices(s config.Setting) (rows []lists.Row) {
	add := func(id, words, mark string) {
		rows = append(rows, lists.Row{ID: id, Line: text.Join(text.Span{Text: text.Pad(cells.OneLine(words), nameWidth) + " "}, text.Span{Text: mark, Role: text.Dim})})
	}
	all := s.Key.Choices()
	for _, c := range all {
		mark := ""
		if c == fmt.Sprint(s.Value) {
			mark = "now"
		}
		add(c, c, mark)
	}
	if len(all) == 0 {
		add(Write, "another value", "")
	}
	if s.From == config.FromConfig {
		add(Unset, "take it out of config.toml", "then "+cells.OneLine(s.Key.Otherwise()))
	}
	return rows
}
