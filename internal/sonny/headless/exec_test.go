package headless_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/client/worktree"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/headless"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"

	"github.com/google/jsonschema-go/jsonschema"
)

func TestMain(m *testing.M) { sonnytest.Main(m) }

// line is a line of --json, as far as tests look at it.
type line struct {
	Type, Bot, Status, Code, Detail, Text, Tool, Error, Model, Row, State, By, Reason, Session, Delta, Task string
	Suggested, Created                                                                                      bool
	Turn                                                                                                    int64
	Output                                                                                                  any // a text, or of usage a number
	PromptBytes                                                                                             int `json:"prompt_bytes"`
	Round, Exit                                                                                             int
	Data                                                                                                    json.RawMessage
	Failure                                                                                                 *headless.Failure
	Files                                                                                                   []headless.FileChange
	Worktree                                                                                                *headless.Worktree
	Usage                                                                                                   headless.Usage
}

func (l *line) UnmarshalJSON(text []byte) error {
	type plain line
	var error struct{ Error json.RawMessage }
	if err := json.Unmarshal(text, &error); err != nil {
		return err
	}
	if strings.HasPrefix(string(error.Error), "{") {
		if err := json.Unmarshal(error.Error, &l.Failure); err != nil {
			return err
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(text, &all); err != nil {
			return err
		}
		delete(all, "error")
		text, _ = json.Marshal(all)
	}
	return json.Unmarshal(text, (*plain)(l))
}

// strict is the published schema with nothing allowed beyond what it names.
func strict(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(headless.Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, def := range doc["$defs"].(map[string]any) {
		def.(map[string]any)["additionalProperties"] = false
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// lines reads the output of --json: every line fits the schema, and the last and only
// result is the last one.
func lines(t *testing.T, out string) (all []line, result line) {
	t.Helper()
	schema := strict(t)
	for text := range strings.Lines(out) {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s does not fit the schema: %v", text, err)
		}
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		all = append(all, l)
	}
	n := len(of(all, "result"))
	if n != 1 || all[len(all)-1].Type != "result" {
		t.Fatalf("%d results in\n%s", n, out)
	}
	return all, all[len(all)-1]
}

func of(all []line, kind string) (out []line) {
	for _, l := range all {
		if l.Type == kind {
			out = append(out, l)
		}
	}
	return out
}

func only(t *testing.T, all []line, kind string) line {
	t.Helper()
	found := of(all, kind)
	if len(found) != 1 {
		t.Fatalf("%d lines of %s", len(found), kind)
	}
	return found[0]
}

// ran runs sonny exec --json, which must end with a status.
func ran(t *testing.T, h *sonnytest.Home, status int, args ...string) ([]line, line) {
	t.Helper()
	r := h.Sonny(append([]string{"exec", "--json"}, args...)...)
	if r.Exit != status {
		t.Fatalf("exit %d, wanted %d\n%s%s", r.Exit, status, r.Stdout, r.Stderr)
	}
	all, result := lines(t, r.Stdout)
	if result.Exit != status {
		t.Errorf("the result says exit %d, wanted %d", result.Exit, status)
	}
	return all, result
}

func bots(t *testing.T, h *sonnytest.Home) (list []protocol.Bot) {
	t.Helper()
	r := h.Agent("ls")
	if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil {
		t.Fatalf("%v in %s%s", err, r.Stdout, r.Stderr)
	}
	return slices.DeleteFunc(list, func(b protocol.Bot) bool { return lead.Judge(&b) })
}

func names(list []protocol.Bot) (all []string) {
	for _, b := range list {
		all = append(all, b.Name)
	}
	return all
}

func demo(t *testing.T, options ...sonnytest.Option) (*sonnytest.Home, string) {
	t.Helper()
	h := sonnytest.Fresh(t, options...)
	dir := h.Repo("demo", map[string]string{"AGENTS.md": "Be brief.\n"})
	return h.In(dir), dir
}

// config is a fresh home's, with more lines.
func config(more string) sonnytest.Option {
	return sonnytest.Config("model = \"scripted/sonny\"\njudge_model = \"scripted/judge-allow\"\ntrust_folders = \"always\"\n" + more)
}

func TestARunAsJSON(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	t.Run("SO-73 every line fits the schema, and one result ends it", func(t *testing.T) {
		all, result := ran(t, h, 0, "sh: echo hi")
		if result.Status != headless.Completed || result.Failure != nil {
			t.Errorf("%+v", result)
		}
		session := only(t, all, "session")
		if session.Model != "scripted/sonny" || session.Row != "auto" || !session.Created || session.Suggested {
			t.Errorf("%+v", session)
		}
		if s := only(t, all, "turn_started"); s.PromptBytes != len("sh: echo hi") {
			t.Errorf("%+v", s)
		}
		if f := only(t, all, "tool_finished"); f.Tool != "shell" || f.Status != "ok" || f.Output != "hi\n" {
			t.Errorf("%+v", f)
		}
		if m := only(t, all, "message"); m.Round != 2 || m.Text != result.Text {
			t.Errorf("%+v", m)
		}
		if len(of(all, "usage")) != 2 || result.Usage.Output == 0 {
			t.Errorf("usage %+v", result.Usage)
		}
		list := bots(t, h)
		if len(list) != 1 || list[0].Name != result.Session || *list[0].Workspace != dir || len(list[0].Gates) != 1 {
			t.Errorf("%v", names(list))
		}
	})
	t.Run("it goes on with the folder's newest session, and with one by name", func(t *testing.T) {
		first := bots(t, h)[0].Name
		for _, which := range [][]string{{"--continue"}, {"--session", first}} {
			all, _ := ran(t, h, 0, append(which, "say: again")...)
			if s := only(t, all, "session"); s.Bot != first || s.Created {
				t.Errorf("%v: %+v", which, s)
			}
		}
	})
	t.Run("a fork has the history of its source and leaves that as it was", func(t *testing.T) {
		first := bots(t, h)[0]
		_, result := ran(t, h, 0, "--fork", first.Name, "say: aside")
		if !strings.HasPrefix(result.Session, first.Name+"-fork-") {
			t.Errorf("%+v", result)
		}
		if out := h.Agent("history", "--bot", first.Name).Stdout; strings.Contains(out, "aside") {
			t.Errorf("the source was told: %s", out)
		}
	})
	t.Run("--ephemeral leaves no bot and no session", func(t *testing.T) {
		before := len(bots(t, h))
		_, result := ran(t, h, 0, "--ephemeral", "say: x")
		if n := len(bots(t, h)); n != before {
			t.Errorf("%d bots, before there were %d", n, before)
		}
		if book, err := os.ReadFile(h.Path(".agent", "sonny", "sessions.json")); err != nil || strings.Contains(string(book), result.Session) {
			t.Errorf("%v, %s", err, book)
		}
	})
	t.Run("what a call did to files is told", func(t *testing.T) {
		_, result := ran(t, h, 0, "write: new.txt | one")
		if want := []headless.FileChange{{Path: "new.txt", Added: 1}}; !slices.Equal(result.Files, want) {
			t.Errorf("%+v", result.Files)
		}
	})
	t.Run("--deltas tells text and thinking as they stream", func(t *testing.T) {
		all, result := ran(t, h, 0, "--deltas", "think: A | B C")
		streamed := ""
		for _, d := range of(all, "text") {
			streamed += d.Delta
		}
		if streamed != "B C" || len(of(all, "thinking")) == 0 || result.Text != "B C" {
			t.Errorf("%q streamed, %d thoughts, %q", streamed, len(of(all, "thinking")), result.Text)
		}
	})
	t.Run("SO-74 a provider's failure has its code", func(t *testing.T) {
		_, result := ran(t, h, 1, "--timeout", "50s", "fail: provider_http_500")
		if result.Status != headless.Failed || result.Failure == nil || result.Failure.Code != "provider_http_500" {
			t.Errorf("%+v", result)
		}
	})
}

func TestTextMode(t *testing.T) {
	t.Parallel()
	h, _ := demo(t)
	t.Run("replies go to stdout, the rest to stderr", func(t *testing.T) {
		r := h.Sonny("exec", "think: A | hello there")
		if r.Exit != 0 || r.Stdout != "hello there\n" || !strings.Contains(r.Stderr, "scripted/sonny") {
			t.Errorf("%+v", r)
		}
		if r := h.Sonny("exec", "sh: echo hi"); !strings.Contains(r.Stderr, "▸ shell  echo hi") || strings.Contains(r.Stderr, "\x1b") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("--quiet prints the final reply alone, --last keeps it in a file", func(t *testing.T) {
		last := h.Path("reply.txt")
		r := h.Sonny("exec", "--quiet", "--last", last, "say: hello")
		text, err := os.ReadFile(last)
		if r.Exit != 0 || r.Stdout != "hello\n" || r.Stderr != "" || err != nil || string(text) != "hello" {
			t.Errorf("%+v, %q, %v", r, text, err)
		}
	})
	t.Run("a run that fails leaves the file of --last as it was", func(t *testing.T) {
		last := h.Write("kept.txt", "before")
		if r := h.Sonny("exec", "--timeout", "1s", "--last", last, "slow: 20"); r.Exit != 3 || !strings.Contains(r.Stderr, "timeout") {
			t.Errorf("%+v", r)
		}
		if text, _ := os.ReadFile(last); string(text) != "before" {
			t.Errorf("%q", text)
		}
	})
	t.Run("standard input is the prompt for -, and stands below the arguments else", func(t *testing.T) {
		if r := h.Feed("say: from the pipe", "sonny", "exec", "--quiet", "-"); r.Stdout != "from the pipe\n" {
			t.Errorf("%+v", r)
		}
		if r := h.Feed("data\n", "sonny", "exec", "--quiet", "say:", "both"); r.Stdout != "both\n\nstdin:\ndata\n" {
			t.Errorf("%+v", r)
		}
	})
}

func TestLinesThatAreWrong(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"no prompt", nil, "needs a prompt"},
		{"an empty standard input", []string{"-"}, "holds no prompt"},
		{"a flag that is none", []string{"--nope", "x"}, "--nope"},
		{"two ways to say which bot", []string{"--continue", "--session", "x", "y"}, "--session and --continue"},
		{"a new bot's flag for one that is there", []string{"--continue", "--effort", "low", "x"}, "--effort"},
		{"a row that would ask somebody", []string{"--row", "manual", "x"}, "nobody is here"},
		{"deny without a sandbox", []string{"--row", "deny", "--sandbox", "danger-full-access", "x"}, "--row full"},
		{"a picture that is not there", []string{"--image", "none.png", "x"}, "--image: ~/demo/none.png is not there"},
		{"a folder to write that is not there", []string{"--writable", "/nosuch", "x"}, "--writable: /nosuch is not there"},
		{"a time without its unit", []string{"--timeout", "1", "x"}, "--timeout \"1\" is not a time such as 90s or 10m"},
		{"a number that is none", []string{"--budget-tokens", "many", "x"}, "--budget-tokens \"many\" is not a whole number"},
		{"a folder to work in that is not there", []string{"--cd", "/nosuch", "x"}, "/nosuch is not there"},
		{"a base that stands apart", []string{"--worktree", "nosuchref", "hi"}, "--worktree=nosuchref"},
		{"a schema that is none", []string{"--schema", filepath.Join(dir, "AGENTS.md"), "x"}, "AGENTS.md"},
		{"a folder of --last that is not there", []string{"--last", "none/reply", "x"}, "none/reply"},
		{"a timeout of nothing", []string{"--timeout", "0s", "x"}, "--timeout"},
		{"an ephemeral session that was there", []string{"--continue", "--ephemeral", "x"}, "--fork"},
	} {
		t.Run(c.name+" is a wrong line, with one result", func(t *testing.T) {
			_, result := ran(t, h, 2, c.args...)
			if result.Failure == nil || result.Failure.Code != protocol.UsageError || !strings.Contains(result.Failure.Detail, c.says) {
				t.Errorf("%+v", result.Failure)
			}
			if r := h.Sonny(append([]string{"exec"}, c.args...)...); r.Exit != 2 || r.Stdout != "" || !strings.Contains(r.Stderr, c.says) {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("a picture that is none is refused before there is a bot", func(t *testing.T) {
		_, result := ran(t, h, 1, "--image", filepath.Join(dir, "AGENTS.md"), "hi")
		if result.Failure == nil || result.Failure.Code != "picture_unsupported" || !strings.Contains(result.Failure.Detail, "AGENTS.md is no picture") {
			t.Errorf("%+v", result.Failure)
		}
	})
	if pid := h.DaemonPID(); pid != 0 {
		t.Errorf("a wrong line started a daemon: %d", pid)
	}
	t.Run("a tool that is none is refused, and no bot is made", func(t *testing.T) {
		_, result := ran(t, h, 1, "--tools", "read,nope", "x")
		if result.Failure.Code != protocol.UnknownTool || len(bots(t, h)) != 0 {
			t.Errorf("%+v", result.Failure)
		}
		ran(t, h, 0, "--tools", "read,shell", "say: x")
		if list := bots(t, h); len(list) != 1 || !slices.Equal(list[0].Tools, []string{"shell", "read"}) || len(list[0].ClientTools) != 0 {
			t.Errorf("%v: %v", names(list), list[0].Tools)
		}
	})
	t.Run("a bot's shell has none of it", func(t *testing.T) {
		r := h.With("AGENT_BOT=x", "AGENT_BOT_ID=1").Sonny("exec", "--json", "say: x")
		_, result := lines(t, r.Stdout)
		if r.Exit != 1 || result.Failure.Code != protocol.InsideABot {
			t.Errorf("%+v", r)
		}
	})
}

// A session whose folder is another now cannot go on, and what a person can do about it is
// said before anything is sent to the daemon.
func TestAFolderThatIsAnother(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	_, first := ran(t, h, 0, "say: x")
	elsewhere := h.In(h.Repo("other", nil))
	away := h.Path("away")
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	refused := func(says ...string) {
		t.Helper()
		for _, which := range []string{"--session", "--fork"} {
			_, result := ran(t, elsewhere, 1, which, first.Session, "say: y")
			if result.Failure == nil || result.Failure.Code != protocol.WorkspaceUnavailable {
				t.Fatalf("%s: %+v", which, result.Failure)
			}
			for _, words := range says {
				if !strings.Contains(result.Failure.Detail, words) {
					t.Errorf("%s: it says %q", which, result.Failure.Detail)
				}
			}
		}
	}
	t.Run("another folder has its name", func(t *testing.T) {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		refused("the git folder "+filepath.Join(dir, ".git")+" is gone: it was moved or deleted; put it back there", "without --session")
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a link has its name", func(t *testing.T) {
		if err := os.Symlink(away, dir); err != nil {
			t.Fatal(err)
		}
		refused("the folder "+dir+" is a link now", "put the folder itself back there, or begin a new session in "+away)
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("back in its place it goes on", func(t *testing.T) {
		if err := os.Rename(away, dir); err != nil {
			t.Fatal(err)
		}
		if _, result := ran(t, elsewhere, 0, "--session", first.Session, "say: y"); result.Text != "y" {
			t.Errorf("%+v", result)
		}
	})
}

func TestSettingsThatStopARun(t *testing.T) {
	t.Parallel()
	t.Run("SO-6 a project's file cannot choose a row", func(t *testing.T) {
		h, dir := demo(t)
		if err := os.MkdirAll(filepath.Join(dir, ".agents"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".agents", "project.toml"), []byte("name = \"demo\"\nrow = \"full\"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r := h.Sonny("exec", "say: x")
		if r.Exit != 1 || !strings.Contains(r.Stderr, "project_invalid") || !strings.Contains(r.Stderr, "row") {
			t.Errorf("%+v", r)
		}
		if out := h.Agent("ls"); strings.Contains(out.Stdout, "demo") {
			t.Errorf("a bot was made: %s", out.Stdout)
		}
		ran(t, h, 0, "--ignore-folder-files", "say: x")
		record := h.Agent("show", "--bot", bots(t, h)[0].Name).Stdout
		if strings.Contains(record, "Be brief.") {
			t.Errorf("the folder's AGENTS.md was used: %s", record)
		}
	})
	t.Run("SO-84 a wrong confining value makes no bot", func(t *testing.T) {
		h, _ := demo(t, config("sandbox_mode = \"wrokspace\"\n"))
		_, result := ran(t, h, 1, "x")
		if result.Failure.Code != protocol.ConfigInvalid || !strings.Contains(result.Failure.Detail, "sandbox_mode") {
			t.Errorf("%+v", result.Failure)
		}
		if out := h.Agent("ls"); strings.Contains(out.Stdout, "demo") {
			t.Errorf("a bot was made: %s", out.Stdout)
		}
	})
	t.Run("SO-78 without a provider it is not set up", func(t *testing.T) {
		h, _ := demo(t, sonnytest.NoEnv)
		if r := h.Sonny("exec", "x"); r.Exit != 6 || !strings.Contains(r.Stderr, "not_set_up") {
			t.Errorf("%+v", r)
		}
		_, result := ran(t, h, 6, "x")
		if result.Failure.Code != headless.NotSetUp {
			t.Errorf("%+v", result.Failure)
		}
	})
	t.Run("SO-114 without a model it takes the suggestion and says so", func(t *testing.T) {
		h, _ := demo(t, sonnytest.Config("trust_folders = \"always\"\n"))
		all, _ := ran(t, h, 0, "say: x")
		if s := only(t, all, "session"); s.Model != "scripted/sonny" || !s.Suggested {
			t.Errorf("%+v", s)
		}
	})
	t.Run("without a models file the providers are asked for the suggestion", func(t *testing.T) {
		h, _ := demo(t, sonnytest.Config("trust_folders = \"always\"\n"), sonnytest.NoModels)
		all, _ := ran(t, h, 0, "--row", "deny", "say: x")
		if s := only(t, all, "session"); !strings.HasPrefix(s.Model, "scripted/") || !s.Suggested || s.Row != "deny" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("SO-109 a daemon that does not protect a folder makes no bot that could write it", func(t *testing.T) {
		h, _ := demo(t)
		if r := h.Agent("start"); r.Exit != 0 {
			t.Fatalf("%+v", r)
		}
		_, result := ran(t, h, 1, "--cd", h.Dir, "--writable", h.Dir, "x")
		folder := connect.SchedulerDir(h.Dir)
		if result.Failure.Code != "daemon_options" || !strings.Contains(result.Failure.Detail, folder) || len(bots(t, h)) != 0 {
			t.Errorf("%+v", result.Failure)
		}
	})
	t.Run("a pause ends the run at once, unless it may wait in line", func(t *testing.T) {
		h, _ := demo(t)
		ran(t, h, 0, "say: x")
		if r := h.Agent("pause", "--reason", "why not"); r.Exit != 0 {
			t.Fatalf("%+v", r)
		}
		_, result := ran(t, h, 1, "say: y")
		if result.Failure.Code != protocol.DaemonPaused || !strings.Contains(result.Failure.Detail, "why not") {
			t.Errorf("%+v", result.Failure)
		}
		p := begin(t, h, "--continue", "--delivery", "queue", "say: later")
		p.until("queued")
		if r := h.Agent("resume"); r.Exit != 0 {
			t.Fatalf("%+v", r)
		}
		if _, result := p.end(0); result.Text != "later" {
			t.Errorf("%+v", result)
		}
	})
}

func TestCallsThatAreRefused(t *testing.T) {
	t.Parallel()
	t.Run("SO-77 manual is deny where nobody can be asked", func(t *testing.T) {
		h, _ := demo(t, config("row = \"manual\"\n"))
		all, result := ran(t, h, 0, "esc: true")
		if s := only(t, all, "session"); s.Row != "deny" {
			t.Errorf("%+v", s)
		}
		f := only(t, all, "tool_finished")
		if f.Status != "denied" || f.Error != "escalation_refused" {
			t.Errorf("%+v", f)
		}
		if said := fmt.Sprint(f.Output); !strings.Contains(said, "--row auto") || strings.Contains(said, "/approval") {
			t.Errorf("it names what exec has not: %s", said)
		}
		if !strings.Contains(result.Text, "escalation_refused") {
			t.Errorf("%+v", result)
		}
		_, result = ran(t, h, 4, "--fail-on-denied", "esc: true")
		if result.Status != headless.Denied {
			t.Errorf("%+v", result)
		}
	})
	t.Run("manual without a sandbox gets one", func(t *testing.T) {
		h, _ := demo(t, config("row = \"manual\"\nsandbox_mode = \"danger-full-access\"\n"))
		all, _ := ran(t, h, 0, "esc: true")
		if s := only(t, all, "session"); s.Row != "deny" {
			t.Errorf("%+v", s)
		}
		if f := only(t, all, "tool_finished"); f.Error != "escalation_refused" {
			t.Errorf("%+v", f)
		}
	})
	t.Run("a session with a manual gate has its calls denied, with a reason that the model reads", func(t *testing.T) {
		h, _ := demo(t)
		_, first := ran(t, h, 0, "say: x")
		gates := h.Write("gates.json", `[{"tag":"manual","tools":["shell"]}]`)
		if r := h.Agent("configure", "--bot", first.Session, "--gates", gates); r.Exit != 0 {
			t.Fatalf("%+v", r)
		}
		all, result := ran(t, h, 4, "--session", first.Session, "--fail-on-denied", "esc: true")
		states := []string{}
		for _, a := range of(all, "approval") {
			states = append(states, a.State+" "+a.By)
		}
		if want := []string{"waiting manual", "denied sonny exec"}; !slices.Equal(states, want) {
			t.Errorf("%v", states)
		}
		if !strings.Contains(result.Text, "without a person") {
			t.Errorf("the model was not told: %s", result.Text)
		}
	})
	t.Run("calls that nobody judges expire, and end a turn of nothing else with 4", func(t *testing.T) {
		h, _ := demo(t)
		_, first := ran(t, h, 0, "say: x")
		gates := h.Write("gates.json", `[{"tag":"nobody","tools":["shell"],"expire_ms":1000}]`)
		if r := h.Agent("configure", "--bot", first.Session, "--gates", gates); r.Exit != 0 {
			t.Fatalf("%+v", r)
		}
		_, result := ran(t, h, 4, "--session", first.Session, "esc3: true")
		if result.Status != headless.Denied || result.Failure.Code != protocol.ApprovalsUnserved {
			t.Errorf("%+v", result)
		}
	})
}

// schema wants an object with a number.
const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

func TestSchema(t *testing.T) {
	t.Parallel()
	script := `{"version":1,"models":{"sonny":{"scripts":[
{"match":{"equals":"prose"},"repeat_last":true,"steps":[{"text":"some prose"}]},
{"match":{"equals":"number"},"steps":[{"text":"{\"n\": 3}"}]},
{"match":{"equals":"wrong"},"steps":[{"text":"{\"n\": \"x\"}"},{"text":"{\"n\": 4}"}]}]}}}`
	h, _ := demo(t, sonnytest.OwnScript(script))
	file := h.Write("s.json", schema)
	t.Run("SO-75 a reply that never fits is asked for twice more and ends with 5", func(t *testing.T) {
		all, result := ran(t, h, 5, "--schema", file, "prose")
		if result.Status != headless.Unfit || result.Data != nil || len(of(all, "turn_started")) != 3 || len(of(all, "message")) != 3 {
			t.Errorf("%+v", result)
		}
	})
	t.Run("a reply that fits is in the result", func(t *testing.T) {
		all, result := ran(t, h, 0, "--schema", file, "number")
		if string(result.Data) != `{"n":3}` && string(result.Data) != `{"n": 3}` || len(of(all, "turn_started")) != 1 {
			t.Errorf("%s", result.Data)
		}
	})
	t.Run("one that fits when it is asked for again does too, and the model is told what was wrong", func(t *testing.T) {
		all, result := ran(t, h, 0, "--schema", file, "wrong")
		if !strings.Contains(string(result.Data), "4") || len(of(all, "turn_started")) != 2 {
			t.Errorf("%+v", result)
		}
		if again := turns(t, h, result.Session)[1].Prompt; !strings.Contains(again, "does not fit") || !strings.Contains(again, "integer") {
			t.Errorf("asked again with %q", again)
		}
	})
	t.Run("--schema-retries 0 asks once", func(t *testing.T) {
		all, _ := ran(t, h, 5, "--schema", file, "--schema-retries", "0", "prose")
		if len(of(all, "turn_started")) != 1 {
			t.Error("it was asked again")
		}
	})
}

// process is a sonny exec --json under way.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  io.ReadCloser
	read *bufio.Reader
	text strings.Builder
	errs *bytes.Buffer
}

func begin(t *testing.T, h *sonnytest.Home, args ...string) *process {
	t.Helper()
	cmd := exec.Command(filepath.Join(sonnytest.Programs(t), "sonny"), append([]string{"exec", "--json"}, args...)...)
	cmd.Env, cmd.Dir = h.Env, h.Path("demo")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, out: out, read: bufio.NewReader(out), errs: &bytes.Buffer{}}
	cmd.Stderr = p.errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return p
}

// until reads up to a line of a type.
func (p *process) until(kind string) line {
	p.t.Helper()
	for {
		text, err := p.read.ReadString('\n')
		p.text.WriteString(text)
		if err != nil {
			p.t.Fatalf("%v before %s:\n%s%s", err, kind, &p.text, p.errs)
		}
		var l line
		if json.Unmarshal([]byte(text), &l) == nil && l.Type == kind {
			return l
		}
	}
}

// end reads to the end, which must have a status.
func (p *process) end(status int) ([]line, line) {
	p.t.Helper()
	rest, err := io.ReadAll(p.read)
	if err != nil {
		p.t.Fatal(err)
	}
	p.text.Write(rest)
	p.cmd.Wait()
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.t.Errorf("exit %d, wanted %d\n%s%s", got, status, &p.text, p.errs)
	}
	return lines(p.t, p.text.String())
}

func turns(t *testing.T, h *sonnytest.Home, bot string) (list []protocol.Turn) {
	t.Helper()
	r := h.Agent("turns", "--bot", bot)
	if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil {
		t.Fatalf("%v in %s%s", err, r.Stdout, r.Stderr)
	}
	return list
}

func TestWhatEndsARunEarly(t *testing.T) {
	t.Parallel()
	h, _ := demo(t)
	for name, c := range map[string]struct {
		signal syscall.Signal
		status int
	}{
		"SO-76 SIGINT interrupts the turn and one result is printed": {syscall.SIGINT, 130},
		"SIGTERM does the same": {syscall.SIGTERM, 143},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, h, "--deltas", "slow: 20")
			p.until("text")
			begun := time.Now()
			if err := p.cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			_, result := p.end(c.status)
			if took := time.Since(begun); result.Status != headless.Interrupted || took > 10*time.Second {
				t.Errorf("%+v after %v", result, took)
			}
			if list := turns(t, h, result.Session); len(list) != 1 || list[0].Status != protocol.StatusInterrupted {
				t.Errorf("%+v", list)
			}
		})
	}
	t.Run("a closed stdout interrupts the turn", func(t *testing.T) {
		p := begin(t, h, "--deltas", "slow: 20")
		bot := p.until("text").Bot
		p.out.Close()
		p.cmd.Wait()
		if list := turns(t, h, bot); list[0].Status != protocol.StatusInterrupted {
			t.Errorf("%+v", list)
		}
	})
	t.Run("--detach-on-close leaves it running", func(t *testing.T) {
		p := begin(t, h, "--deltas", "--detach-on-close", "slow: 3")
		bot := p.until("text").Bot
		p.out.Close()
		p.cmd.Wait()
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit %d", code)
		}
		h.Until("the turn's end", func() bool { return turns(t, h, bot)[0].Status == protocol.StatusCompleted })
	})
	t.Run("--timeout ends the turn, which is told as such", func(t *testing.T) {
		_, result := ran(t, h, 3, "--timeout", "1s", "slow: 20")
		if result.Status != headless.TimedOut || result.Failure.Code != "timeout" {
			t.Errorf("%+v", result)
		}
		if list := turns(t, h, result.Session); list[0].Status != protocol.StatusInterrupted {
			t.Errorf("%+v", list)
		}
	})
	t.Run("--budget-tokens ends the turn, and binds this run alone", func(t *testing.T) {
		_, result := ran(t, h, 3, "--budget-tokens", "10", "sh: echo hi")
		if result.Status != headless.OverBudget || result.Failure.Code != protocol.BudgetExhausted {
			t.Errorf("%+v", result)
		}
		ran(t, h, 0, "--session", result.Session, "say: x")
	})
}

func TestASessionThatWorks(t *testing.T) {
	t.Parallel()
	h, _ := demo(t)
	t.Run("reject refuses, queue waits, steer joins", func(t *testing.T) {
		first := begin(t, h, "--deltas", "slow: 3")
		bot := first.until("text").Bot
		_, result := ran(t, h, 1, "--session", bot, "say: x")
		if detail := result.Failure.Detail; result.Failure.Code != protocol.BotBusy || strings.Contains(detail, "--turn") ||
			!strings.HasSuffix(detail, " is running; --delivery queue waits in line, --delivery steer joins it, --fork NAME asks a copy of it") {
			t.Errorf("%+v", result.Failure)
		}
		steer := begin(t, h, "--session", bot, "--delivery", "steer", "keep the flag")
		steer.until("queued")
		queue := begin(t, h, "--session", bot, "--delivery", "queue", "say: later")
		queue.until("queued")
		all, steered := steer.end(0)
		if len(of(all, "steered")) != 1 || steered.Turn != 1 || !strings.Contains(steered.Text, "slow done") {
			t.Errorf("%+v", all)
		}
		if _, queued := queue.end(0); queued.Text != "later" || queued.Turn == steered.Turn {
			t.Errorf("%+v", queued)
		}
		first.end(0)
	})
}

func TestAWorktree(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	root := worktree.RootOf(h.Path(".agent", "state.sqlite"))
	t.Run("the bot works in a worktree of its own, which stays", func(t *testing.T) {
		all, result := ran(t, h, 0, "--worktree", "write: f.txt | x")
		w := result.Worktree
		if w == nil || !w.Kept || !strings.HasPrefix(w.Path, filepath.Join(root, "demo")) || w.Branch != "agent/"+result.Session {
			t.Fatalf("%+v", w)
		}
		if s := only(t, all, "session"); s.Row != "auto" {
			t.Errorf("%+v", s)
		}
		if _, err := os.Stat(filepath.Join(w.Path, "f.txt")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "f.txt")); err == nil {
			t.Error("the checkout was written")
		}
	})
	t.Run("--ephemeral takes one away that nothing came of", func(t *testing.T) {
		_, result := ran(t, h, 0, "--ephemeral", "--worktree", "say: x")
		if result.Worktree == nil || result.Worktree.Kept {
			t.Fatalf("%+v", result.Worktree)
		}
		if _, err := os.Stat(result.Worktree.Path); err == nil {
			t.Error("it is there")
		}
		if branches := h.Git(dir, "branch", "--list", result.Worktree.Branch); branches != "" {
			t.Error(branches)
		}
	})
	t.Run("and keeps one with changes", func(t *testing.T) {
		_, result := ran(t, h, 0, "--ephemeral", "--worktree=HEAD", "write: f.txt | x")
		if result.Worktree == nil || !result.Worktree.Kept {
			t.Fatalf("%+v", result.Worktree)
		}
	})
	t.Run("one that cannot be made leaves no bot", func(t *testing.T) {
		before := len(bots(t, h))
		_, result := ran(t, h, 1, "--worktree=nosuch", "say: x")
		if result.Failure.Code != protocol.WorktreeFailed || len(bots(t, h)) != before {
			t.Errorf("%+v", result.Failure)
		}
	})
}

func TestTasksAreToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	dir := h.Path("plain")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h = h.In(dir)
	all, result := ran(t, h, 0, "--wait-tasks", "task: part | slow: 3")
	if s := only(t, all, "task_started"); s.Task != "plain.part" {
		t.Errorf("%+v", s)
	}
	done := only(t, all, "task_finished")
	if done.Task != "plain.part" || done.Status != protocol.StatusCompleted || !strings.Contains(done.Text, "word30") {
		t.Errorf("%+v", done)
	}
	if strings.Contains(result.Text, "word30") || !strings.Contains(result.Text, "plain.part") {
		t.Errorf("%+v", result)
	}
}

func TestTheSchemaIsPrinted(t *testing.T) {
	t.Parallel()
	h := sonnytest.Fresh(t)
	if r := h.Sonny("exec", "--print-schema"); r.Exit != 0 || r.Stdout != string(headless.Schema()) || r.Stderr != "" {
		t.Errorf("%+v", r)
	}
}

func TestTheScreenNeedsATerminal(t *testing.T) {
	t.Parallel()
	h, _ := demo(t)
	t.Run("SO-79 without one it names sonny exec", func(t *testing.T) {
		if r := h.Sonny(); r.Exit != 3 || !strings.Contains(r.Stderr, "sonny exec") || r.Stdout != "" {
			t.Errorf("%+v", r)
		}
	})
}

func TestASchemaThatLeadsToItself(t *testing.T) {
	t.Parallel()
	h, _ := demo(t)
	for name, text := range map[string]string{"leads to itself": `{"$ref":"#"}`, "is no type": `{"type":"objekt"}`} {
		h.Write("demo/s.json", text)
		all, result := ran(t, h, 2, "--schema", "s.json", "say: {}")
		if len(all) != 1 || result.Status != headless.Failed || result.Failure.Code != protocol.UsageError || !strings.Contains(result.Failure.Detail, name) {
			t.Errorf("%s: %d lines, %+v, %+v", text, len(all), result, result.Failure)
		}
	}
}
