package sonnytest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// display is what both drivers do alike.
type display interface {
	Type(text string)
	Keys(names ...string)
	Paste(text string)
	Capture() string
	CaptureEsc() string
	History() string
	Cursor() (x, y int, shown bool)
	Title() string
	Resize(width, height int)
	WaitFor(text string)
	WaitGone(text string)
	Exit() int
}

// drivers opens a shell script at each driver.
var drivers = map[string]func(h *Home, script string) display{
	"tmux": func(h *Home, script string) display { return h.Tmux(40, 8, "sh", "-c", script) },
	"emulator": func(h *Home, script string) display {
		return h.Screen(Terminal{Width: 40, Height: 8}, "sh", "-c", script)
	},
}

// onBoth runs a test on each driver.
func onBoth(t *testing.T, script string, test func(t *testing.T, d display)) {
	t.Helper()
	for name, open := range drivers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(Fresh(t), script))
		})
	}
}

func TestWhatIsTypedReachesTheProgram(t *testing.T) {
	t.Parallel()
	onBoth(t, `while read -r line; do echo "got <$line>"; done; exit 7`, func(t *testing.T, d display) {
		for _, text := range []string{"plain words", "-l -- $HOME; echo ${x};", "漢字 é", `back\slash;`} {
			d.Type(text)
			d.Keys("Enter")
			d.WaitFor("got <" + text + ">")
		}
		d.Keys("C-d")
		if status := d.Exit(); status != 7 {
			t.Errorf("status %d", status)
		}
	})
}

func TestKeysByName(t *testing.T) {
	t.Parallel()
	// od prints each byte that comes, until a q.
	script := `stty raw -echo; echo ready; while c=$(dd bs=1 count=1 2>/dev/null | od -An -tx1 | tr -d ' \n'); do printf '%s.' "$c"; [ "$c" = 71 ] && exit; done`
	for keys, want := range map[string]string{
		"Enter Tab BTab BSpace Escape": "0d.09.1b.5b.5a.7f.1b.",
		"C-c M-a C-Space M-Enter":      "03.1b.61.00.1b.0d.",
		"Up Left Home DC F5":           "1b.5b.41.1b.5b.44.",
		"S-Left C-Up M-Down":           "1b.5b.31.3b.32.44.1b.5b.31.3b.35.41.1b.5b.31.3b.33.42.",
		"é ;":                          "c3.a9.3b.",
	} {
		t.Run(keys, func(t *testing.T) {
			t.Parallel()
			onBoth(t, script, func(t *testing.T, d display) {
				d.WaitFor("ready")
				d.Keys(strings.Fields(keys)...)
				d.Keys("q")
				d.WaitFor("71.")
				if got := strings.ReplaceAll(d.Capture(), "\n", ""); !strings.Contains(got, want) {
					t.Errorf("%s, wanted %s", got, want)
				}
			})
		})
	}
}

func TestWhatIsPastedIsInBracketsWhereAskedFor(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ mode, want string }{
		"asked for":     {`\033[?2004h`, "^[[200~one^Mtwo^[[201~."},
		"not asked for": {"", "one^Mtwo."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, `stty raw -echo; printf 'ready`+row.mode+`'; cat -v`, func(t *testing.T, d display) {
				d.WaitFor("ready")
				d.Paste("one\ntwo")
				d.Type(".")
				d.WaitFor("ready" + row.want)
			})
		})
	}
}

func TestWhatTheScreenShows(t *testing.T) {
	t.Parallel()
	draw := `stty -echo; seq 1 20; printf '\033]2;a title\007\033[H\033[2Jtop\033[3;5H\033[1;31mred\033[m 漢x\033[8;1Hbottom\033[3;5H'; read -r x
printf '\033[?25l\033[3;1H\033[Kgone'; read -r x; stty size; read -r x`
	onBoth(t, draw, func(t *testing.T, d display) {
		d.WaitFor("bottom")
		want := "top\n\n    red 漢x\n\n\n\n\nbottom"
		if got := d.Capture(); got != want {
			t.Errorf("%q, wanted %q", got, want)
		}
		if got := d.CaptureEsc(); !regexp.MustCompile(`\x1b\[([0-9;]*;)?31[;m].*red`).MatchString(got) || strings.Contains(got, " \n") {
			t.Errorf("no colour in %q", got)
		}
		if x, y, shown := d.Cursor(); x != 4 || y != 2 || !shown {
			t.Errorf("cursor at %d, %d, shown: %v", x, y, shown)
		}
		if got := d.Title(); got != "a title" {
			t.Errorf("title %q", got)
		}
		if got := d.History(); !strings.HasPrefix(got, "1\n2\n3\n") || !strings.HasSuffix(got, want) {
			t.Errorf("history %q", got)
		}
		d.Keys("Enter")
		d.WaitGone("red")
		d.WaitFor("gone")
		if _, _, shown := d.Cursor(); shown {
			t.Error("the cursor is shown")
		}
		d.Resize(61, 11)
		d.Keys("Enter")
		d.WaitFor("11 61")
		d.Keys("Enter")
		if status := d.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
	})
}

func TestTmuxTellsHowTheTerminalIsLeft(t *testing.T) {
	t.Parallel()
	m := Fresh(t).Tmux(40, 8, "sh", "-c", `echo first; read -r x; stty raw -echo; echo second; dd bs=1 count=1 >/dev/null 2>&1; stty sane; echo third; read -r x`)
	m.WaitFor("first")
	before := m.Stty()
	m.Keys("Enter")
	m.WaitFor("second")
	if during := m.Stty(); during == before || !strings.Contains(during, "-icanon") {
		t.Errorf("not raw: %s", during)
	}
	m.Keys("x")
	m.WaitFor("third")
	if after := m.Stty(); !strings.Contains(after, " icanon") {
		t.Errorf("still raw: %s", after)
	}
}

func TestAClosedTerminalEndsTheProgram(t *testing.T) {
	t.Parallel()
	script := `trap 'echo gone > ended; exit 1' HUP; echo ready; while :; do read -r x || sleep 0.05; done`
	t.Run("tmux", func(t *testing.T) {
		t.Parallel()
		h := Fresh(t)
		m := h.Tmux(40, 8, "sh", "-c", script)
		m.WaitFor("ready")
		pid := m.PID()
		m.KillPane()
		h.Until("the program's end", func() bool { return !alive(h.Dir, pid) })
		h.Until("its file", func() bool { return h.Run("cat", "ended").Stdout == "gone\n" })
	})
	t.Run("emulator", func(t *testing.T) {
		t.Parallel()
		h := Fresh(t)
		s := h.Screen(Terminal{Width: 40, Height: 8}, "sh", "-c", script)
		s.WaitFor("ready")
		s.Hangup()
		if got := h.Run("cat", "ended").Stdout; got != "gone\n" {
			t.Errorf("%q", got)
		}
	})
}

func TestTheEmulatorAnswersAsTheTerminalItIs(t *testing.T) {
	t.Parallel()
	ask := `stty raw -echo; printf '\033]11;?\007\033[?2026$p\033[?2027$p\033[c'; dd bs=1 2>/dev/null | cat -v`
	for name, row := range map[string]struct {
		like Terminal
		want string
	}{
		"one that knows all":  {Terminal{Width: 120, Height: 5, Background: "#102030", Synchronized: true, Graphemes: true}, "^[]11;rgb:1010/2020/3030^G^[[?2026;2$y^[[?2027;2$y^[[?62;"},
		"one that knows none": {Terminal{Width: 120, Height: 5}, "^[[?2026;0$y^[[?2027;0$y^[[?62;"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Fresh(t).Screen(row.like, "sh", "-c", ask)
			s.WaitFor("62;")
			if got := s.Capture(); !strings.HasPrefix(got, row.want) {
				t.Errorf("%q, wanted %q", got, row.want)
			}
		})
	}
}

func TestTheEmulatorsFocusMouseAndBytes(t *testing.T) {
	t.Parallel()
	s := Fresh(t).Screen(Terminal{Width: 120, Height: 5}, "sh", "-c", `stty raw -echo; printf '\033[?1049h\033[?1004h\033[?1002h\033[?1006hready'; cat -v`)
	written := s.WaitRaw(0, "ready")
	if !s.Alternate() {
		t.Error("not the alternate screen")
	}
	s.Focus(false)
	s.Focus(true)
	s.Click(3, 1)
	s.Drag(0, 0, 4, 0)
	s.Wheel(2, 2, -1)
	s.Wheel(2, 2, 1)
	s.WaitRaw(written, "^[[O^[[I^[[<0;4;2M^[[<0;4;2m^[[<0;1;1M^[[<32;5;1M^[[<0;5;1m^[[<64;3;3M^[[<65;3;3M")
	if raw := string(s.Raw()); !strings.HasPrefix(raw, "\x1b[?1049h\x1b[?1004h") {
		t.Errorf("%q", raw)
	}
	if cell := s.Cell(0, 0); cell.Content != "r" {
		t.Errorf("%q", cell.Content)
	}
	s.Kill()
	if status := s.Exit(); status != -1 {
		t.Errorf("status %d", status)
	}
}

func TestABigPasteDoesNotHoldUpTheScreen(t *testing.T) {
	t.Parallel()
	// The program reads nothing before it has been told to, and it writes meanwhile.
	h := Fresh(t)
	s := h.Screen(Terminal{Width: 40, Height: 5}, "sh", "-c", `stty raw -echo; echo ready; until [ -e go ]; do printf '\033[6n'; sleep 0.01; done; tr -d '\033[0-9;R' | head -c 300000 | wc -c`)
	s.WaitFor("ready")
	s.Paste(strings.Repeat("x", 320_000)) // more than is counted, since tr keeps some back
	h.Write("go", "")
	s.WaitFor("300000")
}

func TestTheEmulatorDrawsNoCharacterInTwo(t *testing.T) {
	t.Parallel()
	const family = "👩‍👩‍👧"
	rows := strings.Repeat(strings.Repeat(family, 50)+"\n", 12)
	h := Fresh(t)
	h.Write("rows", rows+"end")
	s := h.Screen(Terminal{Width: 120, Height: 20, Graphemes: true}, "sh", "-c", `printf '\033[?2027h'; cat rows -`)
	s.WaitFor("end")
	if got := s.Capture(); !strings.HasPrefix(got, rows+"end") {
		t.Errorf("%q", got)
	}
}

func TestASynchronizedFrameShowsWhenItIsWhole(t *testing.T) {
	t.Parallel()
	script := `printf '\033[?2026hhalf'; until [ -e go ]; do sleep 0.01; done; printf ' whole\033[?2026l'; cat`
	for name, synchronized := range map[string]bool{"by a terminal that knows": true, "by another": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := Fresh(t)
			s := h.Screen(Terminal{Width: 40, Height: 3, Synchronized: synchronized}, "sh", "-c", script)
			if !synchronized {
				s.WaitFor("half")
			}
			h.Write("go", "")
			s.Until("the whole frame", func(screen string) bool {
				if synchronized && strings.Contains(screen, "half") != strings.Contains(screen, "whole") {
					t.Errorf("half a frame: %q", screen)
				}
				return strings.Contains(screen, "half whole")
			})
		})
	}
}

func TestGoldenScreens(t *testing.T) {
	t.Parallel()
	s := Fresh(t).Screen(Terminal{Width: 30, Height: 4}, "sh", "-c", `printf 'a golden screen\n  and its second row\n\n'; cat`)
	s.WaitFor("second")
	Golden(t, "shell", s.Capture())
	if *update {
		return
	}
	other := &failing{TB: t}
	Golden(other, "shell", s.Capture()+"!")
	if !other.failed {
		t.Error("another screen passes")
	}
}

// failing takes the faults that a test is to find.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Errorf(string, ...any) { f.failed = true }

func TestRepo(t *testing.T) {
	t.Parallel()
	h := Fresh(t)
	dir := h.Repo("a/demo", map[string]string{"AGENTS.md": "Be kind.\n", "sub/x.txt": "x\n"})
	if dir != filepath.Join(h.Dir, "a/demo") {
		t.Error(dir)
	}
	if got := h.Git(dir, "ls-files"); got != "AGENTS.md\nsub/x.txt" {
		t.Error(got)
	}
	if got := h.Git(dir, "status", "--porcelain", "--branch"); got != "## main" {
		t.Error(got)
	}
	if h.Repo("empty", nil) == "" {
		t.Error("no folder")
	}
}
