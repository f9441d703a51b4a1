package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agent/internal/fakemodel"
	"agent/internal/sandbox"
	"agent/protocol"
)

// boxScript runs or writes what the prompt says, and answers with the result.
const boxScript = `[
 {"match":{"regex":"(?s)^run (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}"}}]},{"text":"${last}"}]},
 {"match":{"regex":"(?s)^leave (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}","background":true}}]},{"text":"${last}"}]},
 {"match":{"regex":"(?s)^background (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}","background":true}}],"capture":{"h":"proc:[0-9]+"}},{"calls":[{"tool":"wait","arguments":{"handles":["${h}"]}}]},{"text":"${last}"}]},
 {"match":{"regex":"(?s)^escalate (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}","sandbox_permissions":"require_escalated","justification":"a test"}}]},{"text":"${last}"}]},
 {"match":{"regex":"(?s)^write (.+)$"},"steps":[{"calls":[{"tool":"write","arguments":{"path":"${1}","content":"x"}}]},{"text":"${last}"}]}]`

// box is a host with a daemon and a sandboxed bot on it.
type box struct {
	*host
	p *process
	k *conn
	n int
}

func newBox(t *testing.T, more string) *box {
	t.Helper()
	h := newHost(t, boxScript)
	for _, dir := range []string{"home/.agent/run", "out"} {
		if err := os.MkdirAll(filepath.Join(h.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.set.Walls = []string{filepath.Join(h.dir, "home/.agent/run")}
	h.env = append(h.env, "HOME="+filepath.Join(h.dir, "home"))
	b := &box{host: h, p: h.start()}
	b.k = b.p.dial()
	b.make("Ada", `"sandbox":"workspace-write","exclude_slash_tmp":true`+more)
	return b
}

// make makes a bot in the workspace.
func (b *box) make(name, more string) (r protocol.Bot) {
	b.t.Helper()
	b.k.ask(&r, "create", fmt.Sprintf(`"bot":%q,"model":"s/m","instructions":"","tools":["shell","write","edit","apply_patch","wait"],"workspace":%q,%s`, name, b.workspace, more))
	return r
}

// do has a bot do one thing and gives the call's result, as the model sees it.
func (b *box) do(bot, prompt string) string {
	b.t.Helper()
	b.n++
	return b.k.run(bot, fmt.Sprint("r", b.n), prompt).Text
}

// says checks that a result has an error code, and what its detail says.
func (b *box) says(result string, code protocol.Code, detail string) {
	b.t.Helper()
	if code != "" && !strings.Contains(result, `"error":"`+string(code)+`"`) || !strings.Contains(result, detail) {
		b.t.Errorf("got %s, want %s: %s", result, code, detail)
	}
}

func (b *box) exists(path string) bool {
	_, err := os.Lstat(filepath.Join(b.dir, path))
	return err == nil
}

func TestSandboxedBot(t *testing.T) {
	t.Parallel()
	t.Run("PO-30 PO-43 SB-94 it writes its folder and nothing else", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		if got := b.do("Ada", "run touch in ../out/x; echo $AGENT_SANDBOX"); !strings.Contains(got, "Read-only file system") || !strings.Contains(got, `"stdout":"workspace-write\n"`) {
			t.Errorf("got %s", got)
		}
		b.do("Ada", "write new/file")
		b.says(b.do("Ada", "write ../out/y"), protocol.EscalationRefused, "is outside what this bot may write")
		b.says(b.do("Ada", "escalate touch ../out/z"), protocol.EscalationRefused, "no approval gate")
		if !b.exists("w/in") || !b.exists("w/new/file") || b.exists("out/x") || b.exists("out/y") || b.exists("out/z") {
			t.Error("the wrong files were written")
		}
		if list, _ := os.ReadDir(b.workspace); len(list) != 2 {
			t.Errorf("left in the workspace: %v", list)
		}
	})
	t.Run("the record and the events say so", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		r := b.make("Bob", `"sandbox":"workspace-write","writable_roots":[`+quoted(filepath.Join(b.dir, "out"))+`],"network":true,"unix_sockets":["/run/x.sock"]`)
		if r.Sandbox != "workspace-write" || len(r.WritableRoots) != 1 || !r.Network || r.UnixSockets[0] != "/run/x.sock" || r.ExcludeSlashTmp {
			t.Errorf("got %+v", r)
		}
		var again protocol.Bot
		b.k.ask(&again, "inspect", `"bot":"Ada"`)
		if again.Sandbox != "workspace-write" || again.Network || !again.ExcludeSlashTmp {
			t.Errorf("got %+v", again)
		}
		b.do("Ada", "run true")
		if l := b.k.ask(nil, "events", `"bot":"Ada","after":0,"limit":64`); !strings.Contains(string(l.raw), `"sandboxed":true`) {
			t.Errorf("no tool_started says sandboxed: %s", l.raw)
		}
		var ready protocol.Ready
		if err := json.Unmarshal(b.p.dial().ready, &ready); err != nil || ready.Sandbox.Available == nil || !*ready.Sandbox.Available || *ready.Sandbox.Kind != "bubblewrap" {
			t.Errorf("ready says %+v (%v)", ready.Sandbox, err)
		}
	})
	t.Run("what cannot be is refused and no bot is made", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		base := fmt.Sprintf(`"bot":"X","model":"s/m","instructions":"","tools":["shell"],"workspace":%q,`, b.workspace)
		run, agent := filepath.Join(b.dir, "home/.agent/run"), filepath.Join(b.dir, "home/.agent")
		for more, code := range map[string]protocol.Code{
			`"sandbox":"workspace-write","writable_roots":["/"]`:                                     protocol.InvalidWritableRoot,
			`"sandbox":"workspace-write","writable_roots":["rel"]`:                                   protocol.InvalidWritableRoot,
			`"sandbox":"workspace-write","writable_roots":[` + quoted(run+"/x") + `]`:                protocol.WritableRootWalled,
			`"sandbox":"workspace-write","writable_roots":[` + quoted(agent) + `]`:                   protocol.InvalidWritableRoot,
			`"sandbox":"workspace-write","writable_roots":[` + quoted(agent+"/rules") + `]`:          protocol.InvalidWritableRoot,
			`"sandbox":"read-only","writable_roots":[` + quoted(b.dir) + `]`:                         protocol.InvalidWritableRoot,
			`"sandbox":"read-only","unix_sockets":["rel"]`:                                           protocol.InvalidSandbox,
			`"sandbox":"danger-full-access","network":false`:                                         protocol.InvalidSandbox,
			`"rules":{"files":[{"name":"a.rules","text":"\n\nprefix_rule(['a'], match=['b'])"}]}`:    protocol.InvalidRules,
			`"rules":{"files":[{"name":"a","text":""},{"name":"a","text":""}]}`:                      protocol.InvalidRules,
			`"rules":{"files":[{"name":"a","text":"[prefix_rule([str(i)]) for i in range(1025)]"}]}`: protocol.RulesLimit,
		} {
			b.k.refused(code, "create", base+more)
		}
		l := b.k.refused(protocol.InvalidRules, "create", base+`"rules":{"files":[{"name":"a.rules","text":"\n\nprefix_rule(['a'], match=['b'])"}]}`)
		if text := string(l.raw); !strings.Contains(text, `"file":"a.rules"`) || !strings.Contains(text, `"line":3`) {
			t.Errorf("got %s", text)
		}
		b.k.refused(protocol.BotNotFound, "inspect", `"bot":"X"`)
	})
	t.Run("configure changes it for later calls", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		var r protocol.Bot
		b.k.ask(&r, "configure", `"bot":"Ada","writable_roots":[`+quoted(filepath.Join(b.dir, "out"))+`]`)
		b.do("Ada", "run touch ../out/x")
		b.k.ask(&r, "configure", `"bot":"Ada","sandbox":"read-only","writable_roots":null`)
		if got := b.do("Ada", "run touch in"); !strings.Contains(got, "Read-only file system") {
			t.Errorf("got %s", got)
		}
		b.k.ask(&r, "configure", `"bot":"Ada","sandbox":null`)
		if r.Sandbox != protocol.SandboxFull || !r.Network {
			t.Errorf("got %+v", r)
		}
		b.do("Ada", "run touch ../out/y; echo sandbox=$AGENT_SANDBOX")
		if !b.exists("out/x") || b.exists("w/in") || !b.exists("out/y") {
			t.Error("the wrong files were written")
		}
	})
}

// quoted is text as JSON.
func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func TestRules(t *testing.T) {
	t.Parallel()
	rules := func(text string) string {
		return `"rules":{"files":[{"name":"test.rules","text":` + quoted(text) + `}]}`
	}
	t.Run("PO-44 an allow rule lets a plain script out", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, ","+rules(`prefix_rule(["touch"])`))
		b.do("Ada", "run touch ../out/allowed")
		for i, script := range []string{"touch ../out/n1 && true", "touch ../out/n2 2>/dev/null", "A=1 touch ../out/n3", "touch $(echo ../out/n4)", "./touch ../out/n5", "bash -lc 'touch ../out/n6'"} {
			b.do("Ada", "run "+script)
			if b.exists(fmt.Sprint("out/n", i+1)) {
				t.Errorf("%s ran outside", script)
			}
		}
		if !b.exists("out/allowed") {
			t.Error("the allowed command did not run outside")
		}
		if got := b.do("Ada", "run touch ../out/a b && touch c"); !strings.Contains(got, `"success":true`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("SB-108 a program that the bot planted is not the one a rule names", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		bin := filepath.Join(h.workspace, "bin")
		if err := os.Mkdir(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, "hostname"), []byte("#!/bin/sh\ntouch "+h.dir+"/planted\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		h.env = append(h.env, "PATH="+bin+":/usr/bin:/bin", "HOME="+h.dir)
		b := &box{host: h, p: h.start()}
		b.k = b.p.dial()
		b.make("Ada", `"sandbox":"workspace-write",`+rules(`prefix_rule(["hostname"])`))
		if got := b.do("Ada", "run hostname"); !strings.Contains(got, `"success":true`) || b.exists("planted") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("PO-45 SB-76 SB-77 SB-78 SB-79 forbidden and prompt rules", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, ","+rules("prefix_rule(['rm'], decision='forbidden', justification='use trash')\nprefix_rule(['git', 'push'], decision='prompt')"))
		for _, script := range []string{"rm in", "ls; (r\\m -rf in)", "env A=1 rm in", "bash -c 'rm in'", "/bin/rm in"} {
			b.says(b.do("Ada", "run touch in; "+script), protocol.CommandForbidden, "rm (test.rules:1): use trash")
			b.says(b.do("Ada", "escalate "+script), protocol.CommandForbidden, "use trash")
		}
		if b.exists("w/in") {
			t.Error("a part of a forbidden script ran")
		}
		b.says(b.do("Ada", "run git push"), protocol.EscalationRefused, "git push (test.rules:2)")
		b.says(b.do("Ada", "run echo a; echo 'b"), protocol.EscalationRefused, "cannot be taken apart")
		b.make("Free", rules("prefix_rule(['rm'], decision='forbidden')"))
		b.says(b.do("Free", "run rm in"), protocol.CommandForbidden, "rm (test.rules:1)")
		if got := b.do("Free", "run touch ../out/free"); !strings.Contains(got, `"success":true`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("PO-46 SB-80 SB-97 unreadable rules, and rules that are replaced", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, ","+rules("prefix_rule(['rm'], decision='forbidden')"))
		b.k.refused(protocol.InvalidRules, "configure", `"bot":"Ada",`+rules("prefix_rule("))
		b.says(b.do("Ada", "run rm x"), protocol.CommandForbidden, "rm (test.rules:1)")
		var r protocol.Bot
		b.k.ask(&r, "configure", `"bot":"Ada","rules":{"unreadable":true,"reason":"line 3 is odd"}`)
		if r.Rules == nil || !r.Rules.Unreadable || r.Rules.Reason != "line 3 is odd" {
			t.Errorf("got %+v", r.Rules)
		}
		b.says(b.do("Ada", "run true"), protocol.CommandForbidden, "line 3 is odd")
		b.says(b.do("Ada", "escalate true"), protocol.CommandForbidden, "line 3 is odd")
		b.k.ask(&r, "configure", `"bot":"Ada",`+rules("prefix_rule(['ls'])"))
		if r.Rules == nil || r.Rules.Files != 1 || r.Rules.Rules != 1 || len(r.Rules.Digest) != 64 {
			t.Errorf("got %+v", r.Rules)
		}
		if got := b.do("Ada", "run true"); !strings.Contains(got, `"success":true`) {
			t.Errorf("got %s", got)
		}
		b.k.ask(&r, "configure", `"bot":"Ada","rules":null`)
		if r.Rules != nil {
			t.Errorf("got %+v", r.Rules)
		}
	})
	t.Run("rules stand after a restart", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, ","+rules("prefix_rule(['rm'], decision='forbidden')"))
		b.p.kill()
		b.p = b.host.start()
		b.k = b.p.dial()
		b.says(b.do("Ada", "run rm x"), protocol.CommandForbidden, "rm (test.rules:1)")
		b.says(b.do("Ada", "write ../out/x"), protocol.EscalationRefused, "")
	})
}

func TestChildrenOfSandboxedBots(t *testing.T) {
	t.Parallel()
	child := func(creator protocol.Bot, more string) string {
		return fmt.Sprintf(`"sandbox":"workspace-write","created_by":%q,"created_by_id":%d%s`, creator.Name, creator.ID, more)
	}
	t.Run("PO-47 SB-81 SB-82 a child may only narrow", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		var ada protocol.Bot
		b.k.ask(&ada, "inspect", `"bot":"Ada"`)
		os.Symlink("../out", filepath.Join(b.workspace, "link"))
		os.Mkdir(filepath.Join(b.workspace, "sub"), 0o755)
		base := fmt.Sprintf(`"bot":"Kid","model":"s/m","instructions":"","tools":["shell"],"created_by":"Ada","created_by_id":%d,`, ada.ID)
		in := `"workspace":` + quoted(b.workspace) + `,`
		for more, code := range map[string]protocol.Code{
			in + `"sandbox":"danger-full-access"`:                                        protocol.SandboxWidens,
			in + `"network":true`:                                                        protocol.SandboxWidens,
			in + `"exclude_slash_tmp":false`:                                             protocol.SandboxWidens,
			in + `"unix_sockets":["/x"]`:                                                 protocol.SandboxWidens,
			in + `"writable_roots":[` + quoted(filepath.Join(b.dir, "out")) + `]`:        protocol.SandboxWidens,
			in + `"writable_roots":[` + quoted(filepath.Join(b.workspace, "link")) + `]`: protocol.SandboxWidens,
			in + `"writable_roots":[` + quoted(filepath.Join(b.workspace, ".git")) + `]`: protocol.InvalidWritableRoot,
			`"workspace":` + quoted(filepath.Join(b.dir, "out")):                         protocol.SandboxWidens,
			in + `"rules":{"files":[]}`:                                                  protocol.RulesInherited,
		} {
			b.k.refused(code, "create", base+more)
		}
		b.k.refused(protocol.BotNotFound, "inspect", `"bot":"Kid"`)
		var r protocol.Bot
		b.k.ask(&r, "create", base+in+`"writable_roots":[`+quoted(filepath.Join(b.workspace, "sub"))+`]`)
		if r.Sandbox != "workspace-write" || !r.ExcludeSlashTmp || r.Network {
			t.Errorf("got %+v", r)
		}
		b.k.ask(&r, "create", strings.Replace(base, "Kid", "Reader", 1)+`"sandbox":"read-only","workspace":`+quoted(filepath.Join(b.dir, "out")))
		b.k.refused(protocol.SandboxWidens, "configure", `"bot":"Kid","network":true`)
		b.k.refused(protocol.SandboxWidens, "configure", `"bot":"Kid","writable_roots":[`+quoted(filepath.Join(b.dir, "out"))+`]`)
		b.k.refused(protocol.SandboxWidens, "configure", `"bot":"Kid","sandbox":null`)
		b.k.refused(protocol.RulesInherited, "configure", `"bot":"Kid","rules":{"files":[]}`)
		b.k.refused(protocol.SandboxWidens, "fork", `"source":"Kid","bot":"Fork","sandbox":"danger-full-access"`)
		b.k.ask(&r, "fork", `"source":"Kid","bot":"Fork","workspace":`+quoted(b.workspace))
		if r.Sandbox != "workspace-write" || !r.ExcludeSlashTmp {
			t.Errorf("the fork is %+v", r)
		}
		b.says(b.do("Fork", "run touch ../out/x"), "", "ead-only file system")
	})
	t.Run("a creator that is narrowed narrows what it made, at the next call", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		var ada, r protocol.Bot
		b.k.ask(&ada, "inspect", `"bot":"Ada"`)
		kid := b.make("Kid", child(ada, ""))
		b.make("Grandkid", child(kid, ""))
		b.do("Grandkid", "run touch one")
		b.k.ask(&r, "configure", `"bot":"Ada","sandbox":"read-only"`)
		if got := b.do("Grandkid", "run touch two"); !strings.Contains(got, "ead-only file system") {
			t.Errorf("got %s", got)
		}
		b.k.ask(&r, "configure", `"bot":"Ada","sandbox":"workspace-write","network":true`)
		b.do("Grandkid", "run touch three; test -z $AGENT_SANDBOX_NETWORK_DISABLED && touch widened")
		if !b.exists("w/one") || b.exists("w/two") || !b.exists("w/three") || b.exists("w/widened") {
			t.Error("the wrong files were written")
		}
	})
	t.Run("RT-136 SB-106 a deleted creator's values and rules stay in force", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, `,"rules":{"files":[{"name":"r","text":"prefix_rule(['rm'], decision='forbidden')"}]}`)
		var ada, r protocol.Bot
		b.k.ask(&ada, "inspect", `"bot":"Ada"`)
		kid := b.make("Kid", child(ada, ""))
		b.make("Grandkid", child(kid, ""))
		check := func(when string) {
			t.Helper()
			b.says(b.do("Grandkid", "run rm x"), protocol.CommandForbidden, "rm (r:1)")
			if got := b.do("Grandkid", "run touch ../out/x; test -n $AGENT_SANDBOX_NETWORK_DISABLED && echo off"); b.exists("out/x") || !strings.Contains(got, "off") {
				t.Errorf("%s: got %s", when, got)
			}
			b.k.refused(protocol.SandboxWidens, "configure", `"bot":"Grandkid","network":true`)
			b.k.refused(protocol.RulesInherited, "configure", `"bot":"Grandkid","rules":null`)
		}
		check("with all there")
		b.k.ask(nil, "delete", `"bot":"Ada"`)
		check("without the first")
		b.k.refused(protocol.SandboxWidens, "configure", `"bot":"Kid","network":true`)
		b.k.ask(nil, "delete", `"bot":"Kid"`)
		check("without both")
		b.p.kill()
		b.p = b.host.start()
		b.k = b.p.dial()
		check("after a restart")
		b.k.ask(&r, "inspect", `"bot":"Grandkid"`)
		great := b.make("Great", child(r, ""))
		b.says(b.do(great.Name, "run rm x"), protocol.CommandForbidden, "rm (r:1)")
	})
	t.Run("SB-105 a creator's .git stays protected from a child above it", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		ws := filepath.Join(b.workspace, "deep/ws")
		if err := os.MkdirAll(filepath.Join(ws, ".git/hooks"), 0o755); err != nil {
			t.Fatal(err)
		}
		var boss protocol.Bot
		b.k.ask(&boss, "create", fmt.Sprintf(`"bot":"Boss","model":"s/m","instructions":"","tools":["shell"],"workspace":%q,"sandbox":"workspace-write","writable_roots":[%q]`, ws, b.workspace))
		b.make("Kid", child(boss, ""))
		b.do("Kid", "run touch deep/ws/.git/hooks/pre-commit deep/ws/fine")
		if b.exists("w/deep/ws/.git/hooks/pre-commit") || !b.exists("w/deep/ws/fine") {
			t.Error("the creator's hooks were written, or its folder was not")
		}
	})
}

func TestServedToolsOfSandboxedBots(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"any":true},"steps":[{"calls":[{"tool":"ask","arguments":{}}]},{"text":"${last}"}]}]`)
	k := h.start().dial()
	k.serve("x", 60_000)
	for _, row := range []struct {
		name, more, gated string
		refused           bool
	}{
		{"Gated", `,"sandbox":"read-only"`, "", true}, {"Ungated", `,"sandbox":"read-only"`, `,"gated":false`, false}, {"Free", "", "", false},
	} {
		k.ask(nil, "create", fmt.Sprintf(`"bot":%q,"model":"s/m","instructions":"","tools":[],"workspace":%q%s,"client_tools":[{"name":"ask","description":"d","parameters":{"type":"object"},"tag":"x"%s}]`,
			row.name, h.workspace, row.more, row.gated))
		t.Run("PR-76 "+row.name, func(t *testing.T) {
			if row.refused {
				k.follow(row.name, 0)
			}
			s := k.submit(row.name, "r", "go", "")
			if row.refused {
				k.until("turn_finished", s.Turn)
				if o := k.result(row.name, s.Turn); !strings.Contains(o.Text, `"error":"escalation_refused"`) {
					t.Errorf("got %s", o.Text)
				}
				return
			}
			if p := k.push(); p.Bot != row.name {
				t.Errorf("handed over for %s", p.Bot)
			}
		})
	}
}

// git runs git in the workspace as the person does.
func (b *box) git(args ...string) {
	b.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", b.workspace, "-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+b.dir, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func TestSandboxOverTime(t *testing.T) {
	t.Parallel()
	const commit = "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m x"
	t.Run("RT-134 SB-104 SB-13 a granted git folder is for foreground commands", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		b.git("init", "-q", "-b", "main")
		if got := b.do("Ada", "run "+commit); strings.Contains(got, `"success":true`) {
			t.Errorf("without a grant: %s", got)
		}
		var r protocol.Bot
		b.k.ask(&r, "configure", `"bot":"Ada","writable_roots":[`+quoted(filepath.Join(b.workspace, ".git"))+`]`)
		if got := b.do("Ada", "run "+commit); !strings.Contains(got, `"success":true`) {
			t.Errorf("in the foreground: %s", got)
		}
		if got := b.do("Ada", "background "+commit+"; touch ../out/no"); strings.Contains(got, `"success":true`) || !strings.Contains(got, "ead-only file system") || b.exists("out/no") {
			t.Errorf("in the background: %s", got)
		}
		if got := b.do("Ada", "run git config core.hooksPath /tmp; echo x > .git/hooks/pre-commit; git log --oneline | wc -l"); !strings.Contains(got, `"stdout":"1\n"`) || b.exists("w/.git/hooks/pre-commit") {
			t.Errorf("got %s", got)
		}
		b.git("commit", "-q", "--allow-empty", "-m", "by the person")
	})
	t.Run("a background command keeps the folders it started with", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		if err := unix.Mkfifo(filepath.Join(b.workspace, "go"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.do("Ada", "leave read x < go; touch kept; touch ../out/no")
		var r protocol.Bot
		b.k.ask(&r, "configure", `"bot":"Ada","sandbox":"read-only"`)
		if err := os.WriteFile(filepath.Join(b.workspace, "go"), []byte("x\n"), 0); err != nil {
			t.Fatal(err)
		}
		b.k.ask(nil, "wait", `"handles":["proc:1"],"timeout_ms":20000`)
		if !b.exists("w/kept") || b.exists("out/no") {
			t.Error("the wrong files were written")
		}
	})
	t.Run("RT-135 SB-57 a killed daemon's command dies, and its placeholders go at the next start", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		if err := unix.Mkfifo(filepath.Join(b.workspace, "up"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := b.k.submit("Ada", "kill", "run echo $$ > up; sleep 300", "")
		if _, err := os.ReadFile(filepath.Join(b.workspace, "up")); err != nil {
			t.Fatal(err)
		}
		if !b.exists("w/.git") || !b.exists("w/.agents") {
			t.Error("no placeholder stands while the command runs")
		}
		if err := os.WriteFile(filepath.Join(b.workspace, ".agents/mine"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b.p.kill()
		b.p = b.host.start()
		b.k = b.p.dial()
		if b.exists("w/.git") || b.exists("w/.codex") || !b.exists("w/.agents/mine") {
			t.Error("placeholders are left, or what the person put there is gone")
		}
		_ = s
		if info, err := os.Stat(b.set.Store + ".placeholders"); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 0 {
			t.Errorf("the journal: %v, %v", info, err)
		}
	})
	t.Run("RT-137 a deleted bot's cache folder goes with it", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		scratch := filepath.Join(h.dir, "scratch")
		for _, dir := range []string{scratch, filepath.Join(h.dir, "home/.agent")} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		h.env = append(h.env, "HOME="+filepath.Join(h.dir, "home"), "TMPDIR="+scratch)
		b := &box{host: h, p: h.start()}
		b.k = b.p.dial()
		r := b.make("Bob", `"sandbox":"workspace-write","exclude_slash_tmp":true`)
		dir := sandbox.CacheFolder(scratch, r.ID)
		if got := b.do("Bob", "run mkdir -p $XDG_CACHE_HOME/x && echo $XDG_CACHE_HOME"); !strings.Contains(got, dir) {
			t.Fatalf("got %s", got)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Fatal(err)
		}
		b.k.ask(nil, "delete", `"bot":"Bob"`)
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	})
	t.Run("SB-111 a build works though the home is read-only", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { println(\"built\") }\n", "main_test.go": "package main\n\nimport \"testing\"\n\nfunc TestX(*testing.T) {}\n"} {
			if err := os.WriteFile(filepath.Join(b.workspace, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var r protocol.Bot
		b.k.ask(&r, "configure", `"bot":"Ada","exclude_slash_tmp":false`)
		if got := b.do("Ada", "run go build -o built . && ./built && go test ./... && rm built"); !strings.Contains(got, `"success":true`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("SB-84 a $TMPDIR that is the home or / is no writable folder", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, boxScript)
		home := filepath.Join(h.dir, "home")
		if err := os.MkdirAll(filepath.Join(home, ".agent"), 0o700); err != nil {
			t.Fatal(err)
		}
		h.env = append(h.env, "HOME="+home, "TMPDIR="+home)
		b := &box{host: h, p: h.start()}
		b.k = b.p.dial()
		b.make("Ada", `"sandbox":"workspace-write","exclude_slash_tmp":true`)
		if got := b.do("Ada", "run touch "+home+"/x; echo $TMPDIR"); b.exists("home/x") || !strings.Contains(got, `"stdout":"/dev/shm\n"`) {
			t.Errorf("got %s", got)
		}
	})
	t.Run("SB-59 SB-96 start files and loader variables touch the confined command alone", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		home := filepath.Join(b.dir, "home")
		var r protocol.Bot
		b.k.ask(&r, "configure", `"bot":"Ada","writable_roots":[`+quoted(home)+`]`)
		b.do("Ada", "run for f in .profile .bashrc .bash_profile .zshenv; do echo 'touch "+b.dir+"/out/$f' > ~/$f; done")
		b.do("Ada", "run true")
		b.do("Ada", "run LD_PRELOAD=/nonexistent.so BASH_ENV=$HOME/.bashrc GCONV_PATH=$HOME true")
		if list, _ := os.ReadDir(filepath.Join(b.dir, "out")); len(list) != 0 || !b.exists("home/.bashrc") {
			t.Errorf("ran: %v", list)
		}
	})
	t.Run("SB-61 PO-31 reads are open", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "")
		if err := os.WriteFile(filepath.Join(b.dir, "home/.agent/env"), []byte("A=1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := b.do("Ada", "run cat ~/.agent/env && head -c 15 $AGENT_STORE && ls ~/.agent/run"); !strings.Contains(got, "A=1") || !strings.Contains(got, "SQLite format") || !strings.Contains(got, "Permission denied") {
			t.Errorf("got %s", got)
		}
	})
	t.Run("the model of a sandboxed bot is told", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, "")
		s := h.fake("responses", fakemodel.Options{Keep: 4, Bodies: true})
		k := h.start().dial()
		for bot, more := range map[string]string{"Free": "", "Held": `,"sandbox":"read-only"`} {
			k.ask(nil, "create", fmt.Sprintf(`"bot":%q,"model":"f/m","instructions":"","tools":["shell"],"workspace":%q%s`, bot, h.workspace, more))
			s.Queue(fakemodel.Say("ok"))
			k.run(bot, "r", "go")
			all := bodies(s)
			if got := strings.Contains(all[len(all)-1], "sandbox_hint"); got != (more != "") {
				t.Errorf("%s: %v", bot, got)
			}
		}
		s.Verify(t)
	})
}
