package screen_test

import (
	"os"
	"strings"
	"testing"
)

// A bot that is deleted elsewhere while it is on screen is shown as gone: nothing is done
// with it, and what is written goes along to the next.
func TestABotThatIsDeletedElsewhere(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := h.In(dir).Screen(size, "sonny", "--no-motion", "--theme", "none")
	s.WaitFor("1 AGENTS.md")
	turnOf(s, func() { send(s, "say: what was said") })
	if r := h.In(dir).Sonny("sessions", "rm", "demo.lead", "--yes"); r.Exit != 0 {
		t.Fatal(r)
	}
	s.WaitFor("demo.lead was deleted elsewhere")
	s.WaitFor("✘ gone")
	s.Keys("BTab")
	s.WaitFor("bot_not_found: demo.lead was deleted elsewhere; Enter starts another")
	for _, command := range []string{"/approval look", "/writable /tmp", "/context", "/undo", "/effort high"} {
		send(s, command)
		s.WaitFor("bot_not_found: demo.lead was deleted elsewhere")
		s.WaitFor("› " + command)
		s.Keys("C-u")
		s.WaitGone("› " + command)
	}
	if screen := s.Capture(); !strings.Contains(screen, "what was said") {
		t.Errorf("what was said is gone too:\n%s", screen)
	}
	send(s, "say: to the next one")
	s.WaitFor("Forget it, and start")
	s.Keys("Escape")
	s.WaitGone("Forget it")
	s.WaitFor("› say: to the next one")
	s.Keys("Enter")
	s.WaitFor("Forget it, and start")
	s.Type("y")
	s.WaitFor("No agent works in")
	s.WaitFor("› say: to the next one")
	turnOf(s, func() { s.Keys("Enter") })
	if list := bots(t, h); len(list) != 1 || list[0].Name != "demo.lead" {
		t.Errorf("%+v", list)
	}
	if r := h.In(dir).Sonny("sessions"); strings.Contains(r.Stdout, "gone") {
		t.Error(r.Stdout)
	}
}

// What Sonny keeps is made anew where somebody removed its folder under it.
func TestTheFolderIsRemovedUnderneath(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	turnOf(s, func() { send(s, "say: one") })
	s.Type("first words")
	h.Until("the draft", func() bool { return drafted(h, "first words") == 1 })
	if err := os.RemoveAll(h.Path(".agent", "sonny")); err != nil {
		t.Fatal(err)
	}
	s.Type(", and more")
	h.Until("the draft again", func() bool { return drafted(h, "first words, and more") == 1 })
	s.Kill()
	s = open(h, dir)
	s.WaitFor("› first words, and more")
	s.Keys("C-u")
	if err := os.RemoveAll(h.Path(".agent", "sonny")); err != nil {
		t.Fatal(err)
	}
	send(s, "/new")
	s.WaitFor("Your first message makes another lead")
	turnOf(s, func() { send(s, "say: two") })
	wants(t, s, "demo.lead-2", "✔ done")
}

// A start screen that an invalid config.toml kept from being filled in looks at it again
// at each Enter (sonny.md 20).
func TestAnInvalidConfigIsMended(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	turnOf(s, func() { send(s, "say: one") })
	good, err := os.ReadFile(h.Path(".agent", "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{"a wrong value that confines": "row = \"bogus\"\n", "no TOML": "row = \n"} {
		h.Write(".agent/config.toml", bad)
		send(s, "/new")
		s.WaitFor("config_invalid")
		s.Type("say: " + name)
		s.Keys("Enter")
		wants(t, s, "config_invalid", "› say: "+name)
		h.Write(".agent/config.toml", string(good))
		turnOf(s, func() { s.Keys("Enter") })
	}
	if n := len(bots(t, h)); n != 3 {
		t.Errorf("%d bots", n)
	}
	h.Write(".agent/config.toml", "row = \n")
	send(s, "/new")
	s.WaitFor("config_invalid")
	h.Write(".agent/config.toml", string(good))
	s.Keys("Enter")
	s.WaitFor("Your first message makes another lead")
}

// A branch is named by whoever may write the git folder; its name is drawn as nothing that
// a terminal acts on (sonny.md 8.4).
func TestABranchThatIsNamedToDeceive(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	h.Git(dir, "checkout", "-q", "-b", "br\u202eRTL\U000e0041x")
	for _, how := range []string{"full", "inline", "plain"} {
		s := open(h, dir, "--screen", how)
		s.WaitFor("demo.lead")
		send(s, "say: hello from "+how)
		s.WaitRaw(0, "hello from "+how)
		h.Until("the end of the turn", func() bool { return strings.Contains(h.Sonny("status").Stdout, ": 0 working") })
		if how != "plain" {
			s.WaitFor("RTL")
		}
		if raw := string(s.Raw()); strings.ContainsAny(raw, "\u202e\U000e0041") {
			t.Errorf("%s draws the name as it is", how)
		}
		s.Kill()
	}
}

// A daemon that died too often is started by the person alone, and the screen says how
// (sonny.md 30).
func TestADaemonThatDiesAgainAndAgain(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	turnOf(s, func() { send(s, "say: one") })
	for range 3 {
		pid := h.DaemonPID()
		h.KillDaemon()
		h.Until("another daemon", func() bool { now := h.DaemonPID(); return now != 0 && now != pid })
		s.Until("the connection", func(screen string) bool {
			return !strings.Contains(screen, "disconnected") && strings.Contains(screen, "✔ done  demo.lead")
		})
	}
	h.KillDaemon()
	s.WaitFor("daemon died again and again · Enter starts it")
	send(s, "say: two")
	s.WaitGone("Enter starts it")
	s.WaitFor("› say: two")
	turnOf(s, func() { s.Keys("Enter") })
}
