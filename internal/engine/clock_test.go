package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agent/internal/model"
	"agent/internal/model/scripted"
	"agent/internal/secret"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/internal/window"
	"agent/protocol"
)

// These tests run an engine on a fake monotonic clock (testing/synctest) and
// set the wall clock as they like. A machine that sleeps is, to the daemon, a
// wall clock that goes on while nothing else does.

// jumps are what may happen to the wall clock behind the daemon's back.
var jumps = []struct {
	name string
	by   time.Duration
}{
	{"the wall clock is set forward an hour, or the machine sleeps for one", time.Hour},
	{"the wall clock is set back an hour", -time.Hour},
}

// timed is an engine in a bubble.
type timed struct {
	t    *testing.T
	path string
	wall atomic.Int64 // how far the wall clock is off, a duration
	live *notices
	says func(ctx context.Context, req *model.Request, rep *model.Report) (*model.Completion, error)

	store *store.Store
	e     *Engine
	ends  chan int64
	parks chan int64
}

// timedSink hears of the turns that end and of those that are parked.
type timedSink struct{ ends, parks chan int64 }

func (s timedSink) Publish(b store.Batch) {
	for _, ev := range b.Events {
		if ev.Kind == protocol.KindTurnWaiting {
			s.parks <- ev.Turn
		}
	}
	endSink(s.ends).Publish(b)
}

func newTimed(t *testing.T) *timed {
	c := &timed{t: t, path: filepath.Join(t.TempDir(), "state.sqlite"), live: &notices{}}
	c.open()
	return c
}

func (c *timed) open() {
	c.t.Helper()
	c.ends, c.parks = make(chan int64, 64), make(chan int64, 4096)
	s, err := store.Open(store.Options{Path: c.path, Sink: timedSink{c.ends, c.parks}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.store = s
	c.e = New(Config{
		Store: s, Providers: map[string]model.Provider{"p": c}, Codecs: map[model.Family]model.Codec{model.FamilyScripted: scripted.Codec{}},
		Tools: tool.All(), Redact: &secret.Values{}, Live: c.live, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), StorePath: c.path,
		Limits: Limits{Context: window.Bounds{Bytes: 8 << 20, Items: 4096}, NoteTurns: 48, CompactAt: 75, CompactKeep: 25, CacheTTL: "5m"},
		Clock:  func() time.Time { return time.Now().Add(time.Duration(c.wall.Load())) },
	})
	if err := c.e.Recover(); err != nil {
		c.t.Fatal(err)
	}
	c.e.Run()
}

func (c *timed) close() {
	c.t.Helper()
	c.e.Close()
	if err := c.store.Close(); err != nil {
		c.t.Errorf("the store was not closed: %v", err)
	}
}

func (*timed) Info() model.Info                              { return model.Info{Family: model.FamilyScripted} }
func (*timed) Models(context.Context) ([]model.Model, error) { return nil, nil }
func (*timed) Status() json.RawMessage                       { return nil }

func (c *timed) Complete(ctx context.Context, req *model.Request, _ func(model.Event), rep *model.Report) (*model.Completion, error) {
	return c.says(ctx, req, rep)
}

// text is an answer without a call.
func text(s string) (*model.Completion, error) {
	item, err := json.Marshal(map[string]string{"role": "assistant", "text": s})
	return &model.Completion{Usage: &model.Usage{Input: 1, Output: 1}, Items: [][]byte{item}}, err
}

// callOf is an answer with one call.
func callOf(req *model.Request, name, args string) (*model.Completion, error) {
	call, err := model.NewSafe(req).Call("c1", name, []byte(args), false)
	if err != nil {
		return nil, err
	}
	item := fmt.Appendf(nil, `{"role":"assistant","text":"","calls":[{"id":%q,"tool":%q,"arguments":%s}]}`, call.ID, name, call.Arguments)
	return &model.Completion{Usage: &model.Usage{Input: 1, Output: 1}, Items: [][]byte{item}, Calls: []model.Call{call}}, nil
}

// newest is the newest item that a request shows.
func newest(req *model.Request) (string, error) {
	body, err := req.Items.Open()
	if err != nil {
		return "", err
	}
	defer body.Close()
	sent, err := io.ReadAll(body)
	if err != nil {
		return "", err
	}
	var items []json.RawMessage
	if err := json.Unmarshal(fmt.Appendf(nil, "[%s]", sent), &items); err != nil {
		return "", err
	}
	return string(items[len(items)-1]), nil
}

// bot makes a bot and submits a prompt to it.
func (c *timed) bot(name string, tools []string, also ...protocol.ClientTool) *protocol.Submitted {
	c.t.Helper()
	failed := make(chan *protocol.Error, 1)
	dir := filepath.Dir(c.path)
	c.e.Create(nil, &protocol.Create{Bot: name, Model: "p/m", Tools: tools, ClientTools: also, Workspace: dir}, func(_ *protocol.Bot, err *protocol.Error) { failed <- err })
	if err := <-failed; err != nil {
		c.t.Fatal(err)
	}
	return c.submit(name, "r")
}

func (c *timed) submit(bot, request string) (sub *protocol.Submitted) {
	c.t.Helper()
	failed := make(chan *protocol.Error, 1)
	c.e.Submit(nil, &protocol.Submit{Bot: bot, RequestID: request, Prompt: "go", Delivery: protocol.Queue}, func(s *protocol.Submitted, err *protocol.Error) { sub = s; failed <- err })
	if err := <-failed; err != nil {
		c.t.Fatal(err)
	}
	return sub
}

// peer makes a bot whose turn 1 does not end, nor its turn 2 behind it: over a
// restart that one is still to come.
func (c *timed) peer() {
	c.t.Helper()
	c.bot("Peer", []string{})
	c.submit("Peer", "next")
}

func (c *timed) status(bot string) string {
	c.t.Helper()
	b, err := c.e.Bot(c.t.Context(), bot)
	if err != nil {
		c.t.Fatal(err)
	}
	return b.Status
}

func (c *timed) turn(bot string) protocol.Turn {
	c.t.Helper()
	page, err := c.e.Turns(c.t.Context(), bot, 0, 1)
	if err != nil {
		c.t.Fatal(err)
	}
	return page.Turns[0]
}

// sleep lets time pass, both clocks alike, and then everything settle.
func (c *timed) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// each runs f in a bubble for each jump.
func each(t *testing.T, f func(t *testing.T, by time.Duration)) {
	for _, j := range jumps {
		t.Run(j.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, j.by) })
		})
	}
}

// A model call may take 300 s in all; the hour that the wall clock jumps is none
// of them.
func TestClockWhileATurnRuns(t *testing.T) {
	each(t, func(t *testing.T, by time.Duration) {
		c := newTimed(t)
		defer c.close()
		attempts := 0
		c.says = func(context.Context, *model.Request, *model.Report) (*model.Completion, error) {
			attempts++
			time.Sleep(10 * time.Second)
			if attempts == 1 {
				c.wall.Add(int64(by))
				return nil, model.Errorf("provider_http_500", "once")
			}
			return text("done")
		}
		began := time.Now()
		c.bot("Ada", []string{})
		<-c.ends
		turn := c.turn("Ada")
		if took := time.Since(began); turn.Status != "completed" || turn.Retries != 1 || took > 21*time.Second {
			t.Errorf("after %s: %+v", took, turn)
		}
		if at := *turn.FinishedMS - *turn.StartedMS; at < by.Milliseconds()+20_000 || at > by.Milliseconds()+21_000 {
			t.Errorf("it is stored as taking %d ms: the wall clock says otherwise", at)
		}
	})
}

// waitFor has every other bot's model wait for a turn of Peer that never ends.
func (c *timed) waitFor(timeout string) {
	c.says = func(ctx context.Context, req *model.Request, _ *model.Report) (*model.Completion, error) {
		if req.Bot == "Peer" {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		last, err := newest(req)
		if err != nil {
			return nil, err
		}
		if strings.Contains(last, "pending") || strings.Contains(last, "error") {
			return text(last)
		}
		return callOf(req, "wait", `{"handles":["turn:Peer/2"],"timeout_ms":`+timeout+`}`)
	}
}

func TestClockWhileATurnIsParked(t *testing.T) {
	each(t, func(t *testing.T, by time.Duration) {
		c := newTimed(t)
		defer c.close()
		c.waitFor("60000")
		c.peer()
		c.bot("Ada", []string{"wait"})
		c.sleep(10 * time.Second)
		c.wall.Add(int64(by))
		c.sleep(49 * time.Second)
		if s := c.status("Ada"); s != "waiting" {
			t.Fatalf("after 59 of 60 seconds it is %s", s)
		}
		c.sleep(2 * time.Second)
		if out, err := c.e.Result(t.Context(), "Ada", 3); err != nil || !strings.Contains(out.Text, "pending") {
			t.Errorf("after 61 seconds: %+v %v", out, err)
		}
	})
}

func TestClockWhileAClientWaits(t *testing.T) {
	each(t, func(t *testing.T, by time.Duration) {
		c := newTimed(t)
		defer c.close()
		c.waitFor("0")
		c.peer()
		began := time.Now()
		took := make(chan time.Duration, 1)
		c.e.Wait(nil, &protocol.Wait{Handles: []string{"turn:Peer/2"}, TimeoutMS: protocol.Set(int64(60_000))},
			func(*protocol.Waited, *protocol.Error) { took <- time.Since(began) })
		c.sleep(10 * time.Second)
		c.wall.Add(int64(by))
		if d := <-took; d < time.Minute || d > 61*time.Second {
			t.Errorf("answered after %s", d)
		}
	})
}

func TestClockWhileATurnIsPaced(t *testing.T) {
	paced := func(c *timed) {
		first := true
		c.says = func(_ context.Context, _ *model.Request, rep *model.Report) (*model.Completion, error) {
			if first {
				first = false
				rep.ParkFor = 30 * time.Second
				return nil, model.ErrPaced
			}
			return text("done")
		}
	}
	each(t, func(t *testing.T, by time.Duration) {
		c := newTimed(t)
		defer c.close()
		paced(c)
		began := time.Now()
		c.bot("Ada", []string{})
		c.sleep(10 * time.Second)
		if s := c.status("Ada"); s != "paced" {
			t.Fatalf("it is %s", s)
		}
		c.wall.Add(int64(by))
		<-c.ends
		turn := c.turn("Ada")
		if took := time.Since(began); turn.Status != "completed" || took < 30*time.Second || took > 31*time.Second || turn.PacedMS < 30_000 || turn.PacedMS > 31_000 {
			t.Errorf("after %s: %+v", took, turn)
		}
	})
	t.Run("an interrupt ends the pacing, and its time counts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTimed(t)
			defer c.close()
			paced(c)
			c.bot("Ada", []string{})
			c.sleep(10 * time.Second)
			if _, err := c.e.Interrupt(nil, &protocol.Interrupt{Bot: "Ada", Turn: 1}); err != nil {
				t.Fatal(err)
			}
			<-c.ends
			if turn := c.turn("Ada"); turn.Status != "interrupted" || turn.PacedMS < 10_000 || turn.PacedMS > 11_000 {
				t.Errorf("%+v", turn)
			}
		})
	})
	t.Run("a wall clock that was far ahead as it was parked keeps it no longer than an hour", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTimed(t)
			defer func() { c.close() }()
			paced(c)
			c.bot("Ada", []string{})
			c.sleep(10 * time.Second)
			c.close()
			c.wall.Add(-int64(365 * 24 * time.Hour))
			c.open()
			began := time.Now()
			<-c.ends
			if took := time.Since(began); took > time.Hour+time.Second || c.turn("Ada").Status != "completed" {
				t.Errorf("after %s: %+v", took, c.turn("Ada"))
			}
		})
	})
	t.Run("the time that the daemon was down counts by the wall clock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTimed(t)
			defer func() { c.close() }()
			paced(c)
			c.bot("Ada", []string{})
			c.sleep(10 * time.Second)
			c.close()
			c.wall.Add(int64(time.Hour))
			c.open()
			<-c.ends
			if turn := c.turn("Ada"); turn.Status != "completed" || turn.PacedMS < 3_610_000 || turn.PacedMS > 3_611_000 {
				t.Errorf("%+v", turn)
			}
		})
	})
}

func TestClockWhileTheDaemonIsDown(t *testing.T) {
	t.Run("RT-45 a deadline that passed meanwhile resumes the turn at once, its handle pending", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTimed(t)
			defer func() { c.close() }()
			c.waitFor("60000")
			c.peer()
			c.bot("Ada", []string{"wait"})
			c.sleep(10 * time.Second)
			c.close()
			c.wall.Add(int64(time.Minute))
			c.open()
			began := time.Now()
			<-c.ends
			out, err := c.e.Result(t.Context(), "Ada", 3)
			if err != nil || out.Status != "completed" || !strings.Contains(out.Text, `\"pending\":[\"turn:Peer/2\"]`) {
				t.Errorf("%+v %v", out, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %s", took)
			}
		})
	})
	t.Run("a deadline that did not pass is as far away as the wall clock says", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newTimed(t)
			defer func() { c.close() }()
			c.waitFor("60000")
			c.peer()
			c.bot("Ada", []string{"wait"})
			c.sleep(10 * time.Second)
			c.close()
			c.wall.Add(int64(20 * time.Second))
			c.open()
			c.sleep(29 * time.Second)
			if s := c.status("Ada"); s != "waiting" {
				t.Fatalf("after 59 of 60 seconds it is %s", s)
			}
			c.sleep(2 * time.Second)
			if s := c.status("Ada"); s != "completed" {
				t.Errorf("after 61 seconds it is %s", s)
			}
		})
	})
}

func TestClockWhileACallWaitsToBeServed(t *testing.T) {
	each(t, func(t *testing.T, by time.Duration) {
		c := newTimed(t)
		defer c.close()
		c.says = func(_ context.Context, req *model.Request, _ *model.Report) (*model.Completion, error) {
			last, err := newest(req)
			if err != nil || strings.Contains(last, "error") {
				done, terr := text(last)
				if err == nil {
					err = terr
				}
				return done, err
			}
			return callOf(req, "look_up", `{}`)
		}
		expire := int64(60_000)
		began := time.Now()
		c.bot("Ada", []string{}, protocol.ClientTool{Name: "look_up", Parameters: json.RawMessage(`{"type":"object"}`), Tag: "words", ExpireMS: &expire})
		c.sleep(10 * time.Second)
		c.wall.Add(int64(by))
		<-c.ends
		out, err := c.e.Result(t.Context(), "Ada", 1)
		if took := time.Since(began); err != nil || !strings.Contains(out.Text, "tool_not_served") || took < time.Minute || took > 61*time.Second {
			t.Errorf("after %s: %+v %v", took, out, err)
		}
	})
}

// A provider's cache does not sleep with this machine: a refresh after an hour
// would pay for the whole prompt again.
func TestClockKeepWarm(t *testing.T) {
	for _, row := range []struct {
		name string
		by   time.Duration
		want int
	}{
		{"nothing happens to the clock", 0, 2},
		{"the machine sleeps for an hour", time.Hour, 0},
		{"the machine sleeps for half a minute, and the cache lives yet", 30 * time.Second, 2},
		{"the wall clock is set back an hour", -time.Hour, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var off atomic.Int64
				p := &slowCache{began: time.Now(), refresh: func(_ context.Context, req *model.Request, _ *model.Report) error { return sendIt(req) }}
				task := &task{
					e: &Engine{cfg: Config{
						Live: &notices{}, Clock: func() time.Time { return time.Now().Add(time.Duration(off.Load())) },
					}},
					lim: Limits{KeepWarm: 240 * time.Second}, provider: p,
				}
				task.ctx, task.cancel = context.WithCancelCause(t.Context())
				defer task.cancel(nil)
				req := &model.Request{Items: model.Items{Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil }}}
				task.warm.watch(task, req)
				if err := sendIt(req); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Second)
				off.Add(int64(row.by))
				time.Sleep(400 * time.Second)
				task.warm.settle(task)
				if len(p.at) != row.want {
					t.Errorf("refreshes at %v, want %d", p.at, row.want)
				}
			})
		})
	}
}
