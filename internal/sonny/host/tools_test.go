package host_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/host/plans"
	"agent/internal/sonny/host/questions"
	"agent/internal/sonny/host/tools"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/memory"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

// scripted is the scripted model's file with more prompts before its last, which takes
// anything.
func scripted(t *testing.T, more ...string) sonnytest.Option {
	t.Helper()
	var file struct {
		Version int                        `json:"version"`
		Models  map[string]json.RawMessage `json:"models"`
	}
	if err := json.Unmarshal([]byte(sonnytest.Script), &file); err != nil {
		t.Fatal(err)
	}
	var model map[string]any
	if err := json.Unmarshal(file.Models["sonny"], &model); err != nil {
		t.Fatal(err)
	}
	var added []any
	for _, text := range more {
		var script any
		if err := json.Unmarshal([]byte(text), &script); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		added = append(added, script)
	}
	model["scripts"] = append(added, model["scripts"].([]any)...)
	file.Models["sonny"], _ = json.Marshal(model)
	out, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return sonnytest.OwnScript(string(out))
}

// calls is a script of that prompt which makes calls, one a round, and repeats the last
// result. A call is a tool's name and its arguments.
func calls(prompt string, of ...string) string {
	var steps []string
	for i := 0; i+1 < len(of); i += 2 {
		steps = append(steps, fmt.Sprintf(`{"calls": [{"tool": %q, "arguments": %s}]}`, of[i], of[i+1]))
	}
	return fmt.Sprintf(`{"match": {"equals": %q}, "repeat_last": true, "steps": [%s, {"text": "${last}"}]}`, prompt, strings.Join(steps, ", "))
}

func TestMemoryTool(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a page") }))
	t.Cleanup(site.Close)
	save := func(name, text string) string {
		return fmt.Sprintf(`{"action": "save", "name": %q, "type": "project", "description": "d", "source": "the person", "text": %q}`, name, text)
	}
	d := newDesk(t, scripted(t,
		calls("fetch and save", "web_fetch", `{"url": "`+site.URL+`"}`, "memory", save("fetched", "a page")),
		calls("curl and save", "shell", `{"command": "curl -s `+site.URL+`"}`, "memory", save("curled", "a page")),
		calls("save it cleanly", "memory", save("fetched", "as I see it")),
		calls("recall and copy", "memory", `{"action": "recall", "query": "page"}`, "memory", save("copied", "a page")),
		calls("lie about it", "web_fetch", `{"url": "`+site.URL+`"}`, "memory", `{"action": "save", "name": "lie", "type": "project", "description": "d", "source": "the person", "text": "x", "external": ""}`),
		calls("show me", "memory", `{"action": "show"}`),
		calls("no scope", "memory", `{"action": "recall", "query": "x", "scope": "project ../x"}`),
		calls("remove it", "memory", `{"action": "rm", "name": "curled"}`),
	))
	dir := d.Repo("demo", nil)
	d.lead(dir, lead.Auto)
	fact := func(name string) string {
		text, err := os.ReadFile(d.Path(".agents", "memory", "projects", "demo", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	index := func() string {
		text, _ := os.ReadFile(d.Path(".agents", "memory", "projects", "demo", "MEMORY.md"))
		return string(text)
	}
	t.Run("SO-90 AP-80 PO-112 what a turn saves that fetched a page is external", func(t *testing.T) {
		d := d.in(t)
		var saved memory.Saved
		n := d.say("demo.lead", "fetch and save")
		n.answers(&saved)
		if got := fact("fetched"); !strings.Contains(got, "external: web_fetch\n") || !strings.Contains(got, fmt.Sprintf("by: turn:demo.lead/%d\n", n.Turn)) {
			t.Error(got)
		}
		if !strings.Contains(index(), "- fetched (project, verified ") || !strings.Contains(index(), ", external): d") {
			t.Error(index())
		}
		d.say("demo.lead", "curl and save").answers(&saved)
		if got := fact("curled"); strings.Contains(got, "external") {
			t.Errorf("what only a shell command fetched is marked: %s", got)
		}
	})
	t.Run("SO-90 a later save of a clean turn keeps the mark, and only the person takes it off", func(t *testing.T) {
		d := d.in(t)
		var saved memory.Saved
		d.say("demo.lead", "save it cleanly").answers(&saved)
		if got := fact("fetched"); !strings.Contains(got, "external: web_fetch\n") || !strings.Contains(got, "as I see it") || !saved.Replaced {
			t.Errorf("%s %+v", got, saved)
		}
		if r := d.In(dir).Sonny("memory", "trust", "fetched"); r.Exit != 0 {
			t.Errorf("%d: %s", r.Exit, r.Stderr)
		}
		if got := fact("fetched"); strings.Contains(got, "external") {
			t.Error(got)
		}
	})
	t.Run("a copy of an external fact is external", func(t *testing.T) {
		d := d.in(t)
		var saved memory.Saved
		d.say("demo.lead", "fetch and save").answers(&saved)
		n := d.say("demo.lead", "recall and copy")
		n.answers(&saved)
		if got := fact("copied"); !strings.Contains(got, "external: web_fetch\n") {
			t.Error(got)
		}
		for turn, err := range d.c.Turns(d.ctx, "demo.lead", n.Turn-1) {
			if err != nil || strings.Join(turn.External, " ") != "memory" {
				t.Errorf("%v, %v", turn, err)
			}
			break
		}
	})
	t.Run("an agent neither sets nor clears a mark", func(t *testing.T) {
		d := d.in(t)
		code, _ := d.say("demo.lead", "lie about it").failure()
		if code != "invalid_tool_arguments" {
			t.Error(code)
		}
	})
	t.Run("show, and scopes", func(t *testing.T) {
		d := d.in(t)
		var shown struct {
			User, Project struct{ Folder, Index string }
		}
		d.say("demo.lead", "show me").answers(&shown)
		if !strings.HasSuffix(shown.Project.Folder, "/projects/demo") || !strings.Contains(shown.Project.Index, "curled") {
			t.Errorf("%+v", shown)
		}
		if code, _ := d.say("demo.lead", "no scope").failure(); code != "project_unknown" {
			t.Error(code)
		}
		var removed memory.Removed
		d.say("demo.lead", "remove it").answers(&removed)
		if removed.Duplicate || strings.Contains(index(), "curled") {
			t.Errorf("%+v: %s", removed, index())
		}
	})
}

func TestAskingThePerson(t *testing.T) {
	t.Parallel()
	d := newDesk(t, scripted(t,
		calls("four at once", "ask_person", `{"question": "1"}`),
		calls("no way to answer", "ask_person", `{"question": "1", "text": false}`),
		calls("twice the same", "ask_person", `{"question": "1", "choices": ["a", "a"]}`),
	))
	d.lead(d.Repo("demo", nil), lead.Manual)
	open := func(n int) (list []questions.Question) {
		d.Until(fmt.Sprintf("%d questions", n), func() bool {
			var err error
			if list, err = questions.Open(d.ctx, d.c); err != nil {
				t.Fatal(err)
			}
			return len(list) == n
		})
		return list
	}
	t.Run("PO-120 a question waits for no verdict, and the answer is the person's words", func(t *testing.T) {
		d := d.in(t)
		n := d.say("demo.lead", "ask: Which one? | red | dark blue")
		q := open(1)[0]
		if q.Bot != "demo.lead" || q.Text != "Which one?" || strings.Join(q.Choices, ",") != "red,dark blue" || !q.FreeText || q.Multiple {
			t.Errorf("%+v", q)
		}
		if err := questions.Answer(d.sonny(), q, questions.Reply{Choices: []string{"green"}}); !errors.Is(err, protocol.UsageError) {
			t.Errorf("a choice that is none: %v", err)
		}
		if err := questions.Answer(d.sonny(), q, questions.Reply{Choices: []string{"dark blue"}, Text: "but darker"}); err != nil {
			t.Fatal(err)
		}
		if err := questions.Answer(d.sonny(), q, questions.Reply{Choices: []string{"red"}}); !errors.Is(err, protocol.CallAlreadyAnswered) {
			t.Errorf("a second answer: %v", err)
		}
		if said := n.says(); said != `{"choices":["dark blue"],"text":"but darker"}` {
			t.Error(said)
		}
		open(0)
		d.Until("the answer's end", func() bool {
			left, _ := os.ReadDir(filepath.Join(d.sonny(), "answers"))
			return len(left) == 0
		})
	})
	t.Run("Esc is not now", func(t *testing.T) {
		d := d.in(t)
		n := d.say("demo.lead", "ask: Which one? | red | blue")
		if err := questions.Answer(d.sonny(), open(1)[0], questions.Reply{NotNow: true}); err != nil {
			t.Fatal(err)
		}
		if code, _ := n.failure(); code != "no_person" {
			t.Error(code)
		}
	})
	t.Run("a file that is no answer is nobody's", func(t *testing.T) {
		d := d.in(t)
		n := d.say("demo.lead", "ask: Which one? | red | blue")
		q := open(1)[0]
		call := protocol.ToolCall{BotID: q.BotID, Turn: q.Turn}
		for c, err := range d.c.ToolCalls(d.ctx, anyCall) {
			if err != nil {
				t.Fatal(err)
			}
			call = *c
		}
		path := filepath.Join(d.sonny(), "answers", tools.CallKey(&call)+".json")
		if err := os.WriteFile(path, []byte(`{"choices": ["purple"]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		d.Until("it is taken away", func() bool { return !there(path) })
		if err := questions.Answer(d.sonny(), q, questions.Reply{Text: "red"}); err != nil {
			t.Fatal(err)
		}
		if said := n.says(); said != `{"text":"red"}` {
			t.Error(said)
		}
	})
	t.Run("a question waits over a restart of the host, and of the daemon", func(t *testing.T) {
		d := d.in(t)
		n := d.say("demo.lead", "ask: Which one? | red | blue")
		open(1)
		d.Until("the turn is parked", func() bool {
			b, err := d.c.Inspect(d.ctx, "demo.lead")
			return err == nil && b.Status == protocol.StatusWaiting
		})
		d.kill("toolhost")
		q := open(1)[0]
		d.KillDaemon()
		d.must("start")
		if err := questions.Answer(d.sonny(), q, questions.Reply{Choices: []string{"red"}}); err != nil {
			t.Fatal(err)
		}
		if said := n.says(); said != `{"choices":["red"]}` {
			t.Error(said)
		}
	})
	t.Run("questions that cannot be answered are refused", func(t *testing.T) {
		d := d.in(t)
		for _, prompt := range []string{"no way to answer", "twice the same"} {
			if code, detail := d.say("demo.lead", prompt).failure(); code != "invalid_arguments" {
				t.Errorf("%s: %s %s", prompt, code, detail)
			}
		}
	})
}

func TestPlansPausesAndCards(t *testing.T) {
	t.Parallel()
	d := newDesk(t, scripted(t,
		calls("clear it", "plan", `{"clear": true}`),
		calls("both", "plan", `{"clear": true, "steps": [{"text": "a", "state": "todo"}]}`),
		calls("neither", "plan", `{}`),
		calls("show the task", "show_agent", `{"bot": "demo.a", "note": "look"}`),
		calls("show another", "show_agent", `{"bot": "other.lead"}`),
		calls("pull it", "pause", `{"reason": "it burns"}`),
	))
	bot := d.lead(d.Repo("demo", nil), lead.Manual)
	d.lead(d.Repo("other", nil), lead.Manual)
	store := d.Path(".agent", "state.sqlite")
	t.Run("a plan is replaced, kept and cleared", func(t *testing.T) {
		d := d.in(t)
		if said := d.say("demo.lead", "plan: one;two;three").says(); said != `{"steps":3}` {
			t.Error(said)
		}
		if steps, err := plans.Read(store, bot.ID); err != nil || len(steps) != 3 || steps[0] != (plans.Step{Text: "one", State: "doing"}) {
			t.Errorf("%v, %v", steps, err)
		}
		for _, prompt := range []string{"both", "neither"} {
			if code, _ := d.say("demo.lead", prompt).failure(); code != "invalid_arguments" {
				t.Errorf("%s: %s", prompt, code)
			}
		}
		if said := d.say("demo.lead", "clear it").says(); said != `{"cleared":true}` {
			t.Error(said)
		}
		if steps, err := plans.Read(store, bot.ID); err != nil || steps != nil {
			t.Errorf("%v, %v", steps, err)
		}
	})
	t.Run("a plan goes with its bot", func(t *testing.T) {
		d := d.in(t)
		other, err := d.c.Inspect(d.ctx, "other.lead")
		if err != nil {
			t.Fatal(err)
		}
		d.say("other.lead", "plan: one;two;three").says()
		if _, err := d.c.Delete(d.ctx, "other.lead"); err != nil {
			t.Fatal(err)
		}
		d.Until("the plan's end", func() bool { return !there(fmt.Sprintf("%s.plans/%d.json", store, other.ID)) })
		d.lead(d.Path("other"), lead.Manual)
	})
	t.Run("only bots under the same lead are shown", func(t *testing.T) {
		d := d.in(t)
		start, err := d.starter(bot).Resolve(d.ctx, lead.TaskRequest{Name: "a", Brief: "say: hi"})
		if err == nil {
			_, err = start.Do(d.ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		if said := d.say("demo.lead", "show the task").says(); !strings.Contains(said, `"shown":true`) {
			t.Error(said)
		}
		if code, _ := d.say("demo.lead", "show another").failure(); code != "bot_not_found" {
			t.Error(code)
		}
	})
	t.Run("CO-120 PO-68 the cord is pulled in the caller's name, with its network off", func(t *testing.T) {
		d := d.in(t)
		d.lead(d.Repo("dark", nil), lead.Manual, func(p *lead.Plan) { p.Settings.Network = false })
		n := d.say("dark.lead", "pull it")
		o := n.outcome()
		if o.Status != protocol.StatusInterrupted || deref(o.Error) != protocol.Paused {
			t.Errorf("%+v", o)
		}
		ready, err := d.Client().Ready(d.ctx)
		if err != nil || ready.Paused == nil || ready.Paused.By != "dark.lead" || deref(ready.Paused.Turn) != n.Turn || deref(ready.Paused.Reason) != "it burns" {
			t.Errorf("%+v, %v", ready.Paused, err)
		}
	})
}
