package usage

import (
	"regexp"
	"strconv"

	"agent/client/modelsfile"
	"agent/protocol"
)

// Level says how full a context is.
type Level uint8

// The levels, and the shares at which they begin, in percent.
const (
	Ample  Level = iota
	Filled       // from 70
	Full         // from 90

	filledAt = 70
	fullAt   = 90
)

// Meter is how much of a model's window the newest call filled (sonny.md 27): never a
// sum over calls.
type Meter struct {
	Tokens int64 // of the newest call's input, cached ones included
	Window int64 // tokens; 0 where it is not known
}

// Percent is the share of the window, 0 to 100; false where the window is not known.
func (m Meter) Percent() (share int, ok bool) {
	if m.Window <= 0 {
		return 0, false
	}
	return int(min(m.Tokens*100/m.Window, 100)), true
}

// Level is how full the context is; Ample where the window is not known.
func (m Meter) Level() Level {
	share, ok := m.Percent()
	switch {
	case !ok || share < filledAt:
		return Ample
	case share < fullAt:
		return Filled
	}
	return Full
}

// After is the meter once a call was reported. What is no call for the bot's own context,
// a summary or a refresh of the cache, changes nothing.
func (m Meter) After(u *protocol.Usage) Meter {
	if u.Purpose == "" {
		m.Tokens = u.InputTokens
	}
	return m
}

// noted is the context figure of a models file's note.
var noted = regexp.MustCompile(`(?:^|[^\w.,])(\d[\d_,]*)([kKmM]?) (?:tokens of )?context\b`)

// Windows are the context windows of the models in a models file that has them in its
// notes, by PROVIDER/MODEL, in tokens.
func Windows(models []modelsfile.Model) map[string]int64 {
	out := map[string]int64{}
	for _, m := range models {
		if n := Window(m.Note); n > 0 {
			out[m.ID] = n
		}
	}
	return out
}

// separators may stand between the digits of a figure.
var separators = regexp.MustCompile(`[_,]`)

// Window is the context window that a note of the models file tells, in tokens; 0 for
// none.
func Window(note string) int64 {
	found := noted.FindStringSubmatch(note)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseInt(separators.ReplaceAllString(found[1], ""), 10, 64)
	if err != nil || n > 1<<40 {
		return 0
	}
	switch found[2] {
	case "k", "K":
		return n * 1000
	case "m", "M":
		return n * 1_000_000
	}
	return n
}
