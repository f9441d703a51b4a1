package screen

import (
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/figures"
	"agent/internal/sonny/usage"
)

// newestTold bounds how many turns of a reading are told to a transcript that is open:
// those before were told as it was loaded.
const newestTold = 16

// toldOf tells the transcripts on screen what a bot's newest turns used.
func (a *App) toldOf(bot int64, turns []usage.Turn) {
	turns = turns[max(0, len(turns)-newestTold):]
	for _, s := range []*session{a.session, a.side} {
		if s != nil && s.id == bot && len(turns) > 0 {
			s.used = turns // a message may come after what its turn used
			a.tellUsed(s.tr, turns)
		}
	}
}

// tellUsed tells a transcript what turns used, which the reader shows (sonny.md 27).
func (a *App) tellUsed(tr *cells.Transcript, turns []usage.Turn) {
	for _, t := range turns {
		if !t.Began.IsZero() {
			tr.Used(t.ID, figures.Turn(a.o.Usage.Prices, t, a.o.Usage.NoCost))
		}
	}
}
