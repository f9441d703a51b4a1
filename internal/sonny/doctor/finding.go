package doctor

import (
	"fmt"
	"strings"

	"agent/internal/sonny/fault"
)

func okf(format string, args ...any) finding {
	return finding{status: OK, summary: fmt.Sprintf(format, args...)}
}

func skipf(format string, args ...any) finding {
	return finding{status: Skip, summary: fmt.Sprintf(format, args...)}
}

func warn(summary, remedy string) finding {
	return finding{status: Warn, summary: summary, remedy: remedy}
}

func failed(summary, remedy string) finding {
	return finding{status: Fail, summary: summary, remedy: remedy}
}

// with is a finding with more to it.
func (f finding) with(detail string) finding {
	f.detail = detail
	return f
}

// mend is a finding with a change that would help.
func (f finding) mend(m ...mend) finding {
	f.mends = append(f.mends, m...)
	return f
}

// parted is an error as a summary and a remedy: what the rooms say of themselves is "what
// is wrong; what to do".
func parted(err error) (summary, remedy string) {
	text := reason(err)
	summary, remedy, _ = strings.Cut(text, "; ")
	return summary, strings.TrimPrefix(remedy, "run: ")
}

// reason is an error's words without its code.
func reason(err error) string {
	return fault.Verb.Told(err).Detail
}

// faultOf is a finding of an error.
func faultOf(status Status, err error, remedy string) finding {
	summary, own := parted(err)
	if own != "" {
		remedy = own
	}
	return finding{status: status, summary: summary, remedy: remedy}
}

// counted is a number with its noun: "1 rule", "2 rules".
func counted(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "ch"):
		noun += "es"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// maxListed bounds what a detail lists by name.
const maxListed = 20

// listed are names as one text, the first of them where there are many.
func listed(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
