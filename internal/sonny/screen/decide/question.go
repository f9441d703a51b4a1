package decide

import (
	"slices"
	"time"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/text"
)

// Question is one that a bot asks the person (sonny.md 9.4).
type Question struct {
	ID        string
	Bot       string
	Text      string
	Choices   []string // at most four
	Multiple  bool     // several may be taken
	FreeText  bool     // an answer in own words is possible
	Announced time.Time
	// Answer gives the reply. It may be called once, and may block.
	Answer func(Reply) error
}

// Reply is what the person said: choices, words, or that they will not say now.
type Reply struct {
	Choices []string
	Text    string
	NotNow  bool
}

// Sheet is the question for a width in cells. Its choices come first; then, where several
// may be taken, the one that answers with those that are marked; then, where own words
// are possible, the one that asks for them.
func (q *Question) Sheet(marked []string, w int, whole bool) Sheet {
	s := Sheet{Title: q.Bot + " asks you", Hints: []string{"1–9 answer", "↑↓ Enter"}}
	s.Body = part{"it says:", rowsIn(q.Text)}.lines(w, whole)
	n := 0
	for _, c := range q.Choices {
		n++
		label := cells.OneLine(c)
		if slices.Contains(marked, c) {
			label = "✔ " + label
		}
		s.Choices = append(s.Choices, Plain(n, label))
	}
	if q.Multiple {
		n++
		s.Choices = append(s.Choices, Plain(n, "answer with the marked"))
	}
	if q.FreeText {
		n++
		s.Choices = append(s.Choices, Choice{N: n, Label: text.Of(text.Plain, "say it in your own words"), Words: "answer"})
	}
	return s
}
