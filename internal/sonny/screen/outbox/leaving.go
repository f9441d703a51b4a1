package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"agent/internal/sonny/fault"
	"agent/internal/sonny/screen/beside"
)

// End calls quit when what the person wrote is saved. Where that fails the first time says
// what would be lost, and the second one quits (sonny.md 30).
func (o *Outbox) End(quit func()) {
	saves := o.unsavedNow()
	if o.keeping.warned || len(saves) == 0 {
		quit()
		return
	}
	beside.Do(o.screen, func(context.Context) (struct{}, error) {
		var failed error
		for _, save := range saves {
			failed = errors.Join(failed, save())
		}
		return struct{}{}, failed
	}, func(_ struct{}, err error) {
		if err == nil {
			quit()
			return
		}
		o.keeping.warned = true
		o.screen.Fail(fmt.Errorf("leave again to lose what you wrote: it cannot be saved, %s", cmp.Or(fault.Cause(err), fault.Screen.Words(err))))
	})
}

// unsavedNow are the saves of all that leaving would lose: what is written, put aside or
// held in the composers on screen, and what the history's file lacks.
func (o *Outbox) unsavedNow() (saves []func() error) {
	for _, b := range o.screen.Boxes() {
		if b.file == "" || o.contents(b).Empty() {
			continue
		}
		saves = append(saves, o.saving(b.file))
	}
	for _, s := range o.sent.unkept {
		saves = append(saves, func() error {
			_, err := o.history.Add(s.project, s.text, s.at)
			return err
		})
	}
	return saves
}
