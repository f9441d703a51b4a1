package approver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"agent/client"
	"agent/protocol"
)

const (
	workspaceOfJudges = "/"
	mostAttempts      = 2
	firstBackoff      = 250 * time.Millisecond
	// cleanupTime bounds the deletion of a judge's bot.
	cleanupTime = 5 * time.Second
	// mostBases bounds the judges' bots that wait, one for each model.
	mostBases = 64
)

// usage is what the judge's requests took.
type usage struct{ input, cached, output int64 }

// failure is why no judge's word counts for a round.
type failure struct {
	why    string // what the calls are denied for
	detail string // for the log: codes alone, nothing of the evidence
	again  bool   // one more try may help
}

func (f *failure) Error() string { return f.detail }

func failed(format string, args ...any) *failure {
	return &failure{why: checkFailed, detail: fmt.Sprintf(format, args...)}
}

// judges asks models through the daemon: for each model an idle bot that holds
// the policy, forked for every request (approvals.md 10).
type judges struct {
	c        *client.Client
	tag      string
	effort   string            // "": low where the model has it
	families map[string]string // of the daemon's providers

	cleaning sync.WaitGroup

	mu    sync.Mutex
	bases map[string]*base // by model
	own   map[string]bool  // the random parts of the names it made
}

func newJudges(c *client.Client, o *Options, ready *protocol.Ready) *judges {
	j := &judges{c: c, tag: o.Tag, effort: o.Reasoning, families: map[string]string{}, bases: map[string]*base{}, own: map[string]bool{}}
	for name, provider := range ready.Providers {
		j.families[name] = provider.Family
	}
	return j
}

// usable reports an error, Unusable where the settings are at fault, unless judges
// can be made: for the model that was named, if one was. What it makes to find out goes
// again: a daemon whose bots nobody has asked anything yet lists none of ours.
func (j *judges) usable(ctx context.Context, model string) error {
	longest := prefix(j.tag) + strings.Repeat("f", 16) + "." + strconv.FormatInt(1<<62, 10)
	if !protocol.ValidBotName(longest) {
		return Unusable{protocol.Fail(protocol.InvalidApprover, "--tag "+j.tag+": it is 1 to 80 of A-Z a-z 0-9 . _ -, since the judges' bots are named after it")}
	}
	if model == "" {
		return nil
	}
	b, err := j.make(ctx, model)
	if err != nil {
		if code := protocol.CodeOf(err); code == "" || code == protocol.DaemonDisconnected || ctx.Err() != nil {
			return err
		}
		return Unusable{err}
	}
	j.remove(ctx, b.name)
	return nil
}

// tidy deletes this approver's bots, as far as that takes no time.
func (j *judges) tidy() {
	ctx, cancel := context.WithTimeout(context.Background(), tidyingTime)
	defer cancel()
	j.sweep(ctx, true)
	done := make(chan struct{})
	go func() {
		j.cleaning.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// base is an idle bot with the policy and without a history.
type base struct {
	name  string
	id    int64
	model string
	forks int64
}

// ask has a model judge the calls of these ids, within ctx. A reply that cannot
// be read and a broken connection are tried once more, with a fresh judge.
func (j *judges) ask(ctx context.Context, model, document string, ids []string) (said map[string]opinion, used usage, err error) {
	for attempt := 1; ; attempt++ {
		var text string
		text, err = j.once(ctx, model, document, &used)
		if err == nil {
			if said, err = parseReply(text, ids); err == nil {
				return said, used, nil
			}
			err = &failure{why: checkFailed, detail: "the reply is not what the schema says: " + err.Error(), again: true}
		}
		var f *failure
		if errors.As(err, &f) && f.again && attempt < mostAttempts && pause(ctx, firstBackoff) {
			continue
		}
		return nil, used, err
	}
}

// pause waits and reports whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// once is one request to a fresh judge, and its reply when nobody else spoke.
func (j *judges) once(ctx context.Context, model, document string, used *usage) (string, error) {
	judge, err := j.fork(ctx, model)
	if err != nil {
		return "", err
	}
	sub, err := j.c.Submit(ctx, &protocol.Submit{
		Bot: judge.Name, BotID: judge.ID, RequestID: rand.Text(), Prompt: document, Delivery: protocol.Queue,
	})
	if err != nil {
		j.discard(judge)
		return "", refused(ctx, "submit", err)
	}
	defer j.discard(judge)
	outcome, err := j.wait(ctx, sub)
	if err != nil {
		return "", err
	}
	turn, err := j.verify(ctx, judge, model, sub, document, outcome)
	if turn != nil {
		used.input += turn.InputTokens
		used.cached += turn.CachedInputTokens
		used.output += turn.OutputTokens
	}
	if err != nil {
		return "", err
	}
	return outcome.Text, nil
}

// refused is a request of the approver that the daemon did not answer as it
// should.
func refused(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return timedOut()
	}
	return failed("%s: %s", doing, codeOf(err))
}

func timedOut() *failure { return &failure{why: checkTimedOut, detail: "no reply before the deadline"} }

// codeOf names an error without its text, which may quote what was asked.
func codeOf(err error) string {
	if code := protocol.CodeOf(err); code != "" {
		return string(code)
	}
	return "no answer"
}

// wait gives the outcome of a judge's turn that completed.
func (j *judges) wait(ctx context.Context, sub *protocol.Submitted) (*protocol.Outcome, error) {
	waited, err := j.c.Wait(ctx, &protocol.Wait{Handles: []string{sub.Handle}})
	if ctx.Err() != nil {
		return nil, j.late(sub)
	}
	if err != nil {
		return nil, refused(ctx, "wait", err)
	}
	outcome := waited.Results[sub.Handle].Turn
	switch {
	case outcome == nil:
		return nil, failed("wait: no outcome")
	case outcome.Status != protocol.StatusCompleted:
		return nil, ended(outcome)
	case outcome.TextTruncated:
		return nil, &failure{why: checkFailed, detail: "the reply is too long", again: true}
	}
	return outcome, nil
}

// late is why a judge's turn did not end in time: the provider held it back, or it
// took too long.
func (j *judges) late(sub *protocol.Submitted) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	outcome, err := j.c.Result(ctx, sub.Bot, sub.Turn)
	if err == nil && outcome.Status == protocol.StatusPaced {
		return &failure{why: overloaded, detail: "the provider holds the judge back"}
	}
	return timedOut()
}

// passing are the ends of a turn that another try may not have: those that the
// daemon tries again itself, and a reply that the provider cut.
var passing = regexp.MustCompile(`^(provider_rate_limited|provider_http_(429|5\d\d)|provider_connection_.*|provider_stream_(failed|stalled)|` +
	`truncated_sse_frame|missing_completion|provider_admission_timeout|provider_socket_expired|provider_login_refreshed|provider_incomplete|empty_completion)$`)

// ended is a judge's turn that did not complete. Where the provider named a delay
// the daemon has kept it, and the turn was paced for so long.
func ended(o *protocol.Outcome) error {
	code := protocol.Code(o.Status)
	if o.Error != nil {
		code = *o.Error
	}
	f := &failure{why: checkFailed, detail: "the judge's turn: " + string(code), again: passing.MatchString(string(code))}
	if code == "provider_rate_limited" || code == "provider_http_429" || code == "provider_admission_timeout" {
		f.why = overloaded
	}
	return f
}

// verify reports an error unless all that the judge's bot holds is the approver's
// one prompt and the reply to it: any bot without a sandbox may speak to any
// other, and what such a bot brought about is no verdict.
func (j *judges) verify(ctx context.Context, judge *protocol.Bot, model string, sub *protocol.Submitted, document string, outcome *protocol.Outcome) (*protocol.Turn, error) {
	var only *protocol.Turn
	for turn, err := range j.c.Turns(ctx, judge.Name, 0) {
		switch {
		case err != nil:
			return only, refused(ctx, "turns", err)
		case only != nil || turn.Turn != sub.Turn:
			return only, failed("someone else spoke to the judge")
		}
		only = turn
	}
	switch {
	case only == nil:
		return nil, failed("the judge's turn is gone")
	case only.ModelRounds != 1 || only.From != nil || only.Origin != "" || only.Status != protocol.StatusCompleted || only.Model != model:
		return only, failed("the judge's turn is not the approver's alone")
	}
	prompts, err := j.c.Prompts(ctx, judge.Name, sub.Turn, 0)
	if err != nil {
		return only, refused(ctx, "prompts", err)
	}
	if !onlyPrompt(prompts, document) {
		return only, failed("someone else spoke to the judge")
	}
	nodes := new(protocol.NodePage)
	if err := j.c.Do(ctx, protocol.OpHistoryNodes, &protocol.HistoryNodes{Bot: judge.Name}, nodes); err != nil {
		return only, refused(ctx, "history_nodes", err)
	}
	if nodes.NextFrom != nil || len(nodes.Nodes) < 2 {
		return only, failed("the judge's history is not one prompt and its reply")
	}
	for _, node := range nodes.Nodes {
		if node.Turn != sub.Turn {
			return only, failed("the judge's history is not one prompt and its reply")
		}
	}
	record, err := j.c.Inspect(ctx, judge.Name)
	if err != nil {
		return only, refused(ctx, "inspect", err)
	}
	if record.ID != judge.ID || !asMade(record, model) || record.Head == nil || outcome.Checkpoint == nil || *record.Head != *outcome.Checkpoint {
		return only, failed("the judge's bot was changed")
	}
	return only, nil
}

// onlyPrompt reports that a turn was asked the document and nothing else. A text
// that the answer cuts is known by its size and its beginning.
func onlyPrompt(p *protocol.Prompts, document string) bool {
	if len(p.Prompts) != 1 || len(p.Earlier) != 0 || p.More || len(p.Calls) != 0 {
		return false
	}
	one := p.Prompts[0]
	return one.From == nil && one.Origin == "" && one.Bytes == int64(len(document)) && strings.HasPrefix(document, one.Text)
}

// fork is a judge's bot for one request. A base that is not as it was made is
// never asked again.
func (j *judges) fork(ctx context.Context, model string) (*protocol.Bot, error) {
	for range mostAttempts {
		b, err := j.base(ctx, model)
		if err != nil {
			return nil, err
		}
		record, err := j.c.Inspect(ctx, b.name)
		if err == nil && record.ID == b.id && untouched(record, model) {
			name := b.name + "." + strconv.FormatInt(j.number(b), 10)
			judge, err := j.c.Fork(ctx, &protocol.Fork{Source: b.name, Bot: name, Workspace: workspaceOfJudges, Closed: protocol.Set(true)})
			switch {
			case err == nil && untouched(judge, model):
				return judge, nil
			case err == nil:
				j.discard(judge)
			case ctx.Err() != nil:
				return nil, timedOut()
			}
		}
		if ctx.Err() != nil {
			return nil, timedOut()
		}
		j.forget(b)
	}
	return nil, failed("the judge's bot does not stay as it was made")
}

// untouched reports that a bot is as the approver makes its judges, and that nothing
// was said to it yet.
func untouched(b *protocol.Bot, model string) bool {
	return asMade(b, model) && b.Head == nil && b.RunningTurn == nil
}

// asMade reports that a bot is what the approver makes its judges to be: its own
// words, nobody's creature, the model that was chosen, nothing it could do, and no
// setting that would have the model see less than it is sent.
func asMade(b *protocol.Bot, model string) bool {
	settings, err := protocol.Append(nil, b.Settings)
	return err == nil && string(settings) == "{}" && b.Instructions == instructions() && b.ModelRef() == model &&
		b.CreatedBy == nil && b.CreatedByID == nil && b.Closed && !b.Fallbacks &&
		len(b.Tools) == 0 && len(b.ClientTools) == 0 && len(b.Gates) == 0 &&
		b.Note == nil && b.Compaction == nil && b.Elision == nil && b.CompactionInstructions == nil
}

func (j *judges) number(b *base) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	b.forks++
	return b.forks
}

// base is the idle bot of a model, made when there is none.
func (j *judges) base(ctx context.Context, model string) (*base, error) {
	j.mu.Lock()
	b := j.bases[model]
	j.mu.Unlock()
	if b != nil {
		return b, nil
	}
	b, err := j.make(ctx, model)
	if err != nil {
		return nil, refused(ctx, "the judge's bot", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if other := j.bases[model]; other != nil { // made at the same time
		j.clean(func(ctx context.Context) { j.c.Delete(ctx, b.name) })
		return other, nil
	}
	for other, old := range j.bases {
		if len(j.bases) < mostBases {
			break
		}
		delete(j.bases, other)
		j.clean(func(ctx context.Context) { j.c.Delete(ctx, old.name) })
	}
	j.bases[model] = b
	return b, nil
}

// make makes a base under a name that nobody can know before.
func (j *judges) make(ctx context.Context, model string) (*base, error) {
	var random [8]byte
	rand.Read(random[:])
	part := hex.EncodeToString(random[:])
	name := prefix(j.tag) + part
	effort := j.effort
	if provider, id, _ := protocol.ParseModelRef(model); effort == "" {
		effort = effortFor(j.families[provider], id)
	}
	j.mu.Lock()
	j.own[part] = true
	j.mu.Unlock()
	bot, err := j.c.Create(ctx, &protocol.Create{
		Bot: name, Model: model, Instructions: instructions(), Tools: []string{}, Workspace: workspaceOfJudges,
		Reasoning: effort, Closed: true,
	})
	if err != nil {
		return nil, err
	}
	return &base{name: name, id: bot.ID, model: model}, nil
}

// forget drops a base that is not as it was made.
func (j *judges) forget(b *base) {
	j.mu.Lock()
	if j.bases[b.model] == b {
		delete(j.bases, b.model)
	}
	j.mu.Unlock()
	j.clean(func(ctx context.Context) { j.remove(ctx, b.name) })
}

// discard deletes a fork and does not wait for it.
func (j *judges) discard(judge *protocol.Bot) {
	j.clean(func(ctx context.Context) { j.remove(ctx, judge.Name) })
}

// clean does what may outlast a round, in the background and for a bounded time.
func (j *judges) clean(do func(context.Context)) {
	j.cleaning.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
		defer cancel()
		do(ctx)
	})
}

// remove deletes a judge's bot, ending what it still does. What cannot be deleted
// is left to the next holder's sweep.
func (j *judges) remove(ctx context.Context, name string) {
	for range 3 {
		_, err := j.c.Delete(ctx, name)
		if protocol.CodeOf(err) != protocol.BotBusy {
			return
		}
		for turn, err := range j.c.Turns(ctx, name, 0) {
			if err != nil {
				return
			}
			if !protocol.Finished(turn.Status) {
				j.c.Interrupt(ctx, name, turn.Turn, "the approver does not wait for it")
				j.c.Wait(ctx, &protocol.Wait{Handles: []string{fmt.Sprintf("turn:%s/%d", name, turn.Turn)}})
			}
		}
	}
}

// prefix is how the names of a tag's judges begin.
func prefix(tag string) string { return "approver." + tag + "." }

// judgeName tells the names that approvers give their bots: the random part of a
// base, and behind it a fork's number.
var judgeName = regexp.MustCompile(`^[0-9a-f]{16}(\.[0-9]+)?$`)

// sweep deletes what approvers of the tag left behind: bots under their names that
// have no tools. own says whose: this approver's, or those of others.
func (j *judges) sweep(ctx context.Context, own bool) {
	var names []string
	for bot, err := range j.c.Bots(ctx) {
		if err != nil {
			break
		}
		rest, ok := strings.CutPrefix(bot.Name, prefix(j.tag))
		if ok && judgeName.MatchString(rest) && len(bot.Tools) == 0 && j.isOwn(rest) == own {
			names = append(names, bot.Name)
		}
	}
	for _, name := range names {
		j.remove(ctx, name)
	}
}

func (j *judges) isOwn(rest string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	part, _, _ := strings.Cut(rest, ".")
	return j.own[part]
}
