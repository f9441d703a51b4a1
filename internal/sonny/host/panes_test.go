package host_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"agent/internal/sonny/host/panes"
	"agent/internal/sonny/lead"
)

func TestPanes(t *testing.T) {
	t.Parallel()
	read := func(id string) string {
		return calls("read "+id, "run_in_pane", `{"read": {"pane": "`+id+`", "lines": 20}}`)
	}
	d := newDesk(t, scripted(t,
		calls("open it", "run_in_pane", `{"command": "echo pane-ok; pwd; sleep 30", "title": "it #(touch /tmp/never) %H"}`),
		calls("in the odd folder", "run_in_pane", `{"command": "pwd; sleep 30", "cwd": "#(touch ran) %H", "where": "tab", "keep": false}`),
		read("%1"), read("%2"), read("%0"), calls("close %1", "run_in_pane", `{"close": "%1"}`),
		calls("no folder", "run_in_pane", `{"command": "true", "cwd": "/none"}`),
		calls("two things", "run_in_pane", `{"command": "true", "close": "%1"}`),
	))
	dir := d.Repo("demo", map[string]string{"#(touch ran) %H/f": ""})
	bot := d.lead(dir, lead.Full)
	ready, err := d.c.Ready(d.ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("SO-97 without an attached screen there is no pane host", func(t *testing.T) {
		if code, _ := d.in(t).say("demo.lead", "open it").failure(); code != "no_pane_host" {
			t.Error(code)
		}
	})
	m := d.In(dir).Tmux(80, 24, "sh", "-c", "sleep 1000")
	server, err := strconv.Atoi(m.Format("#{pid}"))
	if err != nil {
		t.Fatal(err)
	}
	getenv := func(name string) string {
		return map[string]string{"TMUX": m.Format("#{socket_path}") + "," + strconv.Itoa(server) + ",0", "TMUX_PANE": m.Format("#{pane_id}")}[name]
	}
	record := panes.Here(getenv, ready.Store.Identity, bot.ID)
	if err := panes.Attach(d.sonny(), record); err != nil || record.Host != "tmux" {
		t.Fatalf("%+v, %v", record, err)
	}
	t.Run("SO-97 a pane opens beside the screen, which keeps the focus, and can be read and closed", func(t *testing.T) {
		d := d.in(t)
		before := m.Format("#{pane_id}")
		var opened struct{ Pane, Host string }
		d.say("demo.lead", "open it").answers(&opened)
		if opened.Pane != "%1" || opened.Host != "tmux" {
			t.Fatalf("%+v", opened)
		}
		if now := m.Format("#{pane_id}"); now != before {
			t.Errorf("the focus went from %s to %s", before, now)
		}
		var got struct {
			Text  string
			Ended bool
		}
		d.Until("what it prints", func() bool {
			text := d.say("demo.lead", "read %1").says()
			return json.Unmarshal([]byte(text), &got) == nil && strings.Contains(got.Text, "pane-ok")
		})
		if !strings.Contains(got.Text, dir) || got.Ended {
			t.Errorf("%+v", got)
		}
		if code, _ := d.say("demo.lead", "read %0").failure(); code != "invalid_arguments" {
			t.Errorf("the person's own pane: %s", code)
		}
		d.say("demo.lead", "close %1").says()
		if code, _ := d.say("demo.lead", "read %1").failure(); code != "invalid_arguments" {
			t.Errorf("a closed pane: %s", code)
		}
	})
	t.Run("a folder's name is no format of tmux's", func(t *testing.T) {
		d := d.in(t)
		var opened struct{ Pane string }
		d.say("demo.lead", "in the odd folder").answers(&opened)
		var got struct{ Text string }
		d.Until("what it prints", func() bool {
			text := d.say("demo.lead", "read %2").says()
			return json.Unmarshal([]byte(text), &got) == nil && strings.Contains(strings.ReplaceAll(got.Text, "\n", ""), "#(touch ran) %H")
		})
		if there("/tmp/never") || there(dir+"/ran") || there(d.Path("ran")) {
			t.Error("tmux ran what was in a name")
		}
	})
	t.Run("what cannot be is refused before anybody is asked", func(t *testing.T) {
		for _, prompt := range []string{"no folder", "two things"} {
			if code, detail := d.in(t).say("demo.lead", prompt).failure(); code != "invalid_arguments" {
				t.Errorf("%s: %s %s", prompt, code, detail)
			}
		}
	})
	t.Run("a record whose screen is gone counts for nothing", func(t *testing.T) {
		panes.Detach(d.sonny())
		gone := record
		gone.PID = 1 << 22 // beyond any
		if err := panes.Attach(d.sonny(), gone); err != nil {
			t.Fatal(err)
		}
		if code, _ := d.in(t).say("demo.lead", "open it").failure(); code != "no_pane_host" {
			t.Error(code)
		}
		if left, _ := os.ReadDir(d.sonny() + "/attached"); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}
