package screen

import (
	"fmt"
	"strings"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/outbox"
	"agent/internal/sonny/screen/text"
)

// queueKeys edit what is in line (sonny.md 10.3).
var queueKeys = feature{
	commands: []slashCommand{{"queue", "[TEXT]", "what is in line; with TEXT, put it there", func(a *App, args string) error {
		if args == "" {
			a.openQueue()
			return nil
		}
		if s := a.at(); s != nil {
			a.out.Post(&s.compose.Box, outbox.Text(args), true)
		}
		return nil
	}}},
	actions: map[string]func(*App){"queue_edit": (*App).queueKey},
}

// queueKey is Alt+↑, Alt+1 to Alt+9, or the chord of the panel.
func (a *App) queueKey() {
	s := a.at()
	if s == nil {
		return
	}
	b := &s.compose.Box
	n := len(b.Line())
	if digit, is := strings.CutPrefix(a.chord, "alt+"); is && len(digit) == 1 && digit[0] >= '1' && digit[0] <= '9' {
		a.out.EditQueued(b, int(digit[0]-'0'))
		return
	}
	if a.chord == "ctrl+x q" {
		a.openQueue()
		return
	}
	if n == 0 && len(b.Held()) == 0 && !a.changing() && a.chord == "alt+up" {
		a.toMessage(false) // nothing waits: the key is the transcript's
		return
	}
	a.out.EditQueued(b, n)
}

// openQueue lists the messages in line.
func (a *App) openQueue() {
	s := a.at()
	if s == nil {
		return
	}
	b := &s.compose.Box
	on := func(do func(n int)) func(*App, lists.Row) bool {
		return func(a *App, r lists.Row) bool {
			var n int
			if changing, _ := b.Changing(); changing > 0 {
				return false
			}
			if _, err := fmt.Sscan(r.ID, &n); err == nil {
				do(n)
			}
			return false
		}
	}
	p := &listPanel{}
	*p = listPanel{
		name: "queue", title: "in line", empty: "nothing is in line",
		right: func() string { return fmt.Sprint(len(b.Line()) + len(b.Held())) },
		hint:  []string{"e edit", "d drop", "K J move", "Enter steer", "g join"},
		rows:  func(a *App) []lists.Row { return queueRows(b) },
		keys: map[string]func(*App, lists.Row) bool{
			"queued_edit": func(a *App, r lists.Row) bool {
				on(func(n int) { a.out.EditNumber(b, n) })(a, r)
				return true
			},
			"queued_drop": on(func(n int) { a.out.Drop(b, n) }),
			"queued_up":   on(func(n int) { p.At = fmt.Sprint(a.out.Move(b, n, n-1)) }),
			"queued_down": on(func(n int) { p.At = fmt.Sprint(a.out.Move(b, n, n+1)) }),
			"queued_join": on(func(n int) { a.out.Join(b, n) }),
			"enter":       on(func(n int) { a.out.Steer(b, n) }),
		},
	}
	a.panel = p
}

// queueRows number those in line from 1, and after them those that are held.
func queueRows(b *outbox.Box) (rows []lists.Row) {
	add := func(head, prompt string) {
		first, _, _ := strings.Cut(prompt, "\n")
		rows = append(rows, lists.Row{ID: fmt.Sprint(len(rows) + 1), Match: prompt, Line: text.Join(
			text.Span{Text: text.Pad(head, 10), Role: text.Dim}, text.Span{Text: cells.OneLine(first)})})
	}
	for i, q := range b.Line() {
		add(fmt.Sprintf("queued %d", i+1), q.Prompt())
	}
	for _, prompt := range b.Held() {
		add("held", prompt)
	}
	return rows
}
