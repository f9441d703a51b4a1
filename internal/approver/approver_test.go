package approver

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agent/client"
	"agent/protocol"
)

// answering is a client whose daemon gives one bot's record to every request.
func answering(t *testing.T) *client.Client {
	t.Helper()
	c := &client.Client{Target: client.Target{Store: "/none", Socket: filepath.Join(t.TempDir(), "s")}}
	c.Dial = func(context.Context, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			line, _ := protocol.AppendReady(nil, &protocol.Ready{PID: 1, Store: protocol.Store{Identity: "x"}, Capabilities: protocol.Capabilities()})
			theirs.Write(line)
			lines := protocol.NewLineReader(theirs)
			defer lines.Close()
			for {
				line, err := lines.Next()
				if err != nil {
					return
				}
				r, _ := protocol.ParseRequest(line)
				answer, _ := protocol.AppendResult(nil, r.ID, protocol.Bot{Name: "Ada", ID: 4, Provider: "t", Model: "m"})
				theirs.Write(answer)
			}
		}()
		return ours, nil
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// gathers is a gatherer that gives what it is.
type gathers func(ctx context.Context, r *round) (*evidence, error)

func (g gathers) gather(ctx context.Context, r *round) (*evidence, error) { return g(ctx, r) }

// says is a judge that says what it is.
type says func(ctx context.Context, model, document string, ids []string) (map[string]opinion, usage, error)

func (s says) ask(ctx context.Context, model, document string, ids []string) (map[string]opinion, usage, error) {
	return s(ctx, model, document, ids)
}

func TestFailuresDeny(t *testing.T) {
	t.Parallel()
	whole := gathers(func(context.Context, *round) (*evidence, error) {
		return &evidence{document: "{}", ids: []string{"c1", "c2"}, shown: []int{0, 1}}, nil
	})
	gives := func(e *evidence, err error) gathers {
		return func(context.Context, *round) (*evidence, error) { return e, err }
	}
	yes := says(func(_ context.Context, _, _ string, ids []string) (map[string]opinion, usage, error) {
		said := map[string]opinion{}
		for _, id := range ids {
			said[id] = opinion{outcome: allow, risk: low}
		}
		return said, usage{}, nil
	})
	fails := func(err error) says {
		return func(context.Context, string, string, []string) (map[string]opinion, usage, error) {
			return nil, usage{}, err
		}
	}
	long := "not reviewed: the call is too long to show"
	rows := []struct {
		name   string
		gather gathers
		judge  says
		want   [2]string // how the reasons begin; "" is an allow
	}{
		{"nothing fails", whole, yes, [2]string{}},
		{"too much to show", gives(nil, errTooMuch), yes, [2]string{tooMuch, tooMuch}},
		{"the evidence cannot be had", gives(nil, errors.New("no")), yes, [2]string{checkFailed, checkFailed}},
		{"the gatherer panics", func(context.Context, *round) (*evidence, error) { panic("a defect") }, yes, [2]string{checkFailed, checkFailed}},
		{"the judge's turn fails", whole, fails(failed("x")), [2]string{checkFailed, checkFailed}},
		{"the judge is rate limited", whole, fails(&failure{why: overloaded, detail: "x"}), [2]string{overloaded, overloaded}},
		{"asking panics", whole, func(context.Context, string, string, []string) (map[string]opinion, usage, error) { panic("a defect") }, [2]string{checkFailed, checkFailed}},
		{"a document that no prompt holds", gives(&evidence{document: strings.Repeat("x", protocol.MaxPrompt+1), ids: []string{"c1"}, shown: []int{0}}, nil), yes, [2]string{tooMuch, tooMuch}},
		{"AP-60 one call that cannot be shown is denied alone", gives(&evidence{document: "{}", ids: []string{"c1"}, shown: []int{1}, refused: map[int]string{0: long}}, nil), yes, [2]string{long, ""}},
		{"and keeps its reason when the judge fails on the others", gives(&evidence{document: "{}", ids: []string{"c1"}, shown: []int{1}, refused: map[int]string{0: long}}, nil), fails(failed("x")), [2]string{long, checkFailed}},
		{"none can be shown", gives(&evidence{refused: map[int]string{0: long, 1: long}}, nil), fails(errors.New("it is not asked")), [2]string{long, long}},
		{"a call that was forgotten", gives(&evidence{document: "{}", ids: []string{"c1"}, shown: []int{0}}, nil), yes, [2]string{checkFailed, checkFailed}},
		{"a call that was both shown and refused", gives(&evidence{document: "{}", ids: []string{"c1", "c2"}, shown: []int{0, 1}, refused: map[int]string{0: long}}, nil), yes, [2]string{long, checkFailed}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			a := &approver{
				c: answering(t), o: Options{Tag: "auto", Deadline: time.Minute}, gatherer: row.gather, judge: row.judge,
				models: &chooser{named: "t/j"}, redact: same, slots: make(chan struct{}, 1), turns: map[turnKey]*turn{},
			}
			r := &round{bot: "Ada", turn: 3, calls: []protocol.Approval{{CallID: "a", AnnouncedMS: time.Now().UnixMilli()}, {CallID: "b", AnnouncedMS: time.Now().UnixMilli()}}}
			turn, since := a.enter(r)
			verdicts, _, why := a.verdicts(t.Context(), r, turn, since)
			for i, v := range verdicts {
				want := row.want[i]
				if v.allow != (want == "") || want != "" && v.reason != want+". "+afterCheck {
					t.Errorf("call %d: %+v", i, v)
				}
			}
			if healthy := row.want == [2]string{} || row.want == [2]string{long, ""} || row.want == [2]string{long, long}; healthy != (why == "") {
				t.Errorf("it says %q", why)
			}
			if len(a.slots) != 0 {
				t.Error("its place is not given back")
			}
		})
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	now := func(ago time.Duration) protocol.Approval {
		return protocol.Approval{CallID: "a", AnnouncedMS: time.Now().Add(-ago).UnixMilli()}
	}
	a := &approver{o: Options{Tag: "auto", Deadline: 50 * time.Millisecond}, slots: make(chan struct{}, 1), turns: map[turnKey]*turn{}}
	a.slots <- struct{}{} // another round has the one place
	rows := []struct {
		name string
		call protocol.Approval
		want string
	}{
		{"no place before the deadline", now(0), overloaded},
		{"a deadline that passed before the tag was taken", now(time.Hour), checkTimedOut},
		{"a clock that was set back gives no more time", now(-time.Hour), overloaded},
	}
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := &round{bot: "Ada", turn: int64(i), calls: []protocol.Approval{row.call}}
			turn, since := a.enter(r)
			if verdicts, _, why := a.verdicts(t.Context(), r, turn, since); why == "" || !strings.HasPrefix(verdicts[0].reason, row.want) {
				t.Errorf("%+v %q", verdicts, why)
			}
		})
	}
}
