package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"agent/client/termsafe"
	"agent/internal/approver"
	"agent/protocol"
)

var approverVerb = verb{
	name: "approver", short: "judge the calls of bots by a model",
	long: "Serves a tag: sends every call that waits for it to a judge model, through the\n" +
		"daemon, and denies what that calls dangerous or unclear and what could not be\n" +
		"judged. It goes on until it is stopped or another program takes the tag.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		f := &approverFlags{app: a, common: a.common(t)}
		t.filled(&f.tag, "tag", "TAG", "the tag to serve; default auto")
		t.filled(&f.judge, "judge", "P/M", "PROVIDER/MODEL of the judge; default AGENT_APPROVER_JUDGE, else judge_model in config.toml, else a small model of the bot's provider, else the bot's own")
		t.choice(&f.reasoning, "reasoning", "how long the judge thinks; default low where the model has it", reasoningLevels...)
		t.path(&f.note, "note", "FILE", "what the judge is always told of your surroundings, at most 8192 bytes; default AGENT_APPROVER_NOTE, else judge_note in config.toml")
		return f.run
	},
}

// approverFlags are one approver under way.
type approverFlags struct {
	app                         *app
	common                      *common
	tag, judge, reasoning, note string
}

// run serves the tag. Its exit status is 0 when the tag went to another or it was
// told to stop, 1 when the daemon or the session went away, 2 for settings that it
// cannot use.
func (f *approverFlags) run(ctx context.Context, _ []string) error {
	if inside() {
		return protocol.Fail(protocol.InsideABot, "approver judges what bots do, and a bot's shell runs it; ask the person")
	}
	o, err := f.options()
	if err != nil {
		return f.unusable(err)
	}
	l, err := f.app.connect(ctx, f.common, nil, startNever)
	if err != nil {
		return err
	}
	defer l.Close()
	f.app.endsWell = true
	var unwritten error
	ctx, stop := context.WithCancel(f.app.watchOutput(ctx))
	defer stop()
	o.Report = func(line any) {
		if err := f.app.printLine(line); err != nil && unwritten == nil {
			unwritten = err
			stop()
		}
	}
	err = approver.Serve(ctx, l.Client, *o)
	var settings approver.Unusable
	switch code := protocol.CodeOf(err); {
	case unwritten != nil:
		return unwritten
	case errors.Is(context.Cause(ctx), errOutputClosed):
		return errOutputClosed
	case endedBy(ctx) != nil, code == protocol.ApprovalsLost:
		return nil
	case errors.As(err, &settings):
		return f.unusable(err)
	}
	return err
}

// unusable says what is wrong with the settings and ends with 2.
func (f *approverFlags) unusable(err error) error {
	f.app.say(err)
	return exit(2)
}

// printLine prints one of the approver's lines.
func (a *app) printLine(line any) error {
	object, err := protocol.Append(nil, line)
	if err != nil {
		return err
	}
	return a.write(append(termsafe.AppendJSON(nil, object), '\n'))
}

// options are the line's, then the environment's, then config.toml's.
func (f *approverFlags) options() (*approver.Options, error) {
	config, err := readJudgeConfig()
	if err != nil {
		return nil, err
	}
	o := &approver.Options{Tag: cmp.Or(f.tag, approvalAuto), Reasoning: f.reasoning, Deadline: config.deadline}
	judges := []struct{ source, model string }{
		{"--judge", f.judge}, {"AGENT_APPROVER_JUDGE", os.Getenv("AGENT_APPROVER_JUDGE")}, {config.path + ": judge_model", config.model},
	}
	for _, named := range judges {
		if named.model == "" {
			continue
		}
		if err := checkModel(named.source, named.model); err != nil {
			return nil, err
		}
		o.Judge = named.model
		break
	}
	if path := cmp.Or(f.note, os.Getenv("AGENT_APPROVER_NOTE"), config.note); path != "" {
		if o.Note, err = readNote(path); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// approverServes is how the tag of an automatic gate comes to be served: by
// whoever does already, by the daemon's companion of that name, or by an approver
// that is started here, in a session of its own.
func (a *app) approverServes(ctx context.Context, l *link) error {
	if inside() {
		return nil // the person's part: an unserved gate expires and denies
	}
	served, err := l.serves(ctx, approvalAuto)
	if err != nil || served {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, approverWindow)
	defer cancel()
	companions, err := l.Companions(ctx)
	if err != nil && protocol.CodeOf(err) != protocol.CompanionsUnavailable {
		return err
	}
	for i := range companions {
		if companions[i].Name == "approver" {
			return l.awaitServed(ctx, nil, companions[i].Log)
		}
	}
	child, err := startApprover(l.target)
	if err != nil {
		return protocol.Fail(protocol.ApproverUnavailable, "the approver could not be started: "+err.Error())
	}
	return l.awaitServed(ctx, child, child.log)
}

const (
	approverWindow = 10 * time.Second
	servedEvery    = 50 * time.Millisecond
)

// serves reports whether somebody serves a tag.
func (l *link) serves(ctx context.Context, tag string) (bool, error) {
	stats, err := l.Stats(ctx)
	if err != nil {
		return false, err
	}
	for _, served := range stats.Approvers {
		if served == tag {
			return true, nil
		}
	}
	return false, nil
}

// awaitServed waits until the automatic approver's tag is served. child is the one
// that was started for it, nil for a companion.
func (l *link) awaitServed(ctx context.Context, child *approverChild, log string) error {
	tick := time.NewTicker(servedEvery)
	defer tick.Stop()
	var exited <-chan struct{}
	if child != nil {
		exited = child.exited
	}
	for {
		gone := false
		select {
		case <-ctx.Done():
			if endedBy(ctx) != nil {
				return context.Cause(ctx)
			}
			child.end()
			return unserved("none serves the tag auto within 10 s; its log is "+log, child)
		case <-exited:
			gone, exited = true, nil
		case <-tick.C:
		}
		served, err := l.serves(ctx, approvalAuto)
		switch {
		case served:
			return nil
		case err != nil && ctx.Err() == nil:
			return err
		case gone: // nor has another taken it before
			return unserved("the approver ended at once; its log is "+log, child)
		}
	}
}

func unserved(what string, child *approverChild) error {
	if said := child.lastLine(); said != "" {
		what += ", which ends: " + said
	}
	return protocol.Fail(protocol.ApproverUnavailable, what)
}

// automatic reports that a bot's gates have one that the automatic approver
// answers.
func automatic(b *protocol.Bot) bool {
	for _, gate := range b.Gates {
		if gate.Tag == approvalAuto {
			return true
		}
	}
	return false
}
