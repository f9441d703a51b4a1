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
	line := text.Join(
		text.Span{Text: text.Pad(cells.OneLine(b.Record.Name), 30) + " "},
		text.Span{Text: text.Pad(g.Mark+" "+g.Word, 12) + " ", Role: g.Role},
		text.Span{Text: text.Pad(cells.OneLine(title), 24) + " "},
		text.Span{Text: cells.OneLine(folder), Role: text.Dim},
	)
	return lists.Row{ID: b.Record.Name, Line: line, Match: b.Record.Name + " " + title + " " + folder}
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
	line := text.Join(
		text.Span{Text: text.Pad(cells.OneLine(Title(f)), 25) + " "},
		text.Span{Text: text.Pad(cells.OneLine(f.Bot), 15) + " "},
		text.Span{Text: text.Pad(state, 13) + " ", Role: role},
		text.Span{Text: human.Ago(now, f.Opened), Role: text.Dim},
	)
	return lists.Row{ID: fmt.Sprint(f.BotID), Line: line, Match: Title(f) + " " + f.Bot + " " + f.Folder}
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
	return lists.Row{ID: t.Record.Name, Line: text.Join(
		text.Span{Text: text.Pad(cells.OneLine(t.Record.Name), 13+more/2) + " "},
		text.Span{Text: text.Pad(g.Mark+" "+g.Word, 12) + " ", Role: g.Role},
		text.Span{Text: text.Pad(cells.OneLine(cmp.Or(plan, "-")), 26+more/2) + " "},
		text.Span{Text: text.Pad(cells.OneLine(branch), 16) + " ", Role: text.Dim},
		text.Span{Text: took, Role: text.Dim},
	)}
}
