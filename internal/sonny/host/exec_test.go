package host_test

import (
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

func TestExecStartsTasks(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, d *desk, dir, setup, want string) {
		t.Helper()
		d.Write(strings.TrimPrefix(dir, d.Dir+"/")+"/.agents/setup", setup)
		r := d.In(dir).Sonny("exec", "--row", "full", "task: build | say: done")
		if r.Exit != 0 || !strings.Contains(r.Stdout, `"error":"setup_failed"`) || !strings.Contains(r.Stdout, want) {
			t.Errorf("%d: %s\n%s\n%s", r.Exit, r.Stdout, r.Stderr, d.log("toolhost"))
		}
		d.in(t).untouched(dir, 1)
	}
	t.Run("SO-66 sonny exec: a setup that fails leaves no folder, no branch and no bot", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		run(t, d.in(t), d.Repo("demo", nil), "exit 3\n", "exit status 3")
	})
	t.Run("SO-67 sonny exec: a setup that takes too long is ended with its child", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n[tasks]\nsetup_timeout = \"2s\"\n"))
		run(t, d.in(t), d.Repo("demo", nil), "sleep 1000 & echo $! > \"$AGENT_SOURCE/../child\"; wait\n", "2s")
		d.gone(d.pid("child"))
	})
	t.Run("a question of a headless run finds no person", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		r := d.In(d.Repo("demo", nil)).Sonny("exec", "ask: Which? | a | b")
		if r.Exit != 0 || !strings.Contains(r.Stdout, `"error":"no_person"`) {
			t.Errorf("%d: %s\n%s", r.Exit, r.Stdout, r.Stderr)
		}
	})
}
