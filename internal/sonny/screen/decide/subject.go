package decide

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"agent/client/termsafe"
	"agent/internal/sonny/screen/text"
)

// part is a piece of what is asked about.
type part struct {
	head string   // a row of Sonny's own; "" for none
	rows []string // a text that somebody else wrote
}

// lines are a part's rows, at most textRows of a text unless all of it is asked for.
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

// Subject is the command, the path, or what a served tool would do, with nothing hidden:
// what a terminal would act on is written out.
func (q *Call) Subject(w int, whole bool) (out []text.Line) {
	for _, p := range q.parts() {
		out = append(out, p.lines(w, whole)...)
	}
	if !q.Whole() {
		out = append(out, text.Of(text.Warn, "    some of it is too long to be shown here: deny what you cannot read"))
	}
	return out
}

// Spelled is the subject as plain lines, for the plain mode and for lists.
func (q *Call) Spelled() (out []string) {
	for _, p := range q.parts() {
		out = append(out, p.plain()...)
	}
	return out
}

// parts are what is asked about, what will happen first.
func (q *Call) parts() []part {
	var args struct {
		Command string `json:"command"`
		Path    string `json:"path"`
	}
	_ = json.Unmarshal([]byte(q.Args), &args) // what is no object is shown as it is
	switch {
	case q.Step != "":
		return stepParts(q.Name, members(q.Args))
	case q.Name == "shell" && args.Command != "":
		return []part{{rows: rowsIn(args.Command)}}
	case (q.Name == "write" || q.Name == "edit") && args.Path != "":
		return []part{{head: q.Name + " " + args.Path}}
	case q.Name == "apply_patch":
		return []part{{head: "edit files, by the patch below"}}
	}
	return []part{{head: q.Name, rows: spelledMembers(q.Args)}}
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
