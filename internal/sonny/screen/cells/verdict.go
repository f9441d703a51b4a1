package cells

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"agent/client/termsafe"
	"agent/internal/approver"
	"agent/internal/sonny/screen/text"
	"agent/protocol"
)

// You is the label under which Sonny gives the person's verdicts.
const You = "person"

// autoTag is the gate that the automatic approver answers.
const autoTag = "auto"

// OutageWords are what a turn that ended for want of a judge is said to have ended by.
const OutageWords = "stopped: the approver does not answer"

// Outage reports whether a turn was ended because nobody judged its calls, and not for
// what was found (approvals.md 14).
func Outage(code *protocol.Code, detail string) bool {
	return code != nil && *code == protocol.ApprovalsUnserved || strings.HasPrefix(detail, "stopped: judge unavailable")
}

// breakerWords begin the reason of the denial at which the breaker stopped the turn.
const breakerWords = "stopped: "

// Unreviewed reports whether a denial's reason tells of a check that failed, and not of a
// verdict.
func Unreviewed(reason string) bool {
	if strings.HasPrefix(reason, breakerWords) {
		if _, rest, ok := strings.Cut(reason, ". "); ok {
			reason = rest
		}
	}
	return strings.HasPrefix(reason, "not reviewed")
}

// sayer puts one more word at the end of a line.
type sayer func(role text.Role, format string, args ...any)

// asking says that a verdict is awaited: from the judge, for how long, or from a person.
func asking(tags []string, since time.Duration, say sayer) {
	switch {
	case len(tags) == 0:
	case slices.Contains(tags, autoTag):
		say(text.Wait, "judging %s", Span(since))
	default:
		say(text.Need, "waiting")
	}
}

// judged reports whether the failure is a verdict's, which the line says already.
func (c *ToolCall) judged() bool {
	switch protocol.Code(c.failed) {
	case protocol.ApprovalDenied, protocol.ApprovalExpired, protocol.EscalationRefused:
		return true
	}
	return false
}

// refused reports whether the call ended without having run, by a gate's word.
func (c *ToolCall) refused() bool {
	return c.Denied || c.failed == string(protocol.ApprovalDenied) || c.failed == string(protocol.ApprovalExpired)
}

// verdict says who let the call run, or why it did not.
func (c *ToolCall) verdict(say sayer) {
	switch {
	case c.failed == string(protocol.EscalationRefused):
		say(text.Fail, "refused: no gate")
	case c.Expired || c.failed == string(protocol.ApprovalExpired):
		say(text.Wait, "expired, not run")
	case c.Overturned != "":
		say(text.Run, "allowed by %s", who("", &c.Overturned))
	case c.ByRule && c.Rule == "":
		say(text.Dim, "allowed by rule")
	case c.ByRule:
		say(text.Dim, "allowed by rule %s", c.Rule)
	case len(c.Judged) == 0 && c.refused():
		unattributed(c.why, say)
	default:
		verdicts(c.Judged, c.refused(), say)
	}
}

// unattributed is a denial of which only the reason is known, as after a restart.
func unattributed(reason string, say sayer) {
	switch {
	case Unreviewed(reason):
		say(text.Wait, "not reviewed, not run: %s", unreviewedWhy(reason))
	case reason == "":
		say(text.Fail, "denied")
	default:
		say(text.Fail, "denied: %s", approver.Finding(reason))
	}
}

// verdicts says each gate's word. A denial of the judge's that found nothing is said in
// other words and another colour than one that did.
func verdicts(list []protocol.Verdict, denied bool, say sayer) {
	for _, v := range list {
		switch by := who(v.Tag, v.By); {
		case v.By == nil && v.Tag == "":
			say(text.Dim, "allowed: no gate")
		case v.By == nil:
			say(text.Wait, "expired, not run")
		case denied && v.Decision == protocol.Allow:
			say(text.Dim, "allowed by %s", by)
		case denied && Unreviewed(v.Reason):
			say(text.Wait, "not reviewed, not run: %s", unreviewedWhy(v.Reason))
		case denied && v.Reason == "":
			say(text.Fail, "denied by %s", by)
		case denied:
			say(text.Fail, "denied by %s: %s", by, approver.Finding(v.Reason))
		case v.WaitedMS >= 100 && v.Tag == autoTag:
			say(text.Dim, "allowed by %s  %s", by, Span(time.Duration(v.WaitedMS)*time.Millisecond))
		default:
			say(text.Dim, "allowed by %s", by)
		}
	}
}

// unreviewedWhy is a failed check's reason without the words that the line has already.
func unreviewedWhy(reason string) string {
	if i := strings.Index(reason, "not reviewed"); i >= 0 {
		reason = reason[i:]
	}
	return approver.Finding(strings.TrimPrefix(strings.TrimPrefix(reason, "not reviewed"), ": "))
}

// who is who gave a verdict, in the screen's words.
func who(tag string, by *string) string {
	switch {
	case by == nil || *by == "" || *by == You:
		return "you"
	case tag == autoTag:
		return "judge"
	}
	return termsafe.OneLine(*by)
}

// line is a step's: what it does, and what was decided about it.
func (s *Step) line(now time.Time) text.Line {
	spans := []text.Span{{Text: "    " + termsafe.OneLine(s.Name), Role: text.Plain}}
	say := func(role text.Role, format string, args ...any) {
		spans = append(spans, text.Span{Text: "  " + termsafe.OneLine(fmt.Sprintf(format, args...)), Role: role})
	}
	asking(s.Asks, now.Sub(s.Asked), say)
	switch {
	case s.Overturned != "":
		say(text.Run, "allowed by %s", who("", &s.Overturned))
	case s.Decision == protocol.Expired:
		say(text.Wait, "expired, not run")
	case s.Decision == protocol.Deny && len(s.Judged) == 0:
		say(text.Fail, "denied: no gate")
	default:
		verdicts(s.Judged, s.Decision == protocol.Deny, say)
	}
	if s.Done && !s.OK {
		say(text.Fail, "✘ %s", s.Detail)
	}
	return text.Line{Spans: spans}
}

// Denial is a call, or a step of one, that ended denied.
type Denial struct {
	Turn       int64
	Call, Step string
	Request    int64  // 0 where it is not known
	Name       string // the tool's, or the action's
	Arguments  string // the call's; of a step none are known
	Words      string // what its line says of it
}

// Denied is the newest denial that ok lets through; nil for none.
func (t *Transcript) Denied(ok func(Denial) bool) *Denial {
	for i := len(t.cells) - 1; i >= 0; i-- {
		for j := len(t.cells[i].Calls) - 1; j >= 0; j-- {
			for _, d := range t.cells[i].Calls[j].denials(t.cells[i].Turn) {
				if ok(d) {
					return &d
				}
			}
		}
	}
	return nil
}

// denials are what of a call was denied, the newest first.
func (c *ToolCall) denials(turn int64) (out []Denial) {
	words := func(judge func(sayer)) string {
		var said []string
		judge(func(_ text.Role, format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
		return strings.Join(said, "  ")
	}
	if c.done && c.refused() {
		out = append(out, Denial{
			Turn: turn, Call: c.ID, Request: c.Request, Name: c.Name, Arguments: c.Arguments, Words: words(c.verdict),
		})
	}
	for i := len(c.Steps) - 1; i >= 0; i-- {
		s := &c.Steps[i]
		if s.Decision != protocol.Deny && s.Decision != protocol.Expired || len(s.Judged) == 0 {
			continue
		}
		out = append(out, Denial{
			Turn: turn, Call: c.ID, Step: s.ID, Request: s.Request, Name: s.Name,
			Words: words(func(say sayer) { verdicts(s.Judged, true, say) }),
		})
	}
	return out
}

// Exposed are protected paths that were replaced from outside while the call ran.
func (c *ToolCall) Exposed() []string {
	if c.shell == nil {
		return nil
	}
	return c.shell.Protected
}
