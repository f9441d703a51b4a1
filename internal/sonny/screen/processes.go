package screen

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/human"
	"agent/internal/sonny/screen/roster"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// processes are the background commands of which a card is on screen (sonny.md 8.2). The
// daemon tells of none by itself: each is waited for beside the loop, some at a time.
type processes struct {
	of      map[string]*process // by handle
	waiting int
}

// mostWaited bounds how many are waited for at a time.
const mostWaited = 16

// process is what is known of one.
type process struct {
	asked   bool
	running bool
	ended   *protocol.Resolved // nil: not known to have ended
}

// again notes that what was waited for is to be waited for anew: over another connection.
func (p *processes) again() {
	for _, one := range p.of {
		one.asked = false
	}
}

// run reports whether one is known to run, whose card then counts its time.
func (p *processes) run() bool {
	for _, one := range p.of {
		if one.running {
			return true
		}
	}
	return false
}

// process is the card of a background command.
func (a *App) process(handle string, since time.Time) *cells.Card {
	ps := &a.processes
	p := ps.of[handle]
	if p == nil {
		if ps.of == nil {
			ps.of = map[string]*process{}
		}
		p = &process{running: !since.IsZero()}
		ps.of[handle] = p
	}
	if !p.asked && p.ended == nil && a.lost == nil && ps.waiting < mostWaited {
		p.asked = true
		a.await(handle, p)
	}
	return p.card(handle, since, a.o.Clock())
}

// await asks what a command came to: at once, and where it runs again when it has ended.
func (a *App) await(handle string, p *process) {
	wait := &protocol.Wait{Handles: []string{handle}}
	if !p.running {
		wait.TimeoutMS = protocol.Set(int64(0))
	}
	a.processes.waiting++
	do(a, func(ctx context.Context) (*protocol.Waited, error) { return a.client().Wait(ctx, wait) },
		func(w *protocol.Waited, err error) {
			a.processes.waiting--
			if err != nil {
				return // it is asked again when the connection is back
			}
			if r, is := w.Results[handle]; is && !r.Pending {
				p.ended, p.running = &r, false
			} else if !p.running {
				p.running = true
				a.await(handle, p)
			}
		})
}

// card is how it does: its state and what that came to, for how long it runs, and the last
// line that it wrote, which is known once it has ended.
func (p *process) card(handle string, since, now time.Time) *cells.Card {
	c := &cells.Card{Name: cells.HandleName(handle)}
	state := live.Idle
	switch {
	case p.running:
		state, c.Plan = live.Working, "running"
		if !since.IsZero() {
			c.Took = human.Clock(now.Sub(since))
		}
	case p.ended != nil && p.ended.Err != nil:
		state, c.Plan = live.Failed, string(p.ended.Err.Code)
	case p.ended != nil && p.ended.Process != nil:
		state, c.Plan, c.Last = outcomeOf(p.ended.Process)
	}
	g := roster.Looks[state]
	c.Mark = text.Span{Text: g.Mark, Role: g.Role}
	return c
}

// outcomeOf is how a command ended, and the last line of what it wrote.
func outcomeOf(p *protocol.Process) (state live.State, words, last string) {
	state, words = live.Failed, "ended by a signal"
	switch {
	case p.TimedOut:
		words = "timed out"
	case p.ExitCode != nil:
		words = fmt.Sprintf("exit %d", *p.ExitCode)
	}
	if p.Success {
		state = live.Done
	}
	for _, out := range []string{p.Stdout, p.Stderr} {
		if out = strings.TrimSpace(out); out != "" && (last == "" || !p.Success) {
			last = out[strings.LastIndexByte(out, '\n')+1:]
		}
	}
	return state, words, last
}
