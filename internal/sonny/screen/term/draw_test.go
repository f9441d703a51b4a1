package term

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/screen/theme"

	"pgregory.net/rapid"
)

func TestFrameIsShown(t *testing.T) {
	g := open(t, 20, 4)
	g.Draw(screenOf(20, 4, "first", "漢字 wide", "third"))
	if got, want := g.rows(), []string{"first", "漢字 wide", "third", ""}; !slices.Equal(got, want) {
		t.Fatalf("the screen shows %q, not %q", got, want)
	}
	if x, y := g.cursor(); x != 5 || y != 2 {
		t.Fatalf("the cursor stands at %d,%d, not after the third row", x, y)
	}
}

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	g := open(t, 40, 5)
	g.Draw(screenOf(40, 5, "one stays", "two is here", "three stays"))
	g.written()
	g.Draw(screenOf(40, 5, "one stays", "two IS here", "three stays"))
	out := g.written()
	if strings.Contains(out, "stays") || strings.Contains(out, "here") || !strings.Contains(out, "IS") {
		t.Fatalf("a change of two cells wrote %q", out)
	}
	if c := g.last().Cells; c != 2 {
		t.Fatalf("%d cells changed, not 2", c)
	}
	if !strings.Contains(out, "\x1b[?25l") || !strings.HasSuffix(out, "\x1b[?25h") {
		t.Fatalf("the cursor is not hidden while the frame is drawn: %q", out)
	}
}

func TestFrameWithoutChangeWritesNothing(t *testing.T) {
	g := open(t, 20, 3)
	g.Draw(screenOf(20, 3, "same"))
	g.written()
	g.Draw(screenOf(20, 3, "same"))
	if out := g.written(); out != "" {
		t.Fatalf("an unchanged frame wrote %q", out)
	}
	f := screenOf(20, 3, "same")
	f.SetCursor(1, 0)
	g.Draw(f)
	if out := g.written(); out != "\x1b[1;2H" {
		t.Fatalf("a moved cursor wrote %q", out)
	}
}

func TestBlankEndOfRowIsErased(t *testing.T) {
	g := open(t, 40, 2)
	g.Draw(screenOf(40, 2, strings.Repeat("x", 40)))
	g.written()
	g.Draw(screenOf(40, 2, "xx"))
	if out := g.written(); !strings.Contains(out, "\x1b[K") || strings.Contains(out, "   ") {
		t.Fatalf("38 blanks were written as %q", out)
	}
	if got := g.rows()[0]; got != "xx" {
		t.Fatalf("the row shows %q", got)
	}
}

func TestSynchronizedWhereTheTerminalAnswers(t *testing.T) {
	g := open(t, 20, 2)
	g.Draw(screenOf(20, 2, "a"))
	if out := g.written(); strings.Contains(out, "?2026h") {
		t.Fatalf("an emulator without mode 2026 was sent it: %q", out)
	}
	g.p.look(func(r *renderer) { r.sync = true })
	g.Draw(screenOf(20, 2, "b"))
	if out := g.written(); !strings.HasPrefix(out, "\x1b[?2026h") || !strings.HasSuffix(out, "\x1b[?2026l") {
		t.Fatalf("the frame is not within one update: %q", out)
	}
}

// One key typed below rows of wide characters (the terminal's part of SO-55).
func TestTypedKeyBelowWideRowsIsSmall(t *testing.T) {
	const w, h = 160, 48
	frame := func(typed string) *Frame {
		f := NewFrame(w, h)
		for y := range h - 1 {
			f.Put(0, y, text.Of(text.Bot, fmt.Sprintf("%02d %s", y, strings.Repeat("漢字👩‍💻", 25))), w)
		}
		f.SetCursor(f.Put(0, h-1, text.Of(text.User, typed), w), h-1)
		return f
	}
	for _, row := range []struct {
		name  string
		typed [2]string
		theme theme.Theme
		depth theme.Depth
	}{
		{"a letter", [2]string{"hell", "hello"}, theme.Dark(), theme.True},
		{"a wide letter", [2]string{"漢字", "漢字語"}, theme.Dark(), theme.True},
		{"a letter after a joined emoji", [2]string{"👩‍💻 hell", "👩‍💻 hello"}, theme.None(), theme.Mono},
	} {
		t.Run("SO-55 the write of "+row.name+" is small", func(t *testing.T) {
			g := open(t, w, h, func(o *Options) { o.Theme, o.Depth = row.theme, row.depth })
			g.Draw(frame(row.typed[0]))
			g.written()
			g.Draw(frame(row.typed[1]))
			out := g.written()
			if len(out) > 512 {
				t.Errorf("%d bytes were written", len(out))
			}
			if strings.Contains(out, "00 ") || strings.Contains(out, "字👩") {
				t.Errorf("a row that did not change was written: %q", out)
			}
		})
	}
}

func TestJoinedClusterIsFollowedByAnAbsolutePlace(t *testing.T) {
	g := open(t, 30, 2)
	g.Draw(screenOf(30, 2, "ab👩‍💻cd"))
	out := g.written()
	if !strings.Contains(out, "👩‍💻\x1b[1;5Hcd") {
		t.Fatalf("what follows is not placed: %q", out)
	}
	g.Draw(screenOf(30, 2, "ab👩‍💻ce"))
	if out = g.written(); !strings.Contains(out, "ab👩‍💻\x1b[1;5Hce") {
		t.Fatalf("the changed row is not written whole: %q", out)
	}
	g.p.look(func(r *renderer) { r.unicode = true })
	g.Draw(screenOf(30, 2, "ab👩‍💻cf"))
	if out = g.written(); strings.Contains(out, "👩") {
		t.Fatalf("a terminal that measures by cluster was sent the row again: %q", out)
	}
}

func TestResizeClearsOnceAndDrawsAll(t *testing.T) {
	g := open(t, 20, 3)
	g.Draw(screenOf(20, 3, "wide enough", "b"))
	g.resize(10, 2)
	if e := g.event(); e != (Resize{W: 10, H: 2}) {
		t.Fatalf("the event is %#v", e)
	}
	g.written()
	g.Draw(screenOf(10, 2, "narrow", "c"))
	if out := g.written(); strings.Count(out, "\x1b[2J") != 1 {
		t.Fatalf("the frame is %q", out)
	}
	if got := g.rows(); !slices.Equal(got, []string{"narrow", "c"}) {
		t.Fatalf("the screen shows %q", got)
	}
}

// Whatever follows whatever, the emulator shows the newest frame.
func TestAnyFrameAfterAnyOther(t *testing.T) {
	const w, h = 12, 4
	g := open(t, w, h)
	pieces := rapid.SampledFrom([]string{"a", "bc", " ", "   ", "漢", "字x", "é", "│", "…", "zz top"})
	rapid.Check(t, func(t *rapid.T) {
		f := NewFrame(w, h)
		for range rapid.IntRange(0, 12).Draw(t, "puts") {
			l := text.Of(rapid.SampledFrom(slices.Collect(text.Roles())).Draw(t, "role"), pieces.Draw(t, "piece"))
			f.Put(rapid.IntRange(-2, w).Draw(t, "x"), rapid.IntRange(0, h-1).Draw(t, "y"), l, rapid.IntRange(0, w).Draw(t, "width"))
		}
		f.SetCursor(rapid.IntRange(0, w-1).Draw(t, "cx"), rapid.IntRange(0, h-1).Draw(t, "cy"))
		want := make([]string, h)
		for y := range h {
			want[y] = f.Row(y)
		}
		cx, cy := f.Cursor()
		g.Draw(f)
		if got := g.rows(); !slices.Equal(got, want) {
			t.Fatalf("the screen shows %q, not %q", got, want)
		}
		if x, y := g.cursor(); x != cx || y != cy {
			t.Fatalf("the cursor stands at %d,%d, not %d,%d", x, y, cx, cy)
		}
	})
}

func TestNothingDrawnLeavesACanvas(t *testing.T) {
	f := NewFrame(10, 3)
	c := f.All().Sub(2, 1, 4, 1)
	c.Put(-1, 0, text.Of(text.Plain, "abcdefgh"), 20)
	c.Put(0, 1, text.Of(text.Plain, "no"), 20)
	c.Fill(-5, -5, 1, 1, text.Select)
	if f.Row(0) != "" || f.Row(1) != "  bcde" || f.Row(2) != "" {
		t.Fatalf("the frame is %q %q %q", f.Row(0), f.Row(1), f.Row(2))
	}
	c.Put(0, 0, text.Of(text.Plain, "漢字漢"), 3)
	if f.Row(1) != "  漢de" {
		t.Fatalf("a cluster was cut: %q", f.Row(1))
	}
}

func TestControlCharactersNeverReachTheTerminal(t *testing.T) {
	g := open(t, 40, 1)
	g.written()
	l := text.Join(text.Span{Text: "a\x1b[2Jb\a\u009b", URL: "http://x\x1b]0;t\a"})
	f := NewFrame(40, 1)
	f.Put(0, 0, l, 40)
	g.Draw(f)
	out := g.written()
	if strings.Contains(out, "\a") || strings.Contains(out, "a\x1b[2J") || strings.Contains(out, "\u009b") || strings.Contains(out, "]0;t") {
		t.Fatalf("the frame is %q", out)
	}
}

func TestSO59OnlyASCIIIsDrawn(t *testing.T) {
	t.Run("SO-59 whatever is drawn with --ascii is ASCII of the same width", func(t *testing.T) {
		g := open(t, 60, 3, func(o *Options) { o.ASCII = true; o.Theme, o.Depth = theme.Dark(), theme.True })
		g.Draw(screenOf(60, 3, "●◐!◔◌○✔✘‖ ─│┌┐└┘ ›…·", "漢字 é ß 👩‍💻 x", "end"))
		out := g.written()
		if i := strings.IndexFunc(out, func(r rune) bool { return r > 0x7e }); i >= 0 {
			t.Fatalf("%q is no ASCII", out[i:])
		}
		want := []string{"*w!~.o+x= -|++++ >~.", "???? e s ?? x", "end"}
		if got := g.rows(); !slices.Equal(got, want) {
			t.Fatalf("the screen shows %q, not %q", got, want)
		}
	})
}

func TestASCIIKeepsWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for cluster, w := range text.Clusters(rapid.String().Draw(t, "text")) {
			got := ASCII(cluster, w)
			if w > 0 && cluster[0] >= ' ' && cluster[0] != 0x7f && text.Width(got) != w {
				t.Fatalf("%q of %d cells became %q", cluster, w, got)
			}
		}
	})
	for g, a := range asciiGlyphs {
		if text.Width(g) != 1 || len(a) != 1 || a[0] < ' ' || a[0] > 0x7e {
			t.Errorf("%q of %d cells stands as %q", g, text.Width(g), a)
		}
	}
}

func TestNoColourMeansNoColour(t *testing.T) {
	t.Run("SO-57 with no colour no frame holds one", func(t *testing.T) {
		g := open(t, 40, 20, func(o *Options) { o.Theme = theme.Dark() })
		f := NewFrame(40, 20)
		for r := range text.Roles() {
			f.Fill(0, int(r), 40, 1, r)
			f.Put(0, int(r), text.Of(r, r.String()), 40)
		}
		g.Draw(f)
		out := g.written()
		for _, code := range []string{"38;", "48;", ";3", ";4", ";9"} {
			for _, sgr := range sgrsOf(out) {
				if strings.Contains(sgr, code) && sgr != "0;4" && sgr != "0;1;4" {
					t.Errorf("the frame holds %q", sgr)
				}
			}
		}
		if !strings.Contains(out, "\x1b[0;7m") {
			t.Errorf("what is selected is not reversed: %q", out)
		}
	})
}

// sgrsOf are the parameters of every style that was written.
func sgrsOf(out string) []string {
	var found []string
	for part := range strings.SplitSeq(out, "\x1b[") {
		if i := strings.IndexFunc(part, func(r rune) bool { return r > 0x3f }); i >= 0 && part[i] == 'm' {
			found = append(found, part[:i])
		}
	}
	return found
}

func TestStylesByDepth(t *testing.T) {
	s := theme.Style{Fg: theme.RGB(0xff, 0, 0), Attr: text.Bold | text.Underline}
	for depth, want := range map[theme.Depth]string{
		theme.Mono:    "\x1b[0;1;4m",
		theme.Sixteen: "\x1b[0;1;4;91m",
		theme.Palette: "\x1b[0;1;4;38;5;196m",
		theme.True:    "\x1b[0;1;4;38;2;255;0;0m",
	} {
		if got := string(sgr(nil, s, depth)); got != want {
			t.Errorf("at depth %d the style is %q, not %q", depth, got, want)
		}
	}
}

func TestNewThemeRedraws(t *testing.T) {
	g := open(t, 20, 1, func(o *Options) { o.Theme, o.Depth = theme.Dark(), theme.True })
	g.Draw(screenOf(20, 1, "x"))
	before := g.written()
	g.SetTheme(theme.Light())
	g.Draw(screenOf(20, 1, "x"))
	after := g.written()
	if !strings.Contains(after, "x") || sgrsOf(after)[0] == sgrsOf(before)[0] {
		t.Fatalf("the frame after the change is %q", after)
	}
}

// slow is an output that takes nothing until it is let go.
type slow struct {
	*glass
	entered, gate chan struct{}
}

func (s slow) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "first") {
		close(s.entered)
		<-s.gate
	}
	return s.glass.Write(p)
}

func TestSlowTerminalSkipsFramesAndNeverBlocks(t *testing.T) {
	var out slow
	g := open(t, 20, 1, func(o *Options) {
		out = slow{o.Out.(*glass), make(chan struct{}), make(chan struct{})}
		o.Out = out
	})
	g.written()
	g.Draw(screenOf(20, 1, "first"))
	<-out.entered
	for i := range 100 {
		g.Draw(screenOf(20, 1, fmt.Sprintf("frame %d", i)))
	}
	g.em.SendText("k")
	if e := g.event(); e != (Key{Name: "k", Text: "k"}) {
		t.Fatalf("a key while the terminal takes nothing is %#v", e)
	}
	close(out.gate)
	if got := g.rows()[0]; got != "frame 99" {
		t.Fatalf("the screen shows %q", got)
	}
	if n := len(g.frames); n != 2 {
		t.Fatalf("%d frames were written, not the first and the newest", n)
	}
}
