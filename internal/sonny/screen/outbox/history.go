package outbox

import (
	"context"
	"slices"
	"time"

	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/beside"
)

// sentHistory is what was sent in the project on screen, the newest first.
type sentHistory struct {
	project string
	list    []string
	unkept  []unsent // what is not in its file
}

// unsent is a text of the history that is not in its file yet.
type unsent struct {
	project, text string
	at            time.Time
}

// Sent is what was sent in the project that was read last, the newest first.
func (o *Outbox) Sent() []string { return slices.Clone(o.sent.list) }

// NthSent is one of Sent, from 0.
func (o *Outbox) NthSent(n int) (string, bool) {
	if n < 0 || n >= len(o.sent.list) {
		return "", false
	}
	return o.sent.list[n], true
}

// ReadSent reads what was sent in the project that is written in, where it is another than
// before.
func (o *Outbox) ReadSent(project string) {
	if project == "" || project == o.sent.project {
		return
	}
	o.sent.project, o.sent.list = project, nil
	beside.Do(o.screen, func(context.Context) ([]string, error) { return o.history.Sent(project) },
		func(list []string, err error) { o.tookSent(project, list, err) })
}

func (o *Outbox) tookSent(project string, list []string, err error) {
	switch {
	case err != nil:
		o.cannotKeep("what was sent", err)
	case project == o.sent.project:
		o.sent.list = slices.DeleteFunc(list, o.isCommand)
	}
}

// Remember keeps a text that was sent, or cleared away, as the newest of a project. A
// command that is recalled does not act, and must not reach the model either; so none is
// kept among messages.
func (o *Outbox) Remember(project, text string) {
	if !pen.Keeps(text) || o.isCommand(text) {
		return
	}
	o.sent.list = append([]string{text}, slices.DeleteFunc(o.sent.list, func(s string) bool { return s == text })...)
	o.addSent(unsent{project, text, o.now()})
}

// addSent writes a text into the history's file. Until it is there leaving sees to it.
func (o *Outbox) addSent(s unsent) {
	if len(o.sent.unkept) < pen.MaxEntries {
		o.sent.unkept = append(o.sent.unkept, s)
	}
	beside.Do(o.screen, func(context.Context) ([]string, error) { return o.history.Add(s.project, s.text, s.at) },
		func(list []string, err error) {
			if err == nil {
				o.sent.unkept = slices.DeleteFunc(o.sent.unkept, func(u unsent) bool { return u == s })
			}
			o.tookSent(s.project, list, err)
		})
}
