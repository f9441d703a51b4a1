package ahead

import (
	"context"
	"errors"
	"strings"
	"testing"

	"agent/internal/sonny/plain"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/setup"
	"agent/protocol"
)

// inLines is a first run that is read out, without a goroutine of its own.
type inLines struct {
	*first
	did *[]string
	r   *Aloud
	out strings.Builder
}

func newInLines(t *testing.T) *inLines {
	l := &inLines{}
	l.first, l.did = rowsOf(t)
	l.Rows = append(l.Rows, Fact{"look", "look: it reads"}, Fact{"full", "full: nothing is confined"})
	l.Spec = setup.Spec
	l.Other = func(spec, key string) error { *l.did = append(*l.did, "other "+spec+" "+key); return nil }
	l.r = &Aloud{Terminal: &still{}, con: &plain.Console{Write: func(s string) { l.out.WriteString(s) }}}
	l.Term, l.aloud = l.r, l.r
	l.w, l.h, _ = l.r.Size()
	l.r.takesLines(l.asksKey)
	l.draw()
	return l
}

// says types a line key by key, and gives what the terminal got for it.
func (l *inLines) says(line string) (out string, done bool) {
	l.t.Helper()
	from := l.out.Len()
	for _, c := range line {
		l.r.heard(term.Key{Name: string(c), Text: string(c)})
	}
	for _, e := range l.r.heard(term.Key{Name: "enter"}) {
		l.r.taken()
		var err error
		if done, err = l.line(context.Background(), e.(spoken).Text); err != nil {
			l.t.Fatal(err)
		}
		l.draw()
	}
	if l.step == trying {
		(<-l.results)()
		l.draw()
	}
	return l.out.String()[from:], done
}

// wants says a line, and fails where what comes of it lacks a text.
func (l *inLines) wants(line string, texts ...string) {
	l.t.Helper()
	out, _ := l.says(line)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			l.t.Errorf("%q brought no %q but\n%s", line, text, out)
		}
	}
}

const noAnswer = "notice: that line is no answer here."

func TestTheRowThatConfinesNothingAtTheFirstRun(t *testing.T) {
	t.Parallel()

	t.Run("on the screen it wants its word", func(t *testing.T) {
		t.Parallel()
		f, did := rowsOf(t)
		f.Rows = append(f.Rows, Fact{"full", "full: nothing is confined"})
		f.press("6", "3")
		f.shows("Row full: nothing is confined and nobody is asked. Type full to take it.", "type full and Enter  Esc no")
		f.press("enter", "f", "u", "l", "enter")
		f.shows("word  ful")
		f.press("esc", "6", "3", "esc", "enter")
		if len(*did) != 0 {
			t.Errorf("did %q", *did)
		}
		f.press("6", "3", "f", "u", "l", "l", "enter")
		f.shows("Paste a key", "full: nothing is confined")
		if got := strings.Join(*did, "; "); got != "set row full" {
			t.Errorf("did %q", got)
		}
	})

	t.Run("in lines too", func(t *testing.T) {
		t.Parallel()
		l := newInLines(t)
		l.wants("6", "who is asked: type a number to take it. an empty line goes back.")
		l.wants("4", "Type full to take it.", "type full, then Enter. an empty line means no.")
		l.wants("yes", noAnswer, "type full, then Enter")
		l.wants("4", noAnswer)
		l.wants("", "paste a key, or type a number")
		l.says("6")
		l.says("4")
		if len(*l.did) != 0 {
			t.Errorf("did %q", *l.did)
		}
		l.wants("full", "full: nothing is confined")
		if got := strings.Join(*l.did, "; "); got != "set row full" {
			t.Errorf("did %q", got)
		}
	})
}

func TestAKeyInLines(t *testing.T) {
	t.Parallel()

	t.Run("none is ever shown", func(t *testing.T) {
		t.Parallel()
		l := newInLines(t)
		l.wants("wrongkey1", "you: *********", "whose key is it? type 1 for Anthropic, 2 for OpenAI or 3 for OpenRouter. an empty line leaves it.")
		l.wants("second_KEY", "you: **********", noAnswer, "whose key is it?")
		l.Try = func(context.Context, setup.Provider, string) ([]string, error) {
			return nil, setup.Refused{Err: protocol.Fail("provider_http_401", "no such thing")}
		}
		l.wants("2", "OpenAI says: ", "type k to keep the key anyway")
		l.wants("third_KEY", "you: *********", noAnswer)
		l.wants("", "paste a key, or type a number")
		for _, at := range []string{"5", "6", "8"} { // a page, which asks for no key
			l.says(at)
			l.wants("sk-ant-fourth_KEY", "you: sk", "that looks like a key, and none is asked for here")
			l.says("")
		}
		l.says("3")
		l.wants("mine=chat,http://127.0.0.1:1/v1,sk-fifth_KEY", "that looks like a key")
		l.says("")
		l.Try = func(context.Context, setup.Provider, string) ([]string, error) { return nil, errors.New("away") }
		l.wants("sk-sixth_KEY", "you: ****", "kept, but not tried")
		l.wants("seventh_KEY", "you: ***********", noAnswer)
		if strings.Contains(l.out.String(), "_KEY") || strings.Contains(l.out.String(), "wrongkey") {
			t.Errorf("a key is shown:\n%s", l.out.String())
		}
		if len(l.kept) != 1 || l.kept[0] != "openai sk-sixth_KEY" || len(*l.did) != 0 {
			t.Errorf("kept %q, did %q", l.kept, *l.did)
		}
	})

	t.Run("what is no key is not taken for one", func(t *testing.T) {
		t.Parallel()
		l := newInLines(t)
		l.wants("99", "that number is none of these, and a key is not of digits alone")
		l.wants("12345678901234567890", noAnswer)
		l.wants("sonny", "that is too short for a key, and none of the numbers")
		l.wants("9", "that number is none of these")
		if l.step != askKey || l.asked != 0 || len(l.kept) != 0 {
			t.Errorf("at step %d, kept %q", l.step, l.kept)
		}
		l.says("wrongkey1")
		l.wants("", "paste a key, or type a number")
		if l.key != "" || l.step != askKey {
			t.Errorf("an empty line did not leave it, at step %d", l.step)
		}
	})
}

func TestTheRowsOfAPageInLines(t *testing.T) {
	t.Parallel()
	l := newInLines(t)
	for _, page := range []string{"6", "8"} {
		l.says(page)
		for _, line := range []string{"nonsense", "please 4", "enter", "0", "9", "44"} {
			l.wants(line, noAnswer, ": type a number")
		}
		l.wants("", "paste a key, or type a number")
		if l.page != nil {
			t.Errorf("an empty line leaves page %s open", page)
		}
	}
	l.says("5")
	l.wants("nothing-like-it", noAnswer, "model: type its name")
	l.wants("gpt", "2 are called so, type more of the name: openai/gpt-5-mini, openai/gpt-5")
	l.wants("", "paste a key, or type a number")
	if len(*l.did) != 0 {
		t.Fatalf("did %q", *l.did)
	}
	l.says("5")
	l.says("openai/gpt-5")
	l.says("6")
	l.says("2")
	if got := strings.Join(*l.did, "; "); got != "model openai/gpt-5  true; set row manual" {
		t.Errorf("did %q", got)
	}
}

func TestAnotherEndpointInLines(t *testing.T) {
	t.Parallel()
	l := newInLines(t)
	l.says("3")
	l.wants("http://127.0.0.1:1/v1", "that is no spec: it begins with a name")
	l.wants("mine=chat", "its URL begins with http:// or https://")
	if l.step != askSpec {
		t.Fatalf("at step %d", l.step)
	}
	l.wants("mine=chat,http://127.0.0.1:1/v1,MINE_KEY", "its key, kept as MINE_KEY; empty for none")
	if out, done := l.says("abc"); !done || strings.Contains(out, "abc") {
		t.Errorf("done %v:\n%s", done, out)
	}
	l.step = askSpec
	if _, done := l.says("mine=chat,http://127.0.0.1:1/v1"); !done { // it has no key to be asked for
		t.Error("it was not taken")
	}
	want := "other mine=chat,http://127.0.0.1:1/v1,MINE_KEY abc; other mine=chat,http://127.0.0.1:1/v1 "
	if got := strings.Join(*l.did, "; "); got != want {
		t.Errorf("did %q", got)
	}
}
