package screen

import (
	"time"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// noticeFor is how long a notice stands in the footer.
const noticeFor = 4 * time.Second

// maxNotices bounds those that are kept.
const maxNotices = 500

// notice is something that was said once.
type notice struct {
	at   time.Time
	line string
	fail bool
}

// noticeCommands list what was said.
var noticeCommands = feature{
	commands: []slashCommand{{"notices", "", "what was said in the footer", func(a *App, _ string) error {
		a.panel = &listPanel{title: "notices", empty: "nothing was said yet", rows: (*App).noticeRows, detail: wholeNotice}
		return nil
	}}},
}

func (a *App) noticeRows() []lists.Row {
	var rows []lists.Row
	for i := len(a.notes.list) - 1; i >= 0; i-- {
		n := a.notes.list[i]
		role := text.Plain
		if n.fail {
			role = text.Fail
		}
		rows = append(rows, lists.Row{ID: n.at.String(), Line: text.Join(
			text.Span{Text: n.at.Format("15:04:05  "), Role: text.Dim}, text.Span{Text: cells.OneLine(n.line), Role: role})})
	}
	return rows
}

// wholeNotice is one that its row has no room for.
func wholeNotice(_ *App, r lists.Row, w int) []text.Line {
	if r.Line.Width() <= w {
		return nil
	}
	return text.Wrap([]text.Span{r.Line.Spans[1]}, text.Frame{Width: w})
}

// notices are what the footer said, kept for the panel of them.
type notices struct {
	now  func() time.Time
	list []notice
	told int // how many there were in all
	bad  int // and of what went wrong
}

func (n *notices) say(line string) { n.add(notice{line: line}) }

// fail says what went wrong.
func (n *notices) fail(err error) { n.add(notice{line: fault.Screen.Words(err), fail: true}) }

func (n *notices) add(x notice) {
	x.at = n.now()
	n.list = append(n.list, x)
	n.told++
	if x.fail {
		n.bad++
	}
	if len(n.list) > maxNotices {
		n.list = n.list[len(n.list)-maxNotices:]
	}
}

// current is the notice that stands now; nil for none.
func (n *notices) current() *notice {
	if len(n.list) == 0 {
		return nil
	}
	last := &n.list[len(n.list)-1]
	if n.now().Sub(last.at) >= noticeFor {
		return nil
	}
	return last
}

// said is the notice as one line.
func (n *notice) said() text.Span {
	role := text.Accent
	if n.fail {
		role = text.Fail
	}
	return text.Span{Text: cells.OneLine(n.line), Role: role}
}

// longNotice is the notice that stands now where one row has no room for it, on as many
// rows as there are: what to do about something stands at its end. nil where it has.
func (a *App) longNotice(w, rows int) []text.Line {
	n := a.notes.current()
	if n == nil || rows < 2 || text.Width(n.said().Text)+1 <= w {
		return nil
	}
	lines := text.Wrap([]text.Span{n.said()}, text.Frame{Width: w, First: text.Indent(1), Rest: text.Indent(1)})
	if len(lines) > rows {
		last := text.Join(append(lines[rows-1].Spans, text.Span{Text: " …"})...)
		lines = append(lines[:rows-1], last.Cut(w))
	}
	return lines
}

func (n *notices) standing() bool { return n.current() != nil }
