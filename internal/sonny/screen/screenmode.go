package screen

import (
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// screenCommands change the way this screen is drawn (sonny.md 14).
var screenCommands = feature{
	commands: []slashCommand{{"screen", "[MODE]", "draw it full, inline or plain, until you leave it", (*App).screenCommand}},
}

// modeWords say what each way to draw is.
var modeWords = map[Mode]string{
	Full:   "the whole terminal, on its alternate screen",
	Inline: "what is finished goes into the terminal's own scrollback",
	Plain:  "lines of text alone, as a screen reader reads them",
}

// mode is the way this screen is drawn.
func (a *App) mode() Mode {
	if a.o.Mode == "" {
		return Full
	}
	return a.o.Mode
}

// screenCommand takes a mode, or lists them.
func (a *App) screenCommand(name string) error {
	if name == "" {
		a.openModes()
		return nil
	}
	mode, err := ParseMode(name)
	if err != nil {
		return err
	}
	a.drawAs(mode)
	return nil
}

func (a *App) openModes() {
	var rows []lists.Row
	for _, m := range Modes {
		now := ""
		if m == a.mode() {
			now = "now"
		}
		rows = append(rows, described(string(m), string(m), now, modeWords[m]))
	}
	p := fixedList("screen", "", rows)
	p.At, p.hint = string(a.mode()), []string{"Enter draw it so"}
	p.keys = map[string]func(*App, lists.Row) bool{"enter": func(a *App, r lists.Row) bool { a.drawAs(Mode(r.ID)); return true }}
	p.detail = func(*App, lists.Row, int) []text.Line {
		return []text.Line{text.Of(text.Dim, "until you leave it; /config tui.screen MODE keeps one")}
	}
	a.panel = p
}

// drawAs ends the loop, for whoever runs the screen to open the terminal for another way
// to draw. Drafts are kept and bots go on, as when it is left.
func (a *App) drawAs(mode Mode) {
	if mode == a.mode() {
		a.notes.say("it is drawn so")
		return
	}
	a.again, a.quit = mode, true
}
