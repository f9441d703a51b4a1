package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agent/internal/model"
	"agent/internal/model/pace"
)

// refusing is a provider at whose pace nobody gets anything: each request that
// goes out is refused, and closes the pool.
type refusing struct {
	pools *pace.Pools
	sent  int
	after int // refusals before which the provider is like this; 0: always
}

func (r *refusing) complete(ctx context.Context, _ *model.Request, rep *model.Report) (*model.Completion, error) {
	grant, park, err := r.pools.Acquire(ctx, "m", pace.Estimate(100, 0))
	if err != nil {
		rep.ParkFor = park
		return nil, err
	}
	r.sent++
	if r.after > 0 && r.sent > r.after {
		grant.End(true, true, nil)
		return text("at last")
	}
	grant.Refused(0)
	grant.End(true, false, nil)
	return nil, model.Errorf("provider_http_429", "slow down")
}

func TestEndlessRefusals(t *testing.T) {
	for _, row := range []struct {
		name     string
		restarts int
	}{
		{"RT-74 endless refusals for pace fail the turn after 64 attempts, and the bot works afterwards", 0},
		{"RT-74 over any number of restarts, too", 7},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTimed(t)
				defer func() { c.close() }()
				r := &refusing{pools: pace.New()}
				c.says = r.complete
				c.bot("Ada", []string{})
				for range row.restarts {
					c.sleep(100 * time.Second)
					if s := c.status("Ada"); s != "paced" {
						t.Fatalf("it is %s after %d attempts", s, r.sent)
					}
					c.close()
					r.pools = pace.New() // a new daemon knows nothing of the pace
					c.open()
				}
				<-c.ends
				out, err := c.e.Result(t.Context(), "Ada", 1)
				if err != nil || out.Status != "failed" || *out.Error != "provider_http_429" {
					t.Errorf("%+v %v", out, err)
				}
				if turn := c.turn("Ada"); r.sent != 64 || turn.Retries != 63 {
					t.Errorf("%d requests were sent, %d retries are counted", r.sent, turn.Retries)
				}
				r.after = r.sent
				c.submit("Ada", "again")
				<-c.ends
				if out, err := c.e.Result(t.Context(), "Ada", 2); err != nil || out.Text != "at last" {
					t.Errorf("%+v %v", out, err)
				}
			})
		})
	}
}

// A call has 300 s of its own; what it waits in its provider's line is none of
// them.
func TestTimeInThePoolCountsForNoClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTimed(t)
		defer c.close()
		attempts := 0
		c.says = func(_ context.Context, _ *model.Request, rep *model.Report) (*model.Completion, error) {
			if attempts++; attempts == 1 {
				time.Sleep(400 * time.Second)
				rep.PacedMS = 400_000
				return nil, model.Errorf("provider_http_500", "once")
			}
			return text("done")
		}
		c.bot("Ada", []string{})
		<-c.ends
		if out, err := c.e.Result(t.Context(), "Ada", 1); err != nil || out.Text != "done" {
			t.Errorf("%+v %v", out, err)
		}
	})
}

// Time that a call spends on itself does end it: what the test above allows is
// the pool's alone.
func TestACallsOwnTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTimed(t)
		defer c.close()
		attempts := 0
		c.says = func(context.Context, *model.Request, *model.Report) (*model.Completion, error) {
			attempts++
			time.Sleep(200 * time.Second)
			return nil, model.Errorf("provider_http_500", "again")
		}
		c.bot("Ada", []string{})
		<-c.ends
		if out, err := c.e.Result(t.Context(), "Ada", 1); err != nil || out.Status != "failed" || attempts != 2 {
			t.Errorf("after %d attempts: %+v %v", attempts, out, err)
		}
	})
}
