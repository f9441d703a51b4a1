package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/text"
)

// What a model or a file says stands beside what Sonny says, and may be written so as to
// look like it. So each row of such a text begins with a bar, also where a row goes on
// only because the window is narrow: a row without one is Sonny's.
var barred = []text.Span{{Text: "  │ ", Role: text.Dim, Chrome: true}}

// plainBar is the bar of the plain mode, which has no boxes.
const plainBar = "| "

// quoted is a text of somebody else's after Sonny's word for it.
func quoted(label, s string, role text.Role, w int) []text.Line {
	return text.Wrap([]text.Span{{Text: label + termsafe.OneLine(s), Role: role}}, text.Frame{Width: w - 2, First: text.Indent(2), Rest: barred})
}

// part is a piece of what is asked about.
type part struct {
	head string   // a row of Sonny's own; "" for none
	rows []string // a text that somebody else wrote
}

// lines are a part's rows, at most commandRows of a text unless all of it is asked for.
func (p part) lines(w int, whole bool) (out []text.Line) {
	wrap := func(s string, first []text.Span) []text.Line {
		return text.Wrap([]text.Span{{Text: termsafe.OneLine(s), Attr: text.Bold}}, text.Frame{Width: w - 2, First: first, Rest: barred})
	}
	if p.head != "" {
		out = clipped(wrap(p.head, text.Indent(4)), whole)
	}
	first := barred
	if p.head == "" && len(p.rows) == 1 { // nothing stands beside it yet
		first = text.Indent(4)
	}
	var rows []text.Line
	for _, row := range p.rows {
		rows = append(rows, wrap(row, first)...)
	}
	return append(out, clipped(rows, whole)...)
}

// plain are a part's rows in the plain mode.
func (p part) plain() (out []string) {
	if p.head != "" {
		out = []string{p.head}
	}
	for _, row := range p.rows {
		if p.head != "" || len(p.rows) > 1 {
			row = plainBar + row
		}
		out = append(out, row)
	}
	return out
}

// subject is the command, the path, or what a served tool would do, with nothing hidden:
// what a terminal would act on is written out.
func (q *approval) subject(w int, whole bool) (out []text.Line) {
	for _, p := range q.parts() {
		out = append(out, p.lines(w, whole)...)
	}
	if !q.c.Whole() {
		out = append(out, text.Of(text.Warn, "    some of it is too long to be shown here: deny what you cannot read"))
	}
	return out
}

// spelled is the subject as plain lines.
func (q *approval) spelled() (out []string) {
	for _, p := range q.parts() {
		out = append(out, p.plain()...)
	}
	return out
}

// parts are what is asked about, what will happen first.
func (q *approval) parts() []part {
	var args struct {
		Command string `json:"command"`
		Path    string `json:"path"`
	}
	_ = json.Unmarshal([]byte(q.args), &args) // what is no object is shown as it is
	switch {
	case q.c.Step != "":
		return stepParts(q.c.Name, members(q.args))
	case q.c.Name == "shell" && args.Command != "":
		return []part{{rows: rowsIn(args.Command)}}
	case (q.c.Name == "write" || q.c.Name == "edit") && args.Path != "":
		return []part{{head: q.c.Name + " " + args.Path}}
	case q.c.Name == "apply_patch":
		return []part{{head: "edit files, by the patch below"}}
	}
	return []part{{head: q.c.Name, rows: spelledMembers(q.args)}}
}

// stepWords are the members of a step that hold what the model wrote; the tool host
// found out the others. They come last, each under a row that says whose they are.
var stepWords = map[string]bool{"brief": true, "command": true, "title": true}

func stepParts(name string, list []member) []part {
	out := []part{{head: name}}
	var words []part
	for _, m := range list {
		rows, text := m.rows()
		switch {
		case stepWords[m.name]:
			words = append(words, part{m.name + ", in the model's words:", rows})
		case text && len(rows) > 1:
			out = append(out, part{m.name + ", its text:", rows})
		default:
			out = append(out, part{head: m.name + "  " + strings.Join(rows, " ")})
		}
	}
	return append(out, words...)
}

// spelledMembers are the arguments that a model wrote, one a row in their own order; a
// text of several rows stands below its name. What is no object is shown as it is.
func spelledMembers(object string) (out []string) {
	list := members(object)
	if len(list) == 0 {
		return []string{object}
	}
	for _, m := range list {
		rows, _ := m.rows()
		if len(rows) == 1 {
			out = append(out, m.name+"  "+rows[0])
			continue
		}
		out = append(out, m.name)
		for _, row := range rows {
			out = append(out, "  "+row)
		}
	}
	return out
}

// member is one of an object's.
type member struct {
	name  string
	value json.RawMessage
}

// members are an object's in their own order; none where it is no object.
func members(object string) (list []member) {
	dec := json.NewDecoder(strings.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil
		}
		list = append(list, member{fmt.Sprint(name), value})
	}
	return list
}

// rows are a member's value, and whether it is a text.
func (m member) rows() (rows []string, isText bool) {
	var s string
	if json.Unmarshal(m.value, &s) == nil {
		return rowsIn(s), true
	}
	var compact bytes.Buffer
	if json.Compact(&compact, m.value) != nil {
		return []string{string(m.value)}, false
	}
	return []string{compact.String()}, false
}

func rowsIn(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }
