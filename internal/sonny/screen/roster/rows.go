package roster

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// Bot is a bot of the list of all; title is its session's, or made of its first message,
// "" for none.
func Bot(b *live.Bot, title string) lists.Row {
	g := Looks[b.State(false)]
	folder := ""
	if b.Record.Workspace != nil {
		folder = human.Path(*b.Record.Workspace)
	}
	r := lists.InColumns(b.Record.Name,
		lists.Column{Text: cells.OneLine(b.Record.Name), Width: 30},
		lists.Column{Text: g.Mark + " " + g.Word, Width: 12, Role: g.Role},
		lists.Column{Text: cells.OneLine(title), Width: 24},
		lists.Column{Text: cells.OneLine(folder), Role: text.Dim},
	)
	r.Match = b.Record.Name + " " + title + " " + folder
	return r
}

// SessionHead is what stands above the list of sessions.
func SessionHead() string {
	return text.Pad("TITLE", 26) + text.Pad("BOT", 16) + text.Pad("STATE", 14) + text.Pad("LAST", 13)
}

// Title is how a session is called.
func Title(f lead.Found) string {
	if f.Title != "" {
		return f.Title
	}
	return f.Bot
}

// Session is a session of the list of them; b is its bot, nil for none that is known.
func Session(f lead.Found, b *live.Bot, now time.Time) lists.Row {
	state, role := "gone", text.Fail
	if f.Record != nil {
		g := Looks[live.Idle]
		if b != nil {
			g = Looks[b.State(false)]
		}
		state, role = g.Mark+" "+g.Word, g.Role
	}
	r := lists.InColumns(fmt.Sprint(f.BotID),
		lists.Column{Text: cells.OneLine(Title(f)), Width: 25},
		lists.Column{Text: cells.OneLine(f.Bot), Width: 15},
		lists.Column{Text: state, Width: 13, Role: role},
		lists.Column{Text: human.Ago(now, f.Opened), Role: text.Dim},
	)
	r.Match = Title(f) + " " + f.Bot + " " + f.Folder
	return r
}

// TaskHead is what stands above the list of tasks, more cells wider than on a screen of 80.
func TaskHead(more int) string {
	return text.Pad("NAME", 14+more/2) + text.Pad("STATE", 13) + text.Pad("PLAN", 27+more/2) + text.Pad("BRANCH", 17) + "TIME"
}

// Task is a task of the list of them, below TaskHead. plan is what its plan has come to; ""
// for none.
func Task(t *live.Bot, plan string, now time.Time, more int) lists.Row {
	g := Looks[t.State(false)]
	took := ""
	if t.Turn != 0 {
		took = human.Clock(now.Sub(t.Since))
	}
	branch := "-"
	if t.Record.Workspace != nil && strings.Contains(*t.Record.Workspace, "/worktrees/") {
		branch = "agent/" + t.Record.Name
	}
	return lists.InColumns(t.Record.Name,
		lists.Column{Text: cells.OneLine(t.Record.Name), Width: 13 + more/2},
		lists.Column{Text: g.Mark + " " + g.Word, Width: 12, Role: g.Role},
		lists.Column{Text: cells.OneLine(cmp.Or(plan, "-")), Width: 26 + more/2},
		lists.Column{Text: cells.OneLine(branch), Width: 16, Role: text.Dim},
		lists.Column{Text: took, Role: text.Dim},
	)
}
