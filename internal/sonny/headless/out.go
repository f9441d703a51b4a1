package headless

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"agent/client/termsafe"
	"agent/internal/sonny/usage"
	"agent/protocol"
)

// Output says where events go and how they are told. It belongs to one goroutine.
type Output struct {
	Stdout, Stderr io.Writer

	JSON   bool // one object a line; stdout gets nothing else
	Deltas bool // of JSON: streamed text too
	Quiet  bool // of text: the final reply alone

	Terminal bool // stdout is one: what acts on it is escaped
	Colour   bool // stderr shows it

	Now func() time.Time // nil: time.Now

	bot    *string
	turn   *int64
	closed error // the first write to stdout that failed
	torn   bool  // that one wrote a part of what it was given
	sent   bool  // the result
}

// On names the bot and the turn that events are of from here on; 0 is no turn yet.
func (o *Output) on(bot string, turn int64) {
	o.bot, o.turn = &bot, nil
	if turn != 0 {
		o.turn = &turn
	}
}

func (o *Output) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// tell gives an event out. Once stdout has failed nothing more is written there.
func (o *Output) tell(e event) {
	h := e.head()
	h.V, h.Type, h.At, h.Bot, h.Turn = Version, e.kind(), stamp(o.now()), o.bot, o.turn
	if !o.JSON {
		o.text(e)
		return
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		panic("headless: " + err.Error()) // events hold nothing that JSON cannot
	}
	// A terminal that is shown this acts on nothing in it. The line break is ours to add.
	o.write(string(append(termsafe.AppendJSON(nil, bytes.TrimSuffix(line.Bytes(), []byte("\n"))), '\n')))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (o *Output) write(s string) {
	if o.closed == nil {
		var n int
		n, o.closed = io.WriteString(o.Stdout, s)
		o.torn = o.closed != nil && n > 0
	}
}

// OutputFailed is the code of a stdout that took not all that was written to it.
const OutputFailed protocol.Code = "output_failed"

// lost is the failure of a stdout that has its reader still, such as a file on a full
// disk; nil for none, and where the reader has gone: nobody is left to be told.
func (o *Output) lost() *Failure {
	if o.closed == nil || errors.Is(o.closed, syscall.EPIPE) {
		return nil
	}
	return &Failure{Code: OutputFailed, Detail: "standard output cannot be written: " + o.closed.Error() +
		"; what is missing there is in the session's history"}
}

// text tells an event to a person: replies on stdout, the rest on stderr, a line each.
func (o *Output) text(e event) {
	switch e := e.(type) {
	case *messageEvent:
		if !o.Quiet {
			o.reply(e.Text)
		}
	case *Result:
		o.ended(e)
	case *noteEvent:
		if e.fault || !o.Quiet {
			o.line("sonny: " + strings.TrimSuffix(e.Code+": "+e.Detail, ": "))
		}
	default:
		if o.Quiet {
			return
		}
		if line := told(e); line != "" {
			o.dim(line)
		}
	}
}

// reply prints a reply as it is; on a terminal what acts on one is escaped.
func (o *Output) reply(text string) {
	if text == "" {
		return
	}
	if o.Terminal {
		text = termsafe.Prose.Text(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	o.write(text)
}

// line says something on stderr, on one line.
func (o *Output) line(text string) { fmt.Fprintln(o.Stderr, termsafe.OneLine(text)) }

func (o *Output) dim(text string) {
	if !o.Colour {
		o.line(text)
		return
	}
	fmt.Fprintf(o.Stderr, "\x1b[2m%s\x1b[0m\n", termsafe.OneLine(text))
}

// told is an event in a line; "" for one that a person need not see.
func told(e event) string {
	switch e := e.(type) {
	case *sessionEvent:
		line := e.Session + " · " + e.Model + " · " + e.Row + " · " + e.Sandbox
		if e.Suggested {
			line += " · no model is set: this one is suggested"
		}
		return line
	case *toolStartedEvent:
		return strings.TrimRight("▸ "+e.Tool+"  "+e.Summary, " ")
	case *toolFinishedEvent:
		return finishedLine(e)
	case *approvalEvent:
		return approvalLine(e)
	case *waitEvent:
		return waitLine(e)
	case *taskEvent:
		return "task " + e.Task + ": " + e.Status
	}
	return ""
}

func finishedLine(e *toolFinishedEvent) string {
	switch {
	case e.Status == callOK:
		return ""
	case e.Exit != nil:
		return fmt.Sprintf("  %s: exit %d", e.Tool, *e.Exit)
	case e.Error != "":
		return "  " + e.Tool + ": " + e.Output
	}
	return "  " + e.Tool + ": " + e.Status
}

func approvalLine(e *approvalEvent) string {
	switch e.State {
	case waiting:
		return "  waits for " + e.By
	case expired:
		return "  expired, not run"
	}
	return strings.TrimSuffix("  "+e.State+" by "+e.By+": "+e.Reason, ": ")
}

func waitLine(e *waitEvent) string {
	switch e.what {
	case "steered":
		return fmt.Sprintf("joined turn %d", e.Into)
	case "paced":
		return "held up by the provider until " + e.ResumeAt
	case "waiting":
		return "waiting on " + strings.Join(e.Handles, ", ")
	}
	return e.what
}

// ended is the end of a run told as text.
func (o *Output) ended(r *Result) {
	if o.Quiet && (r.Status == Completed || r.Status == Denied) {
		o.reply(r.Text)
	}
	if r.Worktree != nil && r.Worktree.Kept && !o.Quiet {
		o.line("worktree " + r.Worktree.Path + " on branch " + r.Worktree.Branch)
	}
	if r.Status != Completed || r.Error != nil {
		why := r.Status
		if r.Error != nil {
			why = strings.TrimSuffix(string(r.Error.Code)+": "+r.Error.Detail, ": ")
			if r.Status != Failed && r.Status != string(r.Error.Code) {
				why = r.Status + ": " + why
			}
		}
		o.line("sonny: " + why)
	}
}

// note tells of something that stops nothing.
func (o *Output) note(code protocol.Code, detail string) {
	o.tell(&noteEvent{Code: string(code), Detail: detail})
}

// Refuse ends a run that never began, and gives its exit status.
func (o *Output) Refuse(err error) int {
	status, exit, failure := verdictOf(err)
	r := &Result{Status: status, Error: failure, Exit: exit}
	o.end(r)
	return r.Exit
}

// end gives the result out, once. One that stdout did not take, or that follows on what
// it did not take, is no success: stderr and the exit status say so.
func (o *Output) end(r *Result) {
	if o.sent {
		return
	}
	o.sent = true
	if r.Files == nil {
		r.Files = []FileChange{}
	}
	f := o.lost()
	if f != nil {
		r.spoil(f)
		o.again()
	}
	said := f != nil && r.Error == f && !o.JSON // telling the result says it
	o.tell(r)
	if late := o.lost(); late != nil {
		r.spoil(late)
		f, said = late, said && r.Error == f
	}
	if f != nil && !said {
		o.line("sonny: " + string(f.Code) + ": " + f.Detail)
	}
}

// again has stdout tried once more, on a line of its own: by the end there may be room.
func (o *Output) again() {
	torn := o.torn
	o.closed, o.torn = nil, false
	if o.JSON && torn {
		o.write("\n")
	}
}

// spoil makes a run that ended well fail, or was ended by nothing else but the failure.
func (r *Result) spoil(f *Failure) {
	if r.Exit == exitDone || r.Status == Interrupted && r.Exit == exitOutputGone {
		r.Status, r.Exit, r.Error = Failed, exitFailed, f
	}
}

// usageOf is a sum as events show it.
func usageOf(s *usage.Sum) Usage {
	u := Usage{Input: s.Input, Cached: s.Cached, Write: s.CacheWrite, Output: s.Output, Reasoning: s.Reasoning}
	if usd, ok := s.Priced(); ok {
		u.CostUSD = &usd
	}
	return u
}

// cut is the beginning of a text, at most n bytes of whole characters.
func cut(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n], true
}
