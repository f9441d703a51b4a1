package term

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agent/internal/sonny/screen/theme"
)

// eventsOf runs what is sent through a terminal whose clock is the bubble's. Each part is
// one read, and a part "wait N" lets that much time pass.
func eventsOf(t *testing.T, env map[string]string, parts ...string) []Event {
	t.Helper()
	var got []Event
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		tm, err := Open(Options{
			In: r, Out: io.Discard, Resized: make(chan struct{}),
			Env: func(name string) string { return env[name] },
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			if d, ok := strings.CutPrefix(p, "wait "); ok {
				wait, err := time.ParseDuration(d)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(wait)
				continue
			}
			if _, err := w.Write([]byte(p)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for len(tm.Events()) > 0 {
			got = append(got, <-tm.Events())
		}
		tm.Close()
		_ = w.Close()
	})
	return got
}

func key(name string) Event  { return Key{Name: name} }
func char(name string) Event { return Key{Name: name, Text: name} }

func TestWhatIsTyped(t *testing.T) {
	xterm := map[string]string{"TERM": "xterm-256color", "TMUX": "/tmp/s,1,0"} // tmux has brackets
	for _, row := range []struct {
		name  string
		parts []string
		want  []Event
	}{
		{"letters are themselves", []string{"aB? "}, []Event{char("a"), char("B"), char("?"), Key{Name: "space", Text: " "}}},
		{"a character cut between reads", []string{"\xe6\xbc", "\xa2"}, []Event{char("漢")}},
		{"control and Alt", []string{"\x0b\x1bd\x1b\r\x0a\x09\x7f\r"}, []Event{key("ctrl+k"), key("alt+d"), key("alt+enter"), key("ctrl+j"), key("tab"), key("backspace"), key("enter")}},
		{"Alt with Shift", []string{"\x1bA"}, []Event{key("alt+shift+a")}},
		{"arrows and their chords", []string{"\x1b[A\x1bOB\x1b[1;3C\x1b[1;2D\x1b[Z\x1b[5~"}, []Event{key("up"), key("down"), key("alt+right"), key("shift+left"), key("shift+tab"), key("pgup")}},
		{"the extended protocol", []string{"\x1b[13;2u\x1b[27u\x1b[107;5u\x1b[47:63;4u"}, []Event{key("shift+enter"), key("esc"), key("ctrl+k"), key("alt+?")}},
		{"a chord of another layout", []string{"\x1b[1083::107;5u"}, []Event{key("ctrl+k")}},
		{"a chord of a moved Latin layout", []string{"\x1b[98::110;5u"}, []Event{key("ctrl+b")}},
		{"a lone ESC is Esc after 50 ms", []string{"\x1b", "wait 51ms"}, []Event{key("esc")}},
		{"and not before", []string{"\x1b", "wait 49ms"}, nil},
		{"an ESC with its rest within 50 ms is one key", []string{"\x1b", "wait 40ms", "[A"}, []Event{key("up")}},
		{"two ESC in one read are two presses", []string{"\x1b\x1b", "wait 51ms"}, []Event{key("esc"), key("esc")}},
		{"two ESC before a letter", []string{"\x1b\x1bx"}, []Event{key("esc"), key("alt+x")}},
		{"Alt with [ alone", []string{"\x1b[", "wait 51ms"}, []Event{key("alt+[")}},
		{"the wheel", []string{"\x1b[<64;3;4M\x1b[<65;3;4M"}, []Event{Mouse{X: 2, Y: 3, Kind: WheelUp}, Mouse{X: 2, Y: 3, Kind: WheelDown}}},
		{"a drag", []string{"\x1b[<0;1;1M\x1b[<32;5;1M\x1b[<0;5;1m"}, []Event{Mouse{Button: Left}, Mouse{X: 4, Kind: Drag, Button: Left}, Mouse{X: 4, Kind: Release, Button: Left}}},
		{"the focus", []string{"\x1b[I\x1b[O"}, []Event{Focus{In: true}, Focus{}}},
		{"a paste", []string{"\x1b[200~a\r\n\x1b[Ab\x1b[201~", "c"}, []Event{Paste{Text: "a\r\n\x1b[Ab"}, char("c")}},
		{"a key right behind a paste", []string{"\x1b[200~a\x1b[201~c\r", "wait 30ms"}, []Event{Paste{Text: "a"}, char("c"), key("enter")}},
		{"two pastes in one read", []string{"\x1b[200~a\x1b[201~\x1b[200~b\x1b[201~"}, []Event{Paste{Text: "a"}, Paste{Text: "b"}}},
		{"a paste that holds its own end does nothing", []string{"\x1b[200~a\x1b[201~\r!rm x\r\x1b[201~"}, []Event{Paste{Text: "a\r!rm x\r"}}},
		{"the same in two reads", []string{"\x1b[200~a\x1b[201~\r!rm", " x\r\x1b[201~"}, []Event{Paste{Text: "a\r!rm x\r"}}},
		{"the same, with more behind it", []string{"\x1b[200~a\x1b[201~1\x1b[201~", "c"}, []Event{Paste{Text: "a1"}, char("c")}},
		{"a paste in pieces", []string{"\x1b[200~ab\x1b[20", "1~", "x"}, []Event{Paste{Text: "ab"}, char("x")}},
		{"a paste whose end never comes", []string{"\x1b[200~ab", "wait 1001ms"}, []Event{Paste{Text: "ab"}}},
		{"a late answer is no key", []string{"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c\x1bP>|term 1\x1b\\a"}, []Event{char("a")}},
		{"what is no sequence is dropped", []string{"\x1b[1\x01a\xffb"}, []Event{key("ctrl+a"), char("a"), char("b")}},
		{"five Enter keys where pastes have brackets", []string{"\r\r\r\r\r"}, slices.Repeat([]Event{key("enter")}, 5)},
		{"the scheme changes", []string{"\x1b[?997;1n"}, []Event{Background{Dark: true}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := eventsOf(t, xterm, row.parts...); !slices.Equal(got, row.want) {
				t.Fatalf("the events are\n%#v, not\n%#v", got, row.want)
			}
		})
	}
}

func TestPasteWithoutBrackets(t *testing.T) {
	vt100 := map[string]string{"TERM": "vt100"}
	for _, row := range []struct {
		name  string
		parts []string
		want  []Event
	}{
		{"four newlines in one read", []string{"a\rb\rc\rd\re", "wait 31ms"}, []Event{Paste{Text: "a\nb\nc\nd\ne"}}},
		{"five in reads 10 ms apart", []string{"a\r", "wait 10ms", "b\r", "wait 10ms", "c\rd\re\rf", "wait 31ms"}, []Event{char("a"), Paste{Text: "\nb\nc\nd\ne\nf"}}},
		{"CRLF counts once", []string{"a\r\nb\r\nc\r\n", "wait 31ms"}, []Event{char("a"), key("enter"), char("b"), key("enter"), char("c"), key("enter")}},
		{"three newlines are keys", []string{"\r\r\r", "wait 31ms"}, slices.Repeat([]Event{key("enter")}, 3)},
		{"Enter is held for 30 ms at most", []string{"\r", "wait 31ms"}, []Event{key("enter")}},
		{"a chord ends the burst", []string{"\rx\x0b"}, []Event{key("enter"), char("x"), key("ctrl+k")}},
		{"newlines a while apart are keys", []string{"\r\r", "wait 31ms", "\r\r", "wait 31ms"}, slices.Repeat([]Event{key("enter")}, 4)},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := eventsOf(t, vt100, row.parts...); !slices.Equal(got, row.want) {
				t.Fatalf("the events are\n%#v, not\n%#v", got, row.want)
			}
		})
	}
}

// answering opens a terminal that answers the questions after a while.
func answering(t *testing.T, after time.Duration, answers string, look func(tm *Terminal, sent func() string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		out := &asked{w: w, after: after, answers: answers}
		tm, err := Open(Options{In: r, Out: out, Resized: make(chan struct{}), Env: func(name string) string { return map[string]string{"TERM": "xterm"}[name] }, Theme: theme.None()})
		if err != nil {
			t.Fatal(err)
		}
		look(tm, out.all.String)
		tm.Close()
		out.wait()
		_ = w.Close()
	})
}

type asked struct {
	w       io.Writer
	after   time.Duration
	answers string
	all     strings.Builder
	done    chan struct{}
}

func (a *asked) Write(p []byte) (int, error) {
	a.all.Write(p)
	if strings.Contains(string(p), "\x1b[c") {
		a.done = make(chan struct{})
		go func() {
			defer close(a.done)
			time.Sleep(a.after)
			_, _ = io.WriteString(a.w, a.answers)
		}()
	}
	return len(p), nil
}

func (a *asked) wait() { <-a.done }

func TestWhatTheTerminalAnswers(t *testing.T) {
	const all = "\x1b[?2026;2$y\x1b[?2027;2$y\x1b[?2004;1$y\x1b[?0u\x1b]11;rgb:ffff/ffff/ffff\x07\x1b[?62;4c"
	t.Run("SO-58 a white background is light", func(t *testing.T) {
		answering(t, 20*time.Millisecond, all, func(tm *Terminal, sent func() string) {
			b, ok := tm.Background()
			if !ok || b.Dark || b.Color != theme.RGB(255, 255, 255) {
				t.Errorf("the background is %#v, %v", b, ok)
			}
			if f := tm.Features(); f != (Features{Answered: true, Sync: true, Unicode: true, Keyboard: true, Paste: true}) {
				t.Errorf("the features are %+v", f)
			}
			tm.Flush()
			if !strings.Contains(sent(), "\x1b[?2027h\x1b[>5u") {
				t.Errorf("what it has is not used: %q", sent())
			}
		})
	})
	t.Run("SO-58 no answer within 100 ms is none", func(t *testing.T) {
		answering(t, 101*time.Millisecond, all, func(tm *Terminal, _ func() string) {
			time.Sleep(time.Second)
			if b, ok := tm.Background(); ok || len(tm.Events()) > 0 {
				t.Errorf("the background is %#v, %d events", b, len(tm.Events()))
			}
			if !tm.Features().Sync {
				t.Error("a late answer about frames is not used")
			}
		})
	})
	t.Run("a terminal without any", func(t *testing.T) {
		answering(t, 0, "\x1b[?2026;0$y\x1b[?62c", func(tm *Terminal, _ func() string) {
			if f := tm.Features(); f != (Features{Answered: true}) {
				t.Errorf("the features are %+v", f)
			}
		})
	})
}

func FuzzInput(f *testing.F) {
	for _, s := range []string{"\x1b[200~a\x1b[201~", "\x1b\x1b[A", "\x1b]11;rgb:0/0/0\x07", "\x1bP1$r\x1b\\", "a\rb\rc\rd\r", "\xe6\xbc\xa2\xff", "\x1b[<0;1;1M", "\x1b[M", "\x1b[[A", "\x1b[1;2;3$"} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		for _, brackets := range []bool{true, false} {
			in := &input{answer: func(reply, Event) {}, bracketed: func() bool { return brackets }, emit: func(e Event) {
				if k, ok := e.(Key); ok && (k.Name == "" || !typed(k.Text)) {
					t.Fatalf("a key %#v", k)
				}
			}}
			cut := min(max(at, 0), len(b))
			in.take(slices.Clone(b[:cut]))
			in.take(slices.Clone(b[cut:]))
			in.expire()
			if len(in.buf) > 0 || in.pasting || len(in.held) > 0 {
				t.Fatalf("%q is held back for good", b)
			}
		}
	})
}
