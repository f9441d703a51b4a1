package screen

import (
	"context"
	"reflect"
	"slices"

	"agent/internal/sonny/lead"
)

// NewLead is what config.toml, the folder and the command line say of a lead that is made.
type NewLead struct {
	Settings      lead.Settings
	Model, Effort string // "": none is set
}

// forNewLead changes a setting of the lead that the start screen makes. What the person
// changed holds over a config.toml that is read again.
func (a *App) forNewLead(change func(*lead.Settings)) {
	change(&a.o.Settings)
	a.start.changes = append(a.start.changes, change)
}

// alsoWritable lets the lead that is made write one more folder.
func (a *App) alsoWritable(folder string) {
	a.forNewLead(func(s *lead.Settings) { s.WritableRoots = append(slices.Clone(s.WritableRoots), folder) })
}

// readSettings reads the settings again, since a change of them holds for bots that are made
// after it (sonny.md 20). then hears whether they say something else than is on screen.
func (a *App) readSettings(then func(changed bool, err error)) {
	if a.o.NewLead == nil {
		then(false, nil)
		return
	}
	do(a, func(context.Context) (NewLead, error) { return a.o.NewLead() }, func(n NewLead, err error) {
		then(err == nil && a.takeNewLead(n), err)
	})
}

// takeNewLead takes settings that were read again, with what the person changed here.
func (a *App) takeNewLead(n NewLead) (changed bool) {
	if st := a.start; st != nil {
		for _, change := range st.changes {
			change(&n.Settings)
		}
		if st.model == a.o.Model { // it was not picked here
			st.model = n.Model
		}
		if st.effort == a.o.Effort {
			st.effort = n.Effort
		}
	}
	changed = !reflect.DeepEqual(n.Settings, a.o.Settings)
	a.o.Settings, a.o.Model, a.o.Effort = n.Settings, n.Model, n.Effort
	return changed
}
