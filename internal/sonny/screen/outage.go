package screen

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/decide"
	"agent/protocol"
)

// approverName is the companion that judges for the rows of tag auto.
const approverName = "approver"

// maxUnreviewed is after how many calls in a row that nobody judged the person is told
// that the approver does not answer (sonny.md 9.5).
const maxUnreviewed = 2

// judging watches how the automatic approver does.
type judging struct {
	unreviewed map[string]int // in a row, by bot
	down       bool           // its tag was not served when it was looked at last
	looking    bool           // whether it is served again
}

// judgeWatch shows the breaker and outages of the approver (sonny.md 4).
var judgeWatch = feature{event: func(a *App, b *live.Bot, e *protocol.Event) { a.judging.hear(a, b, e) }}

func (j *judging) hear(a *App, b *live.Bot, e *protocol.Event) {
	if b == nil || a.session == nil || b.Record.Name != a.session.bot {
		return
	}
	switch e.Kind {
	case protocol.KindAccepted:
		a.answers.drop(a, stopID(b.Record.Name), "")
	case protocol.KindToolStarted:
		var d protocol.ToolStarted
		if e.Decode(&d) == nil {
			j.verdicts(a, b, d.Approvals)
		}
	case protocol.KindToolCompleted:
		var d protocol.ToolCompleted
		if e.Decode(&d) == nil && !d.Cancelled {
			j.verdicts(a, b, d.Approvals)
		}
	case protocol.KindStepDecided:
		var d protocol.StepDecided
		if e.Decode(&d) == nil {
			j.verdicts(a, b, d.Approvals)
		}
	case protocol.KindTurnFinished:
		j.ended(a, b, e)
		j.look(a)
	}
}

// look sees at the end of a turn whether the tag is served again, where it was not: until
// then the footer says so.
func (j *judging) look(a *App) {
	if !j.down || j.looking {
		return
	}
	j.looking = true
	do(a, a.approverServed, func(served bool, err error) {
		j.looking = false
		j.down = j.down && (err != nil || !served)
	})
}

// verdicts counts those in a row that were none.
func (j *judging) verdicts(a *App, b *live.Bot, list []protocol.Verdict) {
	for _, v := range list {
		if v.Tag != string(lead.Auto) {
			continue
		}
		if j.unreviewed == nil {
			j.unreviewed = map[string]int{}
		}
		if v.By != nil && !cells.Unreviewed(v.Reason) {
			j.unreviewed[b.Record.Name], j.down = 0, false
			continue
		}
		if j.unreviewed[b.Record.Name]++; j.unreviewed[b.Record.Name] == maxUnreviewed {
			a.stopped(b, "the approver does not answer", "two calls in a row were not reviewed", true)
		}
	}
}

// ended shows a turn that was stopped.
func (j *judging) ended(a *App, b *live.Bot, e *protocol.Event) {
	var d protocol.TurnFinished
	if e.Decode(&d) != nil || d.Status != protocol.StatusInterrupted {
		return
	}
	detail := ""
	if d.Detail != nil {
		detail = *d.Detail
	}
	switch {
	case cells.Outage(d.Error, detail):
		a.stopped(b, cells.OutageWords, detail, true)
	case strings.HasPrefix(detail, "stopped: "):
		a.stopped(b, detail, "", false)
	}
}

// stop is a stop in the panel.
type stop struct {
	decide.Stop
	at time.Time
}

func stopID(bot string) string { return "stop " + bot }

// stopped puts the panel up, in place of one that was there.
func (a *App) stopped(b *live.Bot, words, detail string, outage bool) {
	q := &stop{Stop: decide.Stop{Bot: b.Record.Name, Words: words, Detail: detail}, at: a.o.Now()}
	a.answers.drop(a, q.id(), "")
	a.answers.add(a, q)
	if !outage {
		return
	}
	do(a, a.approverLog, func(line string, err error) {
		if err != nil {
			line = fault.Screen.Words(err)
		}
		q.Log = line
	})
}

func (q *stop) id() string       { return stopID(q.Bot) }
func (q *stop) bot() string      { return q.Bot }
func (q *stop) since() time.Time { return q.at }

func (q *stop) sheet(a *App, w int, _ bool) decide.Sheet {
	b := a.world.Bot(q.Bot)
	return q.Sheet(a.judged(q.Bot), b != nil && b.Turn == 0, w)
}

func (q *stop) pick(a *App, n int, _ string) {
	s := a.session
	a.answers.drop(a, q.id(), "")
	switch {
	case n == 1:
		a.setRow(lead.Manual)
	case n == 2 && s != nil && s.bot == q.Bot:
		a.out.Queue(&s.compose.Box, "Continue.")
	}
}

func (q *stop) own(*App, string) {}
func (q *stop) leave(*App) bool  { return true }

// lastOfLog is how much of a log is read for its last line, in bytes.
const lastOfLog = 4 << 10

// approverLog is the last line of the approver's log; where the daemon keeps no
// approver it says so.
func (a *App) approverLog(ctx context.Context) (string, error) {
	list, err := a.client().Companions(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(list, func(c protocol.Companion) bool { return c.Name == approverName })
	if i < 0 {
		return "the daemon runs no approver", nil
	}
	f, err := os.Open(list[i].Log)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-lastOfLog), io.SeekStart)
	}
	tail, err := io.ReadAll(io.LimitReader(f, lastOfLog))
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(string(tail)), "\n")
	return lines[len(lines)-1], nil
}

// checkApprover looks before a message whether the judge's tag is served, and has the
// approver started again where it is not. The message goes all the same: a call that
// nobody judges only expires (sonny.md 30).
func (a *App) checkApprover(ctx context.Context, bot string) (down bool, err error) {
	b, err := a.client().Inspect(ctx, bot)
	if err != nil || !slices.ContainsFunc(b.Gates, func(g protocol.Gate) bool { return g.Tag == string(lead.Auto) }) {
		return false, err
	}
	stats, err := a.client().Stats(ctx)
	if err != nil || judges(stats) {
		return false, err
	}
	if !slices.ContainsFunc(stats.Companions, func(c protocol.Companion) bool { return c.Name == approverName }) {
		return true, nil // whoever ran it may run it again
	}
	if _, err := a.client().RestartCompanions(ctx, approverName); err != nil {
		return true, fmt.Errorf("the approver is down: %w", err)
	}
	return true, nil
}

// approverServed is whether somebody judges now for the rows of tag auto.
func (a *App) approverServed(ctx context.Context) (bool, error) {
	stats, err := a.client().Stats(ctx)
	return err == nil && judges(stats), err
}

func judges(stats *protocol.Stats) bool { return slices.Contains(stats.Approvers, string(lead.Auto)) }
