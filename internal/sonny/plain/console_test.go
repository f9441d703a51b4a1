package plain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/screen/text"
)

// terminal is what stands on a terminal's lines that knows \r, \n and \b alone.
type terminal struct {
	lines []string
	row   []string // cells
	at    int
}

func (t *terminal) write(s string) {
	for cluster, width := range text.Clusters(s) {
		switch cluster {
		case "\r\n":
			t.lines, t.row, t.at = append(t.lines, t.text()), nil, 0
			continue
		case "\b":
			t.at = max(0, t.at-1)
			continue
		}
		for len(t.row) < t.at+width {
			t.row = append(t.row, " ")
		}
		t.row[t.at] = cluster
		for i := 1; i < width; i++ {
			t.row[t.at+i] = ""
		}
		t.at += width
	}
}

func (t *terminal) text() string { return strings.TrimRight(strings.Join(t.row, ""), " ") }

// all are the lines, the one that is typed last.
func (t *terminal) all() []string { return append(slices.Clone(t.lines), t.text()) }

type bench struct {
	t    *testing.T
	term *terminal
	now  time.Time
	c    *Console
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, term: &terminal{}, now: time.Unix(1000, 0)}
	b.c = &Console{Write: b.term.write, Now: func() time.Time { return b.now }}
	return b
}

func (b *bench) typing(s string) {
	for r := range strings.SplitSeq(s, "") {
		b.c.Key(r, r)
	}
}

func (b *bench) enter(want string) Typed {
	b.t.Helper()
	done, ok := b.c.Key("enter", "")
	if !ok || done.Text != want {
		b.t.Errorf("the line is %q, %v; want %q", done.Text, ok, want)
	}
	return done
}

func (b *bench) wants(lines ...string) {
	b.t.Helper()
	if got := b.term.all(); !slices.Equal(got, lines) {
		b.t.Errorf("on the terminal:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

func TestTheLine(t *testing.T) {
	t.Parallel()
	t.Run("wide characters are rubbed out whole, and the head with the last of them", func(t *testing.T) {
		b := newBench(t)
		b.typing("a漢")
		b.c.Key("backspace", "")
		b.wants("you: a")
		b.c.Key("backspace", "")
		b.wants("")
		if b.c.Begun() {
			t.Error("a line is begun")
		}
		b.c.Key("backspace", "")
		b.wants("")
	})
	t.Run("a paste of several lines is one thing, and is sent in full", func(t *testing.T) {
		b := newBench(t)
		b.typing("see ")
		b.c.Paste("one\ntwo\nthree")
		b.wants("you: see [pasted 3 lines]")
		b.c.Key("backspace", "")
		b.wants("you: see")
		b.c.Paste("one\ntwo\nthree")
		b.enter("see one\ntwo\nthree")
	})
	t.Run("a backslash at the end goes on", func(t *testing.T) {
		b := newBench(t)
		b.typing(`one\`)
		if _, ok := b.c.Key("enter", ""); ok {
			t.Error("it was sent")
		}
		b.typing("two")
		b.wants(`you: one\`, "you: two")
		b.enter("one\ntwo")
	})
	t.Run("whether its first character was typed is told", func(t *testing.T) {
		b := newBench(t)
		b.typing("!x")
		if !b.enter("!x").Hand {
			t.Error("it was typed")
		}
		b.c.Paste("!x")
		b.typing("y")
		if b.enter("!xy").Hand {
			t.Error("it was pasted")
		}
		b.c.Restore("&x", true)
		if !b.enter("&x").Hand {
			t.Error("it was typed before")
		}
	})
	t.Run("a pasted text acts on nothing", func(t *testing.T) {
		b := newBench(t)
		b.c.Paste("a\x1b[2Jb\u202e")
		if got := b.term.text(); strings.ContainsAny(got, "\x1b\u202e") {
			t.Errorf("%q", got)
		}
		b.c.Key("ctrl+u", "")
		b.wants("")
	})
}

func TestOutputWaits(t *testing.T) {
	t.Parallel()
	t.Run("while a line is begun, until it is sent", func(t *testing.T) {
		b := newBench(t)
		b.typing("hel")
		b.c.Print("notice: one")
		b.wants("you: hel")
		b.typing("lo")
		b.enter("hello")
		b.wants("you: hello", "notice: one", "")
	})
	t.Run("or rubbed out", func(t *testing.T) {
		b := newBench(t)
		b.typing("h")
		b.c.Print("notice: one")
		b.c.Key("backspace", "")
		b.wants("notice: one", "")
	})
	t.Run("thirty seconds at most, and then the line stands below it", func(t *testing.T) {
		b := newBench(t)
		b.typing("hel")
		b.c.Print("notice: one")
		b.now = b.now.Add(heldMost - time.Millisecond)
		b.c.Late()
		b.wants("you: hel")
		if due := b.c.Due(); due.Sub(b.now) != time.Millisecond {
			t.Errorf("due in %s", due.Sub(b.now))
		}
		b.now = b.now.Add(time.Millisecond)
		b.c.Late()
		b.wants("you: hel", "notice: one", "you: hel")
		b.typing("lo")
		b.enter("hello")
	})
	t.Run("and no more of it than is kept", func(t *testing.T) {
		b := newBench(t)
		b.typing("x")
		for range maxWaiting {
			b.c.Print("notice: one")
		}
		if n := len(b.term.lines); n != maxWaiting+1 {
			t.Errorf("%d lines", n)
		}
	})
}

func TestALineAnswersWhatStoodBeforeIt(t *testing.T) {
	t.Parallel()
	t.Run("begun after the question", func(t *testing.T) {
		b := newBench(t)
		b.c.Ask("q1", "needs you: q1")
		b.typing("3")
		if done := b.enter("3"); done.Question != "q1" {
			t.Errorf("it answers %q", done.Question)
		}
	})
	t.Run("begun before it, though it was printed meanwhile", func(t *testing.T) {
		b := newBench(t)
		b.typing("3")
		b.c.Ask("q1", "needs you: q1")
		b.now = b.now.Add(heldMost)
		b.c.Late()
		b.wants("you: 3", "needs you: q1", "you: 3")
		if done := b.enter("3"); done.Question != "" {
			t.Errorf("it answers %q", done.Question)
		}
		b.typing("1")
		if done := b.enter("1"); done.Question != "q1" {
			t.Errorf("the next answers %q", done.Question)
		}
	})
	t.Run("of two, the one that stood there", func(t *testing.T) {
		b := newBench(t)
		b.c.Ask("q1", "needs you: q1")
		b.typing("3")
		b.c.Closed("q1")
		b.c.Ask("q2", "needs you: q2")
		if done := b.enter("3"); done.Question != "q1" {
			t.Errorf("it answers %q", done.Question)
		}
		b.wants("needs you: q1", "you: 3", "needs you: q2", "")
	})
	t.Run("one that closed before it was printed is not printed", func(t *testing.T) {
		b := newBench(t)
		b.typing("hi")
		b.c.Ask("q1", "needs you: q1")
		b.c.Closed("q1")
		b.enter("hi")
		b.wants("you: hi", "")
	})
}

func TestQuestion(t *testing.T) {
	t.Parallel()
	q := Question{
		Head: "demo.lead wants to run outside the sandbox in ~/src/demo", Body: []string{"git push \x1b[2J", "reason it gave: a release"},
		Choices: []Choice{
			{Number: 1, Does: "allow once"},
			{Number: 2, Does: "allow, and stop asking", Words: "all", Maybe: true},
			{Number: 3, Does: "deny"},
			{Number: 4, Does: "deny with a reason", Words: "REASON"},
		},
	}
	want := []string{
		"needs you: demo.lead wants to run outside the sandbox in ~/src/demo:", `  git push \u{1b}[2J`, "  reason it gave: a release",
		"  1 allow once", "  2 allow, and stop asking", "  3 deny", "  4 REASON deny with a reason", "no time limit. answer 1 to 4, then Enter:",
	}
	if got := q.Lines(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, row := range []struct {
		line   string
		number int
		words  string
		ok     bool
	}{
		{"1", 1, "", true},
		{" 3 ", 3, "", true},
		{"2 all", 2, "all", true},
		{"4 not  now", 4, "not  now", true},
		{"4", 4, "", true},
		{"1 please", 0, "", false},
		{"5", 0, "", false},
		{"13", 0, "", false},
		{"yes", 0, "", false},
		{"", 0, "", false},
	} {
		c, words, ok := q.Answer(row.line)
		if c.Number != row.number || words != row.words || ok != row.ok {
			t.Errorf("%q is %d %q %v", row.line, c.Number, words, ok)
		}
	}
	q.Choices = slices.Delete(q.Choices, 1, 2)
	if got := q.Lines(); got[len(got)-1] != "no time limit. answer 1, 3 or 4, then Enter:" {
		t.Errorf("%q", got)
	}
}
