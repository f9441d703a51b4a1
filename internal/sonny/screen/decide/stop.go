package decide

import "agent/internal/sonny/screen/text"

// Stop is a turn that the approver stopped, or an approver that does not answer: ways on
// are offered, and nothing about a call is decided (sonny.md 4).
type Stop struct {
	Bot    string
	Words  string // what happened
	Detail string // of it; "" for none
	Log    string // the approver's last line; "" for none
}

// Sheet is the stop for a width in cells: 1 has the person decide from here on, where the
// judge does, and 2 goes on, where the bot rests.
func (q *Stop) Sheet(judged, rests bool, w int) Sheet {
	s := Sheet{Title: q.Bot + ": " + q.Words, Hints: []string{"1–2 decide"}}
	if q.Detail != "" && q.Detail != q.Words {
		s.Body = append(s.Body, quoted("", q.Detail, text.Plain, w)...)
	}
	if q.Log != "" {
		s.Body = append(s.Body, quoted("its log: ", q.Log, text.Dim, w)...)
	}
	if judged {
		s.Choices = append(s.Choices, Plain(1, "switch to manual"))
	}
	if rests {
		s.Choices = append(s.Choices, Plain(2, "continue"))
	}
	return s
}
