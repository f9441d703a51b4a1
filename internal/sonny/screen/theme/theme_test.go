package theme

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/screen/text"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func need(r text.Role) float64 {
	if r == text.Rule {
		return MarkContrast
	}
	return TextContrast
}

// readable checks every role on a background and on the theme's own grounds.
func readable(t interface {
	Helper()
	Errorf(string, ...any)
}, th Theme, background Color,
) {
	t.Helper()
	for role := range text.Roles() {
		for _, ground := range []text.Role{text.Plain, text.Panel, text.Select} {
			s := th.Look(role, ground, 0)
			on := background
			if s.Bg.Set() {
				on = s.Bg
			}
			if got := Contrast(s.Fg, on); got < need(role)-0.005 {
				t.Errorf("%s: %s on %s on %+v has contrast %.2f", th.Name, role, ground, background, got)
			}
		}
	}
}

func TestContrastOfTheBuiltInThemes(t *testing.T) {
	for _, bg := range []uint32{0x000000, 0x0d1117, 0x1e1e1e, 0x282c34} {
		readable(t, Dark(), hex(bg))
	}
	for _, bg := range []uint32{0xffffff, 0xfdf6e3, 0xf5f5f5, 0xeeeeee} {
		readable(t, Light(), hex(bg))
	}
}

func TestContrastAgainstAnyReportedBackground(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bg := hex(rapid.Uint32Range(0, 0xffffff).Draw(t, "background"))
		readable(t, OnBackground(bg), bg)
	})
}

func TestContrastIsThatOfWCAG(t *testing.T) {
	if got := Contrast(black, white); math.Abs(got-21) > 1e-9 {
		t.Errorf("black on white has %v", got)
	}
	if got := Contrast(hex(0x777777), white); math.Abs(got-4.48) > 0.01 {
		t.Errorf("#777777 on white has %v", got)
	}
}

// seen is a colour as an eye sees it that lacks one kind of cone (Viénot, Brettel and
// Mollon 1999 for the first two, in linear light).
func seen(c Color, m [9]float64) [3]float64 {
	r, g, b := linear(c.r), linear(c.g), linear(c.b)
	return [3]float64{m[0]*r + m[1]*g + m[2]*b, m[3]*r + m[4]*g + m[5]*b, m[6]*r + m[7]*g + m[8]*b}
}

// lab is a colour of linear light in CIELAB.
func lab(c [3]float64) [3]float64 {
	f := func(v float64) float64 {
		if v > 0.008856 {
			return math.Cbrt(v)
		}
		return 7.787*v + 16.0/116
	}
	x := f((0.4124*c[0] + 0.3576*c[1] + 0.1805*c[2]) / 0.9505)
	y := f(0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2])
	z := f((0.0193*c[0] + 0.1192*c[1] + 0.9505*c[2]) / 1.089)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func TestAddedAndRemovedDifferToEveryEye(t *testing.T) {
	eyes := map[string][9]float64{
		"all cones":    {1, 0, 0, 0, 1, 0, 0, 0, 1},
		"protanopia":   {0.11238, 0.88762, 0, 0.11238, 0.88762, 0, 0.00401, -0.00401, 1},
		"deuteranopia": {0.29275, 0.70725, 0, 0.29275, 0.70725, 0, -0.02234, 0.02234, 1},
		"tritanopia":   {1, 0.1446, -0.1446, 0, 0.8592, 0.1408, 0, 0.8592, 0.1408},
	}
	for _, th := range []Theme{Dark(), Light()} {
		add, del := th.of(text.Add).Fg, th.of(text.Del).Fg
		for name, m := range eyes {
			a, d := lab(seen(add, m)), lab(seen(del, m))
			if dist := math.Sqrt((a[0]-d[0])*(a[0]-d[0]) + (a[1]-d[1])*(a[1]-d[1]) + (a[2]-d[2])*(a[2]-d[2])); dist < 20 {
				t.Errorf("%s: with %s added and removed are %.0f apart", th.Name, name, dist)
			}
		}
	}
}

func TestANSIAndNoneKeepToThemselves(t *testing.T) {
	for role := range text.Roles() {
		s := ANSI().Look(role, text.Select, 0)
		if s.Bg.Set() || s.Attr&text.Reverse == 0 {
			t.Errorf("ansi: %s selected is %+v", role, s)
		}
		if n, ok := s.Fg.Palette(); s.Fg.Set() && (!ok || n > 15) {
			t.Errorf("ansi: %s is %+v", role, s.Fg)
		}
		if s = None().Look(role, text.Panel, 0); s.Fg.Set() || s.Bg.Set() {
			t.Errorf("none: %s is %+v", role, s)
		}
	}
}

func TestDepthByTheEnvironment(t *testing.T) {
	for _, row := range []struct {
		name    string
		env     map[string]string
		noColor bool
		want    Depth
	}{
		{"truecolor", map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}, false, True},
		{"256 by name", map[string]string{"TERM": "xterm-256color"}, false, Palette},
		{"kitty without COLORTERM", map[string]string{"TERM": "xterm-kitty"}, false, Palette},
		{"a plain xterm", map[string]string{"TERM": "xterm"}, false, Sixteen},
		{"NO_COLOR", map[string]string{"TERM": "xterm", "NO_COLOR": "1", "COLORTERM": "truecolor"}, false, Mono},
		{"NO_COLOR that is empty", map[string]string{"TERM": "xterm", "NO_COLOR": ""}, false, Sixteen},
		{"--no-color", map[string]string{"TERM": "xterm-256color"}, true, Mono},
		{"dumb", map[string]string{"TERM": "dumb", "COLORTERM": "truecolor"}, false, Mono},
		{"tmux", map[string]string{"TERM": "screen", "TMUX": "x", "COLORTERM": "truecolor"}, false, Palette},
	} {
		if got := DepthOf(func(n string) string { return row.env[n] }, row.noColor); got != row.want {
			t.Errorf("%s: the depth is %d, not %d", row.name, got, row.want)
		}
	}
}

func TestChoice(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mine.toml", "accent = \"#ff0000\"\nrun = 201\nfail = \"bright-red\"\nselect = \"blue\"\ntext = \"default\"\n")
	write("wrong.toml", "accent = \"#ff00\"\n")
	write("role.toml", "acent = 1\n")
	write("secret.toml", "accent = 1\n")
	if err := os.Symlink(filepath.Join(dir, "secret.toml"), filepath.Join(dir, "link.toml")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo.toml"), 0o600); err != nil {
		t.Fatal(err)
	}
	light := Ground{Known: true, Color: white, Depth: True, Dir: dir}
	dark := Ground{Known: true, Dark: true, Color: black, Depth: True, Dir: dir}
	for _, row := range []struct {
		name, setting string
		g             Ground
		want, fault   string
	}{
		{"SO-58 auto on white", "auto", light, "light", ""},
		{"SO-58 auto on black", "auto", dark, "dark", ""},
		{"SO-58 auto without an answer", "auto", Ground{Depth: True}, "ansi", ""},
		{"auto with sixteen colours", "auto", Ground{Known: true, Color: white, Depth: Sixteen}, "ansi", ""},
		{"auto by the scheme alone", "", Ground{Known: true, Dark: true, Depth: True}, "dark", ""},
		{"no colours", "dark", Ground{Depth: Mono}, "none", ""},
		{"light on black", "light", dark, "light", ""},
		{"a file", "mine", dark, "mine", ""},
		{"a file without colours", "mine", Ground{Depth: Mono, Dir: dir}, "none", ""},
		{"a file that is not there", "other", light, "light", "\"other\" is no theme"},
		{"a path", "../x", light, "light", "no theme"},
		{"a wrong colour", "wrong", light, "light", "accent"},
		{"a wrong role", "role", light, "light", "acent"},
		{"a link", "link", light, "light", "link.toml"},
		{"a FIFO", "fifo", light, "light", "regular"},
	} {
		t.Run(row.name, func(t *testing.T) {
			th, fault := Choose(row.setting, row.g)
			if th.Name != row.want {
				t.Errorf("the theme is %s, not %s", th.Name, row.want)
			}
			if (fault == nil) != (row.fault == "") || fault != nil && !strings.Contains(fault.Detail, row.fault) {
				t.Errorf("the fault is %v", fault)
			}
		})
	}
	mine, _ := Choose("mine", dark)
	for role, want := range map[text.Role]Color{
		text.Accent: RGB(255, 0, 0), text.Run: Index(201), text.Fail: Index(9), text.Plain: {}, text.Wait: OnBackground(black).of(text.Wait).Fg,
	} {
		if got := mine.of(role).Fg; got != want {
			t.Errorf("%s of the file is %+v, not %+v", role, got, want)
		}
	}
	if got := mine.Look(text.Wait, text.Select, 0).Bg; got != Index(4) {
		t.Errorf("what is selected has the ground %+v", got)
	}
}
