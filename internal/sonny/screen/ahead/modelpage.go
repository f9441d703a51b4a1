package ahead

import (
	"slices"
	"strings"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// Choice is the model of new leads, with its effort.
type Choice struct {
	Model  string // "" where none is known
	Effort string // "" for the provider's own
	Always bool   // for new folders; else for the lead that is made next
}

// modelPage picks a model from what the providers list: the suggestion on top, then those of
// each provider. It begins in its filter.
func (f *FirstRun) modelPage() *page {
	p := &page{
		title: "model", empty: "no model is called so", hint: "type to filter  ↑↓ Enter take it  Tab effort  Ctrl+T for new folders  Esc back",
		asked: "model: type its name or a part of it, tab for the effort, ctrl+t for new folders. an empty line goes back.",
	}
	p.List = lists.List{Filter: &edit.Field{}, Typing: true, At: f.choice.Model}
	if f.choice.Model == f.suggestion() {
		p.At = onTop + f.choice.Model
	}
	p.right = human.Count(len(f.models), "model", "models")
	p.rows = func() []lists.Row { return modelRows(f.models, f.suggestion()) }
	p.detail = func(lists.Row, int) []text.Line { return []text.Line{text.Of(text.Dim, f.choice.words())} }
	p.keys = map[string]func(string) bool{
		"enter": func(id string) bool {
			if id == "" {
				return false
			}
			f.choice.Model = strings.TrimPrefix(id, onTop)
			f.keepModel()
			return true
		},
		"tab": func(string) bool {
			f.choice.Effort = after(f.Efforts, f.choice.Effort)
			return false
		},
		"ctrl+t": func(string) bool { f.choice.Always = !f.choice.Always; return false },
	}
	return p
}

// words say what goes with a model that is taken.
func (c Choice) words() string {
	tick := "[ ]"
	if c.Always {
		tick = "[x]"
	}
	effort := c.Effort
	if effort == "" {
		effort = "default"
	}
	return "effort " + effort + " (Tab)   " + tick + " use for new folders (Ctrl+T)"
}

// onTop begins the id of the suggestion, which has a second row among its provider's.
const onTop = "\x00"

// modelRows are models under their providers, below the suggestion.
func modelRows(models []string, suggested string) (rows []lists.Row) {
	if suggested != "" {
		rows = append(rows, lists.Row{ID: onTop + suggested, Match: suggested, Line: text.Join(
			text.Span{Text: cells.OneLine(suggested)}, text.Span{Text: "  suggested", Role: text.Accent})})
	}
	last := ""
	for _, m := range models {
		provider, _, _ := strings.Cut(m, "/")
		if provider != last {
			rows = append(rows, lists.Row{Line: text.Of(text.Dim, cells.OneLine(provider))})
			last = provider
		}
		rows = append(rows, lists.Row{ID: m, Line: text.Of(text.Plain, cells.OneLine(m))})
	}
	return rows
}

// after is the word of a list that comes after another; the first after the last.
func after(words []string, word string) string {
	if len(words) == 0 {
		return word
	}
	return words[(slices.Index(words, word)+1)%len(words)]
}

// suggestion is the model that is proposed (sonny.md 3.3): of the provider that was connected
// just now, where one was. "" where none is known.
func (f *FirstRun) suggestion() string {
	switch {
	case f.Suggest == nil:
		return ""
	case f.connected && len(f.listed) > 0:
		return f.Suggest(f.listed)
	}
	return f.Suggest(f.models)
}

// keepModel keeps the model that was chosen, and says so.
func (f *FirstRun) keepModel() {
	if err := f.KeepModel(f.choice); err != nil {
		f.say(fault.Screen.Told(err).Detail, true)
		return
	}
	f.chosen = true
}
