package approver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"agent/protocol"
)

// look is a filer for a confined bot whose workspace holds scripts, and what is
// no script.
func look(t testing.TB) (*filer, string) {
	t.Helper()
	work := t.TempDir()
	for name, text := range map[string]string{"x.sh": "evil", "sub/y.sh": "evil", "z.py": "evil", "big.log": strings.Repeat("x", maxFile+1), "bin/tool": "evil"} {
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	g := newGatherer(nil, "")
	g.env = []string{"PATH=/usr/bin:/bin", "HOME=" + work}
	return &filer{a: &collecting{gatherer: g, bot: &protocol.Bot{Sandbox: workspaceWrite}, cwd: work, roots: []string{work}}}, work
}

// ran are the files that a command is shown with, below the workspace, or the
// reason for which it is refused.
func ran(t testing.TB, key, command string) []string {
	f, work := look(t)
	list, reason := f.of(&plan{name: "c1", tool: "shell", texts: []argument{{key: key, text: command}}})
	if reason != "" {
		return []string{reason}
	}
	var names []string
	for _, file := range list {
		name := strings.TrimPrefix(file.Path, work+"/")
		if file.Content == nil {
			name += " " + file.State
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestWhatACommandRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command string
		want    []string
	}{
		{"./x.sh", []string{"x.sh"}},
		{"taskset 1 ./x.sh", []string{"x.sh"}},
		{"su -c 'cd /; ./x.sh'", []string{"x.sh"}},
		{"trap './x.sh' EXIT", []string{"x.sh"}},
		{"trap 'bash ./x.sh' EXIT", []string{"x.sh"}},
		{"somewrapper -q bash x.sh", []string{"x.sh"}},
		{"python3 -E ./z.py", []string{"z.py"}},
		{"php -c php.ini z.py", []string{"z.py"}},
		{"lua -e x=1 z.py", []string{"z.py"}},
		{"python3 -m z", []string{"z.py"}},
		{"$(which python3) z.py", []string{"z.py"}},
		{"$SOMESHELL x.sh", []string{"x.sh"}},
		{"for f in x.sh; do bash $f; done", []string{"x.sh"}},
		{"run() { bash \"$1\"; }; run x.sh", []string{"x.sh"}},
		{"bash \"$(pwd)/x.sh\"", []string{"x.sh"}},
		{"bash < <(cat x.sh)", []string{"x.sh"}},
		{"bash <<< \"$(cat x.sh)\"", []string{"x.sh"}},
		{"bash <<'E'\necho a; ./x.sh\nE", []string{"x.sh"}},
		{"echo 'true; ./x.sh' | bash", []string{"x.sh"}},
		{"cat x.sh | (bash)", []string{"x.sh"}},
		{"for f in big.log; do gzip $f; done", nil},
		{"bash x.sh", []string{"x.sh"}},
		{"bash -e -o pipefail x.sh big.log", []string{"x.sh"}},
		{"sh -x ./x.sh", []string{"x.sh"}},
		{". ./x.sh", []string{"x.sh"}},
		{"source x.sh", []string{"x.sh"}},
		{"bash -c 'sh x.sh'", []string{"x.sh"}},
		{`bash -lc "bash -c './x.sh'"`, []string{"x.sh"}},
		{"eval bash x.sh", []string{"x.sh"}},
		{`eval "$(cat x.sh)"`, []string{"x.sh"}},
		{`bash -c "$(cat x.sh)"`, []string{"x.sh"}},
		{"bash <(cat x.sh)", []string{"x.sh"}},
		{"bash < x.sh", []string{"x.sh"}},
		{"cat x.sh | bash", []string{"x.sh"}},
		{"cat z.py | sudo python3", []string{"z.py"}},
		{"cat big.log | python3 -c 'import json'", nil},
		{"env A=b bash x.sh", []string{"x.sh"}},
		{"env -S 'bash x.sh'", []string{"x.sh"}},
		{"sudo -u root timeout 5 ./x.sh", []string{"x.sh"}},
		{"echo x | xargs -n 1 bash x.sh", []string{"x.sh"}},
		{"find . -name y -exec sh x.sh {} \\;", []string{"x.sh"}},
		{"cd sub && ./y.sh", []string{"sub/y.sh"}},
		{"(cd sub; bash y.sh)", []string{"sub/y.sh"}},
		{"cd sub; cd ..; sh ./x.sh", []string{"x.sh"}},
		{"if true; then bash x.sh; fi", []string{"x.sh"}},
		{"f() { ./x.sh; }; f", []string{"x.sh"}},
		{"echo $(./x.sh)", []string{"x.sh"}},
		{`bash "x".s'h'`, []string{"x.sh"}},
		{`bash x\.sh`, []string{"x.sh"}},
		{`bash $'x.s\x68'`, []string{"x.sh"}},
		{"X=x.sh; bash $X", []string{"x.sh"}},
		{`bash "$PWD/x.sh"`, []string{"x.sh"}},
		{"bash ~/x.sh", []string{"x.sh"}},
		{"bash ./x*", []string{"x.sh"}},
		{"PATH=$PWD/bin:$PATH tool", []string{"bin/tool"}},
		{"export PATH=bin:$PATH; tool", []string{"bin/tool"}},
		{"python3 -u z.py big.log", []string{"z.py"}},
		{"python3.12 z.py", []string{"z.py"}},
		{"uv run z.py", []string{"z.py"}},
		{"uv run python z.py", []string{"z.py"}},
		{"awk -f x.sh big.log", []string{"x.sh"}},
		{"make -f x.sh", []string{"x.sh"}},
		{"if bash x.sh", []string{"x.sh"}}, // no parser reads it
		{"cat big.log | wc -l; grep x < big.log", nil},
		{"python3 -m json.tool big.log", nil},
		{"ls; git status; cat x.sh", nil},
		{"bash big.log", []string{tooLargeToShow}},
		{"./gone.sh", []string{"gone.sh is not there"}},
		{"/usr/bin/env", nil},
	} {
		t.Run(c.command, func(t *testing.T) {
			t.Parallel()
			if got := ran(t, "command", c.command); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := ran(t, "content", "bash x.sh"); len(got) != 0 {
		t.Errorf("text that no tool runs is shown with %q", got)
	}
}

func TestAFileThatAnEarlierCallWrites(t *testing.T) {
	t.Parallel()
	f, work := look(t)
	f.plans = []plan{
		{name: "c1", tool: toolWrite, raw: `{"content":"new","path":"x.sh"}`},
		{name: "c2", tool: toolPatch, raw: `{"patch":"*** Begin Patch\n*** Add File: sub/new.sh\n+x\n*** End Patch"}`},
		{name: "c3", tool: "shell", texts: []argument{{key: "command", text: "echo >> z.py"}}},
		{name: "c4", tool: toolWrite, raw: `{"path":"bin/tool"}`, cut: true},
	}
	of := func(command string) ([]shownFile, string) {
		return f.of(&plan{name: "c5", tool: "shell", texts: []argument{{key: "command", text: command}}})
	}
	if list, _ := of("bash x.sh"); len(list) != 1 || list[0].ChangedBy != "c1" || list[0].Content != nil {
		t.Errorf("a written one: %+v", list)
	}
	if list, _ := of("bash sub/new.sh"); len(list) != 1 || list[0].ChangedBy != "c2" || list[0].Path != filepath.Join(work, "sub/new.sh") {
		t.Errorf("a patched one: %+v", list)
	}
	if list, _ := of("python3 z.py"); len(list) != 1 || !slices.Equal(list[0].MayChange, []string{"c3"}) || list[0].Content == nil {
		t.Errorf("one that a command names: %+v", list)
	}
	if _, reason := of("bin/tool"); reason != tooLargeToShow {
		t.Errorf("one by a call that is not shown whole: %q", reason)
	}
}

func TestNamesWord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want bool
	}{
		{"x.sh", true},
		{"bash ./x.sh", true},
		{"'x.sh'", true},
		{"a=x.sh;", true},
		{"/w/x.sh:3", true},
		{"max.sh", false},
		{"x.sha", false},
		{"x.sh.bak", false},
		{"-x.sh", false},
		{"x.sh_", false},
		{"éx.sh", false},
		{"max.sh and x.sh", true},
		{"", false},
	} {
		if got := namesWord(c.text, "x.sh"); got != c.want {
			t.Errorf("%q: %v", c.text, got)
		}
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"ordinary text", "a\n\tb é 漢 😀", "a\n\tb é 漢 😀"},
		{"control characters", "a\x00\x1b[2K\r\x7f\u0085", `a\u{0}\u{1B}[2K\u{D}\u{7F}\u{85}`},
		{"the order of what is seen", "a\u202eb\u2066c\u200f", `a\u{202E}b\u{2066}c\u{200F}`},
		{"no width", "a\u200bb\u2060\ufeff\u00ad", `a\u{200B}b\u{2060}\u{FEFF}\u{AD}`},
		{"tags and selectors", "a\U000e0041\U000e007f\ufe0f\U000e0100", `a\u{E0041}\u{E007F}\u{FE0F}\u{E0100}`},
		{"blank letters", "a\u3164\u115f", `a\u{3164}\u{115F}`},
		{"what is no UTF-8", "a\xffb", "a\ufffdb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := visible(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestClipped(t *testing.T) {
	t.Parallel()
	if got := clipped("short", 2); got != "short" {
		t.Errorf("got %q", got)
	}
	got := clipped(strings.Repeat("é", 5_000), 1_000)
	head, tail, ok := strings.Cut(got, `<truncated omitted_tokens="`)
	if !ok || tokens(got) > 1_000 || !utf8.ValidString(got) || !strings.HasSuffix(tail, "é") || len(head) < 1_900 {
		t.Errorf("%d bytes: %.80q", len(got), got)
	}
}

func FuzzScripts(f *testing.F) {
	f.Add("bash ./x.sh; cat x | sh")
	f.Add("env env env env $'\\x41' {a,b} <<E\nE")
	f.Add("if ((((")
	f.Fuzz(func(t *testing.T, text string) {
		s := newScripts("/nowhere", func(string) string { return "" })
		s.script(text, 0)
		if !s.tooMuch && (s.steps > maxSteps || len(s.found) > maxFound) {
			t.Errorf("%d steps, %d found", s.steps, len(s.found))
		}
	})
}

func FuzzClipped(f *testing.F) {
	f.Add("é\x00漢", 1)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 20 + (limit&0xff+0x100)%0x100
		shown := visible(text)
		got := clipped(shown, limit)
		if tokens(got) > limit || !utf8.ValidString(got) {
			t.Errorf("%d tokens of %d: %q", tokens(got), limit, got)
		}
	})
}
