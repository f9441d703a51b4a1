package screen

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/config"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/notify"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/settings"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// settingCommands show and change the settings (sonny.md 16 and 20).
var settingCommands = feature{commands: []slashCommand{
	{"config", "[KEY [VALUE]]", "all settings; what one is; or change it", (*App).configCommand},
	{"notify", "", "of what you are told, when and how", func(a *App, _ string) error { return a.openSettings("notifications") }},
}}

// settingWords complete what follows /config: a key, then the values of a key that has few.
func settingWords(typed string) (values []string, word string) {
	if key, value, two := strings.Cut(typed, " "); two {
		if k, err := config.Find(key); err == nil {
			values = k.Choices()
		}
		return values, value
	}
	for _, k := range config.Keys {
		if !k.Family() && k.Same == "" {
			values = append(values, k.Name)
		}
	}
	return values, typed
}

// configCommand shows all settings, those of a table, or one; or changes one.
func (a *App) configCommand(args string) error {
	name, value, change := cutSpace(args)
	switch {
	case change:
		return a.setSetting(name, value, nil)
	case name == "" || config.IsTable(name):
		return a.openSettings(name)
	}
	return a.openSetting(name, nil)
}

// settingsPanel lists the settings, or those of one table.
type settingsPanel struct {
	listPanel
	table string // "" for all
	held  []config.Setting
}

func (a *App) openSettings(table string) error {
	if a.o.Held == nil {
		return protocol.Fail("failed", "the settings cannot be shown from here; sonny config list shows them")
	}
	p := &settingsPanel{table: table}
	p.title, p.waits, p.empty = "settings", "reading…", "no setting is called so"
	p.hint = []string{"Enter change", "Backspace the default"}
	p.right = func() string { return fmt.Sprint(len(p.held)) }
	p.rows = func(*App) []lists.Row { return settings.All(p.held, p.Filter != nil && !p.Filter.Empty()) }
	p.detail = func(_ *App, r lists.Row, w int) []text.Line {
		if s := p.at(r); s != nil {
			return settings.About(*s, w)
		}
		return nil
	}
	p.keys = map[string]func(*App, lists.Row) bool{
		"enter":     func(a *App, r lists.Row) bool { p.change(a, r); return false },
		"backspace": func(a *App, r lists.Row) bool { a.failing(a.unsetSetting(r.ID, func() { p.read(a) })); return false },
	}
	if table != "" {
		p.title += " of " + cells.OneLine(table)
	}
	if table == "notifications" {
		p.hint = append(p.hint, "t send one")
		p.free = map[string]func(*App){"t": (*App).sendTest}
		p.right = func() string { return "by " + string(a.o.Notify.Route) }
	}
	a.panel = p
	p.read(a)
	return nil
}

// read reads the settings anew.
func (p *settingsPanel) read(a *App) {
	a.heldSettings(func(c *config.Config) {
		p.waits, p.held = "", nil
		p.news++
		for _, s := range c.Settings(true) {
			ours := p.table == "" || strings.HasPrefix(s.Name, p.table+".")
			if unnamed := s.Key.Family() && s.From == config.FromDefault; ours && !unnamed && s.Key.Same == "" {
				p.held = append(p.held, s)
			}
		}
	})
}

// heldSettings reads the settings beside the loop; then hears them, with a fault of theirs too.
func (a *App) heldSettings(then func(c *config.Config)) {
	do(a, func(context.Context) (*config.Config, error) { return a.o.Held() }, func(c *config.Config, err error) {
		a.failing(err)
		if c != nil {
			then(c)
		}
	})
}

// at is the setting of a row; nil where it is gone.
func (p *settingsPanel) at(r lists.Row) *config.Setting {
	for i := range p.held {
		if p.held[i].Name == r.ID {
			return &p.held[i]
		}
	}
	return nil
}

// change turns what is true or false over, and asks for anything else.
func (p *settingsPanel) change(a *App, r lists.Row) {
	s := p.at(r)
	if s == nil {
		return
	}
	if s.Key.Truth() {
		a.failing(a.setSetting(s.Name, fmt.Sprint(s.Value != true), func() { p.read(a) }))
		return
	}
	a.failing(a.openSetting(s.Name, p))
}

// settingPanel is one setting: what there is to know of it, and what it can be.
type settingPanel struct {
	listPanel
	held config.Setting
	back *settingsPanel // where it was opened from; nil for a command
}

// openSetting shows a setting. From the list one that is typed is asked for at once.
func (a *App) openSetting(name string, back *settingsPanel) error {
	if _, err := config.Find(name); err != nil {
		return err
	}
	if a.o.Held == nil {
		return protocol.Fail("failed", "the setting cannot be shown from here; sonny config get "+name+" shows it")
	}
	p := &settingPanel{back: back}
	p.title, p.waits, p.hint = cells.OneLine(name), "reading…", []string{"Enter take it"}
	p.rows = func(a *App) []lists.Row {
		if p.waits != "" {
			return nil
		}
		return settings.One(p.held, min(a.w, 100)-6)
	}
	p.keys = map[string]func(*App, lists.Row) bool{"enter": func(a *App, r lists.Row) bool { return p.take(a, r.ID) }}
	a.panel = p
	a.heldSettings(func(c *config.Config) {
		if p.held, p.waits = setting(c, name), ""; back != nil && len(p.held.Key.Choices()) == 0 {
			p.write()
		}
		if v := fmt.Sprint(p.held.Value); p.At == "" && p.held.Value != nil {
			p.At = v // the choice that holds, where it is one
		}
	})
	return nil
}

// setting is one of them, or what its family is like where the name has capitals for names.
func setting(c *config.Config, name string) config.Setting {
	if s, ok := c.Get(name); ok {
		return s
	}
	k, _ := config.Find(name)
	return config.Setting{Key: k, Name: name, Value: k.Default, From: config.FromDefault}
}

func (p *settingPanel) key(a *App, k term.Key) bool {
	if !p.listPanel.key(a, k) {
		return false
	}
	if p.back == nil {
		return true
	}
	a.panel = p.back
	return false
}

// write asks for a value.
func (p *settingPanel) write() {
	q := &question{text: p.held.Key.Name + " takes " + p.held.Key.Must(), take: func(a *App, typed string) error {
		if typed == "" {
			return nil
		}
		return a.setSetting(p.held.Name, typed, func() { p.changed(a) })
	}}
	if p.held.Value != nil {
		q.typed.Set(settings.Typed(p.held))
	}
	p.ask(q)
}

// take does what the row at hand says. It reports whether the panel closes.
func (p *settingPanel) take(a *App, id string) bool {
	switch id {
	case settings.Write:
		p.write()
	case settings.Unset:
		a.failing(a.unsetSetting(p.held.Name, func() { p.changed(a) }))
	default:
		a.failing(a.setSetting(p.held.Name, id, func() { p.changed(a) }))
	}
	return false
}

// changed shows what holds now: in the list that the setting was opened from, else here.
func (p *settingPanel) changed(a *App) {
	if p.back != nil {
		a.panel = p.back
		p.back.read(a)
		return
	}
	a.heldSettings(func(c *config.Config) { p.held = setting(c, p.held.Name); p.news++ })
}

// setSetting changes a setting in config.toml: its comments and what is not known stay. One
// by which nothing is confined any more wants its word typed before. changed, nil for nothing,
// is called when it was.
func (a *App) setSetting(name, value string, changed func()) error {
	if a.o.Config == "" {
		return protocol.Fail("failed", "there is no settings file to keep it in")
	}
	v, err := config.Typed(name, value)
	if err != nil {
		return err
	}
	row, mode := confines(name, v)
	return a.confirmedChange(row, mode, changed, func() error {
		if err := config.Set(a.o.Config, name, value, a.o.Reads); err != nil {
			return err
		}
		a.tellSetting(name, name+" is set")
		return nil
	})
}

// confines gives the row or the sandbox that a value of a setting names, "" for neither.
func confines(name string, value any) (row lead.Row, mode string) {
	word, _ := value.(string)
	switch strings.Join(config.ParseKey(name), ".") {
	case "row":
		return lead.Row(word), ""
	case "sandbox_mode":
		return "", word
	}
	return "", ""
}

// unsetSetting takes one out of config.toml, as setSetting changes one.
func (a *App) unsetSetting(name string, changed func()) error {
	if a.o.Config == "" {
		return protocol.Fail("failed", "there is no settings file")
	}
	return a.confirmedChange("", a.sandboxWithout(name), changed, func() error {
		there, err := config.Unset(a.o.Config, name, a.o.Reads)
		if err != nil {
			return err
		}
		if !there {
			a.notes.say(name + " is not set in config.toml")
			return nil
		}
		a.tellSetting(name, name+" is at its default")
		return nil
	})
}

// sandboxWithout is the sandbox that holds once a setting is taken out, "" where that
// setting has no part in it: without a sandbox_mode it is the row's.
func (a *App) sandboxWithout(name string) string {
	if strings.Join(config.ParseKey(name), ".") != "sandbox_mode" || a.o.Held == nil {
		return ""
	}
	c, _ := a.o.Held()
	if c == nil {
		return protocol.SandboxFull // which row holds is not known
	}
	row, _ := setting(c, "row").Value.(string)
	return lead.Row(row).Sandbox()
}

// confirmedChange changes a setting by which a row or a sandbox is taken; both are "" for one
// that is of neither. What fails after the person's word has no place to go back to, and is
// said.
func (a *App) confirmedChange(row lead.Row, mode string, changed func(), change func() error) error {
	do := func() error {
		err := change()
		if err == nil && changed != nil {
			changed()
		}
		return err
	}
	if lead.OpenWarning(row, mode) == "" {
		return do()
	}
	a.confirmed(row, mode, func(a *App) { a.failing(do()) })
	return nil
}

// tellSetting says that a setting is another one, and for what that counts. What is live holds
// at once, and where it is of the terminal itself, that is opened anew.
func (a *App) tellSetting(name, words string) {
	k, err := config.Find(name)
	live := err == nil && k.Live
	if live {
		a.readTaste(func() {
			if a.o.Reopen != "" {
				a.again, a.quit = a.o.Reopen, true
			}
		})
	} else {
		words += ", for bots that are made from now on"
	}
	if a.o.Held == nil {
		a.notes.say(words)
		return
	}
	a.heldSettings(func(c *config.Config) {
		if s, ok := c.Get(name); ok && s.From != config.FromConfig && s.From != config.FromDefault {
			words += "; here the " + settings.Source(s) + " holds over it"
		}
		a.notes.say(words)
	})
}

// sendTest sends a notification whatever the screen has of the person's attention.
func (a *App) sendTest() {
	n, err := notify.Test(a.o.Notify.Route, a.o.Notify.Command)
	if err != nil {
		a.notes.fail(err)
		return
	}
	a.notes.say("sent by " + string(a.o.Notify.Route))
	a.deliver(n)
}
