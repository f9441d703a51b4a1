package edit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/screen/text"

	"pgregory.net/rapid"
)

// of is an editor with a text that was typed, the caret where "|" stands.
func of(s string) *Editor {
	e := New()
	before, after, _ := strings.Cut(s, "|")
	e.Type(before + after)
	e.caret = endOf(Pos{}, before)
	e.past = nil
	e.join = other
	return e
}

// shows is the text with the caret as "|".
func (e *Editor) shows() string {
	return e.slice(Pos{}, e.caret) + "|" + e.slice(e.caret, e.end())
}

func TestReadlineKeys(t *testing.T) {
	for _, row := range []struct {
		name       string
		from, want string
		do         func(e *Editor)
	}{
		{"left over an accent", "éx|", "é|x", (*Editor).Left},
		{"left over a joined emoji", "a👩‍💻|", "a|👩‍💻", (*Editor).Left},
		{"left to the line before", "ab\n|c", "ab|\nc", (*Editor).Left},
		{"right over a wide character", "|漢字", "漢|字", (*Editor).Right},
		{"backspace takes a whole cluster", "a👩‍💻|b", "a|b", (*Editor).DeleteBack},
		{"backspace joins lines", "a\n|b", "a|b", (*Editor).DeleteBack},
		{"delete takes the newline", "a|\nb", "a|b", (*Editor).DeleteForward},
		{"to the line's start", "a\nbc|d", "a\n|bcd", (*Editor).LineStart},
		{"to the line's end", "a|b\nc", "ab|\nc", (*Editor).LineEnd},
		{"a word left", "one two.three|", "one two.|three", (*Editor).WordLeft},
		{"a word left over blanks", "one  |", "|one  ", (*Editor).WordLeft},
		{"a word right", "|one two", "one| two", (*Editor).WordRight},
		{"cut to the end", "one| two\nthree", "one|\nthree", (*Editor).KillToEnd},
		{"cut the newline", "one|\ntwo", "one|two", (*Editor).KillToEnd},
		{"cut to the start", "a\none| two", "a\n| two", (*Editor).KillToStart},
		{"cut back to a blank", "one two.three|", "one |", (*Editor).KillWordBack},
		{"cut the word before", "one two.three|", "one two.|", (*Editor).KillWordLeft},
		{"cut the word after", "one| two three", "one| three", (*Editor).KillWordRight},
		{"swap in the middle", "a|b", "ba|", (*Editor).Transpose},
		{"swap at the end", "xab|", "xba|", (*Editor).Transpose},
		{"swap wide characters", "漢|字", "字漢|", (*Editor).Transpose},
		{"no swap at the start", "|ab", "|ab", (*Editor).Transpose},
		{"no swap over a newline", "a\n|b", "a\n|b", (*Editor).Transpose},
		{"cuts in a row make one", "one two three|", "one |", func(e *Editor) {
			e.KillWordBack()
			e.KillWordBack()
			e.Yank()
			e.KillToStart()
			e.Type("one ")
		}},
		{"what was cut comes back", "one two|", "two|one ", func(e *Editor) { e.KillWordBack(); e.LineStart(); e.Yank() }},
		{"and what was cut before it", "one two|", "one | ", func(e *Editor) {
			e.KillWordBack() // two
			e.LineStart()
			e.KillWordRight() // one
			e.Yank()
			e.YankPop()
			e.YankPop()
			e.Type(" ")
			e.Left()
			e.LineEnd()
			e.Left()
		}},
		{"a backslash before Enter", `a\|`, "a\n|", func(e *Editor) { e.Backslash() }},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := of(row.from)
			row.do(e)
			if got := e.shows(); got != row.want {
				t.Errorf("%q became %q, not %q", row.from, got, row.want)
			}
		})
	}
}

func TestModesOfTheFirstCharacter(t *testing.T) {
	typed := func(s string) func(*Editor) {
		return func(e *Editor) {
			for _, r := range s {
				e.Type(string(r))
			}
		}
	}
	for _, row := range []struct {
		name string
		do   func(e *Editor)
		want rune
	}{
		{"a command", typed("!touch x"), '!'},
		{"a fact", typed("#a fact"), '#'},
		{"a task", typed("&fix it"), '&'},
		{"a slash command", typed("/help"), '/'},
		{"two slashes", typed("//text"), 0},
		{"a heading", typed("# Title"), 0},
		{"a leading space", typed(" !x"), 0},
		{"a leading backslash", typed(`\!x`), 0},
		{"a question", typed("what!"), 0},
		{"SO-128 a pasted heading", func(e *Editor) { e.Paste("# Title") }, 0},
		{"SO-128 a pasted command", func(e *Editor) { e.Paste("!touch x") }, 0},
		{"SO-128 a lone character pasted, the rest typed", func(e *Editor) { e.Paste("!"); e.Type("x") }, 0},
		{"SO-128 a command recalled from the history", func(e *Editor) {
			e.Older(func(int) (string, bool) { return "!touch x", true })
		}, 0},
		{"SO-128 a command from the editor", func(e *Editor) { e.SetText("!touch x") }, 0},
		{"SO-128 a command from the stash", func(e *Editor) { typed("!x")(e); var s Stash; s.Toggle(e); s.Toggle(e) }, 0},
		{"SO-128 pasted over what was typed", func(e *Editor) { typed("!")(e); e.DeleteBack(); e.Paste("!x") }, 0},
		{"typed before what was pasted", func(e *Editor) { e.Paste("x"); e.LineStart(); e.Type("!") }, 0},
		{"typed, undone and done again", func(e *Editor) { typed("!x")(e); e.Undo(); e.Redo() }, '!'},
		{"cleared and typed again", func(e *Editor) { e.Paste("!x"); e.Clear(); typed("!y")(e) }, '!'},
		{"something put before it", func(e *Editor) { typed("!x")(e); e.LineStart(); e.Type("a"); e.DeleteBack() }, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := New()
			row.do(e)
			if got := e.Mode(); got != row.want {
				t.Errorf("the mode of %q is %q, not %q", e.shows(), got, row.want)
			}
		})
	}
}

func TestPasteRules(t *testing.T) {
	for _, row := range []struct{ name, paste, want string }{
		{"line ends become LF", "a\r\nb\rc", "a\nb\nc|"},
		{"controls are dropped, the tab is kept", "a\x1b[31m\tb\x00\u009bc", "a[31m\tbc|"},
		{"what is no UTF-8 is replaced", "a\xffb", "a\uFFFDb|"},
		{"a character that would stand for a chip is dropped", "a\U00100000b", "ab|"},
		{"ten lines stay", strings.Repeat("x\n", 10), strings.Repeat("x\n", 10) + "|"},
		{"2,000 characters stay", strings.Repeat("漢", 2000), strings.Repeat("漢", 2000) + "|"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := New()
			if e.Paste(row.paste); e.shows() != row.want {
				t.Errorf("the paste is %q", e.shows())
			}
		})
	}
	for label, paste := range map[string]string{
		"[pasted 84 lines]":        strings.Repeat("x\n", 84),
		"[pasted 11 lines]":        strings.Repeat("x\r\n", 10) + "x",
		"[pasted 2001 characters]": strings.Repeat("x", 2001),
	} {
		e := of("a|b")
		e.Paste(paste)
		if c := e.Chips(); len(c) != 1 || c[0].Label != label {
			t.Fatalf("the chips are %+v, not %s", c, label)
		}
		sent, _ := e.Message()
		if want := "a" + clean(paste) + "b"; sent != want {
			t.Errorf("%s is not sent in full", label)
		}
		if v := e.View(60, 5); v.Rows[0].String() != "a"+label+"b" || v.Col != 1+len(label) {
			t.Errorf("the row is %q, the caret at %d", v.Rows[0], v.Col)
		}
		e.Left()
		e.Right()
		e.DeleteBack()
		if e.shows() != "a|b" {
			t.Errorf("Backspace left %q", e.shows())
		}
		e.Undo()
		if !e.Expand(true) || e.shows() != "a"+clean(paste)+"|b" {
			t.Errorf("%s does not expand after an undo", label)
		}
	}
}

func TestPictureIsRemovedAsOne(t *testing.T) {
	e := of("see |")
	pic := Chip{Kind: PictureChip, Label: "[picture 1: trace.png 412×96 18 KiB]", Path: "/p/trace.png"}
	e.AddChip(pic)
	if sent, pictures := e.Message(); sent != "see " || !reflect.DeepEqual(pictures, []Chip{pic}) {
		t.Fatalf("the message is %q with %+v", sent, pictures)
	}
	if e.Expand(true) {
		t.Error("a picture was expanded")
	}
	e.DeleteBack()
	if e.shows() != "see |" {
		t.Errorf("Backspace left %q", e.shows())
	}
}

func TestSO40CaretColumnCountsCells(t *testing.T) {
	t.Run("SO-40 the caret's column is counted in cells", func(t *testing.T) {
		e := New()
		for _, r := range "漢字 é 👩‍💻 x" {
			e.Type(string(r))
		}
		e.Left()
		e.Left()
		v := e.View(80, 5)
		if want := text.Width("漢字 é 👩‍💻"); v.Col != want || v.Row != 0 || want != 9 {
			t.Errorf("the caret stands in column %d, the cell of the space is %d", v.Col, want)
		}
	})
}

func TestRowsOfAWidth(t *testing.T) {
	e := of("hello wide world\n漢字漢字漢\nabcdefgh|")
	v := e.View(8, 20)
	var got []string
	for _, r := range v.Rows {
		got = append(got, r.String())
	}
	want := []string{"hello ", "wide ", "world", "漢字漢字", "漢", "abcdefgh", ""}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("the rows are %q, not %q", got, want)
	}
	if v.Row != 6 || v.Col != 0 {
		t.Fatalf("the caret after a full row stands at %d,%d", v.Row, v.Col)
	}
	v = e.View(8, 3)
	if len(v.Rows) != 3 || v.Row != 2 || !v.Above || v.Below {
		t.Fatalf("of three rows the caret is in %d: %+v", v.Row, v)
	}
	for range 6 {
		if !e.Up(8) {
			t.Fatal("the first row came too early")
		}
	}
	if e.Up(8) {
		t.Fatal("there is a row above the first")
	}
	if v = e.View(8, 3); v.Row != 0 || v.Above || !v.Below {
		t.Fatalf("at the top the view is %+v", v)
	}
	e.Click(2, 3)
	if e.shows() != "hello wide wor|ld\n漢字漢字漢\nabcdefgh" {
		t.Fatalf("the click put the caret at %q", e.shows())
	}
}

func TestUpAndDownKeepTheColumn(t *testing.T) {
	e := of("long enough|\nab\nlong again")
	e.Down(40)
	e.Down(40)
	if e.shows() != "long enough\nab\nlong again|" {
		t.Fatalf("the caret is at %q", e.shows())
	}
	e.Up(40)
	e.Up(40)
	if e.shows() != "long enough|\nab\nlong again" {
		t.Fatalf("and back at %q", e.shows())
	}
}

func TestUndoTakesWordsAndKeepsManySteps(t *testing.T) {
	e := New()
	for i := range 250 {
		for _, r := range fmt.Sprintf("word%d ", i) {
			e.Type(string(r))
		}
	}
	whole := e.shows()
	for i := range 200 {
		if !e.Undo() {
			t.Fatalf("only %d steps can be undone", i)
		}
	}
	if !strings.HasSuffix(e.shows(), "word49 |") {
		t.Fatalf("200 steps back is %q", e.shows()[len(e.shows())-20:])
	}
	for e.Redo() {
	}
	if e.shows() != whole {
		t.Fatal("done again, the text is another")
	}
	e.Undo()
	e.Type("x")
	if e.Redo() {
		t.Fatal("an undone step came back after a change")
	}
}

func TestHistoryKeepsTheDraft(t *testing.T) {
	sent := func(n int) (string, bool) {
		all := []string{"newest", "older"}
		if n < 0 || n >= len(all) {
			return "", false
		}
		return all[n], true
	}
	e := of("draft|")
	e.AddChip(Chip{Kind: PictureChip, Label: "[picture]"})
	e.Older(sent)
	e.Older(sent)
	if e.Older(sent) || e.shows() != "older|" {
		t.Fatalf("the oldest is %q", e.shows())
	}
	e.Newer(sent)
	if e.shows() != "newest|" {
		t.Fatalf("on the way back comes %q", e.shows())
	}
	e.Newer(sent)
	if len(e.Chips()) != 1 || !strings.HasPrefix(e.shows(), "draft") || e.Newer(sent) {
		t.Fatalf("the draft came back as %q", e.shows())
	}
}

func TestStashBringsEverythingBack(t *testing.T) {
	var s Stash
	e := of("text| end")
	e.Paste(strings.Repeat("x\n", 20))
	want := e.Draft()
	s.Toggle(e)
	if !e.Empty() || s.Len() != 1 {
		t.Fatalf("stashed, the composer holds %q, the stash %d", e.shows(), s.Len())
	}
	e.Type("another")
	if s.Back(e) {
		t.Fatal("a stash came back over a text")
	}
	e.Sent()
	if !s.Back(e) || !reflect.DeepEqual(e.Draft(), want) || s.Len() != 0 {
		t.Fatalf("it came back as %+v", e.Draft())
	}
}

// How long it takes is measured by bench; here it counts what is laid out.
func TestABigPasteIsLaidOutAsFarAsItIsSeen(t *testing.T) {
	line := strings.Repeat("漢字 word ", 3)[:30] + "\n"
	big := strings.Repeat(line, 10_000)
	e := New()
	e.Paste(big)
	e.Expand(true)
	e.View(80, 12)
	laid := func() (n int) {
		for _, l := range e.lines {
			if l.laid.starts != nil {
				n++
			}
		}
		return n
	}
	before := laid()
	for range 100 {
		e.Type("x")
		e.View(80, 12)
	}
	if n := laid(); n > before+20 || n > 100 {
		t.Errorf("keys laid out %d lines of %d", n, len(e.lines))
	}
}

func TestDraftsAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := New()
		random(t, e)
		b, err := e.Draft().Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(b) {
			t.Fatalf("%q is no JSON", b)
		}
		d, err := DecodeDraft(b)
		if err != nil {
			t.Fatal(err)
		}
		again := New()
		again.SetDraft(d)
		if !reflect.DeepEqual(again.Draft().Parts, e.Draft().Parts) {
			t.Fatalf("%+v came back as %+v", e.Draft(), again.Draft())
		}
	})
}

var ops = map[string]func(e *Editor){
	"left": (*Editor).Left, "right": (*Editor).Right, "back": (*Editor).DeleteBack, "delete": (*Editor).DeleteForward,
	"start": (*Editor).LineStart, "end": (*Editor).LineEnd, "wordLeft": (*Editor).WordLeft, "wordRight": (*Editor).WordRight,
	"killEnd": (*Editor).KillToEnd, "killStart": (*Editor).KillToStart, "killWord": (*Editor).KillWordBack, "yank": (*Editor).Yank,
	"pop": (*Editor).YankPop, "transpose": (*Editor).Transpose, "clear": (*Editor).Clear,
	"paste": func(e *Editor) { e.Paste(strings.Repeat("p\n", 12)) }, "expand": func(e *Editor) { e.Expand(true) },
	"up": func(e *Editor) { e.Up(7) }, "down": func(e *Editor) { e.Down(7) },
}

func random(t *rapid.T, e *Editor) {
	names := []string{"type"}
	for n := range ops {
		names = append(names, n)
	}
	for range rapid.IntRange(0, 40).Draw(t, "count") {
		name := rapid.SampledFrom(sorted(names)).Draw(t, "op")
		if name == "type" {
			e.Type(rapid.SampledFrom([]string{"a", " ", "b c", "漢", "e\u0301", "\u0301", "👩‍💻", "\n", "x\ny", "\t", "\u202e"}).Draw(t, "text"))
			continue
		}
		ops[name](e)
	}
}

func TestUndoAndRedoAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := New()
		random(t, e)
		end := e.slice(Pos{}, e.end())
		for e.Undo() {
		}
		if !e.Empty() {
			t.Fatalf("undone, the text is %q", e.shows())
		}
		for e.Redo() {
		}
		if got := e.slice(Pos{}, e.end()); got != end {
			t.Fatalf("done again, the text is %q, not %q", got, end)
		}
	})
}

func TestViewHoldsTheTextAndTheCaret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := New()
		random(t, e)
		w := rapid.IntRange(2, 20).Draw(t, "width")
		h := rapid.IntRange(1, 6).Draw(t, "height")
		v := e.View(w, h)
		if len(v.Rows) > h || v.Row >= len(v.Rows) || v.Col >= w || v.Col < 0 {
			t.Fatalf("the caret is at %d,%d of %d rows", v.Row, v.Col, len(v.Rows))
		}
		if (v.Above || v.Below) && len(v.Rows) < h {
			t.Fatalf("of %d rows %d are used, and there is more", h, len(v.Rows))
		}
		before := e.caret
		e.Click(v.Row, v.Col)
		if back := e.View(w, h); back.Row != v.Row || back.Col > v.Col {
			t.Fatalf("a click on the caret at %v put it at %v", before, e.caret)
		}
	})
}

// The text is what a string with an index would be.
func TestAgainstAString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := New()
		var left, right []string // clusters around the caret
		clusters := func(s string) (out []string) {
			for i, l := range strings.Split(s, "\n") {
				if i > 0 {
					out = append(out, "\n")
				}
				for c := range text.Clusters(l) {
					out = append(out, c)
				}
			}
			return out
		}
		for range rapid.IntRange(0, 60).Draw(t, "count") {
			switch rapid.IntRange(0, 4).Draw(t, "op") {
			case 0, 1:
				s := rapid.SampledFrom([]string{"a", "漢", "👩‍💻", "\n", "b\nc", " "}).Draw(t, "text")
				e.Type(s)
				left = append(left, clusters(s)...)
			case 2:
				e.DeleteBack()
				left = left[:max(0, len(left)-1)]
			case 3:
				e.Left()
				if n := len(left); n > 0 {
					left, right = left[:n-1], append([]string{left[n-1]}, right...)
				}
			case 4:
				e.Right()
				if len(right) > 0 {
					left, right = append(left, right[0]), right[1:]
				}
			}
			if want := strings.Join(left, "") + "|" + strings.Join(right, ""); e.shows() != want {
				t.Fatalf("the text is %q, not %q", e.shows(), want)
			}
		}
	})
}

func FuzzPaste(f *testing.F) {
	for _, s := range []string{"a\r\nb", "\x1b[31m", strings.Repeat("x\n", 11), "\U00100000", "e\u0301\u202e", "\xff\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := New()
		e.Paste(s)
		e.Paste(s)
		e.Expand(true)
		e.View(7, 5)
		sent, _ := e.Message()
		if sent != clean(s)+clean(s) {
			t.Fatalf("%q twice is sent as %q", s, sent)
		}
		if i := strings.IndexFunc(sent, func(r rune) bool { return r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r <= 0x9f) }); i >= 0 {
			t.Fatalf("%q holds a control character", sent)
		}
		for e.Undo() {
		}
		if !e.Empty() {
			t.Fatalf("undone, %q is left", e.shows())
		}
	})
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}
