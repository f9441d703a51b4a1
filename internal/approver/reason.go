package approver

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// verdict is what is answered for one call.
type verdict struct {
	allow    bool
	reason   string // of a denial; what the model reads
	reviewed bool   // false: no judge has spoken on it
}

// Why a call was not reviewed (approvals.md 13).
const (
	checkFailed   = "not reviewed: the check failed"
	checkTimedOut = "not reviewed: the check timed out"
	overloaded    = "not reviewed: the approver is overloaded"
	tooMuch       = "not reviewed: too much to show"
)

// What every reason ends with: what to do next, since the model reads it.
const (
	afterJudged = "Do not seek the same effect another way. Use a safer way, or end the turn saying what is needed, so that the person can name the action in a message."
	afterCheck  = "This is a failure of the check, not a finding about the action; it may be tried once more."
)

// Finding is a reason without what it tells the model to do next: what a person reads.
func Finding(reason string) string {
	for _, after := range []string{afterJudged, afterCheck} {
		reason = strings.TrimSuffix(reason, " "+after)
	}
	return reason
}

// notReviewed is the denial of a call that no judge has spoken on.
func notReviewed(why string) verdict {
	return verdict{reason: sentence(why) + " " + afterCheck}
}

// judged is the answer that an opinion comes to.
func judged(o opinion, redact func(string) string) verdict {
	if o.allows() {
		return verdict{allow: true, reviewed: true}
	}
	kind := "judged dangerous: "
	if o.outcome == unclear {
		kind = "judged unclear: "
	}
	return verdict{reason: kind + sentence(rationale(o.rationale, redact)) + " " + afterJudged, reviewed: true}
}

func sentence(text string) string {
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// maxRationale is how much of the judge's words travels on, in characters.
const maxRationale = 500

// rationale is the judge's words as one line of plain text: the model, the
// record and every client get them.
func rationale(text string, redact func(string) string) string {
	text = strings.Join(strings.Fields(strings.Map(plain, strings.ToValidUTF8(text, "�"))), " ")
	text = strings.TrimSpace(clip(redact(text), maxRationale))
	if text == "" {
		return "no reason given"
	}
	return text
}

// plain drops what a reader cannot see or a terminal acts on. What breaks a line
// becomes a blank. It comes before the redaction, so that nothing unseen splits
// a secret.
func plain(r rune) rune {
	switch {
	case r == '\n', r == '\r', r == '\t', r == '\v', r == '\f', r == 0x85, r == 0x2028, r == 0x2029:
		return ' '
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r):
		return -1
	}
	return r
}

// clip cuts text to at most n characters.
func clip(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
