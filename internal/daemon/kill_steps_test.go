package daemon_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	v2 "github.com/go-json-experiment/json"

	"agent/protocol"
)

// steppedCommits is about how many points around commits a turn with steps meets.
const steppedCommits = 60

// TestKillAroundSteps kills the daemon while steps are asked, wait, are judged and
// are answered. Of each pair of steps the first is allowed, the second denied.
func TestKillAroundSteps(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(killSeed, 4))
	for _, at := range sample(rnd, steppedCommits, killSamples) {
		again := 1 + rnd.IntN(30)
		hold := []int64{0, 60_000}[at%2]
		t.Run(fmt.Sprintf("AP-10 AP-36 a kill -9 at point %d and again at %d, held %d ms, allows no step that nobody allowed", at, again, hold), func(t *testing.T) {
			t.Parallel()
			h := newHost(t, servedScript)
			h.set.Limits.ApprovalHoldMS = hold
			w := &stepWorld{stepper: &stepper{gated: &gated{host: h, p: h.start()}}, sent: map[string]bool{}, given: map[string]string{}}
			w.k = w.p.dial()
			w.k.ask(nil, "create", fmt.Sprintf(`"bot":"Ada","model":"s/m","instructions":"","tools":["echo"],"workspace":%q,"client_tools":[%s]%s`,
				h.workspace, memoryTool(`,"gated":false`), memoryGate))
			w.p.kill()
			for _, kill := range []int{at, again, 0} {
				h.dieAt(kill)
				w.live(kill == 0)
			}
			if w.check(); at < steppedCommits/3 && w.died == 0 {
				t.Error("nothing was killed")
			}
		})
	}
}

// stepWorld serves and judges over as many daemons as it takes.
type stepWorld struct {
	*stepper
	steps int               // asked so far, whose names never repeat
	sent  map[string]bool   // steps for which an allow was sent
	given map[string]string // what their server was answered
	died  int
}

// live drives one daemon until it dies or the turn is over.
func (w *stepWorld) live(last bool) {
	if w.lives(w.drive, last) {
		w.died++
	}
}

// wire is a session with a daemon that may die at any time: what is read then is
// nothing.
type wire struct {
	c    net.Conn
	r    *bufio.Reader
	n    int
	seen []line
}

func (w *stepWorld) wire() *wire {
	c, err := net.Dial("unix", w.set.Socket)
	if err != nil {
		return nil
	}
	return &wire{c: c, r: bufio.NewReader(c)}
}

func (x *wire) send(op, members string) int {
	x.n++
	fmt.Fprintf(x.c, `{"id":%d,"op":%q,%s}`+"\n", x.n, op, members)
	return x.n
}

// next gives the first line that fits, of those kept or to come.
func (x *wire) next(fits func(line) bool) (line, bool) {
	for i := 0; ; i++ {
		if i == len(x.seen) {
			x.c.SetReadDeadline(time.Now().Add(20 * time.Second))
			raw, err := x.r.ReadBytes('\n')
			l := line{raw: raw}
			if err != nil || json.Unmarshal(raw, &l.fields) != nil {
				return line{}, false
			}
			x.seen = append(x.seen, l)
		}
		if l := x.seen[i]; fits(l) {
			x.seen = append(x.seen[:i:i], x.seen[i+1:]...)
			return l, true
		}
	}
}

func (x *wire) reply(id int) (line, bool) {
	return x.next(func(l line) bool { return string(l.fields["id"]) == fmt.Sprint(id) })
}

func (x *wire) ask(into any, op, members string) bool {
	l, ok := x.reply(x.send(op, members))
	if ok && into != nil && l.fields["result"] != nil {
		ok = v2.Unmarshal(l.fields["result"], into) == nil
	}
	return ok
}

// drive reports whether the daemon lived until the turn was over.
func (w *stepWorld) drive() bool {
	host, k := w.wire(), w.wire()
	if host == nil || k == nil {
		return false
	}
	defer host.c.Close()
	defer k.c.Close()
	var serving protocol.ToolsServing
	var sub protocol.Submitted
	if !host.ask(&serving, "serve_tools", `"tag":"sonny","lease_ms":60000`) ||
		!k.ask(&sub, "submit", submission("Ada", "r", "one fact", "")) {
		return false
	}
	w.turn, w.lease = sub.Turn, serving.Lease
	var o protocol.Outcome
	if !k.ask(&o, "result", fmt.Sprintf(`"bot":"Ada","turn":%d`, w.turn)) {
		return false
	}
	if o.Finished {
		return true
	}
	if len(serving.Calls) > 0 {
		w.call = serving.Calls[0].CallID
	} else {
		l, ok := host.next(func(l line) bool { return l.str("event") == "tool_requested" || l.str("event") == "tool_cancelled" })
		if !ok {
			return false
		}
		var data protocol.ToolCall
		json.Unmarshal(l.fields["data"], &data)
		w.call = data.CallID
	}
	for range 2 {
		if !w.judgePair(host, k) {
			return false
		}
	}
	return host.ask(nil, "tool_result", address(w.turn, w.call, w.lease)+`,"output":"done"`) &&
		k.ask(nil, "wait", fmt.Sprintf(`"handles":["turn:Ada/%d"]`, w.turn))
}

// judgePair asks for two steps, which are allowed and denied. A verdict that was
// acknowledged reaches who asked while the daemon lives.
func (w *stepWorld) judgePair(host, k *wire) bool {
	for _, decision := range []string{"allow", "deny"} {
		w.steps++
		name := fmt.Sprint("h-", w.steps)
		id := host.send("approve_step", w.asks(name, decision, `{}`))
		var page protocol.ApprovalPage
		for len(page.Approvals) == 0 {
			if !k.ask(&page, "approvals", `"bot":"Ada"`) {
				return false
			}
		}
		a := page.Approvals[0]
		if a.Step != name {
			w.t.Errorf("listed %+v, asked %s", a, name)
		}
		w.sent[name] = w.sent[name] || decision == "allow"
		answer, ok := k.reply(k.send("answer", judged(a, fmt.Sprintf(`"decision":%q`, decision))))
		if !ok {
			return false
		}
		l, ok := host.reply(id)
		if !ok {
			return false
		}
		var v protocol.StepVerdict
		json.Unmarshal(l.fields["result"], &v)
		if w.given[name] = v.Decision; v.Decision != decision || answer.fields["error"] != nil {
			w.t.Errorf("%s: answered %s, its server got %s", name, answer.raw, l.raw)
		}
		if decision == "allow" && !host.ask(nil, "step_result", address(w.turn, w.call, w.lease)+fmt.Sprintf(`,"step":%q,"ok":true`, name)) {
			return false
		}
	}
	return true
}

// check looks at what became of the steps.
func (w *stepWorld) check() {
	w.k.waiting(0)
	o := w.k.result("Ada", w.turn)
	if o.Status != "completed" && o.Status != "interrupted" {
		w.t.Errorf("outcome %+v", o)
	}
	var page protocol.EventPage
	w.k.ask(&page, "events", `"bot":"Ada","after":0,"limit":256`)
	stored := map[string]string{}
	for _, raw := range page.Events {
		l := line{raw: raw}
		if err := json.Unmarshal(raw, &l.fields); err != nil {
			w.t.Fatal(err)
		}
		if l.str("event") != "step_decided" {
			continue
		}
		var d protocol.StepDecided
		if l.data(&d); stored[d.Step] != "" {
			w.t.Errorf("%s is decided twice", d.Step)
		}
		if stored[d.Step] = d.Decision; d.Decision == "allow" && !w.sent[d.Step] {
			w.t.Errorf("%s was allowed by nobody", d.Step)
		}
	}
	for step, decision := range w.given {
		if stored[step] != decision {
			w.t.Errorf("%s: its server got %s, and %q is stored", step, decision, stored[step])
		}
	}
	if o.Status == "completed" && !strings.Contains(o.Text, "done") {
		w.t.Errorf("outcome %+v", o)
	}
}
