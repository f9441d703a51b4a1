package screen_test

import (
	"crypto/rand"
	"regexp"
	"strings"
	"testing"

	"agent/protocol"
)

// sinceLine is the line of what happened while a session was on no screen.
var sinceLine = regexp.MustCompile(`since (yesterday )?\d\d:\d\d: ([^\n]*)`)

func TestSinceItWasSeen(t *testing.T) {
	t.Parallel()

	t.Run("SO-125 a task that finished while no screen was open is counted in one line, once", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("row = \"full\"\n"))
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "task: build | sh: until [ -e "+dir+"/release ]; do sleep 0.1; done")
		s.WaitFor("tasks 1 ● 1")
		s.WaitFor("✔ done")
		s.Keys("C-d")
		s.Exit()

		h.Write("demo/release", "")
		settled(h, "demo.build")
		s = open(h, dir)
		s.WaitFor("1 task done")
		found := sinceLine.FindAllStringSubmatch(s.Capture(), -1)
		if len(found) != 1 {
			t.Fatalf("there is no one line of it:\n%s", s.Capture())
		}
		if !strings.Contains(found[0][2], "1 task done") || strings.Contains(found[0][2], "wait") {
			t.Errorf("it says %q", found[0][0])
		}
		s.Keys("C-d")
		s.Exit()

		s = open(h, dir)
		s.WaitFor("start_task")
		turnOf(s, func() { send(s, "say: a turn later") })
		if again := sinceLine.FindString(s.Capture()); again != "" {
			t.Errorf("it is said again: %s", again)
		}
		s.Keys("C-d")
		s.Exit()
	})

	t.Run("turns that others asked for are counted, and what began to wait for the person", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("row = \"manual\"\n"))
		s := idle(h, dir)
		s.Keys("C-d")
		s.Exit()
		d := daemonOf(t, h)
		d.submit("demo.lead", "say: meanwhile")
		d.submit("demo.lead", "esc: echo waits")
		h.Until("a call to wait", func() bool { return len(d.waits()) == 1 })
		for _, c := range []struct{ what, says string }{
			{"opened again", "1 turn, 1 waits for you"}, {"and once more", ""},
		} {
			s = open(h, dir)
			wants(t, s, "asks to leave the sandbox", "meanwhile")
			if c.says != "" {
				s.WaitFor(c.says)
			}
			if found := sinceLine.FindStringSubmatch(s.Capture()); (found == nil) != (c.says == "") || found != nil && found[2] != c.says {
				t.Errorf("%s: %q", c.what, found)
			}
			s.Hangup() // a key might be the question's
		}
	})
}

// submit gives a bot a message from elsewhere, in line.
func (d *daemon) submit(bot, prompt string) {
	d.t.Helper()
	if _, err := d.Submit(d.ctx, &protocol.Submit{Bot: bot, Prompt: prompt, RequestID: rand.Text(), Delivery: protocol.Queue}); err != nil {
		d.t.Fatal(err)
	}
}
