package notify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPick(t *testing.T) {
	t.Parallel()
	there := func(string) (string, error) { return "/bin/x", nil }
	missing := func(string) (string, error) { return "", errors.New("none") }
	for _, c := range []struct {
		name    string
		setting Route
		env     map[string]string
		look    func(string) (string, error)
		pass    bool
		want    Route
	}{
		{"a stated route holds", OSC777, nil, there, false, OSC777},
		{"kitty", Auto, map[string]string{"TERM": "xterm-kitty"}, there, false, OSC99},
		{"ghostty", Auto, map[string]string{"TERM_PROGRAM": "ghostty"}, there, false, OSC777},
		{"a VTE terminal", Auto, map[string]string{"VTE_VERSION": "7600"}, there, false, OSC777},
		{"iTerm2", Auto, map[string]string{"TERM_PROGRAM": "iTerm.app"}, there, false, OSC9},
		{"tmux without passthrough forwards the bell alone", Auto, map[string]string{"TMUX": "/s,1,0", "TERM_PROGRAM": "iTerm.app"}, there, false, Bell},
		{"tmux with it is as the terminal around it", Auto, map[string]string{"TMUX": "/s,1,0", "TERM_PROGRAM": "WezTerm"}, there, true, OSC9},
		{"an unknown terminal here: the platform's program", Auto, map[string]string{"TERM": "xterm"}, there, false, Native},
		{"without one, the bell", Auto, map[string]string{"TERM": "xterm"}, missing, false, Bell},
		{"over SSH the platform's program would tell nobody", Auto, map[string]string{"TERM": "xterm", "SSH_CONNECTION": "x"}, there, false, Bell},
	} {
		got := Pick(c.setting, Around{Env: func(name string) string { return c.env[name] }, Look: c.look, Passthrough: c.pass})
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestSequencesHoldNothingThatActs(t *testing.T) {
	t.Parallel()
	n := Note{Title: "sonny: a\x1b]0;x\x07b", Body: strings.Repeat("漢\n", 400) + "\x9b31m;"}
	for _, r := range []Route{OSC9, OSC777} {
		seq := n.Sequence(r)
		inside := strings.TrimSuffix(strings.TrimPrefix(seq, "\x1b]"), "\x1b\\")
		if strings.ContainsFunc(inside, func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f }) {
			t.Errorf("%s holds a control: %q", r, seq)
		}
	}
	if got := utf8.RuneCountInString(n.Tidy().Body); got > maxBody {
		t.Errorf("the body has %d characters", got)
	}
	if seq := n.Sequence(OSC99); strings.Count(seq, "\x1b]99;") != 2 {
		t.Errorf("got %q", seq)
	}
}

func TestCommandGetsTheEvent(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	n := Note{Event: "done", Title: "sonny: demo", Body: "it is done", Bot: "demo.lead"}
	err := n.Run(context.Background(), Command, []string{"sh", "-c", `printf '%s|%s|' "$1" "$2" > "$0"; cat >> "$0"`, out})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want := "sonny: demo|it is done|" + `{"event":"done","title":"sonny: demo","body":"it is done","bot":"demo.lead"}` + "\n"
	if string(text) != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

func TestABurstIsOneNote(t *testing.T) {
	t.Parallel()
	var b Burst
	if !b.Add(Note{Body: "one"}) || b.Add(Note{Body: "two"}) || b.Add(Note{Body: "three"}) {
		t.Error("not the first alone goes at once")
	}
	if n, ok := b.Over(); !ok || n.Body != "three, and 1 more" {
		t.Errorf("%+v, %v", n, ok)
	}
	if !b.Add(Note{Body: "four"}) {
		t.Error("what comes after the burst waits")
	}
	if n, ok := b.Over(); ok {
		t.Errorf("nothing came, yet %+v", n)
	}
}
