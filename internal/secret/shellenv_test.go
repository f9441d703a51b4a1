package secret

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agent/protocol"
)

func policy(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestShellEnv(t *testing.T) {
	t.Parallel()
	base := []string{
		"PATH=/bin", "Home=/home/p", "OPENAI_API_KEY=sk-0123456789", "COPY=sk-0123456789",
		"GITHUB_TOKEN=ghp", "MY_SECRET=s", "FOO=1", "FOO=2", "EMPTY=", "broken",
		"AGENT_PARENT=Eve", "AGENT_SANDBOX=read-only",
	}
	for _, row := range []struct {
		name   string
		policy string
		want   []string
	}{
		{
			"PO-83 without a policy only the keys go", "",
			[]string{"EMPTY=", "FOO=2", "GITHUB_TOKEN=ghp", "Home=/home/p", "MY_SECRET=s", "PATH=/bin"},
		},
		{
			"an absent table is no policy", "model = 'x'",
			[]string{"EMPTY=", "FOO=2", "GITHUB_TOKEN=ghp", "Home=/home/p", "MY_SECRET=s", "PATH=/bin"},
		},
		{
			"an empty table is the defaults", "[shell_environment_policy]",
			[]string{"EMPTY=", "FOO=2", "GITHUB_TOKEN=ghp", "Home=/home/p", "MY_SECRET=s", "PATH=/bin"},
		},
		{
			"core keeps its names whatever their case", "[shell_environment_policy]\ninherit = 'core'",
			[]string{"Home=/home/p", "PATH=/bin"},
		},
		{
			"none keeps nothing but what is set", "[shell_environment_policy]\ninherit = 'none'\nset = {A = 'b'}",
			[]string{"A=b"},
		},
		{
			"PO-85 the default excludes work when they are not ignored", "[shell_environment_policy]\nignore_default_excludes = false",
			[]string{"EMPTY=", "FOO=2", "Home=/home/p", "PATH=/bin"},
		},
		{
			"exclude matches without case", "[shell_environment_policy]\nexclude = ['fo?', '*token']",
			[]string{"EMPTY=", "Home=/home/p", "MY_SECRET=s", "PATH=/bin"},
		},
		{
			"set comes after exclude and overrides", "[shell_environment_policy]\nexclude = ['FOO']\nset = {FOO = 'x', PATH = '/p'}",
			[]string{"EMPTY=", "FOO=x", "GITHUB_TOKEN=ghp", "Home=/home/p", "MY_SECRET=s", "PATH=/p"},
		},
		{
			"include_only is last and counts for set, too", "[shell_environment_policy]\ninclude_only = ['P*']\nset = {A = 'b', PQ = 'r'}",
			[]string{"PATH=/bin", "PQ=r"},
		},
		{
			"AP-68 set brings no key back, by name or by value",
			"[shell_environment_policy]\nset = {OPENAI_API_KEY = 'other', COPY = 'other', NEW = 'sk-0123456789'}\ninclude_only = ['*PY', 'OPEN*', 'NEW']",
			nil,
		},
		{
			"no name of the daemon's own comes in, not even by set",
			"[shell_environment_policy]\nset = {AGENT_BOT = 'Eve', AGENT = 'b'}\ninclude_only = ['AGENT*', 'PATH']",
			[]string{"AGENT=b", "PATH=/bin"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := ShellEnv(base, []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}, policy(t, row.policy))
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestShellEnvPatterns(t *testing.T) {
	t.Parallel()
	base := []string{"AWS_REGION=r", "FOO=1", "FOOO=2", "KEYBOARD=us", "My_Token=t", "PATH=/bin", "fio=3"}
	for _, row := range []struct{ name, policy, gone string }{
		{"AP-69 tokens and keyboards are passed by default", "", ""},
		{"AP-69 and withheld with the default excludes", "ignore_default_excludes = false", "KEYBOARD My_Token"},
		{"AP-70 exclude", `exclude = ["aws_*"]`, "AWS_REGION"},
		{"AP-70 include_only", `include_only = ["PATH", "F?O"]`, "AWS_REGION FOOO KEYBOARD My_Token"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			want := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
				name, _, _ := strings.Cut(entry, "=")
				return slices.Contains(strings.Fields(row.gone), name)
			})
			if got := ShellEnv(base, nil, policy(t, "[shell_environment_policy]\n"+row.policy)); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestShellEnvKeepsWhatOnlyLooksLikeAShortKey(t *testing.T) {
	t.Parallel()
	got := ShellEnv([]string{"KEY=short", "OTHER=short"}, []string{"KEY"}, nil)
	if want := []string{"OTHER=short"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPolicyThatDoesNotCheck(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, says string }{
		{"AP-84 an unknown key", "[shell_environment_policy]\nexcluded = []", "excluded is not a setting"},
		{"AP-84 a known key in other case", "[shell_environment_policy]\nInherit = 'none'", "Inherit is not a setting"},
		{"the table is no table", "shell_environment_policy = 3", "must be a table"},
		{"inherit is no word of the three", "[shell_environment_policy]\ninherit = 'some'", "inherit must be"},
		{"inherit is no string", "[shell_environment_policy]\ninherit = true", "inherit must be"},
		{"ignore_default_excludes is a string", "[shell_environment_policy]\nignore_default_excludes = 'no'", "must be true or false"},
		{"exclude is a string", "[shell_environment_policy]\nexclude = '*KEY*'", "list of strings"},
		{"include_only holds a number", "[shell_environment_policy]\ninclude_only = [1]", "list of strings"},
		{"set holds a number", "[shell_environment_policy]\nset = {A = 1}", "table of strings"},
		{"set is a list", "[shell_environment_policy]\nset = ['A']", "table of strings"},
		{"set names what is no variable", "[shell_environment_policy]\nset = {'A=B' = 'c'}", "cannot be a variable"},
		{"the file is no TOML", "key = 'hidden-value\n[", "line 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "config.toml")
			if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := LoadPolicy(path)
			if p != nil || !errors.Is(err, protocol.ConfigInvalid) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, %v; want config_invalid saying %q", p, err, row.says)
			}
			if err != nil && strings.Contains(err.Error(), "hidden-value") {
				t.Errorf("the error quotes the file: %v", err)
			}
		})
	}
}

func TestLoadPolicyOfOddFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if p, err := LoadPolicy(filepath.Join(dir, "absent")); p != nil || err != nil {
		t.Errorf("absent: %v, %v", p, err)
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, []byte(strings.Repeat("#", maxConfig+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, fifo, long} {
		if _, err := LoadPolicy(path); !errors.Is(err, protocol.ConfigInvalid) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzMatches(f *testing.F) {
	for _, seed := range [][2]string{
		{"*KEY*", "OPENAI_API_KEY"}, {"a?c", "ABC"}, {"**", ""}, {"a*b*c", "aXbXbXc"}, {"[a]", "a"}, {"?", "é"}, {"k", "\u212a"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		pattern, name = strings.ToValidUTF8(pattern, "?"), strings.ToValidUTF8(name, "?")
		expr := regexp.QuoteMeta(pattern)
		expr = strings.ReplaceAll(expr, `\*`, `.*`)
		expr = strings.ReplaceAll(expr, `\?`, `.`)
		re, err := regexp.Compile(`(?is)\A` + expr + `\z`)
		if err != nil {
			t.Skip() // longer than the reference takes
		}
		if got, want := matches(pattern, name), re.MatchString(name); got != want {
			t.Errorf("matches(%q, %q) = %v", pattern, name, got)
		}
	})
}

func FuzzParsePolicy(f *testing.F) {
	f.Add("[shell_environment_policy]\ninherit = 'core'\nset = {A = 'b'}\nexclude = ['x']")
	f.Add("shell_environment_policy.inherit = 'none'")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicy([]byte(text))
		if p != nil && err != nil {
			t.Fatal("a policy and an error")
		}
		if p != nil {
			ShellEnv([]string{"A=b"}, nil, p)
		}
	})
}
