package approver

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"agent/client"
	"agent/protocol"
)

const (
	lease       = 5 * time.Second // renewed at a fifth of it
	mostAtOnce  = 32
	answeredBy  = "approver"
	tidyingTime = 1500 * time.Millisecond

	// DefaultDeadline is how long a round may take from its announcement, and
	// MaxDeadline the most that may be set.
	DefaultDeadline = 30 * time.Second
	MaxDeadline     = 90 * time.Second
)

// Options say how a tag's calls are judged.
type Options struct {
	Tag       string
	Judge     string        // PROVIDER/MODEL; "": the small model of the bot's provider, else the bot's own
	Reasoning string        // "": low where the model has it
	Note      string        // the person's note, at most 8 KiB
	Deadline  time.Duration // of a round; 0: DefaultDeadline

	// Report gets a Serving, Judged, JudgeFailed, Broken or Ended. It is called
	// by one goroutine at a time.
	Report func(line any)
}

// Unusable is an error of the settings: nothing was served.
type Unusable struct{ error }

func (u Unusable) Unwrap() error { return u.error }

// gathering is what makes a round's evidence.
type gathering interface {
	gather(ctx context.Context, r *round) (*evidence, error)
}

// asking is what has a judge judge a document.
type asking interface {
	ask(ctx context.Context, model, document string, ids []string) (map[string]opinion, usage, error)
}

// approver serves one tag.
type approver struct {
	c        *client.Client
	o        Options
	server   *client.ApprovalServer
	gatherer gathering
	judge    asking
	models   *chooser
	redact   func(string) string

	slots  chan struct{} // one for each judge request under way
	rounds sync.WaitGroup

	reporting sync.Mutex

	mu    sync.Mutex
	turns map[turnKey]*turn
}

// Serve takes the tag and judges its calls until ctx ends, the tag goes to
// another holder, or the daemon is gone, and returns why: ctx's error,
// approvals_lost, daemon_disconnected or follow_lagged, an Unusable when the
// settings cannot be used, and whatever kept it from taking the tag, such as
// approvals_served. c has no bot and a daemon that runs.
func Serve(ctx context.Context, c *client.Client, o Options) error {
	if o.Deadline == 0 {
		o.Deadline = DefaultDeadline
	}
	ready, err := c.Ready(ctx)
	if err != nil {
		return err
	}
	j := newJudges(c, &o, ready)
	if err := j.usable(ctx, o.Judge); err != nil {
		return err
	}
	server, err := c.ServeApprovals(ctx, o.Tag, client.ServeOptions{Lease: lease})
	if err != nil {
		j.tidy()
		return err
	}
	g := newGatherer(c, o.Note)
	a := &approver{
		c: c, o: o, server: server, gatherer: g, judge: j, models: &chooser{c: c, named: o.Judge},
		redact: g.text, slots: make(chan struct{}, mostAtOnce), turns: map[turnKey]*turn{},
	}
	j.clean(func(ctx context.Context) { j.sweep(ctx, false) })
	a.report(Serving{"serving", o.Tag, server.Lease(), os.Getpid()})
	err = a.serve()
	server.Close()
	a.rounds.Wait()
	j.tidy()
	a.reportEnd(err)
	return err
}

// serve judges rounds until there are no more.
func (a *approver) serve() error {
	for round, err := range a.server.Rounds() {
		if err != nil {
			return err
		}
		r := newRound(round)
		t, m := a.enter(r)
		if len(r.calls) == 0 {
			a.leave(t)
			continue
		}
		a.rounds.Go(func() {
			defer a.leave(t)
			a.handle(a.server.Context(), r, t, m)
		})
	}
	return a.server.Context().Err()
}

// newRound is a round as the tag's server gives it.
func newRound(from *client.Round) *round {
	r := &round{bot: from.Bot, botID: from.BotID, turn: from.Turn}
	for _, call := range from.Calls {
		r.calls = append(r.calls, *call)
	}
	return r
}

func (a *approver) report(line any) {
	a.reporting.Lock()
	defer a.reporting.Unlock()
	if a.o.Report != nil {
		a.o.Report(line)
	}
}

func (a *approver) reportEnd(err error) {
	switch protocol.CodeOf(err) {
	case protocol.ApprovalsLost:
		a.report(Ended{"approvals_lost", a.o.Tag})
	case protocol.FollowLagged:
		a.report(Ended{"lagged", a.o.Tag})
	case protocol.DaemonDisconnected:
		a.report(Ended{"daemon_gone", a.o.Tag})
	}
}

// handle judges a round and answers it. Whatever goes wrong is a denial.
func (a *approver) handle(ctx context.Context, r *round, t *turn, m mark) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			a.report(JudgeFailed{"judge_failed", r.bot, r.turn, "a panic in the round's answering"})
			for i := range r.calls { // those that have a verdict keep it
				a.send(ctx, &r.calls[i], notReviewed(checkFailed))
			}
		}
	}()
	verdicts, used, why := a.verdicts(ctx, r, t, m)
	took := time.Since(began)
	if ctx.Err() != nil {
		return // the tag is another's, or nobody's: the calls wait for it
	}
	if why != "" {
		a.report(JudgeFailed{"judge_failed", r.bot, r.turn, why})
	}
	calls := a.answer(ctx, r, t, m, verdicts)
	if len(calls) > 0 {
		a.report(Judged{"judged", r.bot, r.turn, calls, took.Milliseconds(), used.input, used.cached, used.output})
	}
}

// verdicts are those of a round, one for each call, and why the check failed
// where it did.
func (a *approver) verdicts(ctx context.Context, r *round, t *turn, m mark) (verdicts []verdict, used usage, why string) {
	verdicts = make([]verdict, len(r.calls))
	defer func() {
		if p := recover(); p != nil {
			denyAll(verdicts, checkFailed)
			why = "a panic in the round's handling"
		}
	}()
	if why := t.stopping(m); why != "" {
		for i := range verdicts {
			verdicts[i] = verdict{reason: why}
		}
		return verdicts, used, ""
	}
	ctx, cancel := context.WithDeadline(ctx, a.deadline(r))
	defer cancel()
	used, err := a.judged(ctx, r, verdicts)
	if err == nil {
		return verdicts, used, ""
	}
	f := failureOf(ctx, err)
	denyAll(verdicts, f.why)
	return verdicts, used, f.detail
}

// stopping is why a round is not judged but denied and its turn stopped: it was
// announced at the limit, or the turn was stopped before. "" when it is judged. It
// waits for verdicts of the turn that are on their way.
func (t *turn) stopping(m mark) string {
	t.answering.Lock()
	defer t.answering.Unlock()
	return t.stop(m)
}

// stop is stopping while the verdicts of the turn are the caller's.
func (t *turn) stop(m mark) string {
	if why := t.stoppedFor(); why != "" {
		return why
	}
	if c := t.counts(m); c.reached() {
		return c.stopSentence(c.expired)
	}
	return ""
}

// denyAll denies every call that is not denied for a reason of its own.
func denyAll(verdicts []verdict, why string) {
	for i := range verdicts {
		if verdicts[i].allow || verdicts[i].reason == "" {
			verdicts[i] = notReviewed(why)
		}
	}
}

// failureOf says what an error of a round's handling means.
func failureOf(ctx context.Context, err error) *failure {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, errTooMuch):
		return &failure{why: tooMuch, detail: errTooMuch.Error()}
	case ctx.Err() != nil:
		return timedOut()
	}
	return failed("gathering: %s", codeOf(err))
}

// deadline counts from the earliest announcement, so that who takes the tag over
// inherits the clock. A clock that was set back gives no more time.
func (a *approver) deadline(r *round) time.Time {
	latest := time.Now().Add(a.o.Deadline)
	for _, call := range r.calls {
		if at := time.UnixMilli(call.AnnouncedMS).Add(a.o.Deadline); at.Before(latest) {
			latest = at
		}
	}
	return latest
}

// judged fills verdicts in with what the judge says of the round.
func (a *approver) judged(ctx context.Context, r *round, verdicts []verdict) (used usage, err error) {
	if ctx.Err() != nil {
		return used, timedOut()
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	case <-ctx.Done():
		return used, &failure{why: overloaded, detail: "no room before the deadline"}
	}
	bot, err := a.c.Inspect(ctx, r.bot)
	if err != nil {
		return used, refused(ctx, "inspect", err)
	}
	if r.botID == 0 {
		r.botID = bot.ID
	}
	if bot.ID != r.botID {
		return used, failed("the bot is another by now")
	}
	shown, err := a.gatherer.gather(ctx, r)
	if err != nil {
		return used, err
	}
	for i, why := range shown.refused {
		verdicts[i] = notReviewed(why)
	}
	if len(shown.ids) == 0 {
		return used, complete(verdicts)
	}
	if len(shown.document) > protocol.MaxPrompt {
		return used, errTooMuch
	}
	said, used, err := a.judge.ask(ctx, a.models.modelFor(ctx, bot), shown.document, shown.ids)
	if err != nil {
		return used, err
	}
	for i, id := range shown.ids {
		at := shown.shown[i]
		if _, own := shown.refused[at]; own {
			return used, failed("a call was both shown and refused")
		}
		o, there := said[id]
		if !there {
			return used, failed("a call without a verdict")
		}
		verdicts[at] = judged(o, a.redact)
	}
	return used, complete(verdicts)
}

// complete refuses verdicts of which one is missing.
func complete(verdicts []verdict) error {
	for i, v := range verdicts {
		if !v.allow && v.reason == "" {
			return failed("call %d was not shown", i+1)
		}
	}
	return nil
}

// answer sends the verdicts in order and, when they trip the breaker, stops the
// turn.
func (a *approver) answer(ctx context.Context, r *round, t *turn, m mark, verdicts []verdict) (calls []JudgedCall) {
	t.answering.Lock()
	defer t.answering.Unlock()
	stop := t.stop(m) // why the turn is stopped, or ""
	at := t.counts(m)
	for i := range r.calls {
		call, v := &r.calls[i], verdicts[i]
		if !v.allow && stop == "" {
			if after, outage := t.afterDenial(m, v); after.reached() {
				stop, at = after.stopSentence(outage), after
				v.reason = stop + " " + v.reason
			}
		}
		taken := t.send(!v.allow, func() (taken bool) {
			var done JudgedCall
			done, taken = a.send(ctx, call, v)
			calls = append(calls, done)
			return taken
		})
		if !taken && stop != "" {
			stop = t.stop(m) // "" when this one was to reach the limit
		}
	}
	if stop != "" && t.stopFor(stop) {
		a.stopTurn(ctx, r, stop)
		a.report(Broken{"breaker", r.bot, r.turn, at.inRow, at.recent})
	}
	return calls
}

// send answers one call. taken says that the daemon took the verdict.
func (a *approver) send(ctx context.Context, call *protocol.Approval, v verdict) (done JudgedCall, taken bool) {
	done = JudgedCall{CallID: call.CallID, Step: call.Step, Request: call.Request, Decision: protocol.Deny}
	said := client.Deny(v.reason)
	if v.allow {
		said, done.Decision = client.Allow(), protocol.Allow
	} else {
		done.Reason = &v.reason
	}
	said.By = answeredBy
	if _, err := a.server.Answer(ctx, call, said); err != nil {
		code := codeOf(err)
		done.Error = &code
		return done, false
	}
	return done, true
}

// stopTurn interrupts a turn and those that its bot queued for itself, which would go
// on where it was stopped. Those in line go first: the first of them begins as soon as
// the turn has ended. What is queued meanwhile goes after it. A turn that has ended
// already is fine.
func (a *approver) stopTurn(ctx context.Context, r *round, why string) {
	a.stopQueued(ctx, r, why)
	a.c.Interrupt(ctx, r.bot, r.turn, why)
	a.stopQueued(ctx, r, why)
}

func (a *approver) stopQueued(ctx context.Context, r *round, why string) {
	var own []int64
	for t, err := range a.c.Turns(ctx, r.bot, r.turn) {
		if err != nil {
			break
		}
		if !protocol.Finished(t.Status) && t.From != nil && t.From.Bot == r.bot && (r.botID == 0 || t.From.BotID == r.botID) {
			own = append(own, t.Turn)
		}
	}
	for _, turn := range own {
		a.c.Interrupt(ctx, r.bot, turn, why)
	}
}

// denials are the counts that a round was announced with: the highest of its
// calls, since those that waited already were announced apart.
func (r *round) denials(tag string) (most protocol.Denials) {
	for i, call := range r.calls {
		if d := call.Denials[tag]; i == 0 || d.InTurn > most.InTurn || d.InTurn == most.InTurn && d.Expired > most.Expired {
			most = d
		}
	}
	return most
}
