package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

// file makes a config.toml of a text.
func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, text string) (*Config, []Notice, error) {
	t.Helper()
	return Load(file(t, text))
}

// wants expects an error of a code whose text holds words.
func wants(t *testing.T, err error, code protocol.Code, words ...string) {
	t.Helper()
	if protocol.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func TestAMissingFileIsTheDefaults(t *testing.T) {
	t.Parallel()
	c, notices, err := Load(filepath.Join(t.TempDir(), "none"))
	if err != nil || len(notices) > 0 {
		t.Fatal(notices, err)
	}
	if c.Row != "auto" || c.SandboxMode != "" || !c.Workspace.Network || c.ApprovalExpiry.Auto != 120*time.Second || c.ApprovalExpiry.Manual != 0 ||
		c.TUI.Fold.Output != 2 || c.Snapshots.Keep != 14*24*time.Hour || c.Agent.IdleExit != nil || len(c.Notifications.On) != 7 || c.Desktop.Enabled {
		t.Errorf("%+v", c)
	}
	if len(c.Settings(false)) != 0 || len(c.Settings(true)) != len(Keys) {
		t.Error("a default counts as set")
	}
}

func TestEverySettingIsRead(t *testing.T) {
	t.Parallel()
	c, notices, err := load(t, `
model = "a/b"
sandbox_mode = "read-only"
[sandbox_workspace_write]
writable_roots = ["/srv/../data", "/x"]
[approval_expiry]
manual = "8h"
[mcp_servers.github]
command = "npx"
args = ["-y", "@example/github-mcp"]
env = { LOG_LEVEL = "warn" }
env_vars = ["GITHUB_TOKEN"]
startup_timeout_sec = 20
tools.issue.approval_mode = "prompt"
[mcp_servers.docs]
url = "https://example.com/mcp"
bearer_token_env_var = "DOCS_TOKEN"
env_http_headers = { "X-Key" = "DOCS_KEY" }
default_tools_approval_mode = "approve"
[lookout.sources.mail]
command = "check-mail\n"
every = "stream"
[pricing."a/b"]
input = 3
[tui]
keys.send = ["ctrl+s"]
[agent]
max_active = 0
idle_exit = "10m"
`)
	if err != nil || len(notices) > 0 {
		t.Fatal(notices, err)
	}
	github, docs, mail := c.MCPServers["github"], c.MCPServers["docs"], c.Lookout.Sources["mail"]
	for what, ok := range map[string]bool{
		"roots":    slices.Equal(c.Workspace.WritableRoots, []string{"/data", "/x"}),
		"model":    c.Model == "a/b" && c.SandboxMode == "read-only" && c.ApprovalExpiry.Manual == 8*time.Hour,
		"github":   github.Command == "npx" && len(github.Args) == 2 && github.Env["LOG_LEVEL"] == "warn" && github.EnvVars[0] == "GITHUB_TOKEN",
		"timeouts": github.StartupTimeout == 20*time.Second && github.ToolTimeout == time.Minute && github.Tools["issue"].ApprovalMode == "prompt",
		"defaults": github.Enabled && github.ApprovalMode == "auto" && github.Roots == "workspace" && github.EnabledTools == nil && github.Off == nil,
		"docs":     docs.URL == "https://example.com/mcp" && docs.EnvHTTPHeaders["X-Key"] == "DOCS_KEY" && docs.ApprovalMode == "approve" && docs.Off == nil,
		"mail":     mail.Every == 0 && mail.Timeout == time.Minute && mail.To == "subscribers" && mail.MaxBytes == 16384 && filepath.IsAbs(mail.Cwd),
		"price":    *c.Pricing["a/b"].Input == 3 && c.Pricing["a/b"].Output == nil,
		"keys":     reflect.DeepEqual(c.TUI.Keys, map[string][]string{"send": {"ctrl+s"}}),
		"agent":    *c.Agent.MaxActive == 0 && *c.Agent.IdleExit == 10*time.Minute,
	} {
		if !ok {
			t.Errorf("%s: %+v", what, c)
		}
	}
	if s, ok := c.Get("mcp_servers.github.args"); !ok || s.Text() != `["-y", "@example/github-mcp"]` || s.From != FromConfig {
		t.Errorf("%+v %v", s, ok)
	}
	if s, ok := c.Get("tui.theme"); !ok || s.Text() != `"auto"` || s.From != FromDefault {
		t.Errorf("%+v %v", s, ok)
	}
	if s, ok := c.Get("mcp_servers.docs.cwd"); !ok || s.Text() != "" {
		t.Errorf("%+v %v", s, ok)
	}
	if _, ok := c.Get("themes"); ok {
		t.Error("a key that is none has a value")
	}
}

func TestWhatIsUnknownOrWrong(t *testing.T) {
	t.Parallel()
	t.Run("an unknown key warns, with the nearest", func(t *testing.T) {
		t.Parallel()
		c, notices, err := load(t, "modle = 'a/b'\n[tui]\nthem = 'dark'\n[nothing]\nx = 1\n")
		if err != nil || len(notices) != 3 || c.Model != "" {
			t.Fatal(notices, err)
		}
		for i, want := range []string{":1: modle is no setting; did you mean model?", ":3: tui.them is no setting; did you mean tui.theme?"} {
			if i == 1 {
				i = 2
			}
			if !strings.Contains(notices[i].Text, want) {
				t.Errorf("%q", notices[i].Text)
			}
		}
	})
	t.Run("a wrong value that confines nothing is a notice, and the default holds", func(t *testing.T) {
		t.Parallel()
		c, notices, err := load(t, "\n[tui]\ntheme = 5\nmotion = 'no'\n")
		if err != nil || len(notices) != 2 || c.TUI.Theme != "auto" || !c.TUI.Motion {
			t.Fatal(notices, err, c.TUI)
		}
		if n := notices[0]; n.Key != "tui.motion" || !strings.Contains(n.Text, `:4: tui.motion is "no" and must be true or false; the default holds`) {
			t.Errorf("%+v", n)
		}
	})
	t.Run("a table in a value's place, and a value in a table's", func(t *testing.T) {
		t.Parallel()
		_, notices, err := load(t, "tui = 1\n[model]\nx = 1\n")
		if err != nil || len(notices) != 2 {
			t.Error(notices, err)
		}
		_, _, err = load(t, "sandbox_workspace_write = true\n")
		wants(t, err, protocol.ConfigInvalid, ":1: sandbox_workspace_write must be a table")
	})
	t.Run("a wrong value that confines is config_invalid, naming the key, its line and what it may be", func(t *testing.T) {
		t.Parallel()
		_, _, err := load(t, "# mine\nsandbox_mode = \"wrokspace\"\n")
		wants(t, err, protocol.ConfigInvalid, `config.toml:2: sandbox_mode is "wrokspace" and must be "read-only", "workspace-write" or "danger-full-access"`)
	})
	t.Run("every fault of several is counted", func(t *testing.T) {
		t.Parallel()
		_, _, err := load(t, "row = 'ful'\nweb_search = 1\n[tools]\ndisabled = 'shell'\n")
		wants(t, err, protocol.ConfigInvalid, "row", "(and 2 more)")
	})
	t.Run("a wrong value that may be a secret is not shown", func(t *testing.T) {
		t.Parallel()
		_, _, err := load(t, "row = 'sk-abcdefghijkl'\n")
		wants(t, err, protocol.ConfigInvalid, "row must be")
		if strings.Contains(err.Error(), "sk-") {
			t.Error(err)
		}
	})
	t.Run("the expiry of auto is never below the judge's deadline and 15 s", func(t *testing.T) {
		t.Parallel()
		c, notices, err := load(t, "judge_deadline_ms = 60000\napproval_expiry.auto = '30s'\n")
		if err != nil || len(notices) != 1 || c.ApprovalExpiry.Auto != 75*time.Second {
			t.Error(notices, err, c.ApprovalExpiry)
		}
	})
}

func TestAFileThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	t.Run("bad TOML is named by its line, and nothing of it is shown", func(t *testing.T) {
		t.Parallel()
		c, _, err := load(t, "a = 1\nkey = sk-abcdef\n")
		wants(t, err, protocol.ConfigInvalid, "config.toml: line 2")
		if c == nil || c.Row != "auto" || strings.Contains(err.Error(), "sk-") {
			t.Error(c, err)
		}
	})
	t.Run("one that others may read is a notice", func(t *testing.T) {
		t.Parallel()
		path := file(t, "row = 'look'\n")
		chmod(t, path, 0o644)
		c, notices, err := Load(path)
		if err != nil || len(notices) != 1 || !strings.Contains(notices[0].Text, "chmod 600 "+path) || c.Row != "look" {
			t.Error(notices, err)
		}
	})
	t.Run("one that others may write is refused", func(t *testing.T) {
		t.Parallel()
		path := file(t, "row = 'full'\n")
		chmod(t, path, 0o620)
		c, _, err := Load(path)
		wants(t, err, protocol.ConfigInvalid, path, "written by others", "0620")
		if c.Row != "auto" {
			t.Error(c.Row)
		}
	})
	t.Run("a link, and one that is too long", func(t *testing.T) {
		t.Parallel()
		path := file(t, "row = 'full'\n")
		link := path + ".link"
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		_, _, err := Load(link)
		wants(t, err, protocol.ConfigInvalid, link, "is a link")
		_, _, err = load(t, strings.Repeat("#", MaxSize+1))
		wants(t, err, protocol.ConfigInvalid, "longer than")
		if _, _, err := load(t, strings.Repeat("#", MaxSize)); err != nil {
			t.Error(err)
		}
	})
}

// What a file costs is bounded, whoever wrote it.
func TestFilesThatAreMadeToCost(t *testing.T) {
	t.Parallel()
	deep := func(unit, middle, end string) string {
		n := (MaxProject - 4096) / (len(unit) + len(end))
		return strings.Repeat(unit, min(n, 9000)) + middle + strings.Repeat(end, min(n, 9000))
	}
	for name, text := range map[string]string{
		"inline tables in each other": "a=" + deep("{a=", "1", "}"),
		"a header of very many parts": "[" + deep("a.", "a", "") + "]\nb=1\n",
		"a dotted key of very many":   deep("a.", "a", "") + "=1\n",
		"one part too many":           strings.Repeat("a.", maxParts) + "a = 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseProject("p", []byte(text))
			wants(t, err, ProjectInvalid, "more than 32 parts")
			_, _, err = load(t, text)
			wants(t, err, protocol.ConfigInvalid, "more than 32 parts")
		})
	}
	var many strings.Builder
	for i := range 5000 {
		many.WriteString("x" + strings.Repeat("y", i%30) + "_" + time.Duration(i).String() + " = 1\n")
	}
	_, notices, err := load(t, strings.ReplaceAll(many.String(), "µ", "u"))
	if err != nil || len(notices) != maxNoticed+1 || !strings.Contains(notices[maxNoticed].Text, "more like these") {
		t.Errorf("%d notices, %v", len(notices), err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestServersAndSources(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		code       protocol.Code // of the server's Off
		refuses    bool          // new bots
		words      string
	}{
		{"an unknown key turns it off and the rest stays", "command = 'x'\ncomand = 'y'", protocol.ConfigInvalid, false, "mcp_servers.a.comand is no setting"},
		{"a wrong value refuses bots, and turns it off", "command = 'x'\napproval_mode = 'never'", protocol.ConfigInvalid, true, "approval_mode"},
		{"neither command nor url", "required = true", protocol.ConfigInvalid, true, "needs a command or a url"},
		{"both", "command = 'x'\nurl = 'https://x'", protocol.ConfigInvalid, true, "keep one"},
		{"a header for a command", "command = 'x'\nhttp_headers.A = 'b'", protocol.ConfigInvalid, true, "for a url"},
		{"arguments for a url", "url = 'https://x'\nargs = ['a']", protocol.ConfigInvalid, true, "for a command"},
		{"one setting under two names", "command = 'x'\ntool_timeout = '1s'\ntool_timeout_sec = 1", protocol.ConfigInvalid, true, "keep one of the two"},
		{"a plain bearer token", "url = 'https://x'\nbearer_token = 'hunter2'", SecretRefused, false, "mcp_servers.a.bearer_token"},
		{"a secret in its environment", "command = 'x'\nenv.API_KEY = 'hunter2'", SecretRefused, false, "mcp_servers.a.env.API_KEY"},
		{"a secret in a header", "url = 'https://x'\nhttp_headers.X-Team = 'ghp_hunter2'", SecretRefused, false, "X-Team"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c, notices, err := load(t, "[mcp_servers.a]\n"+row.text+"\n[mcp_servers.b]\ncommand = 'b'\n")
			if (err != nil) != row.refuses {
				t.Errorf("%v", err)
			}
			a := c.MCPServers["a"]
			if a == nil || a.Off == nil {
				t.Fatalf("it is on: %+v, %v", a, notices)
			}
			wants(t, a.Off, row.code, row.words)
			if !row.refuses && len(notices) == 0 {
				t.Error("nobody is told")
			}
			if b := c.MCPServers["b"]; b == nil || b.Off != nil {
				t.Errorf("the other is off, too: %+v", b)
			}
			for _, n := range notices {
				if strings.Contains(n.Text, "hunter2") {
					t.Errorf("a secret is shown: %s", n.Text)
				}
			}
		})
	}
	_, _, err := load(t, "[lookout.sources.x]\nevery = '1m'\n")
	wants(t, err, protocol.ConfigInvalid, "lookout.sources.x needs a command")
	c, notices, err := load(t, "[lookout.sources.x]\ncommand = 'a'\nevry = '1m'\n")
	if err != nil || len(notices) != 1 || c.Lookout.Sources["x"].Off == nil {
		t.Error(notices, err)
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	path := file(t, "model = 'file/m'\neffort = 'low'\ntui.theme = 'dark'\ntui.screen = 'inline'\n")
	project := &Project{Name: "x", Model: "project/m", Reasoning: "high", ThreadsIn: "project"}
	environ := []string{"AGENT_MODEL=env/m", "SONNY_THEME=light", "SONNY_SCREEN=wide", "NO_MOTION=1"}
	for _, row := range []struct {
		name    string
		sources Sources
		want    string // model, effort, tasks.in, theme, screen, motion
	}{
		{"the file goes before the defaults", Sources{}, "file/m low worktree dark inline true"},
		{"project.toml before the file", Sources{Project: project}, "project/m high project dark inline true"},
		{"the environment before project.toml, and a wrong value of it is passed over", Sources{Project: project, Environ: environ}, "env/m high project light inline false"},
		{"a flag before all, a flag of its own before --set", Sources{Project: project, Environ: environ, Stated: []Stated{
			{Key: "model", Value: "set/m"}, {Key: "tui.motion", Value: "true"}, {Key: "model", Value: "flag/m", Flag: "--model"},
		}}, "flag/m high project light inline true"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.sources.Path = path
			c, notices, err := Resolve(row.sources)
			got := strings.Join([]string{c.Model, c.Effort, c.Tasks.In, c.TUI.Theme, c.TUI.Screen, map[bool]string{true: "true", false: "false"}[c.TUI.Motion]}, " ")
			if err != nil || got != row.want || len(notices) != map[bool]int{true: 1}[row.sources.Environ != nil] {
				t.Errorf("%s, %v, %v", got, notices, err)
			}
		})
	}
	c, _, _ := Resolve(Sources{Path: path, Project: project, Environ: environ, Stated: []Stated{{Key: "tui.title", Value: "false"}}})
	for key, from := range map[string]Origin{"model": FromEnviron, "effort": FromProject, "tui.screen": FromConfig, "tui.title": FromFlag, "row": FromDefault} {
		if s, _ := c.Get(key); s.From != from {
			t.Errorf("%s is from %s", key, s.From)
		}
	}
}

func TestStatedSettings(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		s        Stated
		terminal bool
		code     protocol.Code
		words    string
	}{
		{"a wider row without a terminal", Stated{Key: "row", Value: "full"}, false, protocol.UsageError, "standard input is no terminal"},
		{"a wider row at a terminal", Stated{Key: "row", Value: "full"}, true, "", ""},
		{"a wider row by its own flag", Stated{Key: "row", Value: "full", Flag: "--row"}, false, "", ""},
		{"a narrower row without a terminal", Stated{Key: "row", Value: "look"}, false, "", ""},
		{"a sandbox that the row has anyway", Stated{Key: "sandbox_mode", Value: "workspace-write"}, false, "", ""},
		{"a wider sandbox than the row's", Stated{Key: "sandbox_mode", Value: "danger-full-access"}, false, protocol.UsageError, "sandbox_mode"},
		{"a server's command", Stated{Key: "mcp_servers.x.command", Value: "sh"}, false, protocol.UsageError, "mcp_servers.x.command"},
		{"what confines nothing", Stated{Key: "tui.theme", Value: "light"}, false, "", ""},
		{"a wrong value", Stated{Key: "row", Value: "ful"}, true, protocol.UsageError, `must be "auto", "manual", "look" or "full"`},
		{"an unknown key", Stated{Key: "rwo", Value: "full"}, true, protocol.UsageError, "did you mean row?"},
		{"a table", Stated{Key: "tui", Value: "x"}, true, protocol.UsageError, "tui is a table"},
		{"a secret", Stated{Key: "mcp_servers.x.env.TOKEN", Value: "x"}, true, SecretRefused, "sonny env set"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Resolve(Sources{Path: file(t, "mcp_servers.x.command = 'true'\n"), Stated: []Stated{row.s}, Terminal: row.terminal})
			if row.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wants(t, err, row.code, row.words)
		})
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	if path, err := Path([]string{"SONNY_CONFIG=/x/y.toml"}); path != "/x/y.toml" || err != nil {
		t.Error(path, err)
	}
	if path, err := Path(nil); !strings.HasSuffix(path, "/.agent/config.toml") || err != nil {
		t.Error(path, err)
	}
}
