package screen_test

import (
	"os"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

// commented is a config.toml with what nobody but the person knows.
const commented = `# mine
model = "scripted/sonny" # the one that is scripted
judge_model = "scripted/judge-allow"
trust_folders = "always"
not_known = 7

[tui]
wheel_rows = 5 # slowly
`

func TestTheSettingsAreShownAndChanged(t *testing.T) {
	t.Parallel()
	h, dir := demo(t, sonnytest.Config(commented))
	file := func() string {
		t.Helper()
		text, err := os.ReadFile(h.Path(".agent", "config.toml"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")

	t.Run("each with its value and where that is from", func(t *testing.T) {
		send(s, "/config")
		wants(t, s, "── settings", "▎ model                      scripted/sonny               config.toml",
			"judge_deadline_ms          30000                        default", "the model of new leads", `takes: a model, "PROVIDER/MODEL"`)
	})

	t.Run("the list is filtered, and a number is refused by its reader and then taken", func(t *testing.T) {
		s.Type("/wheel_rows")
		s.WaitFor("▎ tui.wheel_rows")
		s.Keys("Enter")
		wants(t, s, "── tui.wheel_rows", "› 5", "takes     a whole number from 1 to 100", "from      config.toml", "default   3")
		s.Type("00")
		s.Keys("Enter")
		wants(t, s, `is "500" and must be a whole number from 1 to 100`, "› 500")
		if file() != commented {
			t.Errorf("it is kept:\n%s", file())
		}
		s.Keys("BSpace", "BSpace", "BSpace")
		s.Type("7")
		s.Keys("Enter")
		wants(t, s, "── settings", "tui.wheel_rows is set", "7                        config.toml")
		if want := strings.Replace(commented, "wheel_rows = 5", "wheel_rows = 7", 1); file() != want {
			t.Errorf("the file is\n%s", file())
		}
	})

	t.Run("what is true or false turns over, and Backspace gives the default", func(t *testing.T) {
		s.Keys("Escape")
		s.WaitFor("/ filter")
		s.Keys("Escape")
		s.WaitGone("/ wheel_rows")
		s.Type("/double_esc")
		s.WaitFor("▎ tui.double_esc")
		s.Keys("Enter")
		s.WaitFor("false                    config.toml")
		if !strings.Contains(file(), "double_esc = false") || !strings.Contains(file(), "not_known = 7") {
			t.Errorf("the file is\n%s", file())
		}
		s.Keys("Escape")
		s.WaitFor("/ filter")
		s.Keys("BSpace")
		wants(t, s, "tui.double_esc is at its default", "true                     default")
		if strings.Contains(file(), "double_esc") {
			t.Errorf("the file is\n%s", file())
		}
		s.Keys("Escape")
		s.WaitGone("/ double_esc")
		s.Keys("Escape")
		s.WaitGone("── settings")
	})

	t.Run("one setting by its key; what the line says holds over the file", func(t *testing.T) {
		send(s, "/config tui.theme")
		wants(t, s, "── tui.theme", "value     none", "from      command line", `default   "auto"`, "counts    at once")
		s.Keys("Enter")
		s.WaitFor("› none")
		s.Keys("C-u")
		s.Type("light")
		s.Keys("Enter")
		s.WaitFor("tui.theme is set; here the command line holds over it")
		s.Keys("Escape")
		s.WaitGone("── tui.theme")
	})

	t.Run("words are chosen from a list", func(t *testing.T) {
		send(s, "/config row")
		wants(t, s, "── row", "▎ auto", `takes     "auto", "manual", "look" or "full"`)
		s.Keys("Down", "Enter")
		wants(t, s, "value     manual", "row is set, for bots that are made from now on")
		s.Keys("Escape")
		s.WaitGone("── row")
		if !strings.Contains(file(), `row = "manual"`) {
			t.Errorf("the file is\n%s", file())
		}
	})

	t.Run("no such setting, and what was meant", func(t *testing.T) {
		send(s, "/config tui.theem")
		wants(t, s, "tui.theem is no setting; did you mean tui.theme?", "› /config tui.theem")
	})
}

func TestWhatNotifiesIsShownAndTried(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	h.Write(".agent/config.toml", "model = \"scripted/sonny\"\ntrust_folders = \"always\"\n[notifications]\nwhen = \"never\"\nroute = \"osc9\"\n")
	s := open(h, dir)
	s.WaitFor("1 AGENTS.md")
	send(s, "/notify")
	wants(t, s, "── settings of notifications", "by osc9", "▎ on ", "min_turn", "never", "content")
	if strings.Contains(s.Capture(), "wheel_rows") {
		t.Errorf("other settings are among them:\n%s", s.Capture())
	}
	from := len(s.Raw())
	s.Type("t")
	s.WaitRaw(from, "\x1b]9;sonny: This is how Sonny tells you.")
	s.WaitFor("sent by osc9")

	t.Run("a route that is changed is the one that is tried", func(t *testing.T) {
		s.Keys("Down", "Down", "Down", "Enter")
		s.WaitFor("── notifications.route")
		s.Type("/osc777")
		s.WaitFor("▎ osc777")
		s.Keys("Enter")
		wants(t, s, "by osc777")
		from := len(s.Raw())
		s.Type("t")
		s.WaitRaw(from, "\x1b]777;notify;sonny;This is how Sonny tells you.")
	})
}

func TestTheSettingsInPlainLines(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	s := openPlain(h, dir)
	s.WaitFor("demo.lead")
	send(s, "/config tui.wheel_rows")
	wants(t, s, "list: tui.wheel_rows", "  value, 3", "  from, default", "  takes, a whole number from 1 to 100", "  1 another value")
	send(s, "1")
	wants(t, s, "needs you: tui.wheel_rows takes a whole number", "  now: 3")
	send(s, "seven")
	s.WaitFor("  refused: tui.wheel_rows is \"seven\" and must be")
	send(s, "7")
	wants(t, s, "notice: tui.wheel_rows is set", "  value, 7", "  from, config.toml")
	send(s, "")
	send(s, "/notify")
	wants(t, s, "list: settings of notifications", "  2 when, unfocused, default", "t: send one")
	send(s, "8")
	wants(t, s, "  8 content, true, config.toml")
	onlyLines(t, s)
	labelled(t, s)
}

func TestASettingThatConfinesNothingWantsItsWord(t *testing.T) {
	t.Parallel()
	config := func(t *testing.T, h *sonnytest.Home, want, without string) {
		t.Helper()
		text, err := os.ReadFile(h.Path(".agent", "config.toml"))
		if err != nil || !strings.Contains(string(text), want) || without != "" && strings.Contains(string(text), without) {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	const held = "model = \"scripted/sonny\"\ntrust_folders = \"always\"\nrow = \"manual\"\n"

	t.Run("in the panel nothing is written before it was typed", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, sonnytest.Config(held))
		s := open(h, dir)
		s.WaitFor("1 AGENTS.md")
		send(s, "/config row")
		s.WaitFor("▎ manual")
		s.Keys("Down", "Down", "Enter")
		s.WaitFor("Row full: nothing is confined and nobody is asked. Type full to take it.")
		s.Type("ful")
		s.Keys("Enter")
		s.WaitFor("› ful")
		config(t, h, held, "full")
		s.Keys("Escape")
		s.WaitGone("Type full")
		config(t, h, held, "full")
		s.Keys("Enter")
		s.WaitFor("Type full to take it")
		s.Type("full")
		s.Keys("Enter")
		wants(t, s, "row is set", "value     full")
		config(t, h, `row = "full"`, "")
	})

	t.Run("every line that names one asks for it, and so does its number", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, sonnytest.Config(held))
		s := openPlain(h, dir)
		s.WaitFor("demo.lead")
		for _, line := range []string{"/config row full", `/config row "full"`, `/config "row" full`, "/config sandbox_mode danger-full-access"} {
			asked(s, line)
			config(t, h, held, "full")
			config(t, h, held, "danger")
			from := len(s.Raw())
			send(s, "yes")
			s.WaitRaw(from, "yes is not full; nothing was done")
			send(s, "")
		}
		send(s, "/config sandbox_mode")
		s.WaitFor("  3 danger-full-access")
		asked(s, "3")
		send(s, "full")
		wants(t, s, "notice: sandbox_mode is set", "  value, danger-full-access")
		config(t, h, `sandbox_mode = "danger-full-access"`, "")
		onlyLines(t, s)
		labelled(t, s)
	})

	t.Run("taking out what narrows the row full asks for it, too", func(t *testing.T) {
		t.Parallel()
		const narrowed = "model = \"scripted/sonny\"\ntrust_folders = \"always\"\nrow = \"full\"\nsandbox_mode = \"workspace-write\"\n"
		h, dir := demo(t, sonnytest.Config(narrowed))
		s := openPlain(h, dir)
		s.WaitFor("demo.lead")
		send(s, "/config sandbox_mode")
		s.WaitFor("  4 take it out of config.toml")
		asked(s, "4")
		config(t, h, narrowed, "")
		send(s, "full")
		s.WaitFor("notice: sandbox_mode is at its default")
		config(t, h, `row = "full"`, "sandbox_mode")
	})
}

// asked types a line, and waits until the word is asked for without which nothing is done.
func asked(s *sonnytest.Screen, line string) {
	from := len(s.Raw())
	send(s, line)
	s.WaitRaw(from, "  type full, then Enter. an empty line means no.")
}
