package daemon

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"agent/protocol"
)

// storedOnce is one page of one event for every follow, and how many were read.
type storedOnce struct{ read atomic.Int64 }

func (s *storedOnce) Replay(_ context.Context, _ string, _, after int64, _ int) ([][]byte, int64, bool, error) {
	if after > 0 {
		return nil, after, false, nil
	}
	s.read.Add(1)
	return [][]byte{[]byte("{}\n")}, 1, false, nil
}

func TestReplaysWithoutRoomHoldFewPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const follows = 100
		d := &Daemon{fan: newFanout()}
		s := d.newSession(nil, nil)
		s.out.put(make([]byte, protocol.MaxQueueBytes/2+1)) // its reader takes nothing
		stored := &storedOnce{}
		var list []*follow
		for range follows {
			fl := &follow{s: s, name: "*"}
			list = append(list, fl)
			d.fan.add(fl)
			s.replays.Go(func() { fl.replay(s.ctx, stored, d.fan) })
		}
		synctest.Wait()
		if n := stored.read.Load(); n != replayedAtOnce {
			t.Errorf("%d pages wait for room, want %d", n, replayedAtOnce)
		}
		s.out.mu.Lock() // it reads on
		s.out.lines, s.out.bytes = nil, 0
		s.out.changed.Broadcast()
		s.out.mu.Unlock()
		s.replays.Wait()
		for _, fl := range list {
			if !fl.live {
				t.Fatal("a follow is not live")
			}
		}
		if n := stored.read.Load(); n != follows {
			t.Errorf("%d pages of %d", n, follows)
		}
	})
}
