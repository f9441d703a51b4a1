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

// judgedCommits is about how many points around commits a judged turn meets.
const judgedCommits = 72

// TestKillAroundVerdicts kills the daemon between announcing, judging, starting,
// parking and resuming. A round's first call is allowed, its second denied.
func TestKillAroundVerdicts(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(killSeed, 3))
	for _, at := range sample(rnd, judgedCommits, killSamples) {
		again := 1 + rnd.IntN(30)
		hold := []int64{0, 60_000}[at%2]
		t.Run(fmt.Sprintf("AP-9 AP-10 RT-91 a kill -9 at point %d and again at %d, held %d ms, runs nothing that was not allowed and nothing twice", at, again, hold), func(t *testing.T) {
			t.Parallel()
			h := newHost(t, gateScript)
			h.set.Limits.ApprovalHoldMS = hold
			j := &judge{gated: &gated{host: h, p: h.start()}}
			j.k = j.p.dial()
			j.make("Ada", manual)
			j.p.kill()
			for _, kill := range []int{at, again, 0} {
				h.dieAt(kill)
				j.live(kill == 0)
			}
			if j.check(); at < judgedCommits/2 && j.died == 0 {
				t.Error("nothing was killed")
			}
		})
	}
}

// judge answers what waits, over as many daemons as it takes.
type judge struct {
	*gated
	turn    int64
	allowed bool // an allow was sent
	died    int  // daemons that their plan killed
}

// live drives one daemon until it dies or the turn is over.
func (j *judge) live(last bool) {
	if j.lives(j.drive, last) {
		j.died++
	}
	if !last {
		j.sound()
	}
}

// dieAt has the next daemon killed at a point around commits, 0 for none.
func (h *host) dieAt(point int) {
	h.env = nil
	if point > 0 {
		text, _ := json.Marshal(faultPlan{Points: aroundCommits, Kill: point})
		h.env = []string{planVar + "=" + string(text)}
	}
}

// lives starts a daemon and drives it until it dies by its plan or the turn is
// over, and reports whether it died. The last one goes on, with a session.
func (g *gated) lives(drive func() bool, last bool) (died bool) {
	p := g.launch()
	if _, err := p.stdout.ReadBytes('\n'); err != nil {
		p.cmd.Wait()
		close(p.exited)
		return true
	}
	go func() {
		p.cmd.Wait()
		close(p.exited)
	}()
	g.p = p
	if !drive() {
		<-p.exited
		died = true
	}
	if last {
		g.attach()
	} else {
		p.kill()
	}
	return died
}

// sound checks that nothing ran that nobody allowed.
func (j *judge) sound() {
	if ran := j.ran(); strings.Contains(ran, "b") || ran != "" && !j.allowed || strings.Count(ran, "a") > 1 {
		j.t.Errorf("ran %q, allowed %v", ran, j.allowed)
	}
}

// drive has the turn judged. It reports whether the daemon lived to its end.
func (j *judge) drive() bool {
	c, err := net.Dial("unix", j.set.Socket)
	if err != nil {
		return false
	}
	defer c.Close()
	r := bufio.NewReader(c)
	ask := func(into any, op, members string) bool {
		c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := fmt.Fprintf(c, `{"id":1,"op":%q,%s}`+"\n", op, members); err != nil {
			return false
		}
		for {
			raw, err := r.ReadBytes('\n')
			if err != nil {
				return false
			}
			var l struct {
				ID     json.RawMessage `json:"id"`
				Result json.RawMessage `json:"result"`
			}
			if json.Unmarshal(raw, &l) != nil || l.ID == nil {
				continue
			}
			if l.Result != nil && into != nil && v2.Unmarshal(l.Result, into) != nil {
				j.t.Errorf("answer %s", raw)
			}
			return true
		}
	}
	var sub protocol.Submitted
	if !ask(&sub, "submit", submission("Ada", "r", "two echo a >> ran then echo b >> ran", "")) {
		return false
	}
	j.turn = sub.Turn
	for {
		var page protocol.ApprovalPage
		if !ask(&page, "approvals", `"bot":"Ada"`) {
			return false
		}
		for _, a := range page.Approvals {
			decision := `"decision":"deny"`
			if strings.Contains(string(a.Arguments), "echo a") {
				decision, j.allowed = `"decision":"allow"`, true
			}
			if !ask(nil, "answer", verdict(a, decision)) {
				return false
			}
		}
		var o protocol.Outcome
		if !ask(&o, "result", fmt.Sprintf(`"bot":"Ada","turn":%d`, sub.Turn)) {
			return false
		}
		if o.Finished {
			return true
		}
	}
}

// check looks at what became of the turn.
func (j *judge) check() {
	j.sound()
	o := j.k.result("Ada", j.turn)
	var page protocol.EventPage
	j.k.ask(&page, "events", `"bot":"Ada","after":0,"limit":256`)
	text := fmt.Sprintf("%s", page.Events)
	started := strings.Count(text, `"event":"tool_started"`)
	switch {
	case o.Status != "completed" && o.Status != "interrupted":
		j.t.Errorf("outcome %+v", o)
	case o.Status == "completed" && (j.ran() != "a\n" || started != 1 || strings.Count(text, `"denied":true`) != 1):
		j.t.Errorf("ran %q: %s", j.ran(), text)
	case started > 1 || strings.Count(text, `"event":"tool_completed"`) > 2 || strings.Count(text, `"approvals":[{"tag":"manual"`) < started:
		j.t.Errorf("events %s", text)
	}
	j.k.waiting(0)
}
