package client

import (
	"errors"
	"slices"
	"testing"

	"agent/protocol"
)

func TestRun(t *testing.T) {
	t.Parallel()
	// runFake has one bot whose turn 5 ends at once.
	runFake := func(t *testing.T, duplicate bool) (*fake, chan protocol.Submit) {
		var l log
		sent := make(chan protocol.Submit, 1)
		l.add("B", 4, protocol.KindTurnFinished, protocol.TurnFinished{Status: "completed"})
		return newFake(t, func(s *fakeSession, r protocol.Request) {
			switch p := r.Params.(type) {
			case *protocol.Submit:
				sent <- *p
				l.live("B", 5, protocol.Delta{Text: "quick"}) // who does not follow yet misses it
				answer := protocol.Submitted{Bot: p.Bot, Turn: 5, RequestID: p.RequestID, Status: "running", Duplicate: duplicate}
				cursor := l.add("B", 5, protocol.KindAccepted, protocol.Accepted{RequestID: p.RequestID})
				if !duplicate {
					answer.Cursor = &cursor
				}
				l.add("B", 5, protocol.KindTurnFinished, protocol.TurnFinished{Status: "completed"})
				s.result(r, answer)
			case *protocol.Follow:
				l.follow(s, r)
			case *protocol.StatsRequest:
				s.result(r, protocol.Stats{Cursor: 1})
			case *protocol.Result:
				s.result(r, protocol.Outcome{Turn: p.Turn, Status: "completed", Finished: true, Text: "done"})
			}
		}), sent
	}
	for name, duplicate := range map[string]bool{"a turn": false, "a turn that was submitted before": true} {
		t.Run("Run shows "+name+" from its own event on and returns its outcome", func(t *testing.T) {
			t.Parallel()
			f, sent := runFake(t, duplicate)
			s := &protocol.Submit{Bot: "B", Prompt: "p"}
			var kinds []string
			out, err := f.client(t).Run(t.Context(), s, func(e *protocol.Event) error { kinds = append(kinds, e.Kind); return nil })
			want := []string{protocol.KindAccepted, protocol.KindTextDelta, protocol.KindTurnFinished}
			if duplicate {
				want = slices.Delete(want, 1, 2)
			}
			if err != nil || out.Text != "done" || !out.Finished || !slices.Equal(kinds, want) {
				t.Errorf("%+v %v, events %v, want %v", out, err, kinds, want)
			}
			if got := (<-sent).RequestID; s.RequestID == "" || s.RequestID != got || !protocol.ValidName(s.RequestID) {
				t.Errorf("the request id %q was sent as %q", s.RequestID, got)
			}
		})
	}
	t.Run("what each returns ends Run", func(t *testing.T) {
		t.Parallel()
		f, _ := runFake(t, false)
		enough := errors.New("enough")
		if _, err := f.client(t).Run(t.Context(), &protocol.Submit{Bot: "B"}, func(*protocol.Event) error { return enough }); !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("without each it only waits", func(t *testing.T) {
		t.Parallel()
		f, _ := runFake(t, false)
		if out, err := f.client(t).Run(t.Context(), &protocol.Submit{Bot: "B"}, nil); err != nil || out.Status != "completed" {
			t.Errorf("%+v %v", out, err)
		}
	})
}

func TestSubmitFollow(t *testing.T) {
	t.Parallel()
	t.Run("a refusal is the submission's, and nothing was answered", func(t *testing.T) {
		t.Parallel()
		var l log
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			switch r.Params.(type) {
			case *protocol.Submit:
				s.refuse(r, protocol.Fail(protocol.BotBusy, "B"))
			case *protocol.Follow:
				l.follow(s, r)
			case *protocol.StatsRequest:
				s.result(r, protocol.Stats{})
			}
		})
		for e, err := range f.client(t).SubmitFollow(t.Context(), &protocol.Submit{Bot: "B"}, func(*protocol.Submitted) { t.Error("answered") }) {
			if e != nil || !errors.Is(err, protocol.BotBusy) {
				t.Errorf("got %v %v", e, err)
			}
		}
	})
	t.Run("what another turn does before the submission's own event is not shown", func(t *testing.T) {
		t.Parallel()
		var l log
		f := newFake(t, func(s *fakeSession, r protocol.Request) {
			switch p := r.Params.(type) {
			case *protocol.Submit:
				l.live("B", 4, protocol.Delta{Text: "of another"})
				l.add("B", 4, protocol.KindMessage, protocol.Message{Node: 1})
				cursor := l.add("B", 5, protocol.KindQueued, protocol.Queued{})
				l.live("B", 4, protocol.Delta{Text: "more of it"})
				s.result(r, protocol.Submitted{Bot: p.Bot, Turn: 5, Cursor: &cursor})
				l.add("B", 5, protocol.KindTurnFinished, protocol.TurnFinished{Status: "completed"})
			case *protocol.Follow:
				l.follow(s, r)
			case *protocol.StatsRequest:
				s.result(r, protocol.Stats{})
			}
		})
		var kinds []string
		for e, err := range f.client(t).SubmitFollow(t.Context(), &protocol.Submit{Bot: "B"}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, e.Kind)
		}
		if want := []string{protocol.KindQueued, protocol.KindTextDelta, protocol.KindTurnFinished}; !slices.Equal(kinds, want) {
			t.Errorf("saw %v, want %v", kinds, want)
		}
	})
}
