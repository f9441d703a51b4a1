package whereabouts

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agent/internal/sonny/host/panes"
)

// still is a screen on which what runs beside the loop, and what comes later, is when the
// test says so.
type still struct {
	work   []func(context.Context) func()
	later  []func()
	failed []error
}

func (s *still) Beside(work func(context.Context) func()) { s.work = append(s.work, work) }
func (s *still) After(_ time.Duration, call func())       { s.later = append(s.later, call) }
func (s *still) Fail(err error)                           { s.failed = append(s.failed, err) }

func (s *still) settle(t *testing.T) {
	for len(s.work) > 0 {
		work := s.work[0]
		s.work = s.work[1:]
		work(t.Context())()
	}
}

func read(t *testing.T, kept string) panes.Record {
	t.Helper()
	list, err := panes.All(kept, "store")
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	return list[0]
}

func TestWhatOthersReadOfAScreen(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "sonny")
	if err := os.Mkdir(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &still{}
	at := time.Now().Add(time.Minute).Round(0) // after the record began
	r := In(kept, s, func() time.Time { return at })
	state := State{Store: "store", BotID: 7, Key: at}
	r.Note(state)
	s.settle(t)
	if got := read(t, kept); got.BotID != 7 || got.Store != "store" || !got.Looked.Equal(at) || !got.Since.Equal(at) {
		t.Errorf("at first %+v", got)
	}

	state.Key = at.Add(time.Second)
	r.Note(state)
	state.Key = at.Add(2 * time.Second)
	r.Note(state)
	if len(s.work) != 0 || len(s.later) != 1 || !r.Looked().Equal(state.Key) {
		t.Fatalf("keys are not gathered: %d writes, %d later; looked at %v", len(s.work), len(s.later), r.Looked())
	}
	s.later[0]()
	s.settle(t)
	if got := read(t, kept); !got.Looked.Equal(state.Key) || !got.Since.Equal(at) {
		t.Errorf("after keys %+v", got)
	}

	state.Tells, state.Focused, state.Key = true, at.Add(3*time.Second), at.Add(9*time.Second)
	r.Note(state)
	s.settle(t)
	if got := read(t, kept); !got.Looked.Equal(state.Focused) || !r.Looked().Equal(state.Focused) {
		t.Errorf("the terminal tells of its focus, and keys count: %+v", got)
	}

	if list, err := Others(kept, "store"); err != nil || len(list) != 0 {
		t.Errorf("it is one of the others: %+v, %v", list, err)
	}
	r.Close()
	if list, err := panes.All(kept, "store"); err != nil || len(list) != 0 || len(s.failed) != 0 {
		t.Errorf("when it is closed: %+v, %v, %v", list, err, s.failed)
	}
}

func TestARecordThatCannotBeWrittenIsSaidOnce(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "sonny")
	if err := os.WriteFile(kept, nil, 0o600); err != nil { // no folder can be there
		t.Fatal(err)
	}
	s := &still{}
	r := In(kept, s, time.Now)
	for bot := range int64(3) {
		r.Note(State{BotID: bot + 1})
		s.settle(t)
	}
	if len(s.failed) != 1 {
		t.Errorf("said are %v", s.failed)
	}
	nowhere := In("", s, time.Now)
	if nowhere.Note(State{BotID: 1}); len(s.work) != 0 {
		t.Error("it writes where there is no folder")
	}
}
