package lead

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/internal/sonny/host/tools"
	"agent/internal/sonny/repo"
	"agent/protocol"

	"github.com/google/go-cmp/cmp"
)

func pointer[T any](v T) *T { return &v }

func bot(id int64, name, folder string) protocol.Bot {
	return protocol.Bot{ID: id, Name: name, Workspace: pointer(folder)}
}

func names(bots ...protocol.Bot) Names {
	return func(name string) *protocol.Bot {
		for i := range bots {
			if bots[i].Name == name {
				return &bots[i]
			}
		}
		return nil
	}
}

func TestFreeNames(t *testing.T) {
	t.Parallel()
	here := &Folder{Path: "/b/demo"}
	for _, c := range []struct {
		name, project, wantProject, wantLead string
		bots                                 []protocol.Bot
		taken                                bool
	}{
		{"an unused project has its first lead", "demo", "demo", "demo.lead", nil, false},
		{"the folder's second lead is numbered", "demo", "demo", "demo.lead-2", []protocol.Bot{bot(1, "demo.lead", "/b/demo")}, false},
		{"SO-5 another folder's lead keeps its name", "demo", "demo-2", "demo-2.lead", []protocol.Bot{bot(1, "demo.lead", "/a/demo")}, true},
		{"a recorded name goes on", "demo-2", "demo-2", "demo-2.lead-2", []protocol.Bot{bot(1, "demo.lead", "/a/demo"), bot(2, "demo-2.lead", "/b/demo")}, false},
	} {
		project, lead, taken, err := here.Free(c.project, names(c.bots...))
		if err != nil || project != c.wantProject || lead != c.wantLead || taken != c.taken {
			t.Errorf("%s: %s, %s, %v, %v", c.name, project, lead, taken, err)
		}
	}
}

func TestProjectOfAFolder(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "My Über Project")
	if err := os.MkdirAll(filepath.Join(folder, ".agents"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := Locate(context.Background(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, recorded, file, want string }{
		{"it is called as the folder is", "", "", "My--ber-Project"},
		{"a recorded name goes before that", "mine", "", "mine"},
		{"project.toml goes before both", "mine", "name = \"stated\"\n", "stated"},
	} {
		path := filepath.Join(folder, ".agents", "project.toml")
		os.Remove(path)
		if c.file != "" {
			if err := os.WriteFile(path, []byte(c.file), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := f.ProjectName(c.recorded); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}

func TestWhatARowSends(t *testing.T) {
	t.Parallel()
	gated := []string{"shell", "write_stdin", "write", "edit", "apply_patch", "start_task", "run_in_pane"}
	roots := []string{"/extra", "/src/demo/.git", "/home/me/.agent/worktrees/demo"}
	for _, c := range []struct {
		row     Row
		sandbox string // stated
		want    protocol.Create
	}{
		{Auto, "", protocol.Create{Approve: gated, Approver: "auto", ApproveExpireMS: protocol.Set(int64(120_000)), Sandbox: "workspace-write", WritableRoots: roots}},
		{Manual, "", protocol.Create{Approve: gated, Approver: "manual", Sandbox: "workspace-write", WritableRoots: roots}},
		{Look, "", protocol.Create{Sandbox: "read-only"}},
		{Full, "", protocol.Create{Sandbox: "danger-full-access"}},
		{Full, "workspace-write", protocol.Create{Sandbox: "workspace-write", WritableRoots: roots}},
		{Manual, "danger-full-access", protocol.Create{Approve: gated, Approver: "manual", Sandbox: "danger-full-access"}},
	} {
		s := DefaultSettings()
		s.Row, s.Sandbox, s.WritableRoots = c.row, c.sandbox, []string{"/extra"}
		p := &Plan{
			Folder:  &Folder{Path: "/src/demo", Repo: repo.Repo{Top: "/src/demo", GitDir: "/src/demo/.git", Common: "/src/demo/.git"}},
			Project: "demo", Name: "demo.lead", Store: "/home/me/.agent/state.sqlite", Settings: s,
			Tools:       []string{"apply_patch", "echo", "edit", "history", "note", "read", "shell", "wait", "web_fetch", "write", "write_stdin"},
			ClientTools: tools.For(tools.Lead, time.Minute),
		}
		got := p.Create()
		if strings.Contains(strings.Join(got.Tools, " "), "echo") {
			t.Errorf("%s: a lead has echo", c.row)
		}
		kept := protocol.Create{Approve: got.Approve, Approver: got.Approver, Sandbox: got.Sandbox, WritableRoots: got.WritableRoots}
		if ms, ok := got.ApproveExpireMS.Get(); ok {
			kept.ApproveExpireMS = protocol.Set(ms)
		}
		if diff := cmp.Diff(c.want, kept, cmp.AllowUnexported(protocol.Opt[int64]{}, protocol.Opt[bool]{})); diff != "" {
			t.Errorf("%s %s: %s", c.row, c.sandbox, diff)
		}
	}
}

func TestFooterWords(t *testing.T) {
	t.Parallel()
	gate := func(tag string) []protocol.Gate { return []protocol.Gate{{Tag: tag}} }
	for _, c := range []struct {
		bot  protocol.Bot
		want string
		row  Row
		warn bool
	}{
		{protocol.Bot{Gates: gate("auto"), Sandbox: "workspace-write", Network: true}, "auto · workspace-write · net on", Auto, false},
		{protocol.Bot{Gates: gate("manual"), Sandbox: "workspace-write"}, "manual · workspace-write · net off", Manual, false},
		{protocol.Bot{Sandbox: "read-only", Network: true}, "look · read-only · net on", Look, false},
		{protocol.Bot{}, "full · no sandbox", Full, true},
		{protocol.Bot{Sandbox: "workspace-write", Network: true}, "no gate · workspace-write · net on", "", false},
		{protocol.Bot{Gates: gate("manual"), Sandbox: "danger-full-access"}, "asks everything · no sandbox", "", true},
		{protocol.Bot{Gates: gate("team"), Sandbox: "workspace-write", UnixSockets: []string{"/a"}}, "team · workspace-write · net off, 1 sockets", "", false},
	} {
		confined := Confined(&c.bot)
		words, warn := confined.Words()
		if got := strings.Join(words, " · "); got != c.want || warn != c.warn || confined.Row() != c.row {
			t.Errorf("%q, warn %v, row %q; want %q, %v, %q", got, warn, confined.Row(), c.want, c.warn, c.row)
		}
	}
}

func TestBook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	book := BookIn(dir)
	add := func(id int64, opened time.Time) {
		t.Helper()
		if err := book.Change(func(p *Page) error {
			p.Put(Session{Store: "s", BotID: id, Bot: "demo.lead", Folder: "/src", Kind: KindLead, Opened: opened})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Unix(1000, 0).UTC()
	add(1, then)
	add(2, then.Add(time.Hour))
	page, broken, err := book.Read()
	if err != nil || broken != nil {
		t.Fatal(broken, err)
	}
	bots := []protocol.Bot{bot(1, "demo.lead", "/src"), bot(3, "other.lead-2", "/src"), bot(4, "loose", "/src")}
	var got []string
	for _, f := range Leads("/src", "s", page, bots) {
		name := f.Bot
		if f.Gone() {
			name += " gone"
		}
		got = append(got, name)
	}
	want := []string{"demo.lead gone", "demo.lead", "other.lead-2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	// A broken book is set aside, and work goes on.
	path := filepath.Join(dir, "sessions.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, broken, err := book.Read(); broken == nil || err != nil {
		t.Errorf("broken %v, %v", broken, err)
	}
	add(5, then)
	if text, err := os.ReadFile(path + ".broken"); err != nil || string(text) != "{" {
		t.Errorf("set aside: %q, %v", text, err)
	}
}

// A book of a newer Sonny, or of somebody else, is neither used nor written over.
func TestABookThatIsNotOurs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		make func(path string) error
		says string
	}{
		"a newer Sonny's": {func(path string) error {
			return os.WriteFile(path, []byte(`{"v":2,"sessions":[],"more":1}`), 0o600)
		}, "newer Sonny (v 2"},
		"a link": {func(path string) error {
			if err := os.WriteFile(path+".x", []byte(`{"v":1,"sessions":[]}`), 0o600); err != nil {
				return err
			}
			return os.Symlink(path+".x", path)
		}, "is a link"},
		"a pipe": {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "not a regular file"},
		"another user's": {func(path string) error {
			if err := os.WriteFile(path, []byte(`{"v":1,"sessions":[]}`), 0o600); err != nil {
				return err
			}
			return os.Chown(path, 4242, -1)
		}, "belongs to another user"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "sessions.json")
		err := row.make(path)
		if errors.Is(err, os.ErrPermission) {
			continue // only root can give a file away
		}
		if err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(path)
		book := BookIn(dir)
		if _, _, err := book.Read(); err == nil || !strings.Contains(err.Error(), row.says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: read: %v", name, err)
		}
		if err := book.Change(func(p *Page) error { p.Put(Session{Store: "s", BotID: 1}); return nil }); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: written: %v", name, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: the file is another now: %v", name, err)
		}
	}
}

// A bot may give the bots that it makes any name and folder.
func TestABotPlantsNoLead(t *testing.T) {
	t.Parallel()
	made := func(id int64, name string) protocol.Bot {
		b := bot(id, name, "/src")
		b.CreatedByID, b.CreatedBy, b.BotMade = pointer(int64(1)), pointer("demo.lead"), true
		return b
	}
	forked := bot(4, "demo.lead-4", "/src") // of one that a bot made
	forked.BotMade = true
	later := time.Unix(2000, 0)
	page := &Page{Sessions: []Session{
		{Store: "s", BotID: 2, Bot: "demo.lead-2", Folder: "/src", Kind: KindLead, Opened: later}, // the person opened it
		{Store: "s", BotID: 5, Bot: "other.lead", Folder: "/src", Kind: KindLead, Opened: later},  // it was opened here
	}}
	bots := []protocol.Bot{bot(1, "demo.lead", "/src"), made(2, "demo.lead-2"), made(3, "demo.lead-3"), forked, bot(5, "other.lead", "/other")}
	var got []string
	for _, f := range Leads("/src", "s", page, bots) {
		got = append(got, f.Bot)
	}
	if diff := cmp.Diff([]string{"demo.lead"}, got); diff != "" {
		t.Error(diff)
	}
	for _, f := range Sessions("s", page, bots) {
		if want := map[int64]Kind{1: KindLead, 2: KindTask, 5: KindLead}[f.BotID]; f.Kind != want {
			t.Errorf("%s is a %s, not a %s", f.Bot, f.Kind, want)
		}
	}
}

func TestWhoseTheHomeBotIs(t *testing.T) {
	t.Parallel()
	by := func(b protocol.Bot, change func(*protocol.Bot)) protocol.Bot { change(&b); return b }
	own := bot(1, "home", "/home/me")
	for _, c := range []struct {
		name string
		bot  protocol.Bot
		kind Kind
		says string // "": it is the person's own
	}{
		{"the person's own", own, KindHome, ""},
		{"one that a bot made", by(own, func(b *protocol.Bot) { b.CreatedBy, b.CreatedByID = pointer("demo.lead"), pointer(int64(7)) }), KindTask, "demo.lead made it"},
		{"one whose maker is gone", by(own, func(b *protocol.Bot) { b.CreatedByID = pointer(int64(7)) }), KindTask, "a bot made it"},
		{"a fork of one that a bot made", by(own, func(b *protocol.Bot) { b.BotMade = true }), KindTask, "forked"},
		{"one of another folder", bot(1, "home", "/src"), KindLead, "it works in /src"},
		{"one of no folder", protocol.Bot{ID: 1, Name: "home"}, KindLead, "no folder"},
		{"a closed one", by(own, func(b *protocol.Bot) { b.Closed = true }), KindLead, "a program"},
	} {
		err := CheckHome(&c.bot, "/home/me")
		if (err == nil) != (c.says == "") || err != nil && (protocol.CodeOf(err) != protocol.BotExists || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if kind := KindOf(&c.bot, "/home/me"); kind != c.kind {
			t.Errorf("%s: a %s", c.name, kind)
		}
	}
	if kind := KindOf(pointer(bot(1, "demo.lead", "/home/me")), "/home/me"); kind != KindLead {
		t.Errorf("a lead in the home folder is a %s", kind)
	}
}

func TestTasksOfALead(t *testing.T) {
	t.Parallel()
	made := func(id, by int64, name string) protocol.Bot {
		b := bot(id, name, "/w")
		b.CreatedByID = &by
		return b
	}
	judge := protocol.Bot{ID: 9, Name: "approver.auto.1", Closed: true}
	bots := []protocol.Bot{
		bot(1, "demo.lead", "/src"), made(2, 1, "demo.server"), made(3, 2, "odd"), bot(4, "demo.docs", "/src"),
		bot(5, "demo.lead-2", "/src"), made(6, 7, "demo.lead.x"), made(8, 1, "demo.lead-side"), judge, bot(10, "approver.auto.x", "/src"),
	}
	var got []string
	for _, b := range Tasks(&bots[0], "demo", bots, map[int64]bool{8: true}) {
		got = append(got, b.Name)
	}
	if diff := cmp.Diff([]string{"demo.docs", "demo.server", "odd"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestATasksNameIsMadeOfItsBrief(t *testing.T) {
	t.Parallel()
	for brief, want := range map[string]string{
		"say: hi there friend":                       "say-hi-there-friend",
		"Fix the login, and then everything else":    "fix-the-login-and-then",
		"Donaudampfschifffahrtsgesellschaftskapitän": "donaudampfschifffahrtsge",
		"漢字": "task",
		"":   "task",
	} {
		if got := TaskName(brief, func(string) bool { return false }); got != want {
			t.Errorf("%q: %s, wanted %s", brief, got, want)
		}
	}
	taken := map[string]bool{"a-b": true, "a-b-2": true}
	if got := TaskName("a b", func(name string) bool { return taken[name] }); got != "a-b-3" {
		t.Error(got)
	}
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	made := func(id, by int64, name string) protocol.Bot {
		b := bot(id, name, "/w")
		b.CreatedByID = &by
		return b
	}
	bots := []protocol.Bot{
		bot(1, "demo.lead", "/src"), bot(2, "demo.lead-2", "/src"), bot(3, "api.lead", "/api"), bot(4, "x.y.lead", "/xy"),
		made(10, 1, "demo.server"), made(11, 10, "under.server"), made(12, 10, "another"), bot(13, "demo.docs", "/src"),
		made(14, 2, "demo.spike"), bot(15, "api.probe", "/api"), bot(16, "x.y.deep", "/xy"), bot(17, "x.odd", "/x"), made(18, 99, "orphan"),
	}
	heads := []Head{{&bots[0], "demo"}, {&bots[1], "demo"}, {&bots[2], "api"}, {&bots[3], "x.y"}}
	got := map[int64][]string{}
	for head, list := range Families(heads, bots, map[int64]bool{12: true}) {
		for _, c := range list {
			got[head] = append(got[head], fmt.Sprintf("%d %s %t", c.Depth, c.Bot.Name, c.Last))
		}
	}
	if diff := cmp.Diff(map[int64][]string{
		1: {"1 demo.docs false", "1 demo.server true", "2 under.server true"}, // its project's roots are the first head's
		2: {"1 demo.spike true"},
		3: {"1 api.probe true"},
		4: {"1 x.y.deep true"},
	}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsOpened(t *testing.T) {
	t.Parallel()
	by := int64(1)
	made := bot(5, "demo.lead", "/w")
	made.CreatedByID = &by
	for _, c := range []struct {
		name string
		bot  protocol.Bot
		want Kind
	}{
		{"a lead", bot(1, "demo.lead", "/w"), KindLead},
		{"a further lead", bot(1, "demo.lead-12", "/w"), KindLead},
		{"a bot of no project", bot(1, "scratch", "/w"), KindLead},
		{"a root named as a project's task", bot(1, "demo.build", "/w"), KindTask},
		{"a bot that a bot made, whatever its name", made, KindTask},
	} {
		if got := KindOf(&c.bot, "/home/me"); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	page := &Page{}
	page.Put(Session{Store: "s", BotID: 2, Bot: "demo.build", Folder: "/w", Kind: KindTask})
	if got := Sessions("s", page, []protocol.Bot{bot(2, "demo.build", "/w")}); len(got) != 0 {
		t.Errorf("a task that was opened is a session: %+v", got)
	}
}
