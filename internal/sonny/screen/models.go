package screen

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// modelCommands pick the model of a lead (sonny.md 3.3 and 16).
var modelCommands = feature{
	commands: []slashCommand{
		{"model", "[P/M]", "the next turn's model", (*App).modelCommand},
		{"effort", "LEVEL", "the next turn's effort", (*App).effortCommand},
	},
	actions: map[string]func(*App){"model": func(a *App) { a.pickModel("") }},
}

func (a *App) modelCommand(args string) error {
	if args == "" {
		a.pickModel("")
		return nil
	}
	return a.setModel(args)
}

// pickModel opens the list of models on the one that holds, or that is suggested. send
// is what goes out when one is taken.
func (a *App) pickModel(send string) {
	if len(a.o.Models) == 0 && !a.askedModels {
		a.askModels(func() { a.pickModel(send) })
		return
	}
	suggested := a.suggestion()
	now := suggested
	if b := a.bot(); b != nil {
		now = b.Record.ModelRef()
	} else if a.start != nil && a.start.model != "" {
		now = a.start.model
	}
	a.panel = &listPanel{
		title: "models", List: lists.List{At: now}, hint: []string{"Enter take it"},
		empty: "no models: sonny models --discover asks the providers",
		rows: func(a *App) []lists.Row {
			var rows []lists.Row
			for _, m := range a.o.Models {
				line := text.Join(text.Span{Text: m})
				if m == suggested {
					line.Spans = append(line.Spans, text.Span{Text: "  suggested", Role: text.Accent})
				}
				rows = append(rows, lists.Row{ID: m, Line: line})
			}
			return rows
		},
		keys: map[string]func(*App, lists.Row) bool{"enter": func(a *App, r lists.Row) bool {
			if err := a.setModel(r.ID); err != nil {
				a.notes.fail(err)
				return true
			}
			if send != "" {
				a.panel = nil
				a.send(delivery{})
			}
			return true
		}},
	}
}

// askModels asks the providers for their lists, once, where no file has any.
func (a *App) askModels(then func()) {
	a.askedModels = true
	a.notes.say("asking the providers for their models…")
	do(a, func(ctx context.Context) (*protocol.ProviderModels, error) { return a.client().ProviderModels(ctx) },
		func(lists *protocol.ProviderModels, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			for _, provider := range slices.Sorted(maps.Keys(lists.Providers)) {
				list := lists.Providers[provider]
				if list.Error != "" {
					a.notes.say(provider + ": " + string(list.Error) + " " + list.Detail)
				}
				for _, m := range list.Models {
					a.o.Models = append(a.o.Models, provider+"/"+m.ID)
				}
			}
			then()
		})
}

// setModel is for the lead that is to be made, or for the bot's next turn.
func (a *App) setModel(ref string) error {
	if _, _, ok := protocol.ParseModelRef(ref); !ok {
		return protocol.Fail(protocol.UsageError, ref+" is no model: PROVIDER/MODEL")
	}
	if a.o.Picked != nil {
		a.o.Picked(ref)
	}
	if a.session == nil {
		a.start.model = ref
		return nil
	}
	return a.configure(&protocol.Configure{Model: protocol.Set(ref)}, "from here on: "+ref)
}

func (a *App) effortCommand(level string) error {
	if !slices.Contains([]string{"default", "low", "medium", "high", "xhigh", "max"}, level) {
		return protocol.Fail(protocol.UsageError, fmt.Sprintf("%q is no effort: default, low, medium, high, xhigh or max", level))
	}
	if a.session == nil {
		a.start.effort = level
		return nil
	}
	change := &protocol.Configure{Reasoning: protocol.Set(level)}
	if level == "default" {
		change.Reasoning = protocol.Null[string]()
	}
	return a.configure(change, "from here on: effort "+level)
}

// configure changes the bot on screen, and says so in its transcript.
func (a *App) configure(change *protocol.Configure, says string) error {
	s := a.session
	change.Bot, change.BotID = s.bot, s.id
	do(a, func(ctx context.Context) (*protocol.Bot, error) { return a.client().Configure(ctx, change) },
		func(record *protocol.Bot, err error) {
			if err != nil {
				a.notes.fail(err)
				return
			}
			a.world.Put(*record)
			s.tr.Notice(0, says, "")
		})
	return nil
}

// suggestion is the model that is proposed where none is set.
func (a *App) suggestion() string {
	if a.o.Suggest != "" {
		return a.o.Suggest
	}
	return lead.Suggest(a.o.Models, nil)
}
