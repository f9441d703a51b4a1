package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/client"
	"agent/client/termsafe"
	"agent/protocol"
)

func TestTargetFlags(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("AGENT_STORE", "")
	t.Setenv("AGENT_SOCKET", "")
	spaced := filepath.Join(home, "a b", "s.sqlite")
	if err := os.Mkdir(filepath.Dir(spaced), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, store, socket, want string }{
		{"the default needs none", "", "", ""},
		{"CL-58 a store with a space is quoted", spaced, "", " --store '" + spaced + "'"},
		{"a socket of its own is named", "", "/tmp/x.sock", " --socket /tmp/x.sock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, err := client.Resolve(c.store, c.socket)
			if err != nil {
				t.Fatal(err)
			}
			if got := targetFlags(target); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAppendSafe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"CL-59 C1 and bidirectional controls are escaped", `"a` + "\u009b\u202e" + `"`, `"a\u009b\u202e"`},
		{"tag characters as surrogates", "\"\U000e0041\U000e007f😀\"", `"\udb40\udc41\udb40\udc7f😀"`},
		{"DEL and the line separators too", `"` + "\x7f\u2028\u2029" + `"`, `"\u007f\u2028\u2029"`},
		{"other text stays as it is", `{"ä":"😀 ` + "\u200b" + `","e":"\u001b"}`, `{"ä":"😀 ` + "\u200b" + `","e":"\u001b"}`},
		{"a broken byte becomes the replacement", "\"a\x9bb\"", `"a\ufffdb"`},
		{"blanks that act become spaces", "{\r\n\"a\":1}", `{  "a":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(termsafe.AppendJSON(nil, []byte(c.in))); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzAppendSafe(f *testing.F) {
	f.Add("a\u009b\u202e\u2028\x7f😀")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		var got string
		out := appendText(nil, text)
		if err := json.Unmarshal(out, &got); err != nil || got != text {
			t.Fatalf("%s decodes to %q, %v; want %q", out, got, err, text)
		}
		for _, r := range string(out) {
			if r < ' ' || r >= 0x7f && termsafe.Acts(r) {
				t.Errorf("%q came through in %q", r, out)
			}
		}
	})
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text  string
		unit        time.Duration
		least, most int64
		want        int64 // -1: refused
	}{
		{"a bare number is in the flag's unit", "30", time.Second, 0, 100, 30},
		{"minutes", "5m", time.Second, 0, 1000, 300},
		{"hours as milliseconds", "1h", time.Millisecond, 0, 1 << 40, 3_600_000},
		{"milliseconds that are whole seconds", "2000ms", time.Second, 0, 100, 2},
		{"milliseconds that are not", "2500ms", time.Second, 0, 100, -1},
		{"a fraction", "1.5s", time.Second, 0, 100, -1},
		{"a blank before the unit", "5 m", time.Second, 0, 1000, -1},
		{"days", "1d", time.Second, 0, 1 << 40, -1},
		{"a sign", "+5", time.Second, 0, 100, -1},
		{"out of range", "101", time.Second, 0, 100, -1},
		{"a number that overflows", "9223372036854775807h", time.Second, 0, 100, -1},
		{"nothing", "", time.Second, 0, 100, -1},
		{"a unit alone", "s", time.Second, 0, 100, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := duration("x", c.text, c.unit, c.least, c.most)
			if c.want < 0 && protocol.CodeOf(err) != protocol.UsageError || c.want >= 0 && (err != nil || got != c.want) {
				t.Errorf("got %d, %v; want %d", got, err, c.want)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"run", "follow", "stats", "start", "ls"}
	for word, want := range map[string]string{"rnu": "run", "folow": "follow", "stat": "stats", "strat": "start", "xyzzy": "", "l": "ls", "": ""} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestScanIsCanonical(t *testing.T) {
	t.Parallel()
	var bot string
	var all bool
	var many []string
	tbl := newTable("v")
	tbl.filled(&bot, "bot", "NAME", "")
	tbl.toggle(&all, "all", "")
	tbl.texts(&many, "wall", "DIR", "")
	tbl.toggle(new(bool), "pretty", "")
	for _, c := range []struct{ name, line, want, fails string }{
		{"both forms of a value mean the same", "--bot A x", "--bot=A -- x", ""},
		{"operands and flags mix", "a --all b --bot=C - d", "--all --bot=C -- a b - d", ""},
		{"everything after -- is an operand", "--all -- --bot -x", "--all -- --bot -x", ""},
		{"a value may begin with one dash", "--bot -5", "--bot=-5 --", ""},
		{"a repeatable flag repeats", "--wall a --wall=b", "--wall=a --wall=b --", ""},
		{"another does not", "--bot a --bot=b", "", "given twice"},
		{"a value that begins with two needs =", "--bot --all", "", "written --bot=VALUE"},
		{"-- is no value", "--bot --", "", "written --bot=VALUE"},
		{"a value is missing", "--bot", "", "needs a value"},
		{"a toggle takes none", "--all=", "", "takes no value"},
		{"a short flag", "-b", "", "only short flag is -h"},
		{"one dash before a long name", "-bot=x", "", "only short flag is -h"},
		{"three dashes", "---bot=x", "", "unknown flag ---bot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := scan(strings.Fields(c.line), tbl, func() {})
			if c.fails != "" {
				if protocol.CodeOf(err) != protocol.UsageError || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %v, want %s", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(l.canonical(), " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func FuzzScan(f *testing.F) {
	f.Add("--bot\x00A\x00--\x00x")
	f.Add("--all\x00-\x00--wall=\x00--wall\x00b")
	f.Fuzz(func(t *testing.T, text string) {
		tbl := newTable("v")
		tbl.filled(new(string), "bot", "NAME", "")
		tbl.toggle(new(bool), "all", "")
		tbl.texts(new([]string), "wall", "DIR", "")
		first, err := scan(strings.Split(text, "\x00"), tbl, func() {})
		if err != nil || first.help {
			return
		}
		again, err := scan(first.canonical(), tbl, func() {})
		if err != nil {
			t.Fatalf("%q: the canonical line %q is refused: %v", text, first.canonical(), err)
		}
		if a, b := strings.Join(first.canonical(), "\x00"), strings.Join(again.canonical(), "\x00"); a != b {
			t.Errorf("%q scans again as %q", a, b)
		}
	})
}

// What tools return, and what models pass to them, is shown whatever it is.
func FuzzToolTexts(f *testing.F) {
	f.Add(`{"stdout":"x","stderr":"","exit_code":1}`)
	f.Add(`{"command":"ls -l"}`)
	f.Fuzz(func(t *testing.T, text string) {
		resultText(text)
		if line := callLine("shell", text); strings.ContainsAny(line, "\n\x1b") {
			t.Errorf("the call's line %q is more than a line", line)
		}
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want, found string }{
		{"either case", "The Quick Fox", "quick", "Quick"},
		{"not there", "abc", "d", ""},
		{"letters whose lower case is longer", "İİ fox x", "FOX", "fox"},
		{"a letter whose lower case is shorter before it", "ẞẞ word", "word", "word"},
		{"the Kelvin sign", "a\u212Ab KK", "kk", "KK"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, n := find(c.text, foldable(c.want))
			got := ""
			if at >= 0 {
				got = c.text[at : at+n]
			}
			if got != c.found {
				t.Errorf("found %q at %d, want %q", got, at, c.found)
			}
		})
	}
}

func TestExcerptIsCutAtCharacters(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("ä", 200) + "word" + strings.Repeat("ö", 200)
	at, n := find(text, "word")
	got := excerpt(text, at, n)
	if want := "…" + strings.Repeat("ä", 80) + "word" + strings.Repeat("ö", 80) + "…"; got != want {
		t.Errorf("got %s", got)
	}
	if got := excerpt("word", 0, 4); got != "word" {
		t.Errorf("got %s", got)
	}
}

func TestGridPadsByDisplayWidth(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	g := &grid{a: &app{stdout: &out}, widths: make([]int, 2)}
	g.add([]string{"NAME", "X"})
	g.add([]string{"日本", "a\nb"})
	g.add([]string{"e\u0301t", "c"})
	if err := g.flush(); err != nil {
		t.Fatal(err)
	}
	if want := "NAME  X\n日本  a\\nb\ne\u0301t    c\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	g.width = 9
	g.add([]string{"a", "long cell"})
	g.flush()
	if want := "a     lo…\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestLimitsOf(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	s := &startup{}
	got, err := s.limitsOf()
	if err != nil || got.Active != 4096 || got.Connections != 64 || got.IdleExitSeconds != nil || got.CacheTTL != "5m" || got.KeepWarmSeconds != 240 {
		t.Errorf("the defaults are %+v, %v", got, err)
	}
	s.limits = client.Limits{MaxActive: n(0), IdleExit: n(0), ContextBytes: n(1), ContextItems: n(1)}
	if got, _ = s.limitsOf(); got.Connections != 64 || got.IdleExitSeconds != nil || got.ContextBytes != 1024 || got.ContextItems != 2 {
		t.Errorf("unbounded: %+v", got)
	}
	s.limits = client.Limits{MaxActive: n(math.MaxInt32), IdleExit: n(7)}
	if got, _ = s.limitsOf(); got.Connections != 256 || *got.IdleExitSeconds != 7 {
		t.Errorf("many: %+v", got)
	}
	s.limits = client.Limits{CompactAt: n(20)}
	if _, err = s.limitsOf(); protocol.CodeOf(err) != protocol.UsageError {
		t.Errorf("keep above at: %v", err)
	}
}
