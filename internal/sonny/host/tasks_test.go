package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// refused is the code with which a command of sonny failed.
func refused(r sonnytest.Ran) string {
	var e struct{ Error string }
	if json.Unmarshal([]byte(r.Stderr), &e) == nil {
		return e.Error
	}
	code, _, _ := strings.Cut(strings.TrimPrefix(r.Stderr, "sonny: "), ":")
	return code
}

func TestTasksVerb(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	dir := d.Repo("demo", map[string]string{"f.txt": "one\n", "g.txt": "g\n"})
	d.lead(dir, lead.Full)
	in := d.In(dir)
	ok := func(t *testing.T, args ...string) string {
		t.Helper()
		r := in.Sonny(append([]string{"tasks"}, args...)...)
		if r.Exit != 0 {
			t.Fatalf("sonny tasks %v: %d: %s", args, r.Exit, r.Stderr)
		}
		return r.Stdout
	}
	tree := func(name string) string { return d.Path(".agent", "worktrees", "demo", name) }
	// done starts a task and waits until it rests.
	done := func(t *testing.T, name, brief string) {
		t.Helper()
		var got lead.TaskStarted
		if err := json.Unmarshal([]byte(ok(t, "start", name, brief, "--json")), &got); err != nil {
			t.Fatal(err)
		}
		n := &turn{d.in(t), protocol.Submitted{Turn: got.Turn}, got.Bot}
		n.says()
	}
	commit := func(name, file, text string) {
		d.Write(filepath.Join(".agent", "worktrees", "demo", name, file), text)
		d.Git(tree(name), "add", "--all")
		d.Git(tree(name), "commit", "--quiet", "--message", name+" changes "+file)
	}
	t.Run("a task that the person starts is theirs, and is listed", func(t *testing.T) {
		done(t, "build", "say: done")
		for turn, err := range d.c.Turns(d.ctx, "demo.build", 0) {
			if err != nil || turn.From != nil || turn.Origin != "" {
				t.Errorf("%+v, %v", turn, err)
			}
		}
		commit("build", "f.txt", "two\n")
		var got struct {
			Lead  string
			Tasks []struct {
				Bot, Branch, State string
				Unmerged           int
				Uncommitted        []string
			}
		}
		if err := json.Unmarshal([]byte(ok(t, "--json")), &got); err != nil || got.Lead != "demo.lead" || len(got.Tasks) != 1 ||
			got.Tasks[0].Bot != "demo.build" || got.Tasks[0].Branch != "agent/demo.build" || got.Tasks[0].Unmerged != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if list := ok(t); !strings.Contains(list, "demo.build  completed  1") {
			t.Error(list)
		}
		if list := ok(t, "demo.lead"); !strings.Contains(list, "demo.build") {
			t.Error(list)
		}
	})
	t.Run("its diff has what is committed and what is not", func(t *testing.T) {
		d.Write(".agent/worktrees/demo/build/g.txt", "changed\n")
		if diff := ok(t, "diff", "build"); !strings.Contains(diff, "+two") || !strings.Contains(diff, "+changed") {
			t.Error(diff)
		}
	})
	t.Run("a merge names what is uncommitted, refuses over the person's changes, and merges", func(t *testing.T) {
		if r := in.Sonny("tasks", "merge", "build"); refused(r) != "merge_refused" || !strings.Contains(r.Stderr, "g.txt") {
			t.Error(r.Stderr)
		}
		d.Write("demo/f.txt", "mine\n")
		if r := in.Sonny("tasks", "merge", "build", "--without-uncommitted"); refused(r) != "merge_refused" || !strings.Contains(r.Stderr, "f.txt") {
			t.Error(r.Stderr)
		}
		d.Git(dir, "checkout", "--quiet", "f.txt")
		ok(t, "merge", "build", "--commit")
		if log := d.Git(dir, "log", "--format=%s"); !strings.HasPrefix(log, "Merge ") || !strings.Contains(log, "build changes f.txt") {
			t.Error(log)
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "g.txt")); string(text) != "changed\n" {
			t.Errorf("g.txt: %s", text)
		}
		if said := ok(t, "merge", "build"); !strings.Contains(said, "nothing to merge") {
			t.Error(said)
		}
	})
	t.Run("SO-135 a task removed with its branch leaves the config as it was", func(t *testing.T) {
		before, err := os.Stat(filepath.Join(dir, ".git", "config"))
		if err != nil {
			t.Fatal(err)
		}
		done(t, "gone", "say: done")
		ok(t, "rm", "gone", "--branch")
		after, err := os.Stat(filepath.Join(dir, ".git", "config"))
		if err != nil || !os.SameFile(before, after) {
			t.Error("the config was replaced")
		}
		if there(tree("gone")) || strings.Contains(d.Git(dir, "branch"), "demo.gone") || strings.Contains(ok(t), "demo.gone") {
			t.Error("something is left")
		}
	})
	t.Run("a conflict is left as git leaves it, with the files named", func(t *testing.T) {
		done(t, "clash", "say: done")
		commit("clash", "f.txt", "theirs\n")
		d.Write("demo/f.txt", "ours\n")
		d.Git(dir, "commit", "--quiet", "--all", "--message", "ours")
		if r := in.Sonny("tasks", "merge", "clash"); refused(r) != "merge_conflict" || !strings.Contains(r.Stderr, "f.txt") {
			t.Error(r.Stderr)
		}
		d.Git(dir, "merge", "--abort")
	})
	t.Run("squash, and rebase", func(t *testing.T) {
		for name, want := range map[string]string{"squash": "Work of demo.squash", "rebase": "rebase changes rebase.txt"} {
			done(t, name, "say: done")
			commit(name, name+".txt", "x\n")
			ok(t, "merge", name, "--strategy", name)
			if log := d.Git(dir, "log", "--format=%s", "-1"); log != want || !there(filepath.Join(dir, name+".txt")) {
				t.Errorf("%s: %s", name, log)
			}
		}
	})
	t.Run("work that would be lost is named, and kept until the person says so", func(t *testing.T) {
		r := in.Sonny("tasks", "rm", "clash", "--branch")
		if refused(r) != "work_lost" || !strings.Contains(r.Stderr, "1 unmerged") || !there(tree("clash")) {
			t.Error(r.Stderr)
		}
		ok(t, "rm", "clash", "--worktree")
		if there(tree("clash")) || !strings.Contains(d.Git(dir, "branch"), "demo.clash") {
			t.Error("the worktree alone was to go")
		}
	})
	t.Run("a task that works is stopped before it is removed", func(t *testing.T) {
		if r := in.Sonny("tasks", "start", "slow", "slow: 20"); r.Exit != 0 {
			t.Fatal(r.Stderr)
		}
		if r := in.Sonny("tasks", "rm", "slow"); refused(r) != "bot_busy" {
			t.Error(r.Stderr)
		}
		ok(t, "stop", "slow")
		d.Until("it rests", func() bool { b, err := d.c.Inspect(d.ctx, "demo.slow"); return err == nil && b.RunningTurn == nil })
		if said := ok(t, "rm", "slow"); !strings.Contains(said, tree("slow")) {
			t.Error(said)
		}
	})
	t.Run("a setup runs only when the person says so", func(t *testing.T) {
		d.Write("demo/.agents/setup", "echo from the setup; touch made\n")
		if r := in.Sonny("tasks", "start", "set", "say: done"); refused(r) != "approval_denied" || there(tree("set")) {
			t.Error(r.Stderr)
		}
		r := in.Sonny("tasks", "start", "set", "say: done", "--yes")
		if r.Exit != 0 || !strings.Contains(r.Stderr, "from the setup") || !there(filepath.Join(tree("set"), "made")) {
			t.Errorf("%d: %s", r.Exit, r.Stderr)
		}
	})
	t.Run("what is refused", func(t *testing.T) {
		for _, row := range []struct {
			code string
			args []string
		}{
			{"bot_not_found", []string{"diff", "nobody"}},
			{"bot_not_found", []string{"nobody.lead"}},
			{"invalid_name", []string{"start", "a..b", "say: x"}},
			{"usage", []string{"merge", "set", "--strategy", "octopus"}},
			{"usage", []string{"start", "onlyname"}},
		} {
			if r := in.Sonny(append([]string{"tasks"}, row.args...)...); refused(r) != row.code || r.Exit == 0 {
				t.Errorf("%v: %d %s", row.args, r.Exit, r.Stderr)
			}
		}
		if r := in.With("AGENT_BOT=demo.lead").Sonny("tasks", "merge", "set"); refused(r) != "inside_a_bot" {
			t.Error(r.Stderr)
		}
	})
}
