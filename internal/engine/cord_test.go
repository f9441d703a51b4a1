package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

func TestPauseOfABotsSocket(t *testing.T) {
	c := newTimed(t)
	defer c.close()
	c.says = func(ctx context.Context, _ *model.Request, _ *model.Report) (*model.Completion, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	ada, bob := c.bot("Ada", []string{}), c.bot("Bob", []string{})
	t.Run("AP-63 PO-68 a pause over a bot's socket is that bot's and its turn's, whatever was sent", func(t *testing.T) {
		p, err := c.e.Pause(&protocol.PauseRequest{
			By: string(make([]byte, 500)), From: &protocol.From{Bot: "Ada", Turn: ada.Turn}, Reason: "why",
		}, bob.BotID)
		if err != nil {
			t.Fatal(err)
		}
		if p.By != "Bob" || *p.ByID != bob.BotID || *p.Turn != bob.Turn || *p.Reason != "why" || p.InterruptedTurns != 2 {
			t.Errorf("answer %+v", p)
		}
		if c.status("Ada") != protocol.StatusInterrupted || c.status("Bob") != protocol.StatusInterrupted {
			t.Errorf("Ada is %s, Bob %s", c.status("Ada"), c.status("Bob"))
		}
	})
	t.Run("RT-111 a pull by another bot leaves the record as it is", func(t *testing.T) {
		p, err := c.e.Pause(&protocol.PauseRequest{}, ada.BotID)
		if err != nil || !p.Already || p.By != "Bob" {
			t.Errorf("answer %+v (%v)", p, err)
		}
	})
	t.Run("one without a turn has none, one that is gone pulls nothing", func(t *testing.T) {
		if _, err := c.e.Lift(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.e.Pause(&protocol.PauseRequest{}, 99); err == nil || err.Code != protocol.BotNotFound || c.e.Paused() != nil {
			t.Errorf("error %v, paused %v", err, c.e.Paused())
		}
		p, err := c.e.Pause(&protocol.PauseRequest{}, ada.BotID)
		if err != nil || p.By != "Ada" || p.Turn != nil || p.InterruptedTurns != 0 {
			t.Errorf("answer %+v (%v)", p, err)
		}
	})
}

func TestPauseAmongStarts(t *testing.T) {
	const bots, submitters = 40, 4
	c := newTimed(t)
	defer c.close()
	var began atomic.Int64
	c.says = func(ctx context.Context, _ *model.Request, _ *model.Report) (*model.Completion, error) {
		if began.Add(1)%3 != 0 {
			return text("done")
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	go func() { // nobody looks at the ends
		for range c.ends {
		}
	}()
	for n := range bots {
		c.bot(fmt.Sprint("b", n), []string{})
	}
	for round := range 5 {
		t.Run(fmt.Sprintf("RT-55 pulled while turns start, none is current and none starts behind the answer, round %d", round), func(t *testing.T) {
			var work sync.WaitGroup
			for s := range submitters {
				work.Go(func() {
					for n := range bots {
						answered := make(chan struct{})
						c.e.Submit(nil, &protocol.Submit{
							Bot: fmt.Sprint("b", n), RequestID: fmt.Sprint(round, "-", s), Prompt: "go", Delivery: protocol.Queue,
						}, func(*protocol.Submitted, *protocol.Error) { close(answered) })
						<-answered
					}
				})
			}
			var pulls sync.WaitGroup
			for range 2 {
				pulls.Go(func() {
					if _, err := c.e.Pause(&protocol.PauseRequest{By: "x"}, 0); err != nil {
						t.Error(err)
					}
				})
			}
			pulls.Wait()
			calls := began.Load()
			var current int
			err := c.store.Do("look", func(tx *store.Tx) error {
				return store.RunningTurns(tx.Conn(), func(int64, string) { current++ })
			})
			work.Wait()
			if err != nil || current != 0 || c.e.LiveTurns() != 0 || c.e.Active() != 0 {
				t.Errorf("%d current turns, %d live, %d slots (%v)", current, c.e.LiveTurns(), c.e.Active(), err)
			}
			if now := began.Load(); now != calls {
				t.Errorf("%d model calls began behind the answer", now-calls)
			}
			if _, err := c.e.Lift(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
