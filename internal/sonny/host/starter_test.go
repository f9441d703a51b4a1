package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/skill"
	"agent/protocol"
)

// starter starts tasks under a lead, as the host does.
func (d *desk) starter(bot *protocol.Bot) *lead.TaskStarter {
	return &lead.TaskStarter{
		Client: d.c, Store: d.Path(".agent", "state.sqlite"), Sonny: d.sonny(), Lead: bot, Project: lead.ProjectOf(bot.Name),
		Settings: lead.DefaultSettings(), Compose: lead.TaskComposer(d.Dir, skill.Texts{}),
	}
}

// untouched fails where a start that was refused has left something.
func (d *desk) untouched(dir string, bots int) {
	d.t.Helper()
	entries, _ := filepath.Glob(d.Path(".agent", "worktrees", "*", "*"))
	markers, _ := os.ReadDir(filepath.Join(d.sonny(), "starting"))
	if branches := d.Git(dir, "branch", "--list", "agent/*"); len(entries) > 0 || branches != "" || len(markers) > 0 {
		d.t.Errorf("left: %v, %q, %v", entries, branches, markers)
	}
	if list := d.bots(); len(list) != bots {
		d.t.Errorf("bots: %v", list)
	}
}

func TestStartsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dir := d.Repo("demo", map[string]string{"f": "one"})
	bot := d.lead(dir, lead.Auto)
	yes, no := true, false
	for _, row := range []struct {
		name string
		ask  lead.TaskRequest
		code protocol.Code
		word string
	}{
		{"SO-68 ..", lead.TaskRequest{Name: "..", Brief: "b"}, protocol.InvalidName, ""},
		{"SO-68 .x", lead.TaskRequest{Name: ".x", Brief: "b"}, protocol.InvalidName, ""},
		{"SO-68 -x", lead.TaskRequest{Name: "-x", Brief: "b"}, protocol.InvalidName, ""},
		{"SO-68 a..b", lead.TaskRequest{Name: "a..b", Brief: "b"}, protocol.InvalidName, ""},
		{"SO-68 x.lock", lead.TaskRequest{Name: "x.lock", Brief: "b"}, protocol.InvalidName, ""},
		{"SO-68 a/b", lead.TaskRequest{Name: "a/b", Brief: "b"}, protocol.InvalidName, ""},
		{"SO-68 an empty name", lead.TaskRequest{Name: "", Brief: "b"}, protocol.InvalidName, ""},
		{"a name that is too long with its prefix", lead.TaskRequest{Name: strings.Repeat("x", 124), Brief: "b"}, protocol.InvalidName, ""},
		{"a name with a newline", lead.TaskRequest{Name: "a\nb", Brief: "b"}, protocol.InvalidName, ""},
		{"a name that ends with a dot", lead.TaskRequest{Name: "a.", Brief: "b"}, protocol.InvalidName, ""},
		{"a lead's name", lead.TaskRequest{Name: "lead-7", Brief: "b"}, protocol.InvalidName, "lead's"},
		{"an empty brief", lead.TaskRequest{Name: "a", Brief: " \n"}, "invalid_arguments", "brief"},
		{"a brief over 64 KiB", lead.TaskRequest{Name: "a", Brief: strings.Repeat("x", 64<<10+1)}, "invalid_arguments", "brief"},
		{"a budget of less than 1,000 tokens", lead.TaskRequest{Name: "a", Brief: "b", BudgetTokens: 999}, "invalid_arguments", "budget_tokens"},
		{"a folder that is not there", lead.TaskRequest{Name: "a", Brief: "b", Folder: "none"}, "invalid_arguments", "folder"},
		{"a folder outside", lead.TaskRequest{Name: "a", Brief: "b", Folder: "/usr"}, "invalid_arguments", "folder"},
		{"a folder outside by ..", lead.TaskRequest{Name: "a", Brief: "b", Folder: "../.."}, "invalid_arguments", "folder"},
		{"a folder outside by a link", lead.TaskRequest{Name: "a", Brief: "b", Folder: "link"}, "invalid_arguments", "folder"},
		{"the git folder", lead.TaskRequest{Name: "a", Brief: "b", Folder: ".git", Worktree: &no}, "invalid_arguments", "folder"},
		{"a base that is an option", lead.TaskRequest{Name: "a", Brief: "b", Base: "--output=x"}, protocol.WorktreeFailed, "no commit"},
		{"a base that is none", lead.TaskRequest{Name: "a", Brief: "b", Base: "nowhere"}, protocol.WorktreeFailed, "no commit"},
		{"a base without a worktree", lead.TaskRequest{Name: "a", Brief: "b", Base: "HEAD", Worktree: &no}, "invalid_arguments", "base"},
		{"a model that is none", lead.TaskRequest{Name: "a", Brief: "b", Model: "sonny"}, "invalid_arguments", "model"},
		{"an effort that is none", lead.TaskRequest{Name: "a", Brief: "b", Effort: "much"}, "invalid_arguments", "effort"},
		{"a role that is not there", lead.TaskRequest{Name: "a", Brief: "b", Role: "nobody"}, protocol.ProfileNotFound, "nobody"},
		{"a role outside", lead.TaskRequest{Name: "a", Brief: "b", Role: "../../x"}, protocol.InvalidName, "role"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.ask.Folder == "link" {
				if err := os.Symlink("/usr", filepath.Join(dir, "link")); err != nil {
					t.Fatal(err)
				}
			}
			_, err := d.starter(bot).Resolve(d.ctx, row.ask)
			if !errors.Is(err, row.code) || !strings.Contains(err.Error(), row.word) {
				t.Errorf("%v", err)
			}
			d.in(t).untouched(dir, 1)
		})
	}
	t.Run("a name that a bot has", func(t *testing.T) {
		other := d.lead(d.Repo("other", nil), lead.Auto)
		s := d.starter(bot)
		s.Project = "other"
		_, err := s.Resolve(d.ctx, lead.TaskRequest{Name: "lead", Brief: "b"})
		if !errors.Is(err, protocol.InvalidName) {
			t.Error(err)
		}
		if _, err := d.c.Create(d.ctx, &protocol.Create{Bot: "other.task", Model: "scripted/sonny", Workspace: *other.Workspace}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Resolve(d.ctx, lead.TaskRequest{Name: "task", Brief: "b"}); !errors.Is(err, protocol.BotExists) {
			t.Error(err)
		}
	})
	t.Run("a worktree where the lead may not write any", func(t *testing.T) {
		plain := d.lead(d.Repo("plain", nil), lead.Auto, func(p *lead.Plan) { p.Settings.Git = false })
		_, err := d.starter(plain).Resolve(d.ctx, lead.TaskRequest{Name: "a", Brief: "b", Worktree: &yes})
		if !errors.Is(err, protocol.WorktreeNeedsGit) {
			t.Error(err)
		}
		start, err := d.starter(plain).Resolve(d.ctx, lead.TaskRequest{Name: "a", Brief: "b"})
		if err != nil || start.Tree != nil || start.NeedsVerdict() {
			t.Errorf("%+v, %v", start, err)
		}
	})
}

func TestATaskOnlyNarrows(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	on := true
	t.Run("SO-72 the network of a lead without one stays off", func(t *testing.T) {
		d := d.in(t)
		bot := d.lead(d.Repo("demo", nil), lead.Auto, func(p *lead.Plan) { p.Settings.Network = false })
		start, err := d.starter(bot).Resolve(d.ctx, lead.TaskRequest{Name: "a", Brief: "say: hi", Network: &on, Sandbox: "danger-full-access"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := start.Do(d.ctx); err != nil {
			t.Fatal(err)
		}
		task, err := d.c.Inspect(d.ctx, "demo.a")
		if err != nil || task.Network || task.Sandbox != protocol.SandboxWorkspace {
			t.Errorf("%+v, %v", task, err)
		}
	})
	t.Run("SO-107 what a task may write, and what it was given", func(t *testing.T) {
		d := d.in(t)
		dir := d.Repo("both", map[string]string{"sub/f": "x"})
		bot := d.lead(dir, lead.Auto)
		common, trees := filepath.Join(dir, ".git"), d.Path(".agent", "worktrees", "both")
		if got := strings.Join(bot.WritableRoots, " "); got != common+" "+trees {
			t.Errorf("the lead's roots: %s", got)
		}
		start, err := d.starter(bot).Resolve(d.ctx, lead.TaskRequest{Name: "a", Brief: "sh: git commit --allow-empty -qm x && echo kept; echo x >> \"$(git rev-parse --git-common-dir)/config\" || echo refused"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := start.Do(d.ctx)
		if err != nil {
			t.Fatal(err)
		}
		task, err := d.c.Inspect(d.ctx, got.Bot)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(task.WritableRoots, " "); got != common+" "+filepath.Join(common, "worktrees", "a") {
			t.Errorf("the task's roots: %s", got)
		}
		if task.CreatedByID == nil || *task.CreatedByID != bot.ID || len(task.Gates) != 1 {
			t.Errorf("%+v", task)
		}
		for _, tool := range task.ClientTools {
			if tool.Name == "start_task" || tool.Name == "ask_person" {
				t.Errorf("CO-119 it has %s", tool.Name)
			}
		}
		said := (&turn{d, protocol.Submitted{Turn: got.Turn}, got.Bot}).says()
		if !strings.Contains(said, "kept") || !strings.Contains(said, "refused") {
			t.Error(said)
		}
		if log := d.Git(dir, "log", "--format=%s", "agent/both.a"); !strings.HasPrefix(log, "x\n") {
			t.Error(log)
		}
	})
}

func TestANestedRepositoryIsNotTrusted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	t.Run("SO-134 the filter that its config names does not run", func(t *testing.T) {
		d := d.in(t)
		dir := d.Repo("demo", map[string]string{"f": "x"})
		nested := d.Repo("demo/nested", map[string]string{".gitattributes": "* filter=evil\n", "g": "y"})
		ran := d.Path("ran")
		for _, key := range []string{"filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "core.sshCommand"} {
			d.Git(nested, "config", key, "touch "+ran+"; cat")
		}
		d.Write("demo/nested/g", "changed")
		bot := d.lead(dir, lead.Auto)
		yes := true
		_, err := d.starter(bot).Resolve(d.ctx, lead.TaskRequest{Name: "a", Brief: "say: hi", Folder: "nested", Worktree: &yes})
		if !errors.Is(err, protocol.WorktreeNeedsGit) || !strings.Contains(err.Error(), "is configured by") {
			t.Errorf("%v", err)
		}
		start, err := d.starter(bot).Resolve(d.ctx, lead.TaskRequest{Name: "a", Brief: "say: hi", Folder: "nested"})
		if err != nil || start.Tree != nil {
			t.Fatalf("%+v, %v", start, err)
		}
		got, err := start.Do(d.ctx)
		if err != nil || got.Workspace != nested {
			t.Errorf("%+v, %v", got, err)
		}
		if there(ran) {
			t.Error("a program of its config ran")
		}
	})
}

func TestAFolderMadeToLookLikeAGitFolderIsNotTrusted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dir := d.Repo("demo", map[string]string{"f": "x"})
	extra, ran := d.Path("extra"), d.Path("ran")
	if err := os.Mkdir(extra, 0o755); err != nil {
		t.Fatal(err)
	}
	bot := d.lead(dir, lead.Auto, func(p *lead.Plan) { p.Settings.WritableRoots = []string{extra} })
	// What a command of the lead's could do: a git folder in a folder that it may write.
	d.Git(dir, "init", "--quiet", "--bare", extra)
	d.Git(extra, "config", "core.bare", "false")
	d.Git(extra, "config", "core.worktree", filepath.Join(dir, "sub"))
	d.Git(extra, "config", "filter.evil.clean", "touch "+ran+"; cat")
	d.Git(extra, "config", "filter.evil.smudge", "touch "+ran+"; cat")
	d.Write("demo/sub/.git", "gitdir: "+extra+"\n")
	d.Write("demo/sub/.gitattributes", "* filter=evil\n")
	yes := true
	_, err := d.starter(bot).Resolve(d.ctx, lead.TaskRequest{Name: "a", Brief: "say: hi", Folder: "sub", Worktree: &yes})
	if !errors.Is(err, protocol.WorktreeNeedsGit) || !strings.Contains(err.Error(), "is configured by "+extra) || there(ran) {
		t.Errorf("%v, ran: %v", err, there(ran))
	}
}

func TestASetupThatChangesWhileTheStepWaits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dir := d.Repo("demo", map[string]string{".agents/setup": setup})
	d.lead(dir, lead.Manual)
	ran := d.Path("ran")
	t.Run("SO-115 CO-116 another script does not run, and nothing is left", func(t *testing.T) {
		d := d.in(t)
		n := d.say("demo.lead", "task: build | say: done")
		a := d.waiting("demo.lead")
		d.Write("demo/.agents/setup", "touch "+ran+"\n")
		d.answer(a, protocol.Allow, "")
		if code, detail := n.failure(); code != "target_changed" {
			t.Errorf("%s: %s", code, detail)
		}
		d.untouched(dir, 1)
		if there(ran) {
			t.Error("it ran")
		}
	})
	t.Run("one that was taken away ends the start, too", func(t *testing.T) {
		d := d.in(t)
		n := d.say("demo.lead", "task: build | say: done")
		a := d.waiting("demo.lead")
		if err := os.Remove(filepath.Join(dir, ".agents", "setup")); err != nil {
			t.Fatal(err)
		}
		d.answer(a, protocol.Allow, "")
		if code, detail := n.failure(); code != "target_changed" {
			t.Errorf("%s: %s", code, detail)
		}
		d.untouched(dir, 1)
	})
	t.Run("one that came ends the start, too", func(t *testing.T) {
		d := d.in(t)
		n := d.say("demo.lead", "task: build | say: done")
		a := d.waiting("demo.lead")
		d.Write("demo/.agents/setup", "touch "+ran+"\n")
		d.answer(a, protocol.Allow, "")
		if code, detail := n.failure(); code != "target_changed" {
			t.Errorf("%s: %s", code, detail)
		}
		d.untouched(dir, 1)
		if there(ran) {
			t.Error("it ran")
		}
	})
}
