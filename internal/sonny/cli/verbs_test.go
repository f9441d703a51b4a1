package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/export"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// demo is a fresh home with a git folder, in which its commands run.
func demo(t *testing.T, options ...sonnytest.Option) *sonnytest.Home {
	t.Helper()
	h := sonnytest.Fresh(t, options...)
	return h.In(h.Repo("demo", nil))
}

// ok runs sonny, which must succeed, and gives its stdout.
func ok(t *testing.T, h *sonnytest.Home, args ...string) string {
	t.Helper()
	r := h.Sonny(args...)
	if r.Exit != 0 {
		t.Fatalf("sonny %s: exit %d\n%s%s", strings.Join(args, " "), r.Exit, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// fails runs sonny, which must fail with a status and a code.
func fails(t *testing.T, h *sonnytest.Home, status int, code protocol.Code, args ...string) string {
	t.Helper()
	r := h.Sonny(args...)
	if r.Exit != status || !strings.Contains(r.Stderr, string(code)) {
		t.Errorf("sonny %s: exit %d, wanted %d and %s\n%s", strings.Join(args, " "), r.Exit, status, code, r.Stderr)
	}
	return r.Stderr
}

func parsed[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if strings.ContainsRune(text, '\x1b') {
		t.Errorf("escapes in %q", text)
	}
	return v
}

func sessions(t *testing.T, h *sonnytest.Home, args ...string) []shownSession {
	t.Helper()
	list := parsed[[]shownSession](t, ok(t, h, append([]string{"sessions", "--json"}, args...)...))
	return slices.DeleteFunc(list, func(s shownSession) bool { return s.Kind == "judge" })
}

func TestVerbsThatList(t *testing.T) {
	t.Parallel()
	h := demo(t)
	t.Run("SO-80 sessions, status and usage are valid JSON before there is anything", func(t *testing.T) {
		if out := ok(t, h, "sessions", "--json"); out != "[]\n" {
			t.Errorf("%q", out)
		}
		if s := parsed[shownStatus](t, ok(t, h, "status", "--json")); s.Daemon.Running || s.Approvals == nil {
			t.Errorf("%+v", s)
		}
		if u := parsed[shownUsage](t, ok(t, h, "usage", "--json")); len(u.Rows) != 0 || u.PricesAsOf == "" {
			t.Errorf("%+v", u)
		}
		if pid := h.DaemonPID(); pid != 0 {
			t.Errorf("a daemon was started for it: %d", pid)
		}
	})
	ok(t, h, "exec", "--quiet", "say: \x1b[2J hello")
	ok(t, h, "exec", "--quiet", "sh: echo hi")
	t.Run("SO-80 and after something ran", func(t *testing.T) {
		list := sessions(t, h)
		if len(list) != 2 || list[0].Title != "sh: echo hi" || list[0].Turns != 1 || list[0].Tokens == 0 || list[0].State != "idle" || list[0].Last.Before(list[1].Last) {
			t.Errorf("%+v", list)
		}
		s := parsed[shownStatus](t, ok(t, h, "status", "--json"))
		if !s.Daemon.Running || s.Daemon.PID != h.DaemonPID() || s.Sessions.All != 2 || !slices.Equal(s.Daemon.Providers, []string{"scripted"}) {
			t.Errorf("%+v", s)
		}
		for by, names := range map[string][]string{
			"bot": {list[0].Bot, list[1].Bot}, "model": {"scripted/sonny"}, "day": {list[0].Last.Local().Format(time.DateOnly)},
		} {
			u := parsed[shownUsage](t, ok(t, h, "usage", "--json", "--by", by))
			var got []string
			for _, r := range u.Rows {
				got = append(got, r.Name)
			}
			if !slices.Equal(got, names) || u.Total.Turns != 2 || u.Total.Input == 0 || u.Total.CostUSD != nil {
				t.Errorf("by %s: %+v", by, u)
			}
			today, week := u.Today, u.SevenDays
			if today.Turns != 2 || today.Input != u.Total.Input || week.Turns != 2 || week.Output != u.Total.Output ||
				len(u.Models) != 1 || u.Models[0].Name != "scripted/sonny" || u.Models[0].Turns != 2 || u.Judge.Turns != 0 {
				t.Errorf("what /usage shows: %+v", u)
			}
		}
	})
	t.Run("tables have one record a line, nothing cut, no escapes", func(t *testing.T) {
		out := ok(t, h, "sessions")
		if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "TITLE") || !strings.Contains(out, sessions(t, h)[0].Bot) || strings.Contains(out, "\x1b") {
			t.Errorf("%s", out)
		}
		if out := ok(t, h, "usage"); !strings.Contains(out, "cost ?") || !strings.Contains(out, "total") {
			t.Errorf("%s", out)
		}
		if out := ok(t, h, "status"); !strings.Contains(out, "scripted") || !strings.Contains(out, "2: 0 working") {
			t.Errorf("%s", out)
		}
	})
	t.Run("--since leaves older turns out", func(t *testing.T) {
		if u := parsed[shownUsage](t, ok(t, h, "usage", "--json", "--since", "2999-01-01")); len(u.Rows) != 0 || u.Total.Turns != 0 || u.Today.Turns != 2 {
			t.Errorf("%+v", u)
		}
		fails(t, h, 2, protocol.UsageError, "usage", "--since", "yesterday")
		fails(t, h, 2, protocol.UsageError, "usage", "--by", "colour")
	})
	t.Run("models lists the file, and asks the providers for it", func(t *testing.T) {
		if out := ok(t, h, "models"); !strings.Contains(out, "scripted/sonny") {
			t.Errorf("%s", out)
		}
		ok(t, h, "models", "--discover")
		var ids []string
		for _, m := range parsed[[]struct{ ID, Note string }](t, ok(t, h, "models", "--json")) {
			ids = append(ids, m.ID)
		}
		if !slices.Contains(ids, "scripted/judge-allow") {
			t.Errorf("%v", ids)
		}
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	h := demo(t)
	ok(t, h, "exec", "--quiet", "sh: echo one")
	first := sessions(t, h)[0].Bot
	t.Run("a title that is given names it, also with spaces", func(t *testing.T) {
		ok(t, h, "sessions", "rename", first, "parser work")
		if list := sessions(t, h); list[0].Title != "parser work" {
			t.Errorf("%+v", list)
		}
		fails(t, h, 1, protocol.BotNotFound, "sessions", "archive", "no such title")
	})
	t.Run("an archived one is hidden and kept", func(t *testing.T) {
		ok(t, h, "sessions", "archive", "parser work")
		if list := sessions(t, h); len(list) != 0 {
			t.Errorf("%+v", list)
		}
		if list := sessions(t, h, "--all"); len(list) != 1 || !list[0].Archived {
			t.Errorf("%+v", list)
		}
		ok(t, h, "sessions", "unarchive", "parser work")
		if list := sessions(t, h); len(list) != 1 {
			t.Errorf("%+v", list)
		}
	})
	t.Run("a fork goes on from its history, under a name of its own", func(t *testing.T) {
		if out := ok(t, h, "sessions", "fork", "parser work"); out != first+"-fork\n" {
			t.Errorf("%q", out)
		}
		if out := ok(t, h, "sessions", "fork", first); out != first+"-fork-2\n" {
			t.Errorf("%q", out)
		}
		forks := slices.DeleteFunc(sessions(t, h), func(s shownSession) bool { return s.Kind != "fork" })
		if len(forks) != 2 || forks[0].ForkOf == 0 {
			t.Errorf("%+v", forks)
		}
		if out := ok(t, h, "sessions", "export", first+"-fork"); !strings.Contains(out, "echo one") {
			t.Errorf("%s", out)
		}
	})
	t.Run("export prints what was said, with as much of calls as is wanted", func(t *testing.T) {
		for tools, want := range map[string][2]string{"none": {"", "- `shell`"}, "summary": {"- `shell` echo one", "stdout"}, "full": {"### shell", "- `shell`"}} {
			out := ok(t, h, "sessions", "export", first, "--tools", tools)
			if !strings.HasPrefix(out, "## You\n\nsh: echo one\n") || !strings.Contains(out, "## Reply") || !strings.Contains(out, want[0]) {
				t.Errorf("%s: %s", tools, out)
			}
			if before, _, _ := strings.Cut(out, "## Reply"); strings.Contains(before, want[1]) {
				t.Errorf("%s has %q: %s", tools, want[1], out)
			}
		}
		var kinds []string
		for line := range strings.Lines(ok(t, h, "sessions", "export", first, "--format", "json", "--tools", "full")) {
			kinds = append(kinds, parsed[export.Line](t, line).Kind)
		}
		if want := []string{"user", "tool_call", "tool_result", "assistant"}; !slices.Equal(kinds, want) {
			t.Errorf("%v", kinds)
		}
		fails(t, h, 2, protocol.UsageError, "sessions", "export", first, "--format", "html")
	})
	t.Run("rm needs --yes where nobody can be asked, and then deletes", func(t *testing.T) {
		fails(t, h, 2, protocol.UsageError, "sessions", "rm", first+"-fork")
		r := h.Sonny("sessions", "rm", first+"-fork", "--yes")
		if r.Exit != 0 || !strings.Contains(r.Stderr, "not scrubbed") {
			t.Errorf("%+v", r)
		}
		if slices.ContainsFunc(sessions(t, h), func(s shownSession) bool { return s.Bot == first+"-fork" }) {
			t.Error("it is listed")
		}
	})
	t.Run("one whose bot is gone is told as gone, and rm forgets it", func(t *testing.T) {
		if r := h.Agent("rm", "--bot", first+"-fork-2"); r.Exit != 0 {
			t.Fatalf("%+v", r)
		}
		i := slices.IndexFunc(sessions(t, h), func(s shownSession) bool { return s.Bot == first+"-fork-2" })
		if i < 0 || sessions(t, h)[i].State != gone {
			t.Errorf("%+v", sessions(t, h))
		}
		fails(t, h, 1, "session_gone", "sessions", "export", first+"-fork-2")
		ok(t, h, "sessions", "rm", first+"-fork-2")
		if n := len(sessions(t, h)); n != 1 {
			t.Errorf("%d sessions", n)
		}
	})
	t.Run("a folder has its own sessions, --all those of every one", func(t *testing.T) {
		other := h.In(h.Repo("other", nil))
		if list := sessions(t, other); len(list) != 0 {
			t.Errorf("%+v", list)
		}
		if list := sessions(t, other, "--all"); len(list) != 1 || list[0].Folder != h.Path("demo") {
			t.Errorf("%+v", list)
		}
	})
}

func TestResume(t *testing.T) {
	t.Parallel()
	h := demo(t)
	ok(t, h, "exec", "--quiet", "say: hello parser")
	bot := sessions(t, h)[0].Bot
	ok(t, h, "sessions", "rename", bot, "parser work")
	other := h.In(h.Repo("other", nil))
	size := sonnytest.Terminal{Width: 100, Height: 24}
	t.Run("SO-94 a session is opened by its title from another folder, which it says", func(t *testing.T) {
		s := other.Screen(size, "sonny", "--no-motion", "--theme", "none", "resume", "parser work")
		s.WaitFor("hello parser")
		s.WaitFor(h.Path("demo"))
		s.Keys("C-d")
		if status := s.Exit(); status != 0 {
			t.Errorf("status %d", status)
		}
	})
	t.Run("without a name the person picks one by number", func(t *testing.T) {
		ok(t, h, "exec", "--quiet", "say: another one")
		s := h.Screen(size, "sonny", "--no-motion", "--theme", "none", "resume")
		s.WaitFor("number:")
		s.Type("2")
		s.Keys("Enter")
		s.WaitFor("hello parser")
		s.Keys("C-d")
		s.Exit()
	})
	t.Run("it needs a terminal, and a session that is there", func(t *testing.T) {
		fails(t, h, 3, notATerminal, "resume", "parser work")
		fails(t, h, 3, notATerminal, "resume", "--all")
		if said := fails(t, h, 1, protocol.BotNotFound, "resume", "nosuch"); !strings.Contains(said, "nosuch") || strings.Contains(said, string(notATerminal)) {
			t.Error(said)
		}
		for _, line := range [][]string{{"--row", "wild"}, {"resume", "--row", "wild"}, {"home", "--row", "wild"}, {"-c", "row=wild"}} {
			if said := fails(t, h, 2, "", line...); !strings.Contains(said, `must be "auto", "manual"`) || strings.Contains(said, string(notATerminal)) {
				t.Errorf("%v: %s", line, said)
			}
		}
		s := other.Screen(size, "sonny", "resume", "no such")
		s.WaitFor("bot_not_found")
		if status := s.Exit(); status != 1 {
			t.Errorf("status %d", status)
		}
	})
}

// A flag that is not one of its words is refused by every verb, before anything is made:
// one that confines is never read as its own absence.
func TestFlagsOfAFewWords(t *testing.T) {
	t.Parallel()
	h := demo(t)
	for _, flag := range []struct{ name, must string }{
		{"network", `"on" or "off"`},
		{"sandbox", `"read-only", "workspace-write" or "danger-full-access"`},
		{"effort", `"default", "low"`},
		{"screen", `"full", "inline" or "plain"`},
		{"row", `"auto", "manual", "look" or "full"`},
	} {
		for _, value := range []string{"offf", "OFF", "false", "0", ""} {
			for _, line := range [][]string{{"usage"}, {"--new"}, {"tasks", "start", "x", "brief"}} {
				line = append(line, "--"+flag.name, value)
				if said := fails(t, h, 2, protocol.UsageError, line...); !strings.Contains(said, "it must be "+flag.must) || !strings.Contains(said, "--"+flag.name) {
					t.Errorf("%q: %s", line, said)
				}
			}
			if r := h.Sonny("exec", "--"+flag.name, value, "say: x"); r.Exit != 2 || r.Stdout != "" {
				t.Errorf("exec --%s %q: %+v", flag.name, value, r)
			}
		}
	}
	fails(t, h, 2, protocol.UsageError, "tasks", "merge", "--strategy", "octopus", "x")
	fails(t, h, 2, protocol.UsageError, "setup", "--provider", "scripted", "--model", "none")
	if list := sessions(t, h); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	ok(t, h, "exec", "--quiet", "--network", "off", "say: x")
	if r := h.Sonny("exec", "--json", "--network", "on", "say: x"); r.Exit != 0 || !strings.Contains(r.Stdout, `"network":true`) {
		t.Errorf("%+v", r)
	}
}

func TestACommandThatIsNone(t *testing.T) {
	t.Parallel()
	h, dir := demo(t), ""
	dir = h.Path("demo")
	for _, name := range later {
		for _, line := range [][]string{{name}, {name, "list"}, {name, "--help"}, {name, "list", "--json"}} {
			if said := fails(t, h.In(dir), 2, protocol.UsageError, line...); !strings.Contains(said, "sonny "+name+": no such command in this version") {
				t.Errorf("%q: %s", line, said)
			}
		}
	}
	for _, c := range []struct{ line, says string }{
		{"fix the login", `"fix" is no command and no folder; sonny --help lists the commands; a prompt is one argument, in quotes (sonny "fix the login"), or stands after --`},
		{"setpu now", `did you mean sonny setup?`},
		{". x", `too many arguments: a prompt is one argument, in quotes (sonny ". x")`},
		{"nonsense --help", `"nonsense" is no command and no folder`},
	} {
		if said := fails(t, h.In(dir), 2, protocol.UsageError, strings.Fields(c.line)...); !strings.Contains(said, c.says) {
			t.Errorf("%s: %s", c.line, said)
		}
	}
	ok(t, h.In(dir), ".", "--help")
	if said := fails(t, h.In(dir), 3, notATerminal, "fix the login"); strings.Contains(said, "command") {
		t.Error(said)
	}
}

func TestTheCord(t *testing.T) {
	t.Parallel()
	h := demo(t)
	fails(t, h, 75, protocol.DaemonUnavailable, "pause")
	ok(t, h, "exec", "--quiet", "say: x")
	ok(t, h, "pause", "why", "not")
	s := parsed[shownStatus](t, ok(t, h, "status", "--json"))
	if p := s.Daemon.Paused; p == nil || p.By != "person" || p.Reason == nil || *p.Reason != "why not" {
		t.Errorf("%+v", p)
	}
	bot := sessions(t, h)[0]
	shell := h.With("AGENT_BOT="+bot.Bot, "AGENT_BOT_ID=1")
	t.Run("SO-104 from a bot's shell neither agent resume nor sonny unpause lifts it", func(t *testing.T) {
		fails(t, shell, 1, protocol.InsideABot, "unpause")
		if r := shell.Agent("resume"); r.Exit == 0 || !strings.Contains(r.Stderr, "inside_a_bot") {
			t.Errorf("%+v", r)
		}
		if s := parsed[shownStatus](t, ok(t, h, "status", "--json")); s.Daemon.Paused == nil {
			t.Error("it is lifted")
		}
	})
	ok(t, h, "unpause")
	if s := parsed[shownStatus](t, ok(t, h, "status", "--json")); s.Daemon.Paused != nil {
		t.Errorf("%+v", s.Daemon.Paused)
	}
}

// What confines is read from config.toml, so that no bot is made by an invalid one. To see
// what there is, and to stop it, needs none of it.
func TestAnInvalidConfig(t *testing.T) {
	t.Parallel()
	h := demo(t)
	ok(t, h, "exec", "--quiet", "say: x")
	for name, text := range map[string]string{"a wrong value that confines": "row = \"bogus\"\n", "no TOML": "row = \n"} {
		h.Write(".agent/config.toml", text)
		for _, line := range [][]string{
			{"pause"}, {"unpause"}, {"status"}, {"sessions"}, {"usage"}, {"memory", "show"}, {"keys"}, {"skills", "list"}, {"instructions"},
		} {
			if r := h.Sonny(line...); r.Exit != 0 || !strings.Contains(r.Stderr, string(protocol.ConfigInvalid)) {
				t.Errorf("%s: sonny %v: exit %d, %s", name, line, r.Exit, r.Stderr)
			}
		}
		for _, line := range [][]string{{"exec", "say: x"}, {"setup", "--row", "auto"}} {
			if r := h.Sonny(line...); r.Exit == 0 || !strings.Contains(r.Stderr, string(protocol.ConfigInvalid)) {
				t.Errorf("%s: sonny %v: exit %d, %s", name, line, r.Exit, r.Stderr)
			}
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	h := demo(t)
	file := h.Path(".agent", "rules", "sonny.rules")
	t.Run("one is added once, listed, tried and taken out", func(t *testing.T) {
		ok(t, h, "rules", "add", "allow", "git", "push", "--force")
		ok(t, h, "rules", "add", "allow", "git", "push", "--force")
		ok(t, h, "rules", "add", "--why", "not \"now\"", "forbidden", "rm")
		list := parsed[[]shownRule](t, ok(t, h, "rules", "list", "--json"))
		if len(list) != 2 || list[0].Pattern != "git push --force" || list[1].Justification != "not \"now\"" || list[1].Line != 2 {
			t.Errorf("%+v", list)
		}
		for script, want := range map[string]string{"git push --force origin": "allow", "git push": "none", "ls; rm x": "forbidden"} {
			if d := parsed[shownDecision](t, ok(t, h, "rules", "test", "--json", "--", script)); d.Decision != want {
				t.Errorf("%s: %+v", script, d)
			}
		}
		if out := ok(t, h, "rules", "test", "--", "rm", "a file"); !strings.HasPrefix(out, "forbidden") || !strings.Contains(out, "sonny.rules"+":2") {
			t.Errorf("%s", out)
		}
		ok(t, h, "rules", "rm", "forbidden", "rm")
		if text, err := os.ReadFile(file); err != nil || string(text) != `prefix_rule(pattern=["git", "push", "--force"], decision="allow")`+"\n" {
			t.Errorf("%v %s", err, text)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info.Mode(), err)
		}
		fails(t, h, 2, protocol.UsageError, "rules", "rm", "allow", "git")
		fails(t, h, 2, protocol.UsageError, "rules", "add", "maybe", "git")
	})
	t.Run("SO-12 a bot's shell writes none", func(t *testing.T) {
		shell := h.With("AGENT_BOT=x", "AGENT_BOT_ID=1")
		fails(t, shell, 1, protocol.InsideABot, "rules", "add", "allow", "git")
		fails(t, shell, 1, protocol.InsideABot, "config", "set", "row", "full")
		fails(t, shell, 1, protocol.InsideABot)
	})
	t.Run("a file that does not parse is named, with its line, and nothing is written beside it", func(t *testing.T) {
		h.Write(".agent/rules/mine.rules", "\nnonsense(\n")
		before, _ := os.ReadFile(file)
		if says := fails(t, h, 1, protocol.InvalidRules, "rules", "list"); !strings.Contains(says, "mine.rules:") {
			t.Errorf("%s", says)
		}
		fails(t, h, 1, protocol.InvalidRules, "rules", "add", "allow", "ls")
		if now, _ := os.ReadFile(file); string(now) != string(before) {
			t.Errorf("%s", now)
		}
	})
}

func TestHelpHasARemedyForEveryCode(t *testing.T) {
	t.Parallel()
	// Those of section 32, Sonny's own and those that it names of the daemon's.
	codes := strings.Fields(`inside_a_bot daemon_newer daemon_older daemon_options daemon_start_failed not_set_up
no_model config_invalid config_secret_refused env_file_permissions env_file_invalid models_invalid project_invalid
project_unknown instructions_limit instructions_unreadable worktree_needs_git worktree_exists worktree_failed setup_failed
invalid_name bot_exists session_gone memory_full memory_invalid fact_too_large loss_guard no_pane_host no_person
paste_too_large picture_unsupported snapshot_skipped keymap_conflict not_a_terminal
approval_denied approval_expired approvals_unserved escalation_refused daemon_paused sandbox_unavailable`)
	written := map[string]string{}
	for _, r := range remedies() {
		if r.Remedy == "" || written[r.Code] != "" {
			t.Errorf("%q: no remedy, or two", r.Code)
		}
		written[r.Code] = r.Remedy
	}
	for _, code := range codes {
		if written[code] == "" {
			t.Errorf("%s has no remedy", code)
		}
	}
	for code := range exitOf {
		if written[string(code)] == "" {
			t.Errorf("%s, which has an exit status of its own, has no remedy", code)
		}
	}
	h := sonnytest.Fresh(t)
	out := ok(t, h, "help", "errors")
	for code, remedy := range written {
		if !strings.Contains(out, code+"\n    "+remedy+"\n") {
			t.Errorf("%s is not printed", code)
		}
	}
	if one := ok(t, h, "help", "errors", "no_model"); strings.Count(one, "\n") != 2 {
		t.Errorf("%q", one)
	}
	fails(t, h, 2, protocol.UsageError, "help", "errors", "nosuch")
	fails(t, h, 2, protocol.UsageError, "help", "nosuch")
	if out := ok(t, h, "help", "exec"); !strings.Contains(out, "--schema-retries") {
		t.Errorf("%s", out)
	}
}

func TestCompletionAndHandingOver(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := ok(t, h, "completion", shell); !strings.Contains(out, "sonny") {
			t.Errorf("%s: %q", shell, out)
		}
	}
	fails(t, h, 2, protocol.UsageError, "completion", "csh")
	if out := ok(t, h, "logout", "chatgpt"); !strings.Contains(out, `"signed_out":false`) {
		t.Errorf("%s", out)
	}
	if out := ok(t, h, "login", "chatgpt", "--status"); !strings.Contains(out, filepath.Join(".agent", "chatgpt.json")) {
		t.Errorf("%s", out)
	}
	fails(t, h, 2, protocol.UsageError, "login", "other")
	fails(t, h.With("AGENT_BOT=x", "AGENT_BOT_ID=1"), 1, protocol.InsideABot, "login", "chatgpt")
}

func TestStatusOfANamedSocket(t *testing.T) {
	t.Parallel()
	h := demo(t)
	socket := h.Path("none.sock")
	for _, run := range []*sonnytest.Home{h, h.With("AGENT_SOCKET=" + socket)} {
		line := []string{"status"}
		if run == h {
			line = append(line, "--socket", socket)
		}
		if out := ok(t, run, line...); !strings.Contains(out, "none listens at the socket that is named") || !strings.Contains(out, socket) || strings.Contains(out, "when it is needed") {
			t.Error(out)
		}
	}
}
