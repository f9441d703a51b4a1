package screen

import (
	"agent/internal/sonny/plain"
	"agent/internal/sonny/screen/cells"
)

// helpWords are the lines that ask what can be typed.
var helpWords = []string{"?", "/", "/help"}

// help says what can be typed here. The keys of the whole screen are /keys' to list.
func (f *plainFront) help(a *App) []string {
	out := []string{
		"list: what can be typed",
		"  TEXT: a message; while a turn runs it joins the turn",
		"  TEXT\\: the message goes on in the next line",
		"  show: the output of the last call; show earlier: more of the history",
		"  &BRIEF: starts a task; #FACT: keeps a fact; //TEXT: a message that begins with a slash",
	}
	if a.o.Bang {
		out = append(out, "  !COMMAND: runs it as you, outside any bot, once you say y")
	}
	out = append(out, "  Ctrl+U: rubs the line out; Ctrl+C: interrupts, twice at rest it leaves; Ctrl+D: leaves")
	for _, p := range a.commandPicks("/") {
		out = append(out, "  "+plain.Row(cells.OneLine(p.Name))+": "+cells.OneLine(p.Does))
	}
	return out
}
