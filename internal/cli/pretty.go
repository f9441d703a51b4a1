package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"agent/client/items"
	"agent/client/termsafe"
	"agent/protocol"

	"golang.org/x/term"
)

// pretty shows a stream to a person (section 6): what the model and its tools
// say on stdout, what happens around it on stderr.
type pretty struct {
	app  *app
	link *link
	turn int64 // show this turn only; 0: all
	made bool  // the selected turn's bot was made by this command
	dim  bool  // stdout shows colour

	branch string // of the worktree that was made for the bot; "" for none

	text, thinking *termsafe.Writer
	mode           items.Kind       // what stdout is in the middle of: items.Assistant, items.Thinking or ""
	lineOpen       bool             // stdout's last line has no newline yet
	bot            string           // whose turn was shown last
	streamed       map[int64][]byte // by turn: text shown that no message has confirmed
	used           map[int64]protocol.Usage
	turns          map[int64]*callsOf
}

func (a *app) prettyView(l *link, made bool) *pretty {
	p := &pretty{
		app: a, link: l, made: made, dim: a.colour(), streamed: map[int64][]byte{},
		used: map[int64]protocol.Usage{}, turns: map[int64]*callsOf{},
	}
	p.text, p.thinking = termsafe.NewWriter(lines{p}), termsafe.NewWriter(lines{p})
	return p
}

// callsOf is what a turn's calls are at.
type callsOf struct {
	planned map[string]string // by call: its line, until it was shown
	open    int               // calls shown that have no result yet
	held    []*protocol.Event // deltas that came meanwhile
}

func (p *pretty) calls(turn int64) *callsOf {
	c := p.turns[turn]
	if c == nil {
		c = &callsOf{planned: map[string]string{}}
		p.turns[turn] = c
	}
	return c
}

// colour reports that stdout is a terminal that shows it.
func (a *app) colour() bool {
	f, ok := a.stdout.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// lines writes to stdout and knows whether a line is open there.
type lines struct{ p *pretty }

func (l lines) Write(b []byte) (int, error) {
	if len(b) > 0 {
		l.p.lineOpen = b[len(b)-1] != '\n'
	}
	if err := l.p.app.write(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// event shows one event.
func (p *pretty) event(ctx context.Context, e *protocol.Event) error {
	if p.turn != 0 && e.Turn != 0 && e.Turn != p.turn {
		return nil
	}
	if err := p.whose(e); err != nil {
		return err
	}
	switch e.Kind {
	case protocol.KindTextDelta, protocol.KindThinkingDelta:
		return p.delta(e)
	case protocol.KindMessage:
		return p.message(ctx, e)
	case protocol.KindToolStarted:
		return p.toolStarted(e)
	case protocol.KindToolCompleted:
		return p.toolCompleted(ctx, e)
	case protocol.KindToolRequested:
		return p.toolRequested(e)
	case protocol.KindApprovalRequested:
		return p.approvalRequested(ctx, e)
	case protocol.KindStepDecided:
		return p.stepDecided(e)
	case protocol.KindStepCompleted:
		return p.stepCompleted(e)
	case protocol.KindWebSearch:
		var w protocol.WebSearch
		if err := e.Decode(&w); err != nil || w.Query+w.URL == "" {
			return err
		}
		return p.dimLine("▸ web_search " + termsafe.OneLine(strings.TrimSpace(w.Query+" "+w.URL)))
	}
	return p.around(e)
}

// delta shows streamed text. The model answers only once its calls have their
// results, but a delta comes by a shorter way than they do: it is held until
// they were shown.
func (p *pretty) delta(e *protocol.Event) error {
	if c := p.calls(e.Turn); c.open > 0 {
		c.held = append(c.held, e)
		return nil
	}
	if e.Kind == protocol.KindThinkingDelta {
		return p.say(items.Thinking, p.thinking, e.Text())
	}
	p.streamed[e.Turn] = append(p.streamed[e.Turn], e.Text()...)
	return p.say(items.Assistant, p.text, e.Text())
}

// release shows what was held, unless a call is still open.
func (p *pretty) release(turn int64) error {
	c := p.calls(turn)
	if c.open > 0 {
		return nil
	}
	held := c.held
	c.held = nil
	for _, e := range held {
		if err := p.delta(e); err != nil {
			return err
		}
	}
	return nil
}

// whose marks where another bot's turn goes on, when several are shown.
func (p *pretty) whose(e *protocol.Event) error {
	if p.turn != 0 || e.Turn == 0 || e.Bot == p.bot {
		return nil
	}
	first := p.bot == ""
	p.bot = e.Bot
	if first {
		return nil
	}
	return p.dimLine("── " + termsafe.OneLine(e.Bot))
}

// say shows streamed text; a change between speaking and thinking begins a
// line.
func (p *pretty) say(mode items.Kind, f *termsafe.Writer, text string) error {
	if text == "" {
		return nil
	}
	if p.mode != mode {
		if err := p.endLine(); err != nil {
			return err
		}
		p.mode = mode
		if mode == items.Thinking && p.dim {
			if err := p.app.write([]byte("\x1b[2m")); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(f, text)
	return err
}

// endLine ends whatever stdout is in the middle of.
func (p *pretty) endLine() error {
	f := p.text
	if p.mode == items.Thinking {
		f = p.thinking
	}
	if err := f.Flush(); err != nil {
		return err
	}
	if p.mode == items.Thinking && p.dim {
		if err := p.app.write([]byte("\x1b[0m")); err != nil {
			return err
		}
	}
	p.mode = ""
	if !p.lineOpen {
		return nil
	}
	_, err := lines{p}.Write([]byte("\n"))
	return err
}

// line writes a line of its own to stdout, already safe.
func (p *pretty) line(text string) error {
	if err := p.endLine(); err != nil {
		return err
	}
	_, err := io.WriteString(lines{p}, text+"\n")
	return err
}

func (p *pretty) dimLine(text string) error {
	if p.dim {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	return p.line(text)
}

// note writes a line to stderr.
func (p *pretty) note(format string, args ...any) error {
	if err := p.endLine(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.app.stderr, "agent: "+format+"\n", args...)
	return err
}

// message makes sure that the text of a stored message was shown: deltas may
// be lost, and a replay has none. The message is the truth.
func (p *pretty) message(ctx context.Context, e *protocol.Event) error {
	var m protocol.Message
	if err := e.Decode(&m); err != nil {
		return err
	}
	item, err := p.link.Item(ctx, e.Bot, m.Node)
	if err != nil {
		return err
	}
	var text []byte
	for _, part := range items.Parts(item) {
		switch part.Kind {
		case items.Assistant:
			text = append(text, part.Text...)
		case items.Call:
			p.calls(e.Turn).planned[part.CallID] = callLine(part.Name, part.Text)
		}
	}
	seen := p.streamed[e.Turn]
	switch {
	case len(text) == 0:
		return nil
	case bytes.HasPrefix(seen, text):
		p.streamed[e.Turn] = seen[len(text):]
		return nil
	case len(seen) > 0:
		if err := p.note("some of the text was missed; it follows whole"); err != nil {
			return err
		}
	}
	delete(p.streamed, e.Turn)
	return p.say(items.Assistant, p.text, string(text))
}

// around are the events that stderr tells of.
func (p *pretty) around(e *protocol.Event) error {
	bot := termsafe.OneLine(e.Bot)
	switch e.Kind {
	case protocol.KindQueued:
		return p.note("%s turn %d waits in line", bot, e.Turn)
	case protocol.KindAccepted:
		return p.accepted(e)
	case protocol.KindUsage:
		return p.usage(e)
	case protocol.KindRetry:
		return p.retry(e)
	case protocol.KindModelFallback:
		var m protocol.ModelFallback
		if err := e.Decode(&m); err != nil {
			return err
		}
		return p.note("%s answers in place of %s", termsafe.OneLine(m.To), termsafe.OneLine(m.From))
	case protocol.KindTurnPaced:
		var m protocol.TurnPaced
		if err := e.Decode(&m); err != nil {
			return err
		}
		return p.note("%s turn %d is paced until %s", bot, e.Turn, time.UnixMilli(m.ResumeAtMS).Format(time.TimeOnly))
	case protocol.KindTurnWaiting:
		return p.waiting(e)
	case protocol.KindPaused, protocol.KindResumed:
		var m protocol.PauseInfo
		if err := e.Decode(&m); err != nil {
			return err
		}
		return p.note("%s by %s: %s", e.Kind, termsafe.OneLine(m.By), termsafe.OneLine(deref(m.Reason)))
	case protocol.KindScriptedModel:
		return p.note("%s is on a scripted model: its words are fixed", bot)
	case protocol.KindPruned:
		return p.note("older events of %s are gone", bot)
	case protocol.KindDeleted:
		return p.note("%s was deleted", bot)
	case protocol.KindReconnected:
		return p.note("connected again")
	case protocol.KindTurnFinished:
		return p.finished(e)
	}
	return nil
}

func (p *pretty) accepted(e *protocol.Event) error {
	var m protocol.Accepted
	if err := e.Decode(&m); err != nil {
		return err
	}
	made := ""
	if p.made {
		made = " (new bot)"
	}
	on := ""
	if p.branch != "" {
		on = " on " + termsafe.OneLine(p.branch)
	}
	return p.note("%s turn %d%s in %s%s", termsafe.OneLine(e.Bot), e.Turn, made, termsafe.OneLine(deref(m.Workspace)), on)
}

func (p *pretty) usage(e *protocol.Event) error {
	var u protocol.Usage
	if err := e.Decode(&u); err != nil {
		return err
	}
	sum := p.used[e.Turn]
	sum.InputTokens += u.InputTokens
	sum.CachedInputTokens += u.CachedInputTokens
	sum.OutputTokens += u.OutputTokens
	p.used[e.Turn] = sum
	return nil
}

// retry says that the model is asked again. What it had streamed is void.
func (p *pretty) retry(e *protocol.Event) error {
	var r protocol.Retry
	if err := e.Decode(&r); err != nil {
		return err
	}
	void := ""
	if len(p.streamed[e.Turn]) > 0 {
		void = "; the text above since the last message is void"
		delete(p.streamed, e.Turn)
	}
	return p.note("attempt %d in %v: %s%s", r.Attempt, time.Duration(r.DelayMS)*time.Millisecond, termsafe.OneLine(problem(r.Error, r.Detail)), void)
}

func problem(code protocol.Code, detail string) string {
	if detail == "" {
		return string(code)
	}
	return string(code) + " (" + detail + ")"
}

func (p *pretty) waiting(e *protocol.Event) error {
	var w protocol.TurnWaiting
	if err := e.Decode(&w); err != nil {
		return err
	}
	what := strings.Join(w.Handles, " ")
	switch {
	case w.Approval:
		what = "a verdict on " + w.CallID
	case w.Served:
		what = "the program that serves " + w.CallID
	}
	return p.note("%s turn %d waits for %s", termsafe.OneLine(e.Bot), e.Turn, termsafe.OneLine(what))
}

func (p *pretty) finished(e *protocol.Event) error {
	var f protocol.TurnFinished
	if err := e.Decode(&f); err != nil {
		return err
	}
	p.calls(e.Turn).open = 0
	if err := p.release(e.Turn); err != nil {
		return err
	}
	delete(p.turns, e.Turn)
	used := p.used[e.Turn]
	delete(p.used, e.Turn)
	delete(p.streamed, e.Turn)
	tokens := fmt.Sprintf("tokens in %d (cached %d) out %d", used.InputTokens, used.CachedInputTokens, used.OutputTokens)
	switch f.Status {
	case protocol.StatusCompleted:
		return p.note("✔ completed · %s", tokens)
	case protocol.StatusSteered:
		return p.note("✔ steered into turn %d", f.Into)
	}
	why := ""
	if f.Error != nil {
		detail := ""
		if f.Detail != nil {
			detail = *f.Detail
		}
		why = ": " + problem(*f.Error, detail)
	}
	return p.note("✘ %s · %s", termsafe.OneLine(f.Status+why), tokens)
}

// finish leaves the terminal at the beginning of a line.
func (p *pretty) finish() error { return p.endLine() }
