package doctor_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agent/internal/sonny/doctor"
	"agent/internal/sonny/sonnytest"
)

func TestMain(m *testing.M) { sonnytest.Main(m) }

// ids are the table of the document, in its order, with sessions after worktrees.
var ids = strings.Fields(`version home.mode env.mode env.parse env.shadowed config.parse config.unknown config.secrets
providers providers.reach chatgpt models socket store.mode daemon.protocol daemon.options daemon.paused
sandbox.program sandbox.run sandbox.network git rg editor clipboard notify scheduler companions judge
rules mcp skills roles commands memory commons worktrees sessions terminal disk programs`)

// examined is one report, taken apart.
type examined struct {
	sonnytest.Ran
	report doctor.Report
	checks map[string]doctor.Check
}

// examine runs doctor with --json.
func examine(t *testing.T, h *sonnytest.Home, args ...string) examined {
	t.Helper()
	return examineWith(t, h, "", args...)
}

func examineWith(t *testing.T, h *sonnytest.Home, answers string, args ...string) examined {
	t.Helper()
	e := examined{Ran: h.Feed(answers, "sonny", append([]string{"doctor", "--json"}, args...)...), checks: map[string]doctor.Check{}}
	e.read(t)
	return e
}

// read takes the printed report apart.
func (e *examined) read(t *testing.T) {
	t.Helper()
	if err := json.Unmarshal([]byte(e.Stdout), &e.report); err != nil {
		t.Fatalf("exit %d: %v in %q; stderr: %s", e.Exit, err, e.Stdout, e.Stderr)
	}
	for _, c := range e.report.Checks {
		e.checks[c.ID] = c
	}
}

// wants fails unless a check has a status and a text in what it says.
func (e *examined) wants(t *testing.T, id string, status doctor.Status, texts ...string) {
	t.Helper()
	c := e.checks[id]
	all := c.Summary + "\n" + c.Detail + "\n" + c.Remedy
	if c.Status != status {
		t.Errorf("%s: %+v, want %s", id, c, status)
	}
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%s says nothing of %q: %+v", id, text, c)
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	look := func(t *testing.T) {
		t.Helper()
		e := examine(t, h, "--offline")
		if e.Exit != 0 || e.Stderr != "" || strings.ContainsFunc(strings.TrimSuffix(e.Stdout, "\n"), func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("exit %d, stderr %q: %q", e.Exit, e.Stderr, e.Stdout)
		}
		if e.report.V != 1 || e.report.At.IsZero() || e.report.Version != "devel" || e.report.Overall == doctor.Fail {
			t.Errorf("%+v", e.report)
		}
		var got []string
		for _, c := range e.report.Checks {
			got = append(got, c.ID)
			if !slices.Contains([]doctor.Status{doctor.OK, doctor.Warn, doctor.Fail, doctor.Skip}, c.Status) || c.Summary == "" || c.MS < 0 {
				t.Errorf("%+v", c)
			}
			if c.Status == doctor.Fail || c.Status == doctor.Warn && c.Remedy == "" {
				t.Errorf("%+v", c)
			}
		}
		if !slices.Equal(got, ids) {
			t.Errorf("the checks are %q", got)
		}
		for _, id := range []string{"sandbox.program", "sandbox.run", "sandbox.network", "git", "providers", "models", "disk"} {
			e.wants(t, id, doctor.OK)
		}
		for _, id := range []string{"providers.reach", "commons", "programs", "terminal"} {
			e.wants(t, id, doctor.Skip)
		}
	}
	t.Run("SO-80 F25 doctor --json --offline on a fresh home", look)
	t.Run("without a daemon what only one knows is skipped", func(t *testing.T) {
		e := examine(t, h, "--offline")
		for _, id := range []string{"daemon.protocol", "daemon.options", "daemon.paused", "worktrees"} {
			e.wants(t, id, doctor.Skip, "runs")
		}
		e.wants(t, "companions", doctor.Skip, "no daemon runs", "not in this build: lookout")
		if h.DaemonPID() != 0 {
			t.Error("doctor started a daemon")
		}
		e.wants(t, "scheduler", doctor.Skip, "no triggers")
	})
	t.Run("the members are those of the document", func(t *testing.T) {
		var raw struct {
			Checks []map[string]any `json:"checks"`
		}
		e := examine(t, h, "--offline")
		if err := json.Unmarshal([]byte(e.Stdout), &raw); err != nil {
			t.Fatal(err)
		}
		for _, c := range raw.Checks {
			for _, member := range []string{"id", "status", "summary", "detail", "remedy", "ms"} {
				if _, ok := c[member]; !ok || len(c) != 6 {
					t.Errorf("%v", c)
				}
			}
		}
	})
	t.Run("without --json there is one line for each check, without colour", func(t *testing.T) {
		r := h.Sonny("doctor", "--offline")
		lines := strings.Split(strings.TrimSuffix(r.Stdout, "\n"), "\n")
		if r.Exit != 0 || len(lines) != len(ids)+1 || strings.Contains(r.Stdout, "\x1b") || lines[len(lines)-1] != "warn" {
			t.Errorf("exit %d:\n%s", r.Exit, r.Stdout)
		}
		for i, id := range ids {
			if fields := strings.Fields(lines[i]); fields[1] != id {
				t.Errorf("%q", lines[i])
			}
		}
	})
	t.Run("SO-80 F25 with a daemon", func(t *testing.T) {
		start(t, h)
		look(t)
		e := examine(t, h)
		e.wants(t, "version", doctor.OK, "the daemon are devel")
		e.wants(t, "socket", doctor.OK, "yours alone")
		e.wants(t, "store.mode", doctor.OK, "yours alone")
		e.wants(t, "daemon.protocol", doctor.OK)
		e.wants(t, "daemon.paused", doctor.OK)
		e.wants(t, "worktrees", doctor.OK)
		e.wants(t, "providers.reach", doctor.OK, "scripted lists 5 models")
		e.wants(t, "judge", doctor.OK, "judge-allow", "lists")
		// agent start knows nothing of what sonny wants besides.
		e.wants(t, "daemon.options", doctor.Warn, "~/.agent/triggers", "agent shutdown")
		e.wants(t, "scheduler", doctor.Warn, "~/.config/systemd/user")
		e.wants(t, "companions", doctor.Warn, "keeps no approver and no toolhost")
	})
	t.Run("a paused daemon", func(t *testing.T) {
		h.Agent("pause", "--reason", "for lunch")
		e := examine(t, h, "--offline")
		e.wants(t, "daemon.paused", doctor.Warn, "sonny unpause")
		if strings.Contains(e.Stdout, "lunch") {
			t.Error("the reason is a person's own words")
		}
		h.Agent("resume")
	})
	t.Run("a daemon that died", func(t *testing.T) {
		h.KillDaemon()
		e := examine(t, h, "--offline")
		e.wants(t, "daemon.protocol", doctor.Warn, "died")
		e.wants(t, "daemon.options", doctor.Skip)
	})
	t.Run("without a daemon the providers are asked through one that lives for that alone", func(t *testing.T) {
		e := examine(t, h)
		e.wants(t, "providers.reach", doctor.OK, "scripted lists 5 models")
		if h.DaemonPID() != 0 {
			t.Error("a daemon is left")
		}
	})
}

// start starts a daemon as agent does.
func start(t *testing.T, h *sonnytest.Home) {
	t.Helper()
	if r := h.Agent("start"); r.Exit != 0 {
		t.Fatalf("%+v", r)
	}
}

func TestEnvMode(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	path := h.Path(".agent", "env")
	h.Write(".agents/AGENTS.md", "Be brief.\n") // or it would be asked for first
	chmod(t, path, 0o644)
	loose := func(t *testing.T, e examined) {
		t.Helper()
		if e.Exit != 1 || e.report.Overall != doctor.Fail {
			t.Errorf("exit %d, overall %s", e.Exit, e.report.Overall)
		}
		e.wants(t, "env.mode", doctor.Fail, "env_file_permissions", "~/.agent/env", "chmod 600")
		wantsMode(t, path, 0o644)
	}
	t.Run("SO-81 an env that others can read fails, and stays", func(t *testing.T) {
		loose(t, examine(t, h, "--offline"))
	})
	t.Run("SO-81 sonny exec refuses it and names the path", func(t *testing.T) {
		r := h.Sonny("exec", "x")
		if r.Exit == 0 || !strings.Contains(r.Stderr, "env_file_permissions") || !strings.Contains(r.Stderr, path) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("SO-81 --fix asks, and without a yes changes nothing", func(t *testing.T) {
		for _, answers := range []string{"", "n\n", "\n", "nope\n"} {
			e := examineWith(t, h, answers, "--offline", "--fix")
			loose(t, e)
			if !strings.Contains(e.Stderr, "~/.agent/env 0600? [y/N]") {
				t.Errorf("it asks %q", e.Stderr)
			}
		}
	})
	t.Run("SO-81 --fix makes it 0600", func(t *testing.T) {
		e := examineWith(t, h, "y\n", "--offline", "--fix")
		e.wants(t, "env.mode", doctor.OK)
		wantsMode(t, path, 0o600)
		if e.Exit != 0 {
			t.Errorf("exit %d: %s", e.Exit, e.Stdout)
		}
	})
	t.Run("SO-81 the plain form names the check and the remedy", func(t *testing.T) {
		chmod(t, path, 0o640)
		r := h.Sonny("doctor", "--offline")
		if r.Exit != 1 || !strings.Contains(r.Stdout, "fail  env.mode") || !strings.Contains(r.Stdout, "→  chmod 600 ~/.agent/env\n") {
			t.Errorf("exit %d:\n%s", r.Exit, r.Stdout)
		}
	})
	t.Run("a bot changes nothing", func(t *testing.T) {
		r := h.With("AGENT_BOT=Ada").Feed("y\n", "sonny", "doctor", "--offline", "--fix")
		if r.Exit != 1 || !strings.Contains(r.Stderr, "inside_a_bot") {
			t.Errorf("%+v", r)
		}
		wantsMode(t, path, 0o640)
	})
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func wantsMode(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("%s: %v, %v; want %v", path, info, err, mode)
	}
}

// state is one home in which something is wrong.
type state struct {
	name   string
	make   func(t *testing.T, h *sonnytest.Home)
	id     string
	status doctor.Status
	says   []string
	never  string                                     // must not be printed anywhere
	mended func(t *testing.T, h *sonnytest.Home) bool // --fix with every yes leads there; nil: it asks nothing of this check
}

func writes(path, text string) func(*testing.T, *sonnytest.Home) {
	return func(_ *testing.T, h *sonnytest.Home) { h.Write(path, text) }
}

// replaced puts something else in the place of a file of the home.
func replaced(path string, with func(at string) error) func(*testing.T, *sonnytest.Home) {
	return func(t *testing.T, h *sonnytest.Home) {
		t.Helper()
		at := h.Path(path)
		os.RemoveAll(at)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := with(at); err != nil {
			t.Fatal(err)
		}
		if path == ".agent" { // the home's end looks for its daemon there
			t.Cleanup(func() { os.Remove(at); os.Mkdir(at, 0o700) })
		}
	}
}

func fifo(at string) error   { return syscall.Mkfifo(at, 0o600) }
func folder(at string) error { return os.Mkdir(at, 0o700) }
func link(at string) error   { return os.Symlink("/etc/passwd", at) }

func mode(path string, mode os.FileMode) func(*testing.T, *sonnytest.Home) {
	return func(t *testing.T, h *sonnytest.Home) { t.Helper(); chmod(t, h.Path(path), mode) }
}

func becomes(path string, want os.FileMode) func(*testing.T, *sonnytest.Home) bool {
	return func(_ *testing.T, h *sonnytest.Home) bool {
		info, err := os.Lstat(h.Path(path))
		return err == nil && info.Mode().Perm() == want
	}
}

// secretKey looks like a provider's.
const secretKey = "sk-" + "ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"

var states = []state{
	{name: "~/.agent that others may read", make: mode(".agent", 0o755), id: "home.mode", status: doctor.Fail, says: []string{"0755", "chmod 700"}, mended: becomes(".agent", 0o700)},
	{name: "~/.agent that is a file", make: replaced(".agent", func(at string) error { return os.WriteFile(at, nil, 0o600) }), id: "home.mode", status: doctor.Fail, says: []string{"~/.agent is no folder"}},
	{name: "~/.agent that is a FIFO", make: replaced(".agent", fifo), id: "home.mode", status: doctor.Fail, says: []string{"~/.agent is no folder"}},
	{name: "~/.agent that is a file: the daemon", make: replaced(".agent", fifo), id: "daemon.protocol", status: doctor.Fail, says: []string{"invalid_store_path"}},
	{name: "~/.agent that leads nowhere", make: replaced(".agent", func(at string) error { return os.Symlink("nowhere", at) }), id: "home.mode", status: doctor.Fail, says: []string{"leads to no folder"}},
	{name: "~/.agent that leads to another's", make: replaced(".agent", func(at string) error { return os.Symlink("/usr", at) }), id: "home.mode", status: doctor.Fail, says: []string{"not yours alone"}},
	{name: "~/.agent that leads to a folder of one's own", make: func(t *testing.T, h *sonnytest.Home) {
		if err := os.Rename(h.Path(".agent"), h.Path("real")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("real", h.Path(".agent")); err != nil {
			t.Fatal(err)
		}
	}, id: "home.mode", status: doctor.Warn, says: []string{"is a link"}},
	{name: "no ~/.agents", make: func(*testing.T, *sonnytest.Home) {}, id: "home.mode", status: doctor.Warn, says: []string{"~/.agents"}, mended: becomes(".agents", 0o700)},
	{name: "~/.agents that is a file", make: writes(".agents", "x"), id: "home.mode", status: doctor.Fail, says: []string{"~/.agents is no folder"}},
	{name: "an env that is a FIFO", make: replaced(".agent/env", fifo), id: "env.mode", status: doctor.Fail, says: []string{"~/.agent/env"}},
	{name: "an env that is a link", make: replaced(".agent/env", link), id: "env.mode", status: doctor.Fail, says: []string{"~/.agent/env", "link"}},
	{name: "an env that is a folder", make: replaced(".agent/env", folder), id: "env.mode", status: doctor.Fail, says: []string{"~/.agent/env"}},
	{name: "an env that is too long", make: writes(".agent/env", "# "+strings.Repeat("x", 64<<10)), id: "env.mode", status: doctor.Fail, says: []string{"~/.agent/env"}},
	{name: "an env with a bad line", make: writes(".agent/env", "AGENT_PROVIDER=scripted\nhush hush\n"), id: "env.parse", status: doctor.Fail, says: []string{"~/.agent/env:2"}, never: "hush"},
	{name: "no provider", make: writes(".agent/env", "# nothing\n"), id: "providers", status: doctor.Fail, says: []string{"sonny setup"}},
	{name: "a provider without its key", make: writes(".agent/env", "AGENT_PROVIDER=\"own=chat,https://127.0.0.1:1/v1,OWN_KEY\"\n"), id: "providers", status: doctor.Fail, says: []string{"own needs OWN_KEY"}},
	{name: "a config that is no TOML", make: writes(".agent/config.toml", "row = \n"), id: "config.parse", status: doctor.Fail, says: []string{"~/.agent/config.toml", "sonny config edit"}},
	{name: "a config that is a FIFO", make: replaced(".agent/config.toml", fifo), id: "config.parse", status: doctor.Fail, says: []string{"~/.agent/config.toml"}},
	{name: "a config that others may write", make: mode(".agent/config.toml", 0o666), id: "config.parse", status: doctor.Fail, says: []string{"0666"}},
	{name: "a config that others may read", make: mode(".agent/config.toml", 0o644), id: "config.parse", status: doctor.Warn, says: []string{"0644"}},
	{name: "a wrong value of a confining key", make: writes(".agent/config.toml", "sandbox_mode = \"wrokspace\"\n"), id: "config.parse", status: doctor.Fail, says: []string{"sandbox_mode"}},
	{name: "a wrong value of another key", make: writes(".agent/config.toml", "task_updates = 7\n"), id: "config.parse", status: doctor.Warn, says: []string{"task_updates"}},
	{name: "an unknown key", make: writes(".agent/config.toml", "rwo = \"auto\"\n"), id: "config.unknown", status: doctor.Warn, says: []string{"1 unknown key: rwo"}},
	{name: "a secret in the config", make: writes(".agent/config.toml", "model = \""+secretKey+"\"\n"), id: "config.secrets", status: doctor.Fail, says: []string{"model", "sonny env set"}, never: secretKey},
	{name: "a secret after a hundred unknown keys", make: writes(".agent/config.toml", unknowns(100)+"model = \""+secretKey+"\"\n"), id: "config.secrets", status: doctor.Fail, says: []string{"model"}, never: secretKey},
	{name: "models that are a FIFO", make: replaced(".agent/models", fifo), id: "models", status: doctor.Fail, says: []string{"~/.agent/models"}},
	{name: "models with a bad line", make: writes(".agent/models", "scripted/sonny\nnonsense\n"), id: "models", status: doctor.Fail, says: []string{"~/.agent/models", "2"}},
	{name: "a default model that is not offered", make: writes(".agent/models", "scripted/other\n"), id: "models", status: doctor.Warn, says: []string{"scripted/sonny"}},
	{name: "a sign-in that others may read", make: func(t *testing.T, h *sonnytest.Home) {
		h.Write(".agent/chatgpt.json", `{"version":1}`)
		chmod(t, h.Path(".agent/chatgpt.json"), 0o644)
	}, id: "chatgpt", status: doctor.Fail, says: []string{"0644"}},
	{name: "a sign-in that is none", make: writes(".agent/chatgpt.json", "nonsense "+secretKey), id: "chatgpt", status: doctor.Fail, says: []string{"sonny login chatgpt"}, never: secretKey},
	{name: "a sign-in whose access token has ended", make: writes(".agent/chatgpt.json", `{"version":1,"access_token":"hushhushhushhush","expires_at":1000}`), id: "chatgpt", status: doctor.Warn, says: []string{"1970-01-01T00:16:40Z"}, never: "hushhush"},
	{name: "a sign-in that holds", make: writes(".agent/chatgpt.json", `{"version":1,"access_token":"hushhushhushhush","expires_at":99999999999}`), id: "chatgpt", status: doctor.OK, says: []string{"signed in"}, never: "hushhush"},
	{name: "a file in the socket's place", make: writes(".agent/state.sqlite.sock", ""), id: "socket", status: doctor.Fail, says: []string{"no socket"}},
	{name: "a store that others may read", make: func(t *testing.T, h *sonnytest.Home) {
		h.Write(".agent/state.sqlite", "")
		chmod(t, h.Path(".agent/state.sqlite"), 0o644)
	}, id: "store.mode", status: doctor.Fail, says: []string{"state.sqlite has mode 0644"}, mended: becomes(".agent/state.sqlite", 0o600)},
	{name: "a store that is a link", make: replaced(".agent/state.sqlite-wal", link), id: "store.mode", status: doctor.Fail, says: []string{"state.sqlite-wal"}},
	{name: "rules that do not parse", make: writes(".agent/rules/a.rules", "\nprefix_rule(\n"), id: "rules", status: doctor.Fail, says: []string{"a.rules"}},
	{name: "rules that are a FIFO", make: replaced(".agent/rules/a.rules", fifo), id: "rules", status: doctor.Fail, says: []string{"a.rules"}},
	{name: "rules of a session that do not parse", make: writes(".agent/sonny/rules/7.rules", "nonsense("), id: "rules", status: doctor.Fail, says: []string{"7.rules"}},
	{name: "an MCP server that does not check", make: writes(".agent/config.toml", "[mcp_servers.x]\nargs = [\"a\"]\n"), id: "mcp", status: doctor.Fail, says: []string{"mcp_servers.x"}},
	{name: "an MCP server without its variable", make: writes(".agent/config.toml", "[mcp_servers.x]\ncommand = \"x\"\nenv_vars = [\"X_KEY\"]\n"), id: "mcp", status: doctor.Warn, says: []string{"x needs X_KEY"}},
	{name: "a skill that is a FIFO", make: replaced(".agents/skills/one/SKILL.md", fifo), id: "skills", status: doctor.Fail, says: []string{"one"}},
	{name: "a skill whose name a shell could not pass", make: writes(".agents/skills/a'b c/SKILL.md", "Do it.\n"), id: "skills", status: doctor.Warn, says: []string{"no bot is shown", "a'b c", "rename"}},
	{name: "a skill with an odd name", make: writes(".agents/skills/One_Two/SKILL.md", "Do it.\n"), id: "skills", status: doctor.Warn, says: []string{"One_Two"}},
	{name: "a role with open front matter", make: replaced(".agents/agents/tester.md", fifo), id: "roles", status: doctor.Fail, says: []string{"tester"}},
	{name: "a command that is a FIFO", make: replaced(".agents/commands/go.md", fifo), id: "commands", status: doctor.Fail, says: []string{"go"}},
	{name: "a fact that is none", make: writes(".agents/memory/milk.md", "Remember the milk.\n"), id: "memory", status: doctor.Fail, says: []string{"~/.agents/memory/milk.md"}},
	{name: "a fact of a project that is none", make: writes(".agents/memory/projects/shop/milk.md", "Remember the milk.\n"), id: "memory", status: doctor.Fail, says: []string{"shop/milk.md"}},
}

func unknowns(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "zz%d = 1\n", i)
	}
	return b.String()
}

func TestStates(t *testing.T) {
	t.Parallel()
	for _, s := range states {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := sonnytest.Fresh(t)
			s.make(t, h)
			e := examine(t, h, "--offline")
			e.wants(t, s.id, s.status, s.says...)
			if s.never != "" && strings.Contains(e.Stdout+e.Stderr+h.Sonny("doctor", "--offline").Stdout, s.never) {
				t.Errorf("it prints %q:\n%s", s.never, e.Stdout)
			}
			if fails := e.report.Overall == doctor.Fail; fails != (e.Exit == 1) {
				t.Errorf("exit %d, overall %s", e.Exit, e.report.Overall)
			}
			fixed := examineWith(t, h, strings.Repeat("y\n", 20), "--offline", "--fix")
			if s.mended == nil {
				if strings.Contains(fixed.Stderr, s.id+":") {
					t.Errorf("it asks %q", fixed.Stderr)
				}
				return
			}
			if !s.mended(t, h) || fixed.checks[s.id].Status == doctor.Fail {
				t.Errorf("not mended: %+v; it said %q", fixed.checks[s.id], fixed.Stderr)
			}
		})
	}
}

func TestForeignFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		return // nobody else can give a file away
	}
	t.Parallel()
	for path, id := range map[string]string{".agent": "home.mode", ".agent/env": "env.mode", ".agent/state.sqlite": "store.mode", ".agent/config.toml": "config.parse"} {
		t.Run(path+" of another user", func(t *testing.T) {
			t.Parallel()
			h := sonnytest.Fresh(t)
			if path == ".agent/state.sqlite" {
				h.Write(path, "")
			}
			if err := os.Chown(h.Path(path), 12345, 12345); err != nil {
				t.Fatal(err)
			}
			e := examineWith(t, h, strings.Repeat("y\n", 20), "--offline", "--fix")
			e.wants(t, id, doctor.Fail, "another user")
			if info, err := os.Lstat(h.Path(path)); err != nil || info.Sys().(*syscall.Stat_t).Uid != 12345 {
				t.Error("doctor took it")
			}
		})
	}
}

func TestOldDaemon(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, ready, says string }{
		{"an older protocol", `{"event":"ready","protocol":1,"pid":1,"version":"v0.1.0","capabilities":[]}`, "daemon_older"},
		{"a newer protocol", `{"event":"ready","protocol":99,"pid":1,"version":"v9.0.0","capabilities":[]}`, "daemon_newer"},
		{"something else", `220 mail.example.com ESMTP`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := sonnytest.Fresh(t)
			l, err := net.Listen("unix", h.Path("s"))
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					fmt.Fprintln(c, row.ready)
					c.Close()
				}
			}()
			defer func() { l.Close(); <-done }()
			e := examine(t, h, "--offline", "--socket", h.Path("s"))
			e.wants(t, "daemon.protocol", doctor.Fail, row.says)
			e.wants(t, "daemon.options", doctor.Skip, "daemon.protocol")
			if e.Exit != 1 {
				t.Errorf("exit %d", e.Exit)
			}
		})
	}
}

func TestNothingOutsideTheHomeIsNamed(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	out, err := os.MkdirTemp("/var/tmp", "far away-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(out) })
	for name, text := range map[string]string{"config.toml": "row = \n", "AGENTS.md": "x", "state.sqlite": ""} {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(out, ".agents", "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fifo(filepath.Join(out, ".agents", "agents", "spy.md")); err != nil {
		t.Fatal(err)
	}
	other := h.In(out).With("SONNY_CONFIG="+filepath.Join(out, "config.toml"), "VISUAL="+filepath.Join(out, "vim"))
	e := examine(t, other, "--offline", "--store", filepath.Join(out, "state.sqlite"))
	plain := other.Sonny("doctor", "--offline", "--store", filepath.Join(out, "state.sqlite"))
	e.wants(t, "config.parse", doctor.Fail, "config.toml")
	e.wants(t, "roles", doctor.Fail, "spy")
	e.wants(t, "store.mode", doctor.Fail, "0644")
	for _, text := range []string{"far away", "/var/tmp", "away-", h.Dir, "/usr/bin", "/tmp/"} {
		if strings.Contains(e.Stdout+e.Stderr+plain.Stdout, text) {
			t.Errorf("it names %q:\n%s", text, plain.Stdout)
		}
	}
}

func TestAtATerminal(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	s := h.Screen(sonnytest.Terminal{Width: 160, Height: 48}, "sonny", "doctor", "--offline")
	s.WaitFor("programs")
	if status := s.Exit(); status != 0 {
		t.Errorf("exit %d:\n%s", status, s.Capture())
	}
	if !strings.Contains(s.Capture(), "ok    terminal          xterm-256color, true colour") {
		t.Errorf("%s", s.Capture())
	}
	slow := h.With("LANG=C", "LC_ALL=").Screen(sonnytest.Terminal{Width: 160, Height: 48}, "sonny", "doctor", "--offline")
	slow.WaitFor("the locale is not UTF-8")
	slow.Exit()
}
