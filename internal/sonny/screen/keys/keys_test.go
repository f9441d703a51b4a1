package keys

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/protocol"

	"github.com/pelletier/go-toml/v2"
)

func TestChordsAreSpelledOneWay(t *testing.T) {
	for written, want := range map[string]string{
		"ctrl+k": "ctrl+k", "Ctrl+K": "ctrl+k", "CTRL+X d": "ctrl+x d", "alt+enter": "alt+enter",
		"shift+tab": "shift+tab", "shift+alt+up": "alt+shift+up", "alt+A": "alt+shift+a", "alt+shift+a": "alt+shift+a",
		"shift+a": "A", "K": "K", "?": "?", "escape": "esc", "esc esc": "esc esc", "pageup": "pgup", "alt++": "alt++",
		"ctrl+x ?": "ctrl+x ?", "f12": "f12", "ctrl+_": "ctrl+_", " ": "space",
	} {
		if got, err := Parse(written); err != nil || got != want {
			t.Errorf("%q is %q, %v, not %q", written, got, err, want)
		}
	}
	for _, wrong := range []string{"", "ctrl+", "hyperspace", "cmd+k", "ctrl+x", "ctrl+k d", "a b c", "f36", "f0", "ctrl+x d e", "esc x"} {
		if got, err := Parse(wrong); err == nil {
			t.Errorf("%q was taken as %q", wrong, got)
		}
	}
}

func TestDefaultsHaveNoConflict(t *testing.T) {
	if c := Default().conflicts(); len(c) > 0 {
		t.Fatal(c)
	}
	for _, r := range table {
		for _, c := range r.keys {
			if got, err := Parse(c); err != nil || got != c {
				t.Errorf("%s: the default %q is spelled %q, %v", r.action, c, got, err)
			}
		}
	}
}

func TestNoDefaultBeginsAControlString(t *testing.T) {
	for _, b := range Default().List() {
		for _, c := range b.Chords {
			for _, bad := range []string{"alt+_", "alt+[", "alt+]", "alt+^", "alt+\\", "alt+shift+o", "alt+shift+p", "alt+shift+x"} {
				if c == bad {
					t.Errorf("%s is bound to %s by default", b.Action, c)
				}
			}
		}
	}
}

func TestEveryActionHasAKeyOfAVT100(t *testing.T) {
	for _, b := range Default().List() {
		if (Sender{}).Hint(b.Chords) == "" {
			t.Errorf("%s: a terminal without the protocol can send none of %v", b.Action, b.Chords)
		}
	}
}

func TestFindByState(t *testing.T) {
	m := Default()
	typing, atRest := State{}, State{Empty: true}
	for _, row := range []struct {
		chord string
		s     State
		want  []string
	}{
		{"ctrl+k", atRest, []string{"switch"}},
		{"ctrl+k", typing, []string{"kill_to_end"}},
		{"ctrl+t", atRest, []string{"tasks"}},
		{"ctrl+t", typing, []string{"transpose"}},
		{"ctrl+d", atRest, []string{"detach"}},
		{"ctrl+d", typing, []string{"delete_forward"}},
		{"ctrl+r", atRest, []string{"history_search"}},
		{"ctrl+r", State{Empty: true, Start: true}, []string{"sessions"}},
		{"ctrl+r", State{Start: true}, []string{"history_search"}},
		{"ctrl+e", State{Start: true}, []string{"start_sheet"}},
		{"ctrl+e", typing, []string{"line_end"}},
		{"ctrl+x l", typing, []string{"rail"}},
		{"?", typing, nil},
		{"?", atRest, []string{"help"}},
		{"esc esc", typing, nil},
		{"alt+up", atRest, []string{"queue_edit", "message_previous"}},
		{"alt+7", atRest, []string{"queue_edit"}},
		{"esc", typing, []string{"close_or_interrupt"}},
		{"f5", typing, nil},
	} {
		if got := m.Find(row.chord, row.s, Composer, Transcript, Global); !slices.Equal(got, row.want) {
			t.Errorf("%s at %+v is %v, not %v", row.chord, row.s, got, row.want)
		}
	}
	if got := m.Find("d", State{Panel: "queue"}, Panel); !slices.Equal(got, []string{"queued_drop"}) {
		t.Errorf("d in the queue is %v", got)
	}
}

func codes(faults []*protocol.Error) (out []string) {
	for _, f := range faults {
		out = append(out, string(f.Code))
	}
	return out
}

func TestOwnBindings(t *testing.T) {
	m, faults := New(map[string][]string{"switch": {"f5", "ctrl+x w"}, "stash": {}, "suspend": {}, "close_or_interrupt": {"f9"}})
	if len(faults) != 1 || faults[0].Detail != `tui.keys: "suspend" cannot be unbound; it may have other keys beside its own` {
		t.Fatal(faults)
	}
	for _, s := range []State{{}, {Empty: true}} {
		if got := m.Find("f5", s, Composer); !slices.Equal(got, []string{"switch"}) {
			t.Errorf("at %+v f5 is %v", s, got)
		}
	}
	if got := m.Find("ctrl+k", State{Empty: true}, Composer); got != nil && got[0] == "switch" {
		t.Error("the default stayed")
	}
	if got := m.Chords("stash"); got != nil {
		t.Errorf("an unbound action has %v", got)
	}
	if got := m.Chords("suspend"); !slices.Equal(got, []string{"ctrl+z"}) {
		t.Errorf("what cannot be unbound has %v", got)
	}
	if got := m.Chords("close_or_interrupt"); !slices.Equal(got, []string{"esc", "f9"}) {
		t.Errorf("Esc with another key has %v", got)
	}
}

func TestConflicts(t *testing.T) {
	for _, row := range []struct {
		name string
		own  map[string][]string
		both [2]string
	}{
		{"SO-99 ctrl+t of two actions", map[string][]string{"stash": {"ctrl+t"}, "tasks": {"ctrl+t"}}, [2]string{"tasks", "stash"}},
		{"SO-99 ctrl+t of two actions for an empty composer", map[string][]string{"search": {"ctrl+t"}, "tasks": {"ctrl+t"}}, [2]string{"tasks", "search"}},
		{"a chord of another action's default", map[string][]string{"editor": {"ctrl+s"}}, [2]string{"editor", "stash"}},
		{"a key that cannot be unbound", map[string][]string{"stash": {"ctrl+z"}}, [2]string{"suspend", "stash"}},
		{"a choice of an approval", map[string][]string{"approve_next": {"3"}}, [2]string{"approve_third", "approve_next"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, faults := New(row.own)
			if !slices.Contains(codes(faults), "keymap_conflict") {
				t.Fatalf("the faults are %v", faults)
			}
			for _, action := range row.both {
				if !strings.Contains(faults[0].Detail, action) {
					t.Errorf("%q does not name %s", faults[0].Detail, action)
				}
			}
			if got := m.Chords("stash"); !slices.Equal(got, []string{"ctrl+s"}) {
				t.Errorf("the defaults do not hold: stash has %v", got)
			}
		})
	}
}

func TestWhatIsNotKnownIsLeftOut(t *testing.T) {
	m, faults := New(map[string][]string{"dance": {"ctrl+9"}, "stash": {"cmd+s"}, "editor": {"f4"}})
	if !slices.Equal(codes(faults), []string{"config_invalid", "config_invalid"}) {
		t.Fatal(faults)
	}
	if !slices.Equal(m.Chords("stash"), []string{"ctrl+s"}) || !slices.Equal(m.Chords("editor"), []string{"f4"}) {
		t.Fatalf("stash has %v, editor %v", m.Chords("stash"), m.Chords("editor"))
	}
}

func TestHints(t *testing.T) {
	m := Default()
	full, bare := Sender{Protocol: true}, Sender{}
	for _, row := range []struct {
		action string
		s      Sender
		want   string
	}{
		{"newline", full, "Shift+Enter"},
		{"newline", bare, "Alt+Enter"},
		{"fold_thoughts", full, "Alt+T"},
		{"fold_thoughts", bare, "Ctrl+X h"},
		{"fold_thoughts", Sender{Protocol: true, Mac: true}, "Ctrl+X h"},
		{"rail", full, "Ctrl+B"},
		{"rail", Sender{Tmux: true}, "Ctrl+X l"},
		{"queue_edit", full, "Alt+↑"},
		{"queue_edit", bare, "Ctrl+X q"},
		{"undo", bare, "Ctrl+_"},
		{"help", bare, "?"},
	} {
		if got := m.Hint(row.action, row.s); got != row.want {
			t.Errorf("%s for %+v is %q, not %q", row.action, row.s, got, row.want)
		}
	}
}

func TestLeader(t *testing.T) {
	var l Leader
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(d time.Duration) time.Time { return now.Add(d) }
	if got := l.Press("ctrl+x", now); got != "" || !l.Waiting(after(1499*time.Millisecond)) || l.Waiting(after(LeaderWait)) {
		t.Fatalf("the leader gives %q and does not wait 1,500 ms", got)
	}
	if l.Shown(after(299*time.Millisecond)) || !l.Shown(after(LeaderShow)) {
		t.Fatal("the choices do not show at 300 ms")
	}
	if at, ok := l.Next(now); !ok || at != after(LeaderShow) {
		t.Fatal("the next change is not the showing")
	}
	if at, ok := l.Next(after(LeaderShow)); !ok || at != after(LeaderWait) {
		t.Fatal("the next change is not the end")
	}
	if got := l.Press("d", after(time.Second)); got != "ctrl+x d" || l.Waiting(after(time.Second)) {
		t.Fatalf("the second key gives %q", got)
	}
	l.Press("ctrl+x", now)
	if got := l.Press("esc", now); got != "" || l.Waiting(now) {
		t.Fatalf("Esc gives %q", got)
	}
	l.Press("ctrl+x", now)
	if got := l.Press("d", after(2*time.Second)); got != "d" {
		t.Fatalf("a key after the wait gives %q", got)
	}
}

func TestChoices(t *testing.T) {
	var got strings.Builder
	for _, c := range Default().Choices(State{}, Composer, Global) {
		got.WriteString(c.Key)
	}
	if want := "?abcdehklmnoqrstuvxyz"; got.String() != want {
		t.Fatalf("after the leader come %q, not %q", got.String(), want)
	}
}

func TestPrintedMapReadsBack(t *testing.T) {
	m, faults := New(map[string][]string{"stash": {}, "switch": {"ctrl+x w", "f5"}, "rail": {"ctrl+x l"}})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var b bytes.Buffer
	if err := m.WriteTOML(&b); err != nil {
		t.Fatal(err)
	}
	var read struct {
		TUI struct{ Keys map[string][]string }
	}
	if err := toml.Unmarshal(b.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	again, faults := New(read.TUI.Keys)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for i, want := range m.List() {
		if got := again.List()[i]; got.Action != want.Action || !slices.Equal(got.Chords, want.Chords) {
			t.Errorf("%s read back has %v, not %v", got.Action, got.Chords, want.Chords)
		}
	}
	var table bytes.Buffer
	if err := m.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(table.String(), "\n"); n != len(m.List()) {
		t.Errorf("the table has %d lines for %d actions", n, len(m.List()))
	}
}
