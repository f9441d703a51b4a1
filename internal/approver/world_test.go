package approver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/client"
	"agent/protocol"
)

// world is a real daemon, the command freshly built, with a home and a workspace
// of its own, and what a judge on it would be shown.
type world struct {
	t    *testing.T
	ctx  context.Context
	home string
	work string
	c    *client.Client
	g    *gatherer
	n    int
}

// playScript has a bot do what the prompt says: JSON arguments for one call, or
// for several, a line each.
const playScript = `{"version":1,"models":{"m":{"scripts":[
 {"match":{"regex":"(?s)^write (\\S+) (.+)$"},"steps":[{"calls":[{"tool":"write","arguments":{"content":"${2}","path":"${1}"}}]},{"text":"written"}]},
 {"match":{"regex":"(?s)^run ([^\\n]+)"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}"}}]},{"text":"ran"}]},
 {"match":{"regex":"(?s)^escalate (.+)$"},"steps":[{"calls":[{"tool":"shell","arguments":{"command":"${1}","sandbox_permissions":"require_escalated","justification":"the person said so"}}]},{"text":"ran"}]},
 {"match":{"regex":"(?s)^both (\\S+) then (.+)$"},"steps":[{"calls":[
  {"tool":"write","arguments":{"path":"${1}","content":"rm -rf evil"}},
  {"tool":"shell","arguments":{"command":"${2}","sandbox_permissions":"require_escalated","justification":"j"}},
  {"tool":"shell","arguments":{"command":"true","sandbox_permissions":"require_escalated","justification":"j"}}]},{"text":"ran"}]},
 {"match":{"regex":"(?s)^look (\\S+) then ([^\\n]+)"},"steps":[{"calls":[{"tool":"read","arguments":{"path":"${1}"}}]},{"text":"I have looked.","calls":[{"tool":"shell","arguments":{"command":"${2}"}}]},{"text":"ran"}]},
 {"match":{"regex":"(?s)^make (\\S+) then ([^\\n]+)"},"steps":[{"calls":[{"tool":"write","arguments":{"path":"${1}","content":"# ${prompt}"}}]},{"calls":[{"tool":"shell","arguments":{"command":"${2}"}},{"tool":"shell","arguments":{"command":"true"}}]},{"text":"ran"}]},
 {"match":{"prefix":"big"},"steps":[{"calls":[{"tool":"write","arguments":{"path":"big.sh","content":"BIG"}}]},{"calls":[{"tool":"shell","arguments":{"command":"bash big.sh"}},{"tool":"shell","arguments":{"command":"true"}}]},{"text":"ran"}]},
 {"match":{"any":true},"steps":[{"text":"Yes."}]}]}}}`

func newWorld(t *testing.T, env ...string) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent-judge-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "w")}
	for _, d := range []string{w.home, w.work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script, bin := filepath.Join(dir, "script.json"), filepath.Join(dir, "agent")
	w.file(script, strings.Replace(playScript, "BIG", strings.Repeat("echo 0123456789;", 60<<10/16), 1))
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin, "../../cmd/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	w.ctx = ctx
	env = append(env, "HOME="+w.home, "PATH="+os.Getenv("PATH"))
	hold := int64(0) // a gated call parks at once
	w.c = &client.Client{
		Target: client.Target{Store: filepath.Join(dir, "state.sqlite"), Socket: filepath.Join(dir, "sock")},
		Starter: &client.Starter{
			Bin: bin, Providers: []string{"s=scripted," + script}, Env: env, Limits: client.Limits{ApprovalHoldMS: &hold},
		},
	}
	if _, _, err := w.c.Start(ctx, w.c.Starter); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.c.Shutdown(context.Background(), 0); err != nil {
			t.Error(err)
		}
		w.c.Close()
		cancel()
		os.RemoveAll(dir)
	})
	w.g = newGatherer(w.c, "The remote origin is mine.")
	w.g.env, w.g.dir = env, filepath.Join(w.home, ".agent")
	return w
}

func (w *world) file(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// bot makes a bot whose calls wait for the tag auto.
func (w *world) bot(name string, change func(*protocol.Create)) *protocol.Bot {
	w.t.Helper()
	r := &protocol.Create{
		Bot: name, Model: "s/m", Tools: []string{"shell", "write", "edit", "read"}, Workspace: w.work,
		Approve: []string{"shell"}, Approver: "auto",
	}
	if change != nil {
		change(r)
	}
	b, err := w.c.Create(w.ctx, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func confined(r *protocol.Create) {
	r.Sandbox, r.ExcludeSlashTmp = workspaceWrite, protocol.Set(true)
}

// turn submits a prompt.
func (w *world) turn(bot, prompt string, change func(*protocol.Submit)) *protocol.Submitted {
	w.t.Helper()
	w.n++
	r := &protocol.Submit{Bot: bot, RequestID: fmt.Sprint("r", w.n), Prompt: prompt}
	if change != nil {
		change(r)
	}
	sub, err := w.c.Submit(w.ctx, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return sub
}

// follow reads a bot's events from a submission on, until one is what is wanted.
func (w *world) follow(sub *protocol.Submitted, until func(*protocol.Event) bool) {
	w.t.Helper()
	for e, err := range w.c.Follow(w.ctx, sub.Bot, client.FollowOptions{After: *sub.Cursor - 1, NoDeltas: true}) {
		if err != nil {
			w.t.Fatal(err)
		}
		switch {
		case e.Turn != sub.Turn:
		case until(e):
			return
		case e.Kind == protocol.KindTurnFinished:
			w.t.Fatalf("the turn ended: %s", e.Data)
		}
	}
	w.t.Fatal("the events ended")
}

// ended waits for a turn to end.
func (w *world) ended(sub *protocol.Submitted) int64 {
	w.t.Helper()
	w.follow(sub, func(e *protocol.Event) bool { return e.Kind == protocol.KindTurnFinished })
	return sub.Turn
}

// round waits for a turn's calls to wait, and is what is judged then.
func (w *world) round(sub *protocol.Submitted) *round {
	w.t.Helper()
	w.follow(sub, func(e *protocol.Event) bool { return e.Kind == protocol.KindTurnWaiting })
	r := &round{bot: sub.Bot, botID: sub.BotID, turn: sub.Turn}
	for call, err := range w.c.Approvals(w.ctx, client.ApprovalFilter{Bot: sub.Bot}) {
		if err != nil {
			w.t.Fatal(err)
		}
		r.calls = append(r.calls, *call)
	}
	if len(r.calls) == 0 {
		w.t.Fatal("no call waits")
	}
	return r
}

// shown is what the judge reads of a round.
func (w *world) shown(r *round) (*evidence, *document) {
	w.t.Helper()
	e, err := w.g.gather(w.ctx, r)
	if err != nil {
		w.t.Fatal(err)
	}
	d := &document{}
	if err := json.Unmarshal([]byte(e.document), d); err != nil {
		w.t.Fatalf("%v in %s", err, e.document)
	}
	return e, d
}

// asked has a bot do something that waits, and is what the judge reads then.
func (w *world) asked(bot, prompt string, change func(*protocol.Submit)) (*evidence, *document) {
	w.t.Helper()
	sub := w.turn(bot, prompt, change)
	e, d := w.shown(w.round(sub))
	w.stop(sub)
	return e, d
}

// stop ends a turn that waits.
func (w *world) stop(sub *protocol.Submitted) {
	w.t.Helper()
	if _, err := w.c.Interrupt(w.ctx, sub.Bot, sub.Turn, ""); err != nil {
		w.t.Fatal(err)
	}
	w.ended(sub)
}

// kinds are the transcript's entries of a kind.
func (d *document) kinds(kind string) (texts []string) {
	for _, e := range d.Transcript {
		if e.Kind == kind {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// holds reports whether an entry of a kind has a text in it.
func (d *document) holds(kind, text string) bool {
	return slices.ContainsFunc(d.kinds(kind), func(s string) bool { return strings.Contains(s, text) })
}
