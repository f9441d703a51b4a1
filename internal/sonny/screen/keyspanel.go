package screen

import (
	"fmt"
	"strings"

	"agent/internal/sonny/config"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// keyCommands list the keys and bind them (sonny.md 15).
var keyCommands = feature{
	commands: []slashCommand{
		{"keys", "", "all keys; Enter binds one anew", func(a *App, _ string) error { a.openKeys(); return nil }},
		{"version", "", "the version of Sonny and of the daemon's protocol", func(a *App, _ string) error {
			a.notes.say(fmt.Sprintf("sonny %s, protocol %d", a.o.Version, protocol.Version))
			return nil
		}},
	},
	actions: map[string]func(*App){"keys": (*App).openKeys, "help": (*App).openHelp},
}

// openKeys lists every action with its keys.
func (a *App) openKeys() {
	p := &listPanel{title: "keys", hint: []string{"Enter binds it anew", "Backspace the default"}, empty: "no action is called so"}
	p.right = func() string { return fmt.Sprint(len(a.o.Keys.List())) }
	p.rows = func(a *App) []lists.Row { return bindingRows(a.o.Keys.List()) }
	p.keys = map[string]func(*App, lists.Row) bool{
		"enter":     func(a *App, r lists.Row) bool { a.panel = &bindPanel{action: r.ID, back: p}; return false },
		"backspace": func(a *App, r lists.Row) bool { a.failing(a.bind(r.ID, nil)); return false },
	}
	a.panel = p
}

// openHelp lists what works now: the keys of the composer and of every place, and the
// commands.
func (a *App) openHelp() {
	state := a.keyState()
	p := &listPanel{title: "what works now", hint: []string{"Ctrl+X ? all keys"}, empty: "nothing is called so"}
	p.rows = func(a *App) []lists.Row {
		var rows []lists.Row
		for _, r := range bindingRows(a.o.Keys.List()) {
			b := bindingOf(a.o.Keys.List(), r.ID)
			for _, chord := range b.Chords {
				if has(a.o.Keys.Find(chord, state, keys.Composer, keys.Transcript, keys.Global), b.Action) {
					rows = append(rows, r)
					break
				}
			}
		}
		rows = append(rows, lists.Row{Line: text.Of(text.Dim, "commands")})
		for _, c := range a.commands {
			rows = append(rows, lists.InColumns("/"+c.name, lists.Column{Text: "/" + c.name + " " + c.args, Width: 30, Role: text.Accent}, lists.Column{Text: c.does}))
		}
		return rows
	}
	a.panel = p
}

func has(list []string, name string) bool {
	for _, n := range list {
		if n == name {
			return true
		}
	}
	return false
}

func bindingOf(list []keys.Binding, action string) keys.Binding {
	for _, b := range list {
		if b.Action == action {
			return b
		}
	}
	return keys.Binding{}
}

func bindingRows(list []keys.Binding) (rows []lists.Row) {
	for _, b := range list {
		labels := make([]string, 0, len(b.Chords))
		for _, c := range b.Chords {
			labels = append(labels, keys.Label(c))
		}
		own := ""
		if b.Own {
			own = "  yours"
		}
		where := string(b.Context)
		if b.Panel != "" {
			where = b.Panel
		}
		r := lists.InColumns(b.Action,
			lists.Column{Text: strings.Join(labels, "  "), Width: 30, Role: text.Accent},
			lists.Column{Text: b.Does, Width: 40},
			lists.Column{Text: b.Action, Width: 21, Role: text.Dim},
			lists.Column{Text: where + own, Role: text.Dim},
		)
		r.Whole[0] = strings.Join(labels, " or ")
		rows = append(rows, r)
	}
	return rows
}

// bindPanel takes the next key, or two after the leader, as an action's chord.
type bindPanel struct {
	action string
	lead   string
	back   panel
}

func (p *bindPanel) hints() []string { return []string{"press the new key", "Esc leaves it as it is"} }

func (p *bindPanel) view(_ *App, c term.Canvas) {
	w, _ := c.Size()
	c.Put(0, 0, text.Titled("a key for "+p.action, "", w), w)
	c.Put(2, 2, text.Of(text.Plain, "Press the key, or "+keys.Label(keys.LeaderChord)+" and another. "+keys.Label(p.lead)), w-2)
}

func (p *bindPanel) key(a *App, k term.Key) bool {
	switch {
	case k.Name == "esc":
	case p.lead == "" && k.Name == keys.LeaderChord:
		p.lead = k.Name
		return false
	default:
		chord := k.Name
		if p.lead != "" {
			chord = p.lead + " " + chord
		}
		a.failing(a.bind(p.action, []string{chord}))
	}
	a.panel = p.back
	return false
}

// bind gives an action other keys, in the settings and here; nil gives it its own again.
// A map with a conflict is not taken.
func (a *App) bind(action string, chords []string) error {
	if a.o.Config == "" {
		return protocol.Fail("failed", "there is no settings file to keep keys in")
	}
	now, _, err := config.Load(a.o.Config)
	if err != nil {
		return err
	}
	own := map[string][]string{}
	for name, list := range now.TUI.Keys {
		own[name] = list
	}
	delete(own, action)
	if chords != nil {
		own[action] = chords
	}
	m, faults := keys.New(own)
	if len(faults) > 0 {
		return faults[0]
	}
	if chords == nil {
		_, err = config.Unset(a.o.Config, "tui.keys."+action, nil)
	} else {
		err = config.Set(a.o.Config, "tui.keys."+action, fmt.Sprintf("[%q]", chords[0]), nil)
	}
	if err != nil {
		return err
	}
	a.o.Keys = m
	a.notes.say(cells.OneLine(action) + " has " + m.Hint(action, keys.Sender{}))
	return nil
}

// leaderRows are the keys that mean something after the leader, once they are shown.
func (a *App) leaderRows(w int) (rows []text.Line) {
	if !a.leader.Shown(a.o.Now()) {
		return nil
	}
	const cell = 26
	per := max(1, w/cell)
	var line []text.Span
	for i, c := range a.o.Keys.Choices(a.keyState(), keys.Composer, keys.Transcript, keys.Global) {
		if i%per == 0 && i > 0 {
			rows, line = append(rows, text.Line{Spans: line}), nil
		}
		line = append(line, text.Span{Text: " " + text.Pad(keys.Label(c.Key), 3), Role: text.Accent}, text.Span{Text: text.Pad(c.Does, cell-4)})
	}
	return append(rows, text.Line{Spans: line})
}
