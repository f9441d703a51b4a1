package engine

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agent/internal/model"
)

// slowCache is a provider whose refreshes take as a test says.
type slowCache struct {
	model.Provider
	refresh func(ctx context.Context, req *model.Request, rep *model.Report) error
	at      []time.Duration // when each began, since the call
	began   time.Time
}

func (p *slowCache) Refreshes(*model.Request) bool { return true }
func (p *slowCache) Refresh(ctx context.Context, req *model.Request, rep *model.Report) error {
	p.at = append(p.at, time.Since(p.began))
	return p.refresh(ctx, req, rep)
}

// notices keeps what is announced.
type notices struct{ lines []string }

func (*notices) Wants(string) bool                   { return true }
func (*notices) Delta(string, int64, string, string) {}
func (n *notices) Notice(_ string, line []byte)      { n.lines = append(n.lines, string(line)) }
func (*notices) Deleted(int64, string, []byte)       {}

// sendIt reads the request's items, as a transport does when it sends them.
func sendIt(req *model.Request) error {
	r, err := req.Items.Open()
	if err != nil {
		return err
	}
	return r.Close()
}

func TestKeepWarmClock(t *testing.T) {
	seconds := func(n ...int) (out []time.Duration) {
		for _, s := range n {
			out = append(out, time.Duration(s)*time.Second)
		}
		return out
	}
	for _, tt := range []struct {
		name    string
		tool    time.Duration // how long the round takes
		refresh func(ctx context.Context, req *model.Request, rep *model.Report) error
		want    []time.Duration
		settled time.Duration // when the round is over
		notices int
	}{
		{
			"PV-21 a tool of 500 s is bridged by two refreshes", 500 * time.Second,
			func(_ context.Context, req *model.Request, _ *model.Report) error { return sendIt(req) },
			seconds(240, 480), 500 * time.Second, 0,
		},
		{"a tool that ends before the cache is old needs none", 239 * time.Second, nil, nil, 239 * time.Second, 0},
		{
			"the next one counts from the sending of the last", 600 * time.Second,
			func(_ context.Context, req *model.Request, _ *model.Report) error {
				time.Sleep(10 * time.Second) // waits for its turn
				defer time.Sleep(5 * time.Second)
				return sendIt(req)
			}, seconds(240, 490), 600 * time.Second, 0,
		},
		{
			"one that is not sent in 30 s is given up, and it was the last", 900 * time.Second,
			func(ctx context.Context, _ *model.Request, _ *model.Report) error {
				<-ctx.Done()
				return context.Cause(ctx)
			},
			seconds(240), 900 * time.Second, 0,
		},
		{
			"a pool closed for longer than that gives it up, too", 900 * time.Second,
			func(_ context.Context, _ *model.Request, rep *model.Report) error {
				rep.ParkFor = time.Minute
				return model.ErrPaced
			}, seconds(240), 900 * time.Second, 0,
		},
		{
			"a pool that opens in time lets it go", 300 * time.Second,
			func() func(context.Context, *model.Request, *model.Report) error {
				n := 0
				return func(_ context.Context, req *model.Request, rep *model.Report) error {
					if n++; n == 1 {
						rep.ParkFor = 20 * time.Second
						return model.ErrPaced
					}
					return sendIt(req)
				}
			}(), seconds(240, 260), 300 * time.Second, 0,
		},
		{
			"one not yet sent is dropped when the tool ends", 250 * time.Second,
			func(ctx context.Context, _ *model.Request, _ *model.Report) error {
				<-ctx.Done()
				return context.Cause(ctx)
			},
			seconds(240), 250 * time.Second, 0,
		},
		{
			"one that was sent is awaited", 250 * time.Second,
			func(ctx context.Context, req *model.Request, _ *model.Report) error {
				err := sendIt(req)
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Second):
				}
				return errors.Join(err, context.Cause(ctx))
			}, seconds(240), 260 * time.Second, 0,
		},
		{
			"a refusal is announced once and ends it until the next call", 900 * time.Second,
			func(_ context.Context, req *model.Request, _ *model.Report) error {
				return errors.Join(sendIt(req), model.Errorf("provider_http_400", "no"))
			}, seconds(240), 900 * time.Second, 1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := &notices{}
				p := &slowCache{refresh: tt.refresh, began: time.Now()}
				task := &task{e: &Engine{cfg: Config{Live: live}}, lim: Limits{KeepWarm: 240 * time.Second}, provider: p}
				task.ctx, task.cancel = context.WithCancelCause(t.Context())
				defer task.cancel(nil)
				req := &model.Request{Items: model.Items{Open: func() (io.ReadCloser, error) {
					return io.NopCloser(strings.NewReader("")), nil
				}}}
				task.warm.watch(task, req)
				if err := sendIt(req); err != nil {
					t.Fatal(err)
				}
				time.Sleep(tt.tool)
				task.warm.settle(task)
				if got := time.Since(p.began); got != tt.settled {
					t.Errorf("settled after %s, want %s", got, tt.settled)
				}
				if len(p.at) != len(tt.want) {
					t.Fatalf("refreshes at %v, want %v", p.at, tt.want)
				}
				for i := range p.at {
					if p.at[i] != tt.want[i] {
						t.Errorf("refreshes at %v, want %v", p.at, tt.want)
					}
				}
				if len(live.lines) != tt.notices {
					t.Errorf("announced %q", live.lines)
				}
				time.Sleep(time.Hour)
				if len(p.at) != len(tt.want) {
					t.Errorf("refreshes after the end, at %v", p.at)
				}
			})
		})
	}
}
