package ahead

import (
	"context"
	"fmt"

	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/text"
)

// Trust asks whether a folder's own files are to be used, before anything of it is shown
// or composed (sonny.md 3.5).
type Trust struct {
	Term   Terminal
	Folder string
	Files  []string // what it holds, as they are listed
	More   int      // files beyond those
	Setup  bool     // .agents/setup is among them
}

// Verdict is what the person says of a folder's files.
type Verdict int

// The verdicts.
const (
	Leave Verdict = iota
	UseThem
	WithoutThem
)

// trustRows are the choices, in their order.
var trustRows = []answer{
	{"use them", UseThem},
	{"open without them", WithoutThem},
	{"leave", Leave},
}

// Ask shows the question until it is answered.
func (q *Trust) Ask(ctx context.Context) (Verdict, error) {
	ask := &question{t: q.Term, title: "a folder that is new to you", choices: trustRows, words: q.words}
	return ask.run(ctx)
}

func (q *Trust) words(say func(text.Role, string)) {
	say(text.Plain, cells.OneLine(human.Path(q.Folder))+" brings files that agents read as instructions:")
	say(text.Plain, "")
	for _, name := range q.Files {
		say(text.Accent, "  "+cells.OneLine(name))
	}
	if q.More > 0 {
		say(text.Dim, fmt.Sprintf("  and %d more files", q.More))
	}
	say(text.Plain, "")
	say(text.Dim, "What they say counts as your standing orders, for the judge of their calls too.")
	if q.Setup {
		say(text.Warn, ".agents/setup runs as you, outside any sandbox, when a task starts, once that is approved.")
	}
}

// InvalidProject asks whether a folder is opened without its project.toml, which cannot
// be used (sonny.md 3.4).
type InvalidProject struct {
	Term  Terminal
	Fault error // project_invalid
}

// Ask shows the question until it is answered. It reports whether the screen opens.
func (q *InvalidProject) Ask(ctx context.Context) (bool, error) {
	ask := &question{
		t: q.Term, title: "a project.toml that cannot be used", choices: []answer{{"open without it", WithoutThem}, {"leave", Leave}},
		words: func(say func(text.Role, string)) {
			say(text.Fail, cells.OneLine(q.Fault.Error()))
			say(text.Plain, "")
			say(text.Dim, "Without it the folder's name and your own settings hold. Mend the file, and it is read at the next opening.")
		},
	}
	verdict, err := ask.run(ctx)
	return verdict == WithoutThem, err
}
