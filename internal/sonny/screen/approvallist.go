package screen

import (
	"context"
	"fmt"
	"strings"

	"agent/client"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/decide"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// approvalList is every call of the store that waits, the judge's too, and which of
// them the person has marked.
type approvalList struct {
	calls  []*decide.Call
	marked map[string]bool
	read   bool
}

// listApprovals lists what waits. Only marked calls are decided there: a row that slips
// under the hand as another is answered is never.
func (a *App) listApprovals() {
	l := &approvalList{marked: map[string]bool{}}
	l.load(a)
	a.panel = &listPanel{
		title: "approvals", empty: "nothing waits",
		right: func() string { return fmt.Sprint(len(l.calls)) },
		hint:  []string{"Space mark", "1 allow marked", "3 deny marked", "Enter show"},
		head:  text.Of(text.Dim, "  "+text.Pad("BOT", 20)+text.Pad("ASKS", 10)+text.Pad("WAITS", 8)+"CALL"),
		rows:  func(a *App) []lists.Row { return l.rows(a) },
		keys: map[string]func(*App, lists.Row) bool{
			"space": func(_ *App, r lists.Row) bool { l.marked[r.ID] = !l.marked[r.ID]; return false },
			"1":     func(a *App, _ lists.Row) bool { l.decide(a, protocol.Allow); return false },
			"3":     func(a *App, _ lists.Row) bool { l.decide(a, protocol.Deny); return false },
			"enter": func(a *App, r lists.Row) bool { return l.open(a, r.ID) },
		},
	}
}

// load reads the calls, anew after each that was decided.
func (l *approvalList) load(a *App) {
	do(a, func(ctx context.Context) ([]*decide.Call, error) {
		var out []*decide.Call
		for c, err := range a.client().Approvals(ctx, client.ApprovalFilter{}) {
			if err != nil {
				return nil, err
			}
			q := &decide.Call{Approval: c, Args: string(c.Arguments)}
			out = append(out, q)
		}
		return out, nil
	}, func(list []*decide.Call, err error) {
		if err != nil {
			a.notes.fail(err)
			return
		}
		l.calls, l.read = list, true
	})
}

func (l *approvalList) rows(a *App) []lists.Row {
	rows := make([]lists.Row, 0, len(l.calls))
	for _, q := range l.calls {
		mark := ""
		if l.marked[q.ID()] {
			mark = "✔"
		}
		rows = append(rows, lists.InColumns(q.ID(),
			lists.Column{Text: mark, Width: 1, Role: text.Accent},
			lists.Column{Text: cells.OneLine(q.Bot), Width: 19},
			lists.Column{Text: cells.OneLine(strings.Join(q.Gates, ",")), Width: 9, Role: text.Need},
			lists.Column{Text: cells.Span(a.o.Clock().Sub(q.Since())), Width: 7, Role: text.Dim},
			lists.Column{Text: cells.OneLine(strings.Join(q.Spelled(), " "))},
		))
	}
	return rows
}

// decide gives one verdict on all marked calls, each under its own request number.
func (l *approvalList) decide(a *App, decision string) {
	var left []*decide.Call
	n := 0
	for _, q := range l.calls {
		if !l.marked[q.ID()] {
			left = append(left, q)
			continue
		}
		n++
		a.answerCall(q, decision, "")
	}
	if n == 0 {
		a.notes.say("mark calls with Space first")
		return
	}
	l.calls, l.marked = left, map[string]bool{}
}

// open shows a call in the panel. One that waits for the judge has no place there.
func (l *approvalList) open(a *App, id string) bool {
	for _, q := range a.answers.list {
		if q.id() == id && a.session != nil {
			a.panel = nil
			a.answers.pin(a, id)
			return true
		}
	}
	a.notes.say("this call waits for the judge")
	return false
}
