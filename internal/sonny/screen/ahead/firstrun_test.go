package ahead

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"agent/internal/sonny/doctor"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/setup"
	"agent/protocol"
)

// still is a terminal on which nothing happens.
type still struct{}

func (*still) Events() <-chan term.Event { return nil }
func (*still) Draw(*term.Frame)          {}
func (*still) Write(string)              {}
func (*still) Size() (int, int, error)   { return 80, 24, nil }
func (*still) Suspend()                  {}
func (*still) Resume() error             { return nil }
func (*still) Copy(string) bool          { return false }

// first is a first-run screen whose provider answers as it is told.
type first struct {
	*FirstRun
	t     *testing.T
	kept  []string
	asked int
}

func newFirst(t *testing.T, models []string, answer error) *first {
	f := &first{t: t}
	f.FirstRun = &FirstRun{
		Term: &still{}, Keys: keys.Default(), w: 80, h: 24, results: make(chan func(), 1),
		Try: func(context.Context, setup.Provider, string) ([]string, error) { f.asked++; return models, answer },
		Keep: func(p setup.Provider, key string, models []string) error {
			f.kept = append(f.kept, p.Name+" "+key)
			return nil
		},
	}
	return f
}

// press presses keys, and waits for what a provider was asked.
func (f *first) press(names ...string) (done bool) {
	f.t.Helper()
	for _, name := range names {
		k := term.Key{Name: name}
		if len(name) == 1 {
			k.Text = name
		}
		var err error
		if done, err = f.FirstRun.press(context.Background(), k); err != nil {
			f.t.Fatal(err)
		}
		if f.step == trying {
			(<-f.results)()
		}
	}
	return done
}

func (f *first) paste(key string) { f.field.Editor().Type(key) }

func (f *first) screen() string {
	frame := term.NewFrame(80, 24)
	f.view(frame)
	var rows []string
	for y := range 24 {
		rows = append(rows, frame.Row(y))
	}
	return strings.Join(rows, "\n")
}

func TestAKeyAtTheFirstRun(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-api03-secret"

	t.Run("a key that works is kept, and Enter goes on", func(t *testing.T) {
		f := newFirst(t, []string{"anthropic/a", "anthropic/b"}, nil)
		f.paste(key)
		if strings.Contains(f.screen(), "secret") || !strings.Contains(f.screen(), "•••") {
			t.Errorf("the key is on screen:\n%s", f.screen())
		}
		if f.press("enter") {
			t.Error("it went on by itself")
		}
		if len(f.kept) != 1 || f.kept[0] != "anthropic "+key || !strings.Contains(f.screen(), "✔ anthropic  2 models") {
			t.Errorf("kept %q\n%s", f.kept, f.screen())
		}
		if !f.press("enter") {
			t.Error("Enter did not go on")
		}
	})

	t.Run("a refused one is kept on the person's word alone", func(t *testing.T) {
		f := newFirst(t, nil, setup.Refused{Err: protocol.Fail("provider_http_401", "invalid x-api-key")})
		f.paste(key)
		f.press("enter")
		if len(f.kept) != 0 || !strings.Contains(f.screen(), "invalid x-api-key") || strings.Contains(f.screen(), "secret") {
			t.Errorf("kept %q\n%s", f.kept, f.screen())
		}
		f.press("esc")
		if f.key != "" || len(f.kept) != 0 {
			t.Errorf("going back kept something: %q", f.kept)
		}
		f.paste(key)
		f.press("enter", "k")
		if len(f.kept) != 1 {
			t.Errorf("kept %q", f.kept)
		}
	})

	t.Run("a provider that cannot be reached keeps it, with a warning", func(t *testing.T) {
		f := newFirst(t, nil, errors.New("no route to host"))
		f.paste(key)
		f.press("enter")
		if len(f.kept) != 1 || !strings.Contains(f.screen(), "no route to host") {
			t.Errorf("kept %q\n%s", f.kept, f.screen())
		}
	})

	t.Run("SO-122 one of no known prefix is asked about", func(t *testing.T) {
		f := newFirst(t, []string{"openai/a"}, nil)
		f.paste("xyz")
		f.press("enter")
		if f.asked != 0 || !strings.Contains(f.screen(), "Whose key is it?") {
			t.Fatalf("asked %d\n%s", f.asked, f.screen())
		}
		f.press("2")
		if len(f.kept) != 1 || f.kept[0] != "openai xyz" {
			t.Errorf("kept %q", f.kept)
		}
	})
}

// rowsOf is a first run whose provider lists some models, with every row.
func rowsOf(t *testing.T, sandbox ...doctor.Check) (*first, *[]string) {
	f := newFirst(t, []string{"anthropic/claude-haiku-5", "anthropic/claude-sonnet-5"}, nil)
	did := &[]string{}
	note := func(words ...string) error { *did = append(*did, strings.Join(words, " ")); return nil }
	f.Models, f.Efforts = []string{"openai/gpt-5", "openai/gpt-5-mini"}, []string{"default", "low", "high"}
	f.Choice = Choice{Always: true}
	f.Suggest = func(of []string) string { // the last of the first provider
		last := ""
		for _, m := range of {
			if strings.Split(m, "/")[0] == strings.Split(of[0], "/")[0] {
				last = m
			}
		}
		return last
	}
	f.KeepModel = func(c Choice) error { return note("model", c.Model, c.Effort, fmt.Sprint(c.Always)) }
	f.Rows = []Fact{{"auto", "auto: a judge decides"}, {"manual", "manual: you decide"}}
	f.Sandbox = func(context.Context) []doctor.Check { return sandbox }
	f.Mend = func(c doctor.Check) string { return "sudo mend " + c.ID }
	row := "auto"
	extras := Extras{Memory: true, Notify: true, Route: "bell", Tmux: "set -g allow-passthrough on"}
	f.Set = func(key, value string) error {
		if key == "row" {
			row = value
		}
		if key == "memory.enabled" {
			extras.Memory = value == "true"
		}
		return note("set", key, value)
	}
	f.Held = func() (string, Extras) { return row, extras }
	f.TestNotify = func() (string, func(context.Context) error, error) { return "sent by bell", nil, note("test") }
	f.Folder = "~/demo · git"
	f.begin(context.Background())
	(<-f.results)()
	t.Cleanup(f.work.Wait)
	return f, did
}

func (f *first) shows(texts ...string) {
	f.t.Helper()
	for _, text := range texts {
		if !strings.Contains(f.screen(), text) {
			f.t.Errorf("no %q on\n%s", text, f.screen())
		}
	}
}

func TestTheModelAtTheFirstRun(t *testing.T) {
	t.Parallel()

	t.Run("Enter starts with the suggestion, which holds for new folders", func(t *testing.T) {
		f, did := rowsOf(t)
		f.paste("sk-ant-api03-secret")
		f.press("enter")
		f.shows("✔ anthropic  2 models", "Enter starts with anthropic/claude-sonnet-5", "model     anthropic/claude-sonnet-5  suggested")
		if !f.press("enter") || strings.Join(*did, "; ") != "model anthropic/claude-sonnet-5  true" {
			t.Errorf("did %q", *did)
		}
	})

	t.Run("the list has the suggestion on top, then each provider's, and is filtered by typing", func(t *testing.T) {
		f, did := rowsOf(t)
		f.paste("sk-ant-api03-secret")
		f.press("enter", "down", "enter")
		screen := f.screen()
		at := -1
		for _, text := range []string{"▎ anthropic/claude-sonnet-5  suggested", "  openai\n", "openai/gpt-5-mini", "  anthropic\n", "anthropic/claude-haiku-5", "effort default (Tab)   [x] use for new folders (Ctrl+T)"} {
			next := strings.Index(strings.ReplaceAll(regexp.MustCompile(` +\n`).ReplaceAllString(screen, "\n"), "\r", ""), text)
			if next < at {
				t.Errorf("%q stands wrong in\n%s", text, screen)
			}
			at = next
		}
		f.press("m", "i", "n", "i", "tab", "tab", "ctrl+t")
		f.shows("effort low (Tab)", "[ ] use for new folders")
		if strings.Contains(f.screen(), "haiku") {
			t.Errorf("the filter lets others through\n%s", f.screen())
		}
		f.press("enter")
		f.shows("openai/gpt-5-mini · effort low", "✔ anthropic  2 models")
		if !f.press("up", "enter") || strings.Join(*did, "; ") != "model openai/gpt-5-mini low false" {
			t.Errorf("did %q", *did)
		}
	})

	t.Run("Esc leaves with what is done", func(t *testing.T) {
		f, did := rowsOf(t)
		f.paste("sk-ant-api03-secret")
		f.press("enter", "esc")
		if !f.connected || len(f.kept) != 1 || len(*did) != 0 {
			t.Errorf("connected %v, kept %q, did %q", f.connected, f.kept, *did)
		}
	})
}

func TestTheSandboxAtTheFirstRun(t *testing.T) {
	t.Parallel()
	f, _ := rowsOf(t,
		doctor.Check{ID: "sandbox.program", Status: doctor.OK, Summary: "bubblewrap is there"},
		doctor.Check{ID: "sandbox.run", Status: doctor.Fail, Summary: "user namespaces are off", Remedy: "load a profile"})
	copied := ""
	f.Term = copying{&still{}, &copied}
	f.shows("7 sandbox   ✘ user namespaces are off", "Paste a key") // which blocks nothing
	f.press("7")
	f.shows("▎ fail  sandbox.run", "bubblewrap is there", "load a profile", "sudo mend sandbox.run")
	f.press("up", "y")
	if copied != "" {
		t.Errorf("what holds has nothing to be copied: %q", copied)
	}
	f.press("down")
	f.shows("load a profile", "sudo mend sandbox.run")
	f.press("y")
	f.shows("copied: sudo mend sandbox.run")
	if copied != "sudo mend sandbox.run" {
		t.Errorf("copied %q", copied)
	}
	f.Sandbox = func(context.Context) []doctor.Check {
		return []doctor.Check{{ID: "sandbox.run", Status: doctor.OK, Summary: "confined"}}
	}
	f.press("r")
	f.shows("checking: a sandbox is made and tried")
	(<-f.results)()
	f.press("esc")
	f.shows("✔ commands are confined")
}

// copying is a terminal that takes copies.
type copying struct {
	*still
	into *string
}

func (c copying) Copy(s string) bool { *c.into = s; return true }

func TestWhatIsSetAtTheFirstRun(t *testing.T) {
	t.Parallel()
	f, did := rowsOf(t)
	f.shows("5 model     none yet", "6 asks      auto: a judge decides", "folder    ~/demo · git", "8 extras    memory on · notifications on · tmux keeps some from the terminal")
	f.press("6", "2")
	f.shows("asks      manual: you decide")
	f.press("8")
	f.shows("by bell", "set -g allow-passthrough on")
	f.press("1", "3")
	f.shows("memory         off", "sent by bell")
	f.press("4")
	f.shows("this terminal takes no copy; select it: set -g allow-passthrough on")
	f.press("esc")
	f.shows("memory off · notifications on")
	if got := strings.Join(*did, "; "); got != "set row manual; set memory.enabled false; test" {
		t.Errorf("did %q", got)
	}
	if f.press("down", "down", "down", "down", "down", "enter", "esc"); f.page != nil {
		t.Error("a page is open")
	}
}
