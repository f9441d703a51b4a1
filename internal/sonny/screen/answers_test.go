package screen

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/connect"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/decide"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/story"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// asked is a question of a test.
type asked struct {
	name, of string
	at       time.Time
	picked   string
	wants    string // what choice 4 asks for
	ends     bool   // Esc ends it
	body     []text.Line
}

func (q *asked) id() string       { return q.name }
func (q *asked) bot() string      { return q.of }
func (q *asked) since() time.Time { return q.at }
func (q *asked) sheet(*App, int, bool) decide.Sheet {
	return decide.Sheet{Title: q.name, Body: q.body, Choices: []decide.Choice{decide.Plain(1, "one"), decide.Plain(3, "three"), {N: 4, Words: q.wants}}}
}

func (q *asked) pick(a *App, n int, words string) {
	q.picked = strings.TrimSpace(fmt.Sprint(n, " ", words))
	a.answers.drop(a, q.name, "")
}
func (q *asked) own(*App, string) {}
func (q *asked) leave(*App) bool  { return q.ends }

// bench is an app whose clock the test moves.
type bench struct {
	*App
	now time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	clock := func() time.Time { return b.now }
	ctx, cancel := context.WithCancel(context.Background())
	b.App = &App{
		o: Options{Now: clock, Clock: clock, Taste: Taste{Keys: keys.Default()}, Crashed: func() {}, Link: &connect.Link{}}, ctx: ctx, calls: make(chan func(), 1024),
		world: live.New(&protocol.Ready{}), ready: &protocol.Ready{}, w: 80, h: 24,
	}
	b.App.o.Kept = filepath.Join(t.TempDir(), "sonny")
	b.out = newOutbox(b.App)
	b.notes.now = clock
	b.world.Now = clock
	t.Cleanup(func() { cancel(); b.running.Wait() })
	for i, name := range []string{"demo.lead", "demo.task", "other.lead"} {
		record := protocol.Bot{Name: name, ID: int64(i + 1)}
		b.world.Put(record)
	}
	b.session = newSession(b.App, "demo.lead", 1)
	b.session.story.Fill(&story.Part{})
	return b
}

func (b *bench) pass(d time.Duration) { b.now = b.now.Add(d) }

// press is a key as the app takes it.
func (b *bench) press(names ...string) {
	for _, name := range names {
		k := term.Key{Name: name}
		if len(name) == 1 {
			k.Text = name
		}
		b.input(k)
	}
}

func (b *bench) ask(name, of string) *asked {
	q := &asked{name: name, of: of, at: b.now, wants: "why"}
	b.answers.add(b.App, q)
	return q
}

func TestWhoHasTheKeyboardWhenAQuestionOpens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		before  func(b *bench)
		focused bool
	}{
		{"F17 the panel does, after a second without a key and with nothing written", func(b *bench) { b.press("x", "backspace"); b.pass(time.Second) }, true},
		{"F17 the composer does when a key came within the second", func(b *bench) { b.press("x", "backspace"); b.pass(999 * time.Millisecond) }, false},
		{"F17 the composer does when something is written", func(b *bench) { b.press("x"); b.pass(time.Minute) }, false},
		{"F17 the composer does when a panel was open", func(b *bench) { b.panel = &listPanel{}; b.pass(time.Minute) }, false},
	} {
		b := newBench(t)
		c.before(b)
		b.ask("q", "demo.lead")
		if b.answers.focused != c.focused {
			t.Errorf("%s: focused %v", c.name, b.answers.focused)
		}
	}
}

func TestKeysAreSwallowed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.pass(2 * time.Second)
	q := b.ask("q", "demo.lead")
	for range 5 {
		b.pass(349 * time.Millisecond)
		b.press("1") // each one begins the period anew
	}
	if q.picked != "" || !b.composing().Empty() {
		t.Fatalf("SO-14 F17 a swallowed key decided %q or was written", q.picked)
	}
	b.pass(350 * time.Millisecond)
	b.press("space", "2", "x")
	if q.picked != "" {
		t.Fatalf("a key that is no choice decided %q", q.picked)
	}
	b.press("enter")
	if q.picked != "" {
		t.Fatal("Enter decided with nothing highlighted")
	}
	b.press("down", "down", "enter")
	if q.picked != "3" {
		t.Errorf("the highlighted choice: %q", q.picked)
	}
}

func TestAQuestionThatIsNotOnScreen(t *testing.T) {
	t.Parallel()
	long := func(b *bench) *asked {
		q := b.ask("q", "demo.lead")
		for i := range 10 {
			q.body = append(q.body, text.Of(text.Plain, fmt.Sprintf("row %d", i)))
		}
		b.pass(time.Minute)
		return q
	}
	t.Run("F17 nothing decides on a screen that is too small for it", func(t *testing.T) {
		b := newBench(t)
		b.pass(2 * time.Second)
		q := long(b)
		b.view(term.NewFrame(15, 4))
		b.press("1", "down", "enter")
		if q.picked != "" {
			t.Fatalf("%q decided", q.picked)
		}
		b.answers.rows(b.App, 80, 20)
		if b.press("1"); q.picked != "1" {
			t.Errorf("with all of it on screen: %q", q.picked)
		}
	})
	t.Run("F17 where few rows fit, all of them have to have been on screen", func(t *testing.T) {
		b := newBench(t)
		b.pass(2 * time.Second)
		q := long(b)
		seen := ""
		for range 20 {
			for _, row := range b.answers.rows(b.App, 30, 7) {
				seen += row.String() + "\n"
			}
			all := true
			for i := range 10 {
				all = all && strings.Contains(seen, fmt.Sprintf("row %d\n", i))
			}
			b.press("1", "down", "enter")
			if !all && q.picked != "" {
				t.Fatalf("%q decided, and on screen was only\n%s", q.picked, seen)
			}
			if all {
				break
			}
			b.answers.choice = 0
			b.press("pgdown")
		}
		if q.picked != "1" {
			t.Errorf("after all was read: %q", q.picked)
		}
	})
}

func TestAnotherQuestionIsAnotherToRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.pass(2 * time.Second)
	first := b.ask("first", "demo.lead")
	b.pass(time.Second)
	second := b.ask("second", "demo.lead")
	b.press("1")
	if first.picked != "1" {
		t.Fatal("the question on screen was not decided")
	}
	b.pass(349 * time.Millisecond)
	b.press("1")
	if second.picked != "" {
		t.Fatal("F17 the key fell on the next question")
	}
	b.pass(350 * time.Millisecond)
	b.press("1")
	if second.picked != "1" {
		t.Error("the next question takes no key")
	}
}

func TestAQuestionThatIsAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.pass(2 * time.Second)
	q := b.ask("q", "demo.lead")
	b.pass(time.Second)
	b.answers.drop(b.App, "q", "answered by Ada")
	b.press("1")
	if q.picked != "" || !b.composing().Empty() {
		t.Errorf("SO-19 the late key decided %q or was written", q.picked)
	}
	if n := b.notes.current(); n == nil || n.line != "too late: answered by Ada" {
		t.Errorf("SO-19 %+v", n)
	}
	b.pass(350 * time.Millisecond)
	b.press("1")
	if b.composing().Text() != "1" {
		t.Errorf("the composer has %q", b.composing().Text())
	}
}

func TestEscInTheFaceOfAQuestion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		waits []time.Duration // before each Esc after the first
		ends  bool
	}{
		{"SO-113 the first leaves the panel and interrupts nothing", nil, false},
		{"SO-113 a second within 600 ms is of the same press", []time.Duration{599 * time.Millisecond}, false},
		{"SO-113 a second after 600 ms interrupts", []time.Duration{600 * time.Millisecond}, true},
	} {
		b := newBench(t)
		interrupted := false
		b.world.Bot("demo.lead").Turn = 0 // at rest nothing can be interrupted: esc() is asked instead
		b.pass(2 * time.Second)
		b.ask("q", "demo.lead")
		b.pass(time.Second)
		b.press("esc")
		if b.answers.focused || !b.answers.open(b.App) {
			t.Fatalf("%s: focused %v, open %v", c.name, b.answers.focused, b.answers.open(b.App))
		}
		for _, d := range c.waits {
			b.pass(d)
			interrupted = !b.answers.holdsEsc(b.App)
		}
		if interrupted != c.ends {
			t.Errorf("%s: %v", c.name, interrupted)
		}
	}
	b := newBench(t)
	q := b.ask("q", "demo.lead") // the keyboard stays in the composer
	if !b.answers.holdsEsc(b.App) {
		t.Error("SO-113 the first Esc in the composer interrupted")
	}
	b.press("x")
	if !b.answers.holdsEsc(b.App) || q.picked != "" {
		t.Error("another key between begins anew")
	}
}

func TestWordsForAVerdict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.pass(2 * time.Second)
	q := b.ask("q", "demo.lead")
	b.pass(time.Second)
	b.press("4", "n", "o", "1", "esc")
	if q.picked != "" || b.answers.field != nil {
		t.Fatalf("Esc did not go back to the choices: %q", q.picked)
	}
	b.press("4", "n", "o")
	b.input(term.Paste{Text: "t now"})
	b.press("enter")
	if q.picked != "4 not now" {
		t.Errorf("SO-16 the words are %q", q.picked)
	}

	q = b.ask("again", "demo.lead")
	b.pass(time.Second)
	b.answers.focus(b.App)
	b.input(term.Paste{Text: "1"})
	if q.picked != "" || b.composing().Text() != "1" || b.answers.focused {
		t.Errorf("F17 a paste that was meant for the message: %q, %q", q.picked, b.composing().Text())
	}
}

func TestSteppingThroughWhatWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.kin = kin{of: 1, at: b.world.Kin, list: []*live.Bot{b.world.Bot("demo.task")}}
	b.ask("of another lead", "other.lead")
	b.pass(time.Second)
	b.ask("the task's, older", "demo.task")
	b.pass(time.Second)
	b.ask("the lead's, newer", "demo.lead")
	if got := b.answers.shown; got != "the lead's, newer" {
		t.Fatalf("on screen: %s", got)
	}
	var seen []string
	for range 3 {
		b.press("alt+a")
		seen = append(seen, b.answers.shown)
		b.pass(time.Second)
	}
	if want := "the lead's, newer|the task's, older|the lead's, newer"; strings.Join(seen, "|") != want {
		t.Errorf("SO-25 %s", strings.Join(seen, "|"))
	}
	b.press("esc")
	if b.answers.wide || b.answers.shown != "the lead's, newer" {
		t.Errorf("after Esc: %s", b.answers.shown)
	}
}

func TestAWordThatDoesNotDoStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.pass(2 * time.Second)
	b.ask("q", "demo.lead")
	b.pass(time.Second)
	b.answers.field = &writing{label: "words", take: func(*App, string) error { return errors.New("they are wrong") }}
	b.press("x", "enter")
	if b.answers.field == nil || !strings.Contains(drawn(b.answers.rows(b.App, 80, 20)), "they are wrong") {
		t.Error("what is wrong is not said")
	}
}

func drawn(lines []text.Line) string {
	var out []string
	for _, l := range lines {
		out = append(out, l.String())
	}
	return strings.Join(out, "\n")
}

func TestTheChoicesAreAlwaysInView(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	q := approval{&decide.Call{Approval: &protocol.Approval{
		Bot: "demo.lead", Name: "shell", Cause: "escalation", Gates: []string{"manual"}, Arguments: []byte(`{}`),
		AnnouncedMS: b.now.UnixMilli(),
	}, Args: `{"command":"` + strings.Repeat(`echo line\n`, 200) + `"}`}}
	b.answers.add(b.App, q)
	for _, h := range []int{6, 10, 20} {
		for _, whole := range []bool{false, true} {
			b.answers.whole = whole
			got := drawn(b.answers.rows(b.App, 80, h))
			if !strings.Contains(got, "1  allow once") || !strings.Contains(got, "4  deny and say why") {
				t.Errorf("%d rows, whole %v:\n%s", h, whole, got)
			}
		}
	}
	b.answers.whole = false
	if got := drawn(b.answers.rows(b.App, 80, 40)); !strings.Contains(got, "+188 lines, v shows all") {
		t.Error(got)
	}
}

func TestAQuestionOfABot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		multiple bool
		free     bool
		press    []string
		want     decide.Reply
	}{
		{"a choice by its number", false, true, []string{"2"}, decide.Reply{Choices: []string{"blue"}}},
		{"several choices", true, true, []string{"1", "2", "1", "3"}, decide.Reply{Choices: []string{"blue"}}},
		{"own words", false, true, []string{"3", "g", "r", "e", "y", "enter"}, decide.Reply{Text: "grey"}},
		{"Esc is not now", false, false, []string{"esc"}, decide.Reply{NotNow: true}},
	} {
		b := newBench(t)
		b.pass(2 * time.Second)
		got := make(chan decide.Reply, 1)
		b.asked([]decide.Question{{
			ID: "7", Bot: "demo.lead", Text: "Which colour?", Choices: []string{"red", "blue"},
			Multiple: c.multiple, FreeText: c.free, Announced: b.now,
			Answer: func(r decide.Reply) error { got <- r; return nil },
		}})
		if screen := drawn(b.answers.rows(b.App, 80, 20)); !strings.Contains(screen, "Which colour?") || strings.Contains(screen, "own words") != c.free {
			t.Errorf("%s:\n%s", c.name, screen)
		}
		b.press(c.press...) // the first is swallowed
		b.pass(time.Second)
		select {
		case r := <-got:
			t.Fatalf("%s: F17 a swallowed key answered %+v", c.name, r)
		default:
		}
		b.composing().Clear()
		b.answers.focus(b.App)
		b.pass(time.Second)
		b.press(c.press...)
		b.running.Wait()
		select {
		case r := <-got:
			if fmt.Sprint(r) != fmt.Sprint(c.want) {
				t.Errorf("%s: %+v", c.name, r)
			}
		default:
			t.Errorf("%s: nothing was answered", c.name)
		}
		b.asked([]decide.Question{{ID: "7", Bot: "demo.lead", Text: "Which colour?"}})
		if b.answers.open(b.App) {
			t.Errorf("%s: a question that was answered came again", c.name)
		}
	}
}
