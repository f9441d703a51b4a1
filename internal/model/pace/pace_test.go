package pace

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agent/internal/model"
)

// bubble runs f with time that only passes when everyone waits.
func bubble(t *testing.T, name string, f func(t *testing.T, p *Pools)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, New()) })
	})
}

func acquire(t *testing.T, p *Pools, cost Cost) *Grant {
	t.Helper()
	g, park, err := p.Acquire(t.Context(), "m", cost)
	if err != nil {
		t.Fatalf("acquire: %v, park %v", err, park)
	}
	return g
}

// learned is a report of one dimension.
func learned(dimension int, limit, remaining float64) (l Limits) {
	l[dimension].Limit, l[dimension].Remaining, l[dimension].HasRemaining = limit, remaining, true
	return l
}

func available(p *Pools, dimension int) int64 {
	s := p.Stats()["m"]
	of := [dimensions]*int64{s.RequestsAvailable, s.TokensAvailable, s.InputTokensAvailable, s.OutputTokensAvailable}
	if of[dimension] == nil {
		return -1
	}
	return *of[dimension]
}

func TestBuckets(t *testing.T) {
	bubble(t, "an unknown pool admits everything", func(t *testing.T, p *Pools) {
		for range 1000 {
			acquire(t, p, Cost{1 << 30, 1 << 30})
		}
		if s := p.Stats()["m"]; s.RequestsPerMinute != nil || s.ReservedRequests != 1000 {
			t.Errorf("%+v", s)
		}
	})
	bubble(t, "refill is continuous and stops at the limit", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Learn(learned(Requests, 60, 0))
		began := time.Now()
		acquire(t, p, Cost{})
		if waited := time.Since(began).Round(time.Millisecond); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
		time.Sleep(time.Hour)
		if got := available(p, Requests); got != 60 {
			t.Errorf("%d available", got)
		}
	})
	bubble(t, "a report lowers the level and never raises it", func(t *testing.T, p *Pools) {
		g := acquire(t, p, Cost{})
		g.Learn(learned(Requests, 60, 10))
		g.Learn(learned(Requests, 60, 50))
		if got := available(p, Requests); got != 10 {
			t.Errorf("%d available", got)
		}
	})
	bubble(t, "a report is corrected for what others have reserved", func(t *testing.T, p *Pools) {
		first := acquire(t, p, Cost{Input: 100})
		acquire(t, p, Cost{Input: 30})
		acquire(t, p, Cost{Input: 20})
		first.Learn(learned(Input, 1000, 500))
		if got := available(p, Input); got != 450 {
			t.Errorf("%d available", got)
		}
	})
	bubble(t, "a call above a learned limit is refused and blocks nobody", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Learn(learned(Tokens, 1000, 1000))
		_, _, err := p.Acquire(t.Context(), "m", Cost{Input: 900, Output: 101})
		var e *model.Error
		if !errors.As(err, &e) || e.Code != "provider_pacing_limit" || e.Retryable() {
			t.Errorf("got %v", err)
		}
		acquire(t, p, Cost{Input: 1000})
	})
	bubble(t, "not dispatched is refunded in full", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Learn(learned(Tokens, 1000, 1000))
		acquire(t, p, Cost{Input: 600}).End(false, false, nil)
		if got := available(p, Tokens); got != 1000 {
			t.Errorf("%d available", got)
		}
	})
	bubble(t, "dispatched without a report stays charged", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Learn(learned(Tokens, 1000, 1000))
		acquire(t, p, Cost{Input: 600}).End(true, false, nil)
		if s := p.Stats()["m"]; *s.TokensAvailable != 400 || s.ReservedTokens != 0 {
			t.Errorf("%+v", s)
		}
	})
	bubble(t, "usage replaces the estimate where no header settled it", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Learn(learned(Tokens, 1000, 1000))
		acquire(t, p, Cost{Input: 600, Output: 100}).End(true, true, &model.Usage{Input: 200, Output: 50})
		if got := available(p, Tokens); got != 750 {
			t.Errorf("%d available", got)
		}
	})
	bubble(t, "what headers settled usage leaves alone", func(t *testing.T, p *Pools) {
		g := acquire(t, p, Cost{Input: 600})
		g.Learn(learned(Tokens, 1000, 100))
		g.End(true, true, &model.Usage{Input: 1})
		g.End(true, true, &model.Usage{Input: 1})
		if got := available(p, Tokens); got != 100 {
			t.Errorf("%d available", got)
		}
	})
	bubble(t, "a refund wakes the next at once", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Learn(learned(Tokens, 1000, 1000))
		holder := acquire(t, p, Cost{Input: 1000})
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			holder.End(false, false, nil)
		}()
		acquire(t, p, Cost{Input: 1000})
		if waited := time.Since(began); waited > time.Second+time.Millisecond {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestAbsurdUsageDoesNotCloseAPool(t *testing.T) {
	bubble(t, "a call that used more than there ever was costs five minutes at most", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Learn(learned(Output, 6000, 6000))
		g := acquire(t, p, Cost{Output: 100})
		g.End(true, true, &model.Usage{Output: 1 << 40})
		began := time.Now()
		for {
			_, park, err := p.Acquire(t.Context(), "m", Cost{Output: 100})
			if err == nil {
				break
			}
			if !errors.Is(err, model.ErrPaced) || park > (mostDebt+1)*time.Minute {
				t.Fatalf("parked for %v, %v", park, err)
			}
			time.Sleep(park)
		}
		if waited := time.Since(began); waited < mostDebt*time.Minute || waited > (mostDebt+1)*time.Minute {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestGateIsFirstComeFirstServed(t *testing.T) {
	bubble(t, "a small call does not pass a big one", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Learn(learned(Tokens, 6000, 0))
		order := make(chan int, 3)
		for i, cost := range []int64{3000, 10, 10} {
			go func() {
				acquire(t, p, Cost{Input: cost})
				order <- i
			}()
			synctest.Wait()
		}
		if got := []int{<-order, <-order, <-order}; !slices.IsSorted(got) {
			t.Errorf("order %v", got)
		}
	})
	bubble(t, "one that gives up lets the next go", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Learn(learned(Tokens, 6000, 100))
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("interrupted")
		gone := make(chan error, 1)
		go func() {
			_, _, err := p.Acquire(ctx, "m", Cost{Input: 6000})
			gone <- err
		}()
		synctest.Wait()
		began := time.Now()
		time.AfterFunc(time.Millisecond, func() { cancel(stop) })
		acquire(t, p, Cost{Input: 50})
		if err := <-gone; err != stop || time.Since(began) > time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		if s := p.Stats()["m"]; s.ReservedTokens != 50 {
			t.Errorf("%d tokens reserved", s.ReservedTokens)
		}
	})
}

// refused asks for a call and gives how long it must park.
func refused(t *testing.T, p *Pools) time.Duration {
	t.Helper()
	_, park, err := p.Acquire(t.Context(), "m", Cost{})
	if err != model.ErrPaced {
		t.Fatalf("the pool is open: %v", err)
	}
	return park
}

func TestClosures(t *testing.T) {
	bubble(t, "PV-27 a named delay closes the pool for it", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Refused(1500 * time.Millisecond)
		if park := refused(t, p); park != 1500*time.Millisecond {
			t.Errorf("park %v", park)
		}
		if s := p.Stats()["m"]; s.BlockedMS != 1500 {
			t.Errorf("blocked %d ms", s.BlockedMS)
		}
		time.Sleep(1500 * time.Millisecond)
		acquire(t, p, Cost{})
	})
	bubble(t, "PV-52 six refusals close 1, 2, 4, 8, 16, 32 s and a completed stream resets", func(t *testing.T, p *Pools) {
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 32} {
			acquire(t, p, Cost{}).Refused(0)
			park := refused(t, p)
			if park != want*time.Second {
				t.Errorf("park %v, want %v s", park, want)
			}
			time.Sleep(park)
		}
		acquire(t, p, Cost{}).End(true, true, nil)
		acquire(t, p, Cost{}).Refused(0)
		if park := refused(t, p); park != time.Second {
			t.Errorf("after a completed stream: park %v", park)
		}
	})
	bubble(t, "refusals of calls in flight count once", func(t *testing.T, p *Pools) {
		var inFlight []*Grant
		for range 10 {
			inFlight = append(inFlight, acquire(t, p, Cost{}))
		}
		for _, g := range inFlight {
			g.Refused(0)
		}
		if park := refused(t, p); park != time.Second {
			t.Errorf("park %v", park)
		}
		time.Sleep(time.Second)
		acquire(t, p, Cost{}).Refused(0)
		if park := refused(t, p); park != 2*time.Second {
			t.Errorf("park %v", park)
		}
	})
	bubble(t, "a closure under 250 ms is waited out in the gate", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Refused(249 * time.Millisecond)
		began := time.Now()
		acquire(t, p, Cost{})
		if waited := time.Since(began); waited != 249*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
	})
	bubble(t, "those already in line are parked too", func(t *testing.T, p *Pools) {
		g := acquire(t, p, Cost{})
		g.Learn(learned(Requests, 60, 0))
		parked := make(chan time.Duration, 2)
		for range 2 {
			go func() {
				_, park, err := p.Acquire(t.Context(), "m", Cost{})
				if err != model.ErrPaced {
					t.Errorf("got %v", err)
				}
				parked <- park
			}()
		}
		synctest.Wait()
		g.Refused(10 * time.Second)
		if a, b := <-parked, <-parked; a != 10*time.Second || b != a {
			t.Errorf("park %v and %v", a, b)
		}
	})
	bubble(t, "other pools stay open", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Refused(time.Hour)
		if _, _, err := p.Acquire(t.Context(), "other", Cost{}); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestAPoolOpensGradually(t *testing.T) {
	begin := func(t *testing.T, p *Pools, n int) chan *Grant {
		in := make(chan *Grant, n)
		for range n {
			go func() {
				if g, _, err := p.Acquire(t.Context(), "m", Cost{}); err == nil {
					in <- g
				} else {
					in <- nil
				}
			}()
		}
		synctest.Wait()
		return in
	}
	bubble(t, "each accepted call lets two more go", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Refused(time.Second)
		time.Sleep(time.Second)
		in := begin(t, p, 4)
		if len(in) != 1 {
			t.Fatalf("%d calls at once", len(in))
		}
		first := <-in
		first.Accepted()
		first.Accepted()
		if synctest.Wait(); len(in) != 2 {
			t.Fatalf("%d calls after the first was accepted", len(in))
		}
		(<-in).Refused(time.Second)
		<-in
		if g := <-in; g != nil {
			t.Error("a call that waited was not parked")
		}
	})
	bubble(t, "one that fails, or says nothing for long, keeps nobody", func(t *testing.T, p *Pools) {
		acquire(t, p, Cost{}).Refused(time.Second)
		time.Sleep(time.Second)
		in := begin(t, p, 5)
		(<-in).End(true, false, nil)
		if synctest.Wait(); len(in) != 1 {
			t.Fatalf("%d calls after the first failed", len(in))
		}
		time.Sleep(probeTime)
		if synctest.Wait(); len(in) != 4 {
			t.Errorf("%d calls after %s", len(in), probeTime)
		}
	})
	bubble(t, "300 bots at a call a second are all served", func(t *testing.T, p *Pools) {
		const most = 64 // attempts of a call (runtime.md 18)
		var free time.Time
		var mu sync.Mutex
		serve := func() bool {
			mu.Lock()
			defer mu.Unlock()
			if time.Now().Before(free) {
				return false
			}
			free = time.Now().Add(time.Second)
			return true
		}
		worst := make(chan int, 300)
		for range cap(worst) {
			go func() {
				for refusals := 0; ; {
					g, park, err := p.Acquire(t.Context(), "m", Cost{})
					if err != nil {
						time.Sleep(park)
						continue
					}
					time.Sleep(50 * time.Millisecond)
					if serve() {
						g.Accepted()
						g.End(true, true, nil)
						worst <- refusals
						return
					}
					refusals++
					g.Refused(time.Second)
					g.End(true, false, nil)
				}
			}()
		}
		for range cap(worst) {
			if n := <-worst; n >= most {
				t.Fatalf("a call was refused %d times", n)
			}
		}
	})
}

func TestPoolsAreBounded(t *testing.T) {
	bubble(t, "idle pools make room", func(t *testing.T, p *Pools) {
		for i := range 3 * maxPools {
			g, _, err := p.Acquire(t.Context(), string(rune(i)), Cost{})
			if err != nil {
				t.Fatal(err)
			}
			g.End(true, true, nil)
		}
		if n := len(p.Stats()); n > maxPools {
			t.Errorf("%d pools", n)
		}
	})
}

func TestHeadersBeforeACall(t *testing.T) {
	bubble(t, "they teach the pool and leave the reservation", func(t *testing.T, p *Pools) {
		g := acquire(t, p, Cost{Input: 100})
		g.Seed(learned(Requests, 6, 6))
		if s := p.Stats()["m"]; s.ReservedRequests != 1 || available(p, Requests) != 5 {
			t.Errorf("%d reserved, %d available", s.ReservedRequests, available(p, Requests))
		}
		g.End(false, false, nil)
		if available(p, Requests) != 6 {
			t.Errorf("%d available after a refund", available(p, Requests))
		}
	})
}
