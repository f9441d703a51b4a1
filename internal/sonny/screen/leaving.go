package screen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/pen"
)

// unsent is a text of the history that is not in its file yet.
type unsent struct {
	project, text string
	at            time.Time
}

// leave ends Sonny on the person's word, when what they wrote is saved. Where that fails
// the first time says what would be lost, and the second one leaves (sonny.md 30).
func (a *App) leave() {
	saves := a.unsavedNow()
	if a.keeping.warned || len(saves) == 0 {
		a.quit = true
		return
	}
	do(a, func(context.Context) (struct{}, error) {
		var failed error
		for _, save := range saves {
			failed = errors.Join(failed, save())
		}
		return struct{}{}, failed
	}, func(_ struct{}, err error) {
		if err == nil {
			a.quit = true
			return
		}
		a.keeping.warned = true
		a.notes.fail(fmt.Errorf("leave again to lose what you wrote: it cannot be saved, %s", cmp.Or(fault.Cause(err), fault.Screen.Words(err))))
	})
}

// unsavedNow are the saves of all that leaving would lose: what is written, put aside or
// held in the composers on screen, and what the history's file lacks.
func (a *App) unsavedNow() (saves []func() error) {
	for _, c := range a.writing() {
		if c.file == "" || a.kept(c).Empty() {
			continue
		}
		saves = append(saves, a.saving(c.file))
	}
	for _, s := range a.keeping.sent {
		saves = append(saves, func() error {
			_, err := a.pen.history.Add(s.project, s.text, s.at)
			return err
		})
	}
	return saves
}

// addSent writes a text into the history's file. Until it is there leaving sees to it.
func (a *App) addSent(s unsent) {
	if len(a.keeping.sent) < pen.MaxEntries {
		a.keeping.sent = append(a.keeping.sent, s)
	}
	do(a, func(context.Context) ([]string, error) { return a.pen.history.Add(s.project, s.text, s.at) },
		func(list []string, err error) {
			if err == nil {
				a.keeping.sent = slices.DeleteFunc(a.keeping.sent, func(o unsent) bool { return o == s })
			}
			a.tookHistory(s.project, list, err)
		})
}
