package daemon_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v2 "github.com/go-json-experiment/json"

	"agent/internal/fakemodel"
)

// A prompt of these tests is a program for the model: <<ID step; step>>, one
// step a round, and then a last word. The steps:
//
//	sh N             N shell calls, each of which leaves a line in the log
//	noisy N          one shell call with N bytes of output, which leaves a line
//	bg               a background command that leaves a line
//	last             wait for the handle that the last result named
//	wait HANDLE...   wait for these
//	hold             hold the answer back until the test lets it go
//	say N            N bytes of text and a call of echo
//	fail, busy       refuse the first request of this program, with 503 or 429
//	cut              break off the first answer to this program
//
// A line in the log is ID.ROUND.CALL, so that none may be there twice.

var programForm = regexp.MustCompile(`<<(\S+) ([^>]*)>>`)

// program writes a prompt.
func program(id string, steps ...string) string {
	return fmt.Sprintf("<<%s %s>>", id, strings.Join(steps, ";"))
}

// programLines are the lines that a program leaves when every call of it ran.
func programLines(prompt string) (ids []string) {
	m := programForm.FindStringSubmatch(prompt)
	for round, step := range roundsOf(m[2]) {
		verb, n := stepOf(step)
		switch verb {
		case "sh":
			for call := range n {
				ids = append(ids, logID(m[1], round, call))
			}
		case "noisy", "bg":
			ids = append(ids, logID(m[1], round, 0))
		}
	}
	return ids
}

func logID(id string, round, call int) string { return fmt.Sprintf("%s.%d.%d", id, round, call) }

// roundsOf are the steps that take a round of their own.
func roundsOf(text string) []string {
	return slices.DeleteFunc(strings.Split(text, ";"), func(step string) bool { return step == "fail" || step == "busy" || step == "cut" })
}

func stepOf(step string) (verb string, n int) {
	verb, rest, _ := strings.Cut(step, " ")
	n, _ = strconv.Atoi(rest)
	return verb, n
}

// actor is the model of a world.
type actor struct {
	mu      sync.Mutex
	refused map[string]bool // programs whose first request was refused
	gates   map[string]*fakemodel.Gate
	delay   time.Duration // before every answer; set before the first
}

func newActor() *actor {
	return &actor{refused: map[string]bool{}, gates: map[string]*fakemodel.Gate{}}
}

func (a *actor) gate(id string) *fakemodel.Gate {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gates[id] == nil {
		a.gates[id] = fakemodel.NewGate()
	}
	return a.gates[id]
}

func (a *actor) refuseOnce(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := !a.refused[id]
	a.refused[id] = true
	return first
}

func (a *actor) reply(r *fakemodel.Request) fakemodel.Reply {
	reply := a.answer(r)
	reply.Delay = a.delay
	return reply
}

func (a *actor) answer(r *fakemodel.Request) fakemodel.Reply {
	if asksSummary(r) {
		return fakemodel.Say("SUMMARY of it")
	}
	all := programForm.FindAllStringSubmatch(r.Prompt, -1)
	if all == nil {
		return fakemodel.Say("There is nothing to do.")
	}
	m := all[len(all)-1]
	if strings.Contains(m[2], "cut") && a.refuseOnce(m[1]) {
		return fakemodel.Reply{Blocks: []fakemodel.Block{fakemodel.Text("half an ans")}, MidFrame: true}
	}
	if strings.Contains(m[2], "fail") && a.refuseOnce(m[1]) {
		return fakemodel.HTTPError(503, "busy", "retry-after-ms", "5")
	}
	if strings.Contains(m[2], "busy") && a.refuseOnce(m[1]) {
		return fakemodel.HTTPError(429, "slow down", "retry-after-ms", "260")
	}
	steps := roundsOf(m[2])
	if r.Rounds >= len(steps) {
		return fakemodel.Say("done " + m[1])
	}
	return a.step(r, m[1], steps[r.Rounds])
}

func (a *actor) step(r *fakemodel.Request, id, step string) fakemodel.Reply {
	verb, n := stepOf(step)
	reply := fakemodel.Say("now " + verb)
	call := func(tool string, arguments any) {
		text, _ := v2.Marshal(arguments)
		reply.Blocks = append(reply.Blocks, fakemodel.Call(tool, string(text)))
	}
	shell := func(i int, more string) map[string]any {
		return map[string]any{"command": fmt.Sprintf("echo %s >> log%s", logID(id, r.Rounds, i), more)}
	}
	switch verb {
	case "sh":
		for i := range n {
			call("shell", shell(i, ""))
		}
	case "noisy":
		call("shell", shell(0, fmt.Sprintf("; yes %s | head -c %d", id, n)))
	case "bg":
		c := shell(0, "")
		c["background"] = true
		call("shell", c)
	case "last":
		call("wait", map[string]any{"handles": handleForm.FindAllString(r.Result, 1)})
	case "wait":
		call("wait", map[string]any{"handles": strings.Fields(step)[1:]})
	case "hold":
		reply.Finish = a.gate(id)
	case "say":
		call("echo", map[string]any{"text": strings.Repeat("a", n)})
	}
	return reply
}

var handleForm = regexp.MustCompile(`proc:\d+`)
