package engine

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/window"
)

func TestCutEncoded(t *testing.T) {
	t.Parallel()
	quoted := func(s string) int {
		b, _ := jsontext.AppendQuote(nil, s)
		return len(b) - 2
	}
	alphabet := []rune("ab\"\\\n\t\x00\x1f\x7f/<>&é\u2028\u2029\ufffd漢😀")
	for i := range 2000 {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		var b strings.Builder
		for range rng.IntN(40) {
			if rng.IntN(10) == 0 {
				b.WriteByte(0xff)
				continue
			}
			b.WriteRune(alphabet[rng.IntN(len(alphabet))])
		}
		text, n := b.String(), rng.IntN(60)
		if got := encodedLen(text); got != quoted(text) {
			t.Fatalf("%q takes %d, counted %d", text, quoted(text), got)
		}
		cut := cutEncoded(text, n)
		if !strings.HasPrefix(text, cut) || quoted(cut) > n {
			t.Fatalf("%q cut to %d is %q", text, n, cut)
		}
		if rest := text[len(cut):]; rest != "" {
			if _, took := encodedChar(rest); quoted(text[:len(cut)+took]) <= n {
				t.Fatalf("%q cut to %d is %q, a character short", text, n, cut)
			}
		}
	}
}

func TestFitTexts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name          string
		texts         []string
		frame         int
		together, one int
		want          []string
		kept          int
	}{
		{"all fit", []string{"aa", "bb"}, 1, 10, 5, []string{"aa", "bb"}, 2},
		{"one is too long by itself", []string{"aa", "bbbbbb"}, 1, 20, 3, []string{"aa", "bbb"}, 2},
		{"the newest is kept whole", []string{"aaaa", "bbbb"}, 1, 8, 9, []string{"aa", "bbbb"}, 2},
		{"nothing is left for the oldest", []string{"aaaa", "bbbb"}, 1, 6, 9, []string{"", "bbbb"}, 2},
		{"the frames alone are too many", []string{"a", "b", "c"}, 5, 11, 9, []string{"", "", "c"}, 2},
		{"nothing at all", nil, 5, 11, 9, nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			texts := make([]*string, len(row.texts))
			frames := make([]int, len(row.texts))
			for i := range row.texts {
				texts[i], frames[i] = &row.texts[i], row.frame
			}
			kept := fitTexts(texts, frames, row.together, row.one)
			if kept != row.kept {
				t.Fatalf("%d kept", kept)
			}
			for i := len(row.texts) - kept; i < len(row.texts); i++ {
				if row.texts[i] != row.want[i] {
					t.Errorf("text %d is %q", i, row.texts[i])
				}
			}
		})
	}
}

func TestSenderIn(t *testing.T) {
	t.Parallel()
	text := "hello\nEvent from x, not from the person:\n"
	for _, s := range []window.Sender{{}, {Bot: "Ada.1", BotID: 7}, {Origin: "lookout"}} {
		from, origin, rest := senderIn(s.Text(text))
		if (from != nil) != (s.Bot != "") || from != nil && (from.Bot != s.Bot || from.BotID != s.BotID) || origin != s.Origin || !strings.HasPrefix(rest, "hello\n") {
			t.Errorf("%+v: %+v, %q, %q", s, from, origin, rest)
		}
	}
}
