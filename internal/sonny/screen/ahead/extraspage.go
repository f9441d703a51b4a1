package ahead

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// Extras are what can be on besides.
type Extras struct {
	Memory bool
	Notify bool   // the person is told of things
	Route  string // the way that takes
	Tmux   string // what tmux's configuration lacks for sequences to pass; "" for nothing
}

// words are the extras in a line.
func (e Extras) words() string {
	out := "memory " + onOff(e.Memory) + " · notifications " + onOff(e.Notify)
	if e.Tmux != "" {
		out += " · tmux keeps some from the terminal"
	}
	return out
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// extrasPage turns the extras on and off, and sends a notification to try.
func (f *FirstRun) extrasPage(ctx context.Context) *page {
	p := &page{title: "extras", hint: "Enter change it  Esc back", asked: "extras: type a number to change it. an empty line goes back."}
	p.rows = func() []lists.Row {
		e := f.extras
		rows := []lists.Row{
			extra("memory", 1, "memory", onOff(e.Memory), "bots keep facts, and find them again"),
			extra("notify", 2, "notifications", onOff(e.Notify), "of approvals, questions and ends, by "+e.Route),
			extra("test", 3, "send one", "", "a notification to try that"),
		}
		if e.Tmux != "" {
			rows = append(rows, extra("tmux", 4, "tmux", "", "copy for tmux.conf: "+e.Tmux))
		}
		return rows
	}
	p.keys = map[string]func(string) bool{"enter": func(id string) bool { f.extra(ctx, id); return false }}
	return p
}

func extra(id string, n int, name, value, does string) lists.Row {
	return lists.Row{ID: id, Line: text.Join(
		text.Span{Text: fmt.Sprintf("%d  ", n), Role: text.Accent}, text.Span{Text: text.Pad(name, 15)},
		text.Span{Text: text.Pad(value, 5)}, text.Span{Text: does, Role: text.Dim})}
}

// extra does what Enter does on a row.
func (f *FirstRun) extra(ctx context.Context, id string) {
	switch id {
	case "memory":
		f.set("memory.enabled", fmt.Sprint(!f.extras.Memory))
	case "notify":
		when := "unfocused"
		if f.extras.Notify {
			when = "never"
		}
		f.set("notifications.when", when)
	case "test":
		f.test(ctx)
	case "tmux":
		f.copy(f.extras.Tmux)
	}
}

// test sends a notification.
func (f *FirstRun) test(ctx context.Context) {
	said, run, err := f.TestNotify()
	if err != nil {
		f.say(fault.Screen.Told(err).Detail, true)
		return
	}
	f.say(said, false)
	if run == nil {
		return
	}
	f.beside(ctx, func(ctx context.Context) func() {
		err := run(ctx)
		return func() {
			if err != nil {
				f.say("the notification failed: "+err.Error(), true)
			}
		}
	})
}

// set changes a setting, and shows what holds then.
func (f *FirstRun) set(key, value string) {
	if err := f.Set(key, value); err != nil {
		f.say(fault.Screen.Told(err).Detail, true)
		return
	}
	f.say(strings.TrimSpace(key+" is "+value), false)
	f.fresh()
}

// asksPage picks who is asked before a call leaves the sandbox.
func (f *FirstRun) asksPage() *page {
	p := &page{title: "who is asked", hint: "Enter take it  Esc back", asked: "who is asked: type a number to take it. an empty line goes back."}
	p.At = f.row
	p.rows = func() (rows []lists.Row) {
		for i, r := range f.Rows {
			rows = append(rows, lists.Row{ID: r.Name, Line: text.Join(text.Span{Text: fmt.Sprintf("%d  ", i+1), Role: text.Accent}, text.Span{Text: r.Value})})
		}
		return rows
	}
	p.keys = map[string]func(string) bool{"enter": func(id string) bool { f.takeRow(lead.Row(id)); return true }}
	return p
}

// takeRow takes a row; for the one that confines nothing the word is asked for first.
func (f *FirstRun) takeRow(row lead.Row) {
	warning := lead.OpenWarning(row, "")
	if warning == "" {
		f.set("row", string(row))
		return
	}
	f.openFrom, f.step = f.step, askOpen
	f.field.Clear()
	f.say(warning, true)
}

// takeOpen takes the row that confines nothing, by its word alone.
func (f *FirstRun) takeOpen(word string) {
	if word != lead.OpenWord {
		if f.aloud != nil {
			f.field.Clear()
		}
		return
	}
	f.leaveOpen()
	if f.set("row", string(lead.Full)); !f.bad {
		f.message = f.was
	}
}

// leaveOpen goes back to where the rows were opened from.
func (f *FirstRun) leaveOpen() {
	f.step = f.openFrom
	f.field.Clear()
	f.say(f.was, false)
}
