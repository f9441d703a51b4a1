package roster

import (
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// world has a folder's lead with two tasks, and another folder's lead.
func world() (*live.World, *lead.Page) {
	w := live.New(&protocol.Ready{})
	here, there, one := "/src/demo", "/src/other", int64(1)
	w.Page([]protocol.Bot{
		{ID: 1, Name: "demo.lead", Workspace: &here},
		{ID: 2, Name: "demo.tests", Workspace: &here, CreatedByID: &one},
		{ID: 3, Name: "demo.docs", Workspace: &here, CreatedByID: &one},
		{ID: 4, Name: "other.lead", Workspace: &there},
	})
	return w, &lead.Page{Sessions: []lead.Session{
		{BotID: 1, Bot: "demo.lead", Folder: here, Project: "demo", Kind: lead.KindLead, Title: "the login fix"},
		{BotID: 4, Bot: "other.lead", Folder: there, Project: "other", Kind: lead.KindLead},
	}}
}

func rows(r *Rail, now Shown) (out []string) {
	for _, row := range r.All() {
		out = append(out, r.Row(row, now).Line.String())
	}
	return out
}

func TestTheRailsRows(t *testing.T) {
	t.Parallel()
	w, page := world()
	var r Rail
	r.Take(page)
	first, asked := "", ""
	place := Place{
		Folder: "/src/demo", Hidden: func() map[int64]bool { return map[int64]bool{3: true} },
		Title: func(given string, record *protocol.Bot) (string, func()) {
			if given != "" {
				return given, nil
			}
			return first, func() { asked = record.Name }
		},
	}
	r.Fresh(w, place)
	want := []string{"○ the login fix", "  demo.lead   3 turns", "  └ ○ tests"}
	if got := rows(&r, Shown{Bot: "demo.lead", Name: "the login fix", Turns: "3 turns"}); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
	if got := rows(&r, Shown{Bot: "demo.lead", Name: "a new name"}); got[0] != "○ a new name" {
		t.Errorf("a name that was just given is %q", got[0])
	}
	if !r.Has("demo.tests") || r.Has("other.lead") || r.Session("demo.tests") != nil || r.Session("demo.lead") == nil {
		t.Error("the rows are found by other names")
	}
	if some := r.Through("TEST"); len(some) != 1 || some[0].Bot != "demo.tests" {
		t.Errorf("the filter lets %v through", some)
	}
	w.Bot("other.lead").Turn = 7
	r.Heard(w.Bot("other.lead"))
	r.Fresh(w, place)
	if got := rows(&r, Shown{}); len(got) != 6 || got[4] != "other folders" || got[5] != "● other.lead" {
		t.Errorf("a session that runs elsewhere is not listed: %q", got)
	}
	r.Row(r.All()[5], Shown{}).Shown()
	if asked != "other.lead" {
		t.Errorf("drawing it asks for the first message of %q", asked)
	}
	first = "tidy the changelog"
	r.Retitled()
	r.Fresh(w, place)
	if got := rows(&r, Shown{}); len(got) != 7 || got[0] != "○ the login fix" || got[5] != "● tidy the changelog" || got[6] != "  other.lead" {
		t.Errorf("once its first message is known the rows are %q", got)
	}
	if some := r.Through("changelog"); len(some) != 1 || some[0].Bot != "other.lead" {
		t.Errorf("by its first message %v is found", some)
	}
}

func TestATreeOfForks(t *testing.T) {
	t.Parallel()
	found := func(id, of int64, name string) lead.Found {
		return lead.Found{Session: lead.Session{BotID: id, ForkOf: of, Bot: name}, Record: &protocol.Bot{ID: id, Name: name}}
	}
	all := []lead.Found{found(5, 2, "grandchild"), found(1, 0, "root"), found(9, 0, "stranger"), found(3, 1, "second"), found(2, 1, "first")}
	for _, of := range []int64{1, 3, 5} {
		var got []string
		for _, m := range Family(of, all) {
			got = append(got, strings.TrimRight(Fork(m, Branch{}).Line.String(), " "))
		}
		if want := []string{"root", "└ first", "  └ grandchild", "└ second"}; strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("of %d: %q, want %q", of, got, want)
		}
	}
	loop := []lead.Found{found(1, 2, "one"), found(2, 1, "two")}
	if got := Family(1, loop); len(got) != 2 {
		t.Errorf("forks of each other are %d rows", len(got))
	}
	gone := lead.Found{Session: lead.Session{BotID: 7, Bot: "gone.lead"}}
	if line := Fork(Family(7, []lead.Found{gone})[0], Branch{}).Line.String(); !strings.HasSuffix(line, "  gone") {
		t.Errorf("%q", line)
	}
	if line := Fork(Family(9, all)[0], Branch{From: "hello", Last: "bye"}).Line.String(); !strings.HasSuffix(line, "  after hello  bye") {
		t.Errorf("%q", line)
	}
}

func TestRowsOfTheLists(t *testing.T) {
	t.Parallel()
	w, page := world()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	b := w.Bot("demo.lead")
	f := lead.Found{Session: page.Sessions[0], Record: &b.Record}
	f.Opened = now.Add(-90 * time.Minute)
	if row := Session(f, b, now); row.ID != "1" || !strings.Contains(row.Line.String(), "○ idle") || !strings.HasSuffix(row.Line.String(), "1h ago") {
		t.Errorf("%+v", row)
	}
	f.Record = nil
	if row := Session(f, nil, now); !strings.Contains(row.Line.String(), "gone") {
		t.Errorf("%+v", row)
	}
	task, tree := w.Bot("demo.tests"), "/home/me/.agent/worktrees/demo/tests"
	task.Turn, task.Since, task.Record.Workspace = 3, now.Add(-42*time.Second), &tree
	if row := Task(task, "1/3 signs", now, 0); !strings.Contains(row.Line.String(), "● working") || !strings.Contains(row.Line.String(), "1/3 signs") || !strings.Contains(row.Line.String(), "agent/demo.tests") || !strings.HasSuffix(row.Line.String(), "0:42") {
		t.Errorf("%+v", row)
	}
}
