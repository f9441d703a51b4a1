package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"agent/protocol"
)

func text(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSet(t *testing.T) {
	t.Parallel()
	const before = "# mine\nmodel = 'a/b' # good\n\n[tui]\n# the theme\ntheme = \"dark\"   # eyes\nascii = true\n"
	t.Run("only the value changes, and the file is private", func(t *testing.T) {
		t.Parallel()
		path := file(t, before)
		chmod(t, path, 0o644)
		if err := Set(path, "tui.theme", "light", nil); err != nil {
			t.Fatal(err)
		}
		if got := text(t, path); got != strings.Replace(before, `"dark"`, `"light"`, 1) {
			t.Error(got)
		}
		if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
			t.Errorf("mode %o", info.Mode().Perm())
		}
	})
	t.Run("a value is typed as TOML or as a bare text", func(t *testing.T) {
		t.Parallel()
		path := file(t, "")
		for key, value := range map[string]string{
			"tui.wheel_rows": "5", "tui.motion": "false", "tools.disabled": `["shell"]`, "approval_expiry.manual": "8h",
			"tui.editor": `'vi -n'`, "compaction": "off", "usage.daily_warn_usd": "2.5", `mcp_servers.x.command`: "true",
		} {
			if err := Set(path, key, value, nil); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		c, notices, err := Load(path)
		if err != nil || len(notices) > 0 || c.TUI.WheelRows != 5 || c.TUI.Motion || c.Tools.Disabled[0] != "shell" ||
			c.TUI.Editor != "vi -n" || c.Usage.DailyWarnUSD != 2.5 || c.MCPServers["x"].Command != "true" {
			t.Errorf("%v, %v\n%s", notices, err, text(t, path))
		}
	})
	for _, row := range []struct {
		name, key, value string
		code             protocol.Code
		words            string
	}{
		{"a wrong value", "row", "ful", protocol.UsageError, `row is "ful" and must be "auto", "manual", "look" or "full"`},
		{"a value of a wrong type", "tui.motion", "maybe", protocol.UsageError, "true or false"},
		{"an unknown key", "tui.themes", "x", protocol.UsageError, "did you mean tui.theme?"},
		{"a table", "mcp_servers.x", "x", protocol.UsageError, "is a table"},
		{"no key at all", "a b", "x", protocol.UsageError, "a b is no setting"},
		{"a server's name that is none", "mcp_servers.\"a b\".command", "x", protocol.UsageError, "is no setting"},
		{"a key in a variable named like one", "mcp_servers.x.env.TOKEN", "hunter2", SecretRefused, "sonny env set"},
		{"a key in a plain variable", "mcp_servers.x.env.LOG", "sk-abcdef", SecretRefused, "sonny env set"},
		{"a text of chance in a plain variable", "shell_environment_policy.set.A", "q8Zr2LmX7vTn4KpW9sYdB3", SecretRefused, "sonny env set"},
		{"a token in an argument", "mcp_servers.x.args", `["--key", "ghp_0123456789"]`, SecretRefused, "sonny env set"},
		{"a private key", "shell_environment_policy.set.A", "-----BEGIN PRIVATE KEY-----\nMHcCAQEE\n-----END PRIVATE KEY-----", SecretRefused, "sonny env set"},
		{"a password in an address", "home_backup.remote", "https://ann:hunter2@example.com/x.git", SecretRefused, "sonny env set"},
		{"a key for a setting that is none", "openai_key", "sk-abcdef", SecretRefused, "sonny env set"},
		{"a plain bearer token", "mcp_servers.x.bearer_token", "hunter2", SecretRefused, "sonny env set"},
	} {
		t.Run("refused: "+row.name, func(t *testing.T) {
			t.Parallel()
			path := file(t, before)
			err := Set(path, row.key, row.value, nil)
			wants(t, err, row.code, row.words)
			if text(t, path) != before {
				t.Error("the file changed")
			}
			if row.code == SecretRefused && strings.Contains(err.Error(), row.value) {
				t.Errorf("the value is shown: %v", err)
			}
		})
	}
	t.Run("what is no secret is taken", func(t *testing.T) {
		t.Parallel()
		path := file(t, "")
		for key, value := range map[string]string{
			"mcp_servers.x.env_vars": `["GITHUB_TOKEN"]`, "mcp_servers.x.bearer_token_env_var": "DOCS_TOKEN", "mcp_servers.x.env.LOG_LEVEL": "warn",
			"mcp_servers.x.env.DATA": "/usr/local/share/fonts/quick-brown-xyz", "model": "openrouter/anthropic/claude-sonnet-4-5-20250929",
			"judge_note": "~/notes/what-the-judge-should-know-about-2025.md", "tasks.budget_tokens": "200000", "mcp_servers.x.env_http_headers.Authorization": "DOCS_AUTH",
			"home_backup.remote": "git@example.com:ann/dotfiles.git",
		} {
			if err := Set(path, key, value, nil); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	})
	t.Run("a broken file is left alone", func(t *testing.T) {
		t.Parallel()
		path := file(t, "a = \n")
		wants(t, Set(path, "row", "look", nil), protocol.ConfigInvalid, "line 1", "sonny config edit")
		if text(t, path) != "a = \n" {
			t.Error("it changed")
		}
	})
	t.Run("a link is left alone", func(t *testing.T) {
		t.Parallel()
		path := file(t, before)
		link := path + ".link"
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		wants(t, Set(link, "row", "look", nil), protocol.ConfigInvalid, "is a link")
	})
	t.Run("a file that is full takes no more", func(t *testing.T) {
		t.Parallel()
		path := file(t, strings.Repeat("#", MaxSize-3)+"\n")
		wants(t, Set(path, "row", "look", nil), protocol.ConfigInvalid, "longer than")
	})
	t.Run("a value in the place of a table", func(t *testing.T) {
		t.Parallel()
		path := file(t, "tui = 1\n")
		wants(t, Set(path, "tui.theme", "light", nil), protocol.ConfigInvalid, "sonny config edit")
	})
}

// What only a further reader can tell is refused with nothing written, where the setting
// makes it wrong; what was wrong before it stands in nobody's way.
func TestAFurtherReader(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.toml")
	further := func(c *Config) (faults []*protocol.Error) {
		for action, chords := range c.TUI.Keys {
			if slices.Contains(chords, "bad") {
				faults = append(faults, protocol.Fail(protocol.ConfigInvalid, action+" has a bad chord"))
			}
		}
		if c.TUI.Theme == "auto" && c.TUI.Editor != "" {
			faults = append(faults, protocol.Fail("keymap_conflict", "an editor wants a theme"))
		}
		return faults
	}
	text := func() string {
		data, _ := os.ReadFile(path)
		return string(data)
	}
	wants(t, Set(path, "tui.keys.stash", `["bad"]`, further), protocol.UsageError, "stash has a bad chord")
	wants(t, Set(path, "tui.editor", "vi", further), "keymap_conflict", "an editor wants a theme")
	if text() != "" {
		t.Fatalf("it is written: %s", text())
	}
	if err := Set(path, "tui.keys.stash", `["bad"]`, nil); err != nil {
		t.Fatal(err)
	}
	kept := text()
	wants(t, Set(path, "tui.keys.stash", `["bad", "f7"]`, further), protocol.UsageError, "stash has a bad chord")
	wants(t, Set(path, "tui.keys.tasks", `["bad"]`, further), protocol.UsageError, "tasks has a bad chord")
	if text() != kept {
		t.Fatalf("it is written: %s", text())
	}
	for _, step := range []struct{ key, value string }{{"tui.theme", "dark"}, {"tui.editor", "vi"}} {
		if err := Set(path, step.key, step.value, further); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Unset(path, "tui.theme", further)
	wants(t, err, "keymap_conflict", "an editor wants a theme")
	for _, key := range []string{"tui.editor", "tui.keys.stash", "tui.theme"} {
		if there, err := Unset(path, key, further); err != nil || !there {
			t.Fatal(key, err)
		}
	}
	_, _, err = Resolve(Sources{Path: path, Stated: []Stated{{Key: "tui.keys.send", Value: `["bad"]`}}, Further: further})
	wants(t, err, protocol.UsageError, "send has a bad chord")
}

func TestUnset(t *testing.T) {
	t.Parallel()
	path := file(t, "# a\nrow = 'full'\n[mcp_servers.x]\ncommand = 'y'\n# b\n")
	for _, step := range []struct {
		key   string
		there bool
		want  string
	}{
		{"row", true, "# a\n[mcp_servers.x]\ncommand = 'y'\n# b\n"},
		{"row", false, "# a\n[mcp_servers.x]\ncommand = 'y'\n# b\n"},
		{"mcp_servers.x", true, "# a\n# b\n"},
	} {
		there, err := Unset(path, step.key, nil)
		if there != step.there || err != nil || text(t, path) != step.want {
			t.Errorf("%s: %v, %v\n%s", step.key, there, err, text(t, path))
		}
	}
	_, err := Unset(path, "a b", nil)
	wants(t, err, protocol.UsageError, "a b is no key")
}

func TestTwoWritersLoseNothing(t *testing.T) {
	t.Parallel()
	path := file(t, "")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 5 {
				if err := Set(path, fmt.Sprintf("mcp_servers.s%d-%d.command", i, j), "x", nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	c, _, err := Load(path)
	if err != nil || len(c.MCPServers) != 40 {
		t.Errorf("%d of 40 are there, %v", len(c.MCPServers), err)
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, now string
		code      protocol.Code
	}{
		{"a sound text", "row = 'look'\n", ""},
		{"a text that is no TOML", "row = \n", protocol.ConfigInvalid},
		{"a wrong value that confines", "row = 'x'\n", protocol.ConfigInvalid},
		{"a wrong value that does not, and an unknown key", "tui.motion = 1\nx = 2\n", ""},
		{"a secret", "[mcp_servers.x]\ncommand = 'y'\nenv.TOKEN = 'z'\n", SecretRefused},
		{"a secret where no server is", "tui.editor = 'sk-abcdef'\n", SecretRefused},
		{"a text that is too long", strings.Repeat("#", MaxSize+1), protocol.ConfigInvalid},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := file(t, "row = 'auto'\n")
			err := Replace(path, []byte("row = 'auto'\n"), []byte(row.now))
			if protocol.CodeOf(err) != row.code || row.code == "" && err != nil {
				t.Errorf("%v", err)
			}
			if (text(t, path) == row.now) != (row.code == "") {
				t.Error(text(t, path))
			}
		})
	}
	path := file(t, "row = 'auto'\n")
	wants(t, Replace(path, []byte("row = 'full'\n"), []byte("row = 'look'\n")), protocol.ConfigInvalid, "changed by somebody else")
}

func TestChanged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.toml")
	now := StampOf(path)
	step := func(what string, want bool) {
		t.Helper()
		var changed bool
		if now, changed = Changed(path, now); changed != want {
			t.Errorf("%s: %v", what, changed)
		}
	}
	step("still missing", false)
	if err := Set(path, "row", "look", nil); err != nil {
		t.Fatal(err)
	}
	step("made", true)
	step("left alone", false)
	if err := Set(path, "row", "auto", nil); err != nil { // of the same length
		t.Fatal(err)
	}
	step("replaced", true)
	if err := Set(path, "row", "auto", nil); err != nil {
		t.Fatal(err)
	}
	step("set to what it was", false)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	step("removed", true)
}

// onlyAt reports whether two texts are the same but for one stretch, which in the old
// one is part of the value that was replaced.
func onlyAt(old, now, value []byte) bool {
	from := 0
	for from < len(old) && from < len(now) && old[from] == now[from] {
		from++
	}
	to := 0
	for to < len(old)-from && to < len(now)-from && old[len(old)-1-to] == now[len(now)-1-to] {
		to++
	}
	return bytes.Contains(value, old[from:len(old)-to])
}

func decoded(t fataler, text []byte) map[string]any {
	tree := map[string]any{}
	if err := toml.Unmarshal(text, &tree); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return tree
}

type fataler interface{ Fatalf(string, ...any) }

// An edit of any TOML sets what was asked for, changes no other setting and no byte
// that is not of its value, and an unset undoes the set of what was not there.
func checkEdit(t fataler, text []byte, path []string, value string) {
	d, err := parse(text)
	if err != nil {
		return
	}
	i, old := d.at(path), []byte(nil)
	if i >= 0 {
		old = d.text[d.entries[i].value:d.entries[i].end]
	}
	was := cloned(d.tree)
	now := d.set(path, value)
	if now == nil {
		return
	}
	got := decoded(t, now)
	v, there := lookup(got, path)
	if want, _ := parsedLiteral(value); !there || !reflect.DeepEqual(v, want) {
		t.Fatalf("%v is %v after setting it to %s in\n%s", path, v, value, now)
	}
	uproot(got, path)
	uproot(was, path)
	if !reflect.DeepEqual(pruned(got), pruned(was)) {
		t.Fatalf("setting %v in\n%s\nchanged another setting:\n%s", path, text, now)
	}
	if !onlyAt(text, now, old) {
		t.Fatalf("setting %v in\n%s\nchanged other bytes:\n%s", path, text, now)
	}
	after, err := parse(now)
	if err != nil {
		t.Fatalf("%v", err)
	}
	back, there := after.unset(path)
	if !there || back == nil {
		t.Fatalf("%v cannot be taken out of\n%s", path, now)
	}
	if tree := decoded(t, back); !reflect.DeepEqual(pruned(tree), pruned(was)) {
		t.Fatalf("taking out %v of\n%s\nchanged another setting:\n%s", path, now, back)
	}
}

func FuzzSet(f *testing.F) {
	for _, text := range []string{
		"", "a = 1\n", "[a]\nb = 1 # c\n\n[a.c]\nd = [1,\n 2, # x\n]\n", "a.b.c = 1\na.d = {e = 1, f.g = 2}\n", "[[a]]\nb = 1\n[[a]]\n[a.c]\nd = 1\n",
		"\"a\" . 'b' = '''x\ny'''\r\n# z", "a = \"\"\"\n[b]\n\"\"\"\n", "a = {}\n", "[a.b.c]\n[a]\nb.d = 1\n", "a = { b = [{c = 1}, {}] }", "[a] # x\n\t# y\n[b]",
	} {
		for _, key := range []string{"a", "a.b", "a.b.c", "a.d.f.g", "b.c"} {
			f.Add([]byte(text), key, `"v"`)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, key, value string) {
		path := ParseKey(key)
		v, ok := parsedLiteral(value)
		if _, table := v.(map[string]any); path == nil || !ok || table {
			return
		}
		if !reflect.DeepEqual(v, v) { // NaN equals nothing
			return
		}
		checkEdit(t, text, path, value)
	})
}

// Any run of sets and unsets of settings leaves a file that holds what a map does, and
// every comment that the person wrote.
func TestAnyEditsAreWhatAMapDoes(t *testing.T) {
	t.Parallel()
	keys := []string{"row", "model", "tui.theme", "tui.mouse.wheel", "tui.keys.send", "mcp_servers.a.command", "mcp_servers.a.env.X", "mcp_servers.b.env.Y", `pricing."p/m".input`, "tools.disabled"}
	values := map[string][]string{
		"row": {`"auto"`, `"full"`}, "model": {`"a/b"`, `"a/\"b"`}, "tui.theme": {`"x"`}, "tui.mouse.wheel": {"true", "false"}, "tui.keys.send": {"[]", `["a", "b"]`},
		"mcp_servers.a.command": {`"y"`}, "mcp_servers.a.env.X": {`"1"`}, "mcp_servers.b.env.Y": {`""`}, `pricing."p/m".input`: {"1.5"}, "tools.disabled": {`["shell"]`},
	}
	starts := []string{
		"", "# top\n\n[tui] # screen\n# inner\nmouse.click = true # m\n", "# top\ntui.ascii = true # a\n", "# top\nmcp_servers = { a = { command = 'q' } } # s\n",
		"# top\n[mcp_servers.a]\nenv = { Z = 'z' } # e\n# end\n", "# top\n[tui.mouse]\nclick = false\n# last", "# top\r\n[tui]\r\n# in\r\nascii = true\r\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.SampledFrom(starts).Draw(t, "start"))
		comments := commentsOf(text)
		want := decoded(t, text)
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			key := rapid.SampledFrom(keys).Draw(t, "key")
			path := ParseKey(key)
			d, err := parse(text)
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if rapid.Bool().Draw(t, "set") {
				value := rapid.SampledFrom(values[key]).Draw(t, "value")
				v, _ := parsedLiteral(value)
				plant(want, path, v)
				if text = d.set(path, value); text == nil {
					t.Fatalf("no place for %s in\n%s", key, d.text)
				}
			} else {
				uproot(want, path)
				if text, _ = d.unset(path); text == nil {
					t.Fatalf("%s cannot be taken out of\n%s", key, d.text)
				}
			}
		}
		if got := decoded(t, text); !reflect.DeepEqual(pruned(got), pruned(want)) {
			t.Fatalf("got %v, want %v in\n%s", got, want, text)
		}
		if got := commentsOf(text); !reflect.DeepEqual(got, comments) {
			t.Fatalf("comments %q became %q", comments, got)
		}
	})
}

// commentsOf are the texts behind # of texts that hold no other #.
func commentsOf(text []byte) (out []string) {
	for line := range strings.Lines(string(text)) {
		if _, c, ok := strings.Cut(line, "#"); ok {
			out = append(out, strings.TrimRight(c, "\r\n"))
		}
	}
	return out
}
