package protocol

import (
	"errors"
	"strings"
	"testing"
)

func TestNameRule(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 128)
	for _, row := range []struct {
		text      string
		name, bot bool
	}{
		{"Bob", true, true},
		{"a-Z_0.9", true, true},
		{long, true, true},
		{long + "a", false, false},
		{"", false, false},
		{"a b", false, false},
		{"a/b", false, false},
		{"é", false, false},
		{"a\n", false, false},
		{"-x", true, false},
		{".x", true, false},
		{"_x", true, true},
	} {
		t.Run("PR-75 "+short(row.text)+" as a name and as a bot", func(t *testing.T) {
			t.Parallel()
			if ValidName(row.text) != row.name || ValidBotName(row.text) != row.bot {
				t.Errorf("name %v, bot %v", ValidName(row.text), ValidBotName(row.text))
			}
		})
	}
	if ValidToolName("a.b") || !ValidToolName("a-b") || ValidToolName(strings.Repeat("a", 65)) {
		t.Error("a tool's name keeps the name rule without dots, up to 64 bytes")
	}
}

func TestModelReferences(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		ref, provider, model string
		ok                   bool
	}{
		{"openai/gpt-5", "openai", "gpt-5", true},
		{"openrouter/vendor/model", "openrouter", "vendor/model", true},
		{strings.Repeat("p", 64) + "/" + strings.Repeat("m", 256), strings.Repeat("p", 64), strings.Repeat("m", 256), true},
		{"a/é", "a", "é", true},
		{"openai", "", "", false},
		{"/m", "", "", false},
		{"p/", "", "", false},
		{"", "", "", false},
		{"p q/m", "", "", false},
		{"p.q/m", "", "", false},
		{"p/a\nb", "", "", false},
		{"p/a\x7f", "", "", false},
		{"p/\xff", "", "", false},
		{strings.Repeat("p", 65) + "/m", "", "", false},
		{"p/" + strings.Repeat("m", 257), "", "", false},
	} {
		t.Run(short(row.ref), func(t *testing.T) {
			t.Parallel()
			if p, m, ok := ParseModelRef(row.ref); p != row.provider || m != row.model || ok != row.ok {
				t.Errorf("got %q %q %v", p, m, ok)
			}
		})
	}
}

func TestHandles(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"turn:Bob/1", "turn:a.b-c/9007199254740991", "proc:1", "proc:999"} {
		h, err := ParseHandle(text)
		if err != nil || h.String() != text {
			t.Errorf("%s: got %+v %v", text, h, err)
		}
	}
	for _, text := range []string{
		"bad", "proc:01", "turn:Bob/+1", "", "proc:", "proc:0", "proc:-1", "proc:9007199254740992",
		"proc:99999999999999999999", "turn:Bob", "turn:/1", "turn:Bob/", "turn:Bob/1/2", "turn:-x/1", "turn:B b/1", "PROC:1", "proc:1 ", "proc:١",
	} {
		t.Run("PR-44 "+text+" is no handle", func(t *testing.T) {
			t.Parallel()
			if h, err := ParseHandle(text); !errors.Is(err, InvalidHandle) {
				t.Errorf("got %+v %v", h, err)
			}
		})
	}
	if TurnHandle("Bob", 5).String() != "turn:Bob/5" {
		t.Error("a turn's handle is misspelt")
	}
}

func FuzzParseHandle(f *testing.F) {
	f.Add("turn:Bob/5")
	f.Add("proc:7")
	f.Add("proc:01")
	f.Fuzz(func(t *testing.T, text string) {
		if h, err := ParseHandle(text); err == nil && h.String() != text {
			t.Fatalf("%q prints as %q", text, h.String())
		}
	})
}

func TestPageLimit(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		limit Opt[int64]
		n     int
		ok    bool
	}{
		{Opt[int64]{}, 64, true},
		{Null[int64](), 64, true},
		{Set[int64](1), 1, true},
		{Set[int64](256), 256, true},
		{Set[int64](0), 0, false},
		{Set[int64](257), 0, false},
		{Set[int64](-1), 0, false},
	} {
		if n, ok := PageLimit(row.limit, DefaultPage, MaxPage); n != row.n || ok != row.ok {
			t.Errorf("%+v: got %d %v", row.limit, n, ok)
		}
	}
}
