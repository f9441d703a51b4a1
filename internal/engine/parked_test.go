package engine

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"

	"agent/internal/model"
	"agent/protocol"
)

func TestParkedTurns(t *testing.T) {
	t.Run("RT-102 4,000 parked turns cost a row and an entry each, and no thread", parkMany)
}

// parkMany measures what runtime.md 32 promises of a parked turn: at most 2 KiB
// of live heap, no goroutine, no thread.
func parkMany(t *testing.T) {
	const n, most = 4000, 2 << 10
	c := newTimed(t)
	defer c.close()
	c.says = func(ctx context.Context, req *model.Request, _ *model.Report) (*model.Completion, error) {
		if req.Bot == "Peer" {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		last, err := newest(req)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(last, `"user"`) {
			return text("resumed")
		}
		return callOf(req, "wait", `{"handles":["turn:Peer/1"]}`)
	}
	c.bot("Peer", []string{})
	c.bot("warm-up", []string{"wait"})
	c.awaitParked(1)
	heap, goroutines, threads := live(), runtime.NumGoroutine(), pprof.Lookup("threadcreate").Count()

	var senders sync.WaitGroup
	next := make(chan int)
	for range 64 {
		senders.Go(func() {
			for i := range next {
				c.quickBot(fmt.Sprint("b", i))
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	senders.Wait()
	c.awaitParked(n)
	each := (int64(live()) - int64(heap)) / n
	t.Logf("%d bytes of live heap for each parked turn", each)
	if each > most {
		t.Errorf("at most %d were wanted", most)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 10 {
		t.Errorf("%d more goroutines", more)
	}
	if more := pprof.Lookup("threadcreate").Count() - threads; more > 10 {
		t.Errorf("%d more threads", more)
	}
}

// live is the heap that is in use after a collection, in bytes.
func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// quickBot makes a bot that waits, from any goroutine.
func (c *timed) quickBot(name string) {
	done := make(chan *protocol.Error, 1)
	c.e.Create(nil, &protocol.Create{Bot: name, Model: "p/m", Tools: []string{"wait"}, Workspace: "/"}, func(_ *protocol.Bot, err *protocol.Error) { done <- err })
	if err := <-done; err != nil {
		c.t.Error(err)
		return
	}
	c.e.Submit(nil, &protocol.Submit{Bot: name, RequestID: "r", Prompt: "go"}, func(_ *protocol.Submitted, err *protocol.Error) { done <- err })
	if err := <-done; err != nil {
		c.t.Error(err)
	}
}

// awaitParked returns when n turns have been parked.
func (c *timed) awaitParked(n int) {
	for range n {
		<-c.parks
	}
}
