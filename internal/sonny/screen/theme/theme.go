// Package theme gives every role of a line its looks (sonny.md 13): the built-in
// themes, those of files, the choice by the terminal's background, and what remains of
// a colour where a terminal shows fewer.
//
// A theme is a value and is never changed after it was made.
package theme

import (
	"slices"

	"agent/internal/sonny/screen/text"
)

// Style is how a cell looks. The zero value is the terminal's own.
type Style struct {
	Fg, Bg Color
	Attr   text.Attr
	Faint  bool
}

// Theme gives each role a style.
type Theme struct {
	Name   string
	styles []Style // by role
}

// builtin is what may stand in tui.theme beside the names of files.
var builtin = []string{"auto", "dark", "light", "ansi", "none"}

// Builtin are the names that need no file, "auto" among them.
func Builtin() []string { return slices.Clone(builtin) }

// Look is the style of a span on a ground: the role's own, with the span's attributes,
// and with the background of the role that the ground was filled with where it has none.
func (t Theme) Look(role, ground text.Role, attr text.Attr) Style {
	s := t.of(role)
	if ground != role && ground != text.Plain {
		under := t.of(ground)
		if s.Bg == (Color{}) {
			s.Bg = under.Bg
		}
		s.Attr |= under.Attr & text.Reverse
		if s.Attr&text.Reverse != 0 {
			s.Faint = false // faint on a reversed ground is hard to read in most terminals
		}
	}
	s.Attr |= attr
	return s
}

func (t Theme) of(role text.Role) Style {
	if int(role) >= len(t.styles) {
		return Style{}
	}
	return t.styles[role]
}

// table puts a table of roles into a theme; a role that is not in it looks plain.
func table(name string, looks map[text.Role]Style) Theme {
	t := Theme{Name: name}
	for r := range text.Roles() {
		t.styles = append(t.styles, looks[r])
	}
	return t
}

// Dark is for a dark background.
func Dark() Theme {
	return table("dark", coloured(map[text.Role]Color{
		text.Plain: hex(0xe4e4e4), text.Dim: hex(0xa3a3a3), text.Accent: hex(0x7cc4ff),
		text.Run: hex(0x6fd6c0), text.Wait: hex(0xa9b4ff), text.Need: hex(0xffd166),
		text.Pace: hex(0xd7b48a), text.Fail: hex(0xff8f8f), text.Add: hex(0x5fd7c8),
		text.Del: hex(0xffa07a), text.User: hex(0xffffff), text.Bot: hex(0xe4e4e4),
		text.Code: hex(0xc8d3a8), text.Panel: hex(0xe4e4e4), text.Select: hex(0xffffff),
		text.Rule: hex(0x8c8c8c), text.Link: hex(0x8ab4f8), text.Warn: hex(0xf5b971),
	}, hex(0x262626), hex(0x3a3a3a)))
}

// Light is for a light background.
func Light() Theme {
	return table("light", coloured(map[text.Role]Color{
		text.Plain: hex(0x202020), text.Dim: hex(0x545454), text.Accent: hex(0x004f9e),
		text.Run: hex(0x005a4b), text.Wait: hex(0x40409a), text.Need: hex(0x6b4a00),
		text.Pace: hex(0x664422), text.Fail: hex(0x9c1414), text.Add: hex(0x00586a),
		text.Del: hex(0x8f2f00), text.User: hex(0x000000), text.Bot: hex(0x202020),
		text.Code: hex(0x3d4a14), text.Panel: hex(0x202020), text.Select: hex(0x000000),
		text.Rule: hex(0x7a7a7a), text.Link: hex(0x1a3f9e), text.Warn: hex(0x7a3d00),
	}, hex(0xf0f0f0), hex(0xd8d8d8)))
}

// coloured adds what both have: the grounds, and weights that hold without colour.
func coloured(fg map[text.Role]Color, panel, selected Color) map[text.Role]Style {
	looks := map[text.Role]Style{}
	for r, c := range fg {
		looks[r] = Style{Fg: c, Attr: weights[r]}
	}
	looks[text.Panel] = Style{Fg: fg[text.Panel], Bg: panel}
	looks[text.Select] = Style{Fg: fg[text.Select], Bg: selected}
	return looks
}

// weights are what tells roles apart where no colour does, and helps where one does.
var weights = map[text.Role]text.Attr{
	text.Accent: text.Bold, text.Need: text.Bold, text.Fail: text.Bold,
	text.User: text.Bold, text.Link: text.Underline,
}

// ANSI takes the terminal's sixteen colours alone, and sets no background: what is
// selected is reversed.
func ANSI() Theme {
	looks := map[text.Role]Style{}
	for r, n := range map[text.Role]uint8{
		text.Dim: 8, text.Accent: 6, text.Run: 2, text.Wait: 4, text.Need: 3, text.Pace: 5,
		text.Fail: 1, text.Add: 2, text.Del: 1, text.Code: 6, text.Rule: 8, text.Link: 4, text.Warn: 3,
	} {
		looks[r] = Style{Fg: Index(n), Attr: weights[r]}
	}
	looks[text.User] = Style{Attr: text.Bold}
	looks[text.Select] = Style{Attr: text.Reverse}
	return table("ansi", looks)
}

// None has weight, underline and reverse alone.
func None() Theme {
	looks := map[text.Role]Style{}
	for r, a := range weights {
		looks[r] = Style{Attr: a}
	}
	looks[text.Dim] = Style{Faint: true}
	looks[text.Rule] = Style{Faint: true}
	looks[text.Del] = Style{Attr: text.Bold}
	looks[text.Warn] = Style{Attr: text.Bold}
	looks[text.Select] = Style{Attr: text.Reverse}
	return table("none", looks)
}
