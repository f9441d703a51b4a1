package screen

import (
	"slices"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// startCommands are of the start screen's sheet (sonny.md 3.3).
var startCommands = feature{
	actions: map[string]func(*App){"start_sheet": (*App).openSheet},
	event:   (*App).heardOfBots,
}

// field is a row of the sheet: its name, what it is now, and what changes it.
type field struct {
	name   string
	value  func(a *App) string
	change func(a *App)
}

// openSheet lists what the lead will get; Enter changes the row at hand.
func (a *App) openSheet() {
	if a.start == nil {
		return
	}
	fields := a.fields()
	a.panel = &listPanel{
		title: "the new lead", hint: []string{"Enter change"},
		rows: func(a *App) []lists.Row {
			var rows []lists.Row
			for _, f := range fields {
				rows = append(rows, lists.Row{ID: f.name, Line: text.Join(
					text.Span{Text: text.Pad(f.name, 16), Role: text.Dim}, text.Span{Text: f.value(a)})})
			}
			return rows
		},
		keys: map[string]func(*App, lists.Row) bool{"enter": func(a *App, r lists.Row) bool {
			for _, f := range fields {
				if f.name == r.ID {
					f.change(a)
				}
			}
			return false
		}},
	}
}

func (a *App) fields() []field {
	s := &a.o.Settings
	sheet := func() panel { return a.panel }
	return []field{
		{"name", func(a *App) string { return a.start.lead }, func(a *App) {
			a.panel = &inputPanel{title: "the project's name", back: sheet(), take: (*App).renameProject}
		}},
		{"model", func(a *App) string { return orNone(a.start.model) }, func(a *App) { a.pickModel("") }},
		{"effort", func(a *App) string { return orDefault(a.start.effort) }, func(a *App) {
			a.start.effort = after(efforts, orDefault(a.start.effort))
		}},
		{"row", func(a *App) string { return asks[s.Row] }, func(a *App) { a.chooseRow(after(lead.Rows(), s.Row)) }},
		{"sandbox", func(a *App) string { return a.start.plan(a).Sandbox() }, func(a *App) {
			a.chooseSandbox(after(sandboxes, a.start.plan(a).Sandbox()))
		}},
		{"network", func(a *App) string { return onOff(s.Network) }, func(a *App) {
			on := !s.Network
			a.forNewLead(func(s *lead.Settings) { s.Network = on })
		}},
		{"extra folders", func(a *App) string { return orNone(strings.Join(s.WritableRoots, ", ")) }, func(a *App) {
			a.panel = &inputPanel{title: "a folder that it may write besides; an absolute path, or ~/", back: sheet(), take: (*App).addFolder}
		}},
		{"tasks' model", func(a *App) string { return orSame(s.Tasks.Model) }, func(a *App) {
			a.panel = &inputPanel{title: "the tasks' model, PROVIDER/MODEL; - for the lead's", back: sheet(), take: (*App).taskModel}
		}},
		{"tasks' effort", func(a *App) string { return orSame(s.Tasks.Effort) }, func(a *App) {
			effort := after(append([]string{""}, efforts...), s.Tasks.Effort)
			a.forNewLead(func(s *lead.Settings) { s.Tasks.Effort = effort })
		}},
		{"tasks work in", func(a *App) string { return a.start.tasks(a) }, func(a *App) {
			in := !s.Tasks.InFolder
			a.forNewLead(func(s *lead.Settings) { s.Tasks.InFolder = in })
		}},
	}
}

var (
	efforts   = []string{"default", "low", "medium", "high", "xhigh", "max"}
	sandboxes = []string{protocol.SandboxReadOnly, protocol.SandboxWorkspace, protocol.SandboxFull}
)

// after is the choice that follows another, around.
func after[T comparable](all []T, now T) T {
	return all[(slices.Index(all, now)+1)%len(all)]
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func orSame(s string) string {
	if s == "" {
		return "the lead's"
	}
	return s
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// chooseRow takes a row for the new lead.
func (a *App) chooseRow(row lead.Row) {
	a.confirmed(row, "", func(a *App) { a.forNewLead(func(s *lead.Settings) { s.Row, s.Sandbox = row, "" }) })
}

func (a *App) chooseSandbox(mode string) {
	a.confirmed("", mode, func(a *App) { a.forNewLead(func(s *lead.Settings) { s.Sandbox = mode }) })
}

// confirmed takes a row or a sandbox, the other of which is "". One that confines nothing
// is taken only when the person has typed the word for it: each way to one goes through here.
func (a *App) confirmed(row lead.Row, mode string, take func(*App)) {
	warning := lead.OpenWarning(row, mode)
	if warning == "" {
		take(a)
		return
	}
	a.confirm(warning, take)
}

// confirm has the person type full before nothing is confined any more.
func (a *App) confirm(words string, yes func(*App)) {
	a.ask(&question{text: words, want: lead.OpenWord, yes: yes})
}

// ask puts a question into the list that is open, or into one of its own.
func (a *App) ask(q *question) {
	if open, is := a.panel.(lister); is {
		open.asList().ask(q)
		return
	}
	a.panel = &listPanel{title: "are you sure?", empty: "Esc closes", rows: func(*App) []lists.Row { return nil }, asks: q}
	yes, no := q.yes, q.no
	q.yes = func(a *App) {
		a.panel = nil
		yes(a)
	}
	q.no = func(a *App) {
		a.panel = nil
		if no != nil {
			no(a)
		}
	}
}

func (a *App) renameProject(name string) {
	if !protocol.ValidBotName(name) || strings.HasSuffix(name, ".") || len(name) > 64 {
		a.notes.say(name + ": a project's name is 1 to 64 of A-Z a-z 0-9 - _ ., begins with neither . nor - and does not end with .")
		return
	}
	project, bot, taken, err := a.o.Folder.Free(name, a.record)
	if err != nil {
		a.notes.fail(err)
		return
	}
	if taken {
		a.notes.say("another folder's lead has the name " + name + ".lead; this project is " + project)
	}
	a.start.project, a.start.lead = project, bot
}

func (a *App) addFolder(path string) {
	folder, err := realFolder(path, a.o.Folder.Path)
	if err != nil {
		a.notes.fail(err)
		return
	}
	a.alsoWritable(folder)
}

func (a *App) taskModel(ref string) {
	if ref == "-" {
		ref = ""
	} else if _, _, ok := protocol.ParseModelRef(ref); !ok {
		a.notes.say(ref + " is no model: PROVIDER/MODEL")
		return
	}
	a.forNewLead(func(s *lead.Settings) { s.Tasks.Model = ref })
}

// record is a bot's, by its name; nil for none.
func (a *App) record(name string) *protocol.Bot {
	if b := a.world.Bot(name); b != nil {
		return &b.Record
	}
	return nil
}
