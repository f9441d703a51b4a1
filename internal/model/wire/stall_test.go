package wire

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stalled runs feed against a stall watch of 120 s in a time bubble and gives
// when it failed, and how; 0 when it did not.
func stalled(t *testing.T, feed func(s *stall)) (after time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := watch(DefaultStall, func(e error) { after, err = time.Since(began), e })
		defer s.stop()
		feed(s)
		synctest.Wait()
	})
	return after, err
}

func TestStall(t *testing.T) {
	t.Parallel()
	t.Run("silence for the bound fails and names the flag", func(t *testing.T) {
		after, err := stalled(t, func(*stall) { time.Sleep(10 * time.Minute) })
		if after != 120*time.Second || codeOf(err) != "provider_stream_stalled" ||
			!strings.Contains(err.Error(), "no byte") || !strings.Contains(err.Error(), "--stall-timeout") {
			t.Errorf("got %v after %v", err, after)
		}
	})
	t.Run("PV-17 only pings fail after five times the bound", func(t *testing.T) {
		after, err := stalled(t, func(s *stall) {
			for range 100 {
				time.Sleep(10 * time.Second)
				s.bytes()
			}
		})
		if after != 600*time.Second || !strings.Contains(err.Error(), "only keep-alives") {
			t.Errorf("got %v after %v", err, after)
		}
	})
	t.Run("content renews both clocks", func(t *testing.T) {
		_, err := stalled(t, func(s *stall) {
			for range 100 {
				time.Sleep(100 * time.Second)
				s.bytes()
				s.content()
			}
		})
		if err != nil {
			t.Errorf("got %v", err)
		}
	})
	t.Run("PV-74 a comment every 10 s for 300 s is no stall", func(t *testing.T) {
		_, err := stalled(t, func(s *stall) {
			for range 30 {
				time.Sleep(10 * time.Second)
				s.bytes()
			}
		})
		if err != nil {
			t.Errorf("got %v", err)
		}
	})
	t.Run("time in the sink counts for neither clock", func(t *testing.T) {
		after, err := stalled(t, func(s *stall) {
			time.Sleep(60 * time.Second)
			s.bytes()
			s.hold()
			time.Sleep(time.Hour)
			s.release()
			time.Sleep(119 * time.Second)
			s.bytes()
			time.Sleep(121 * time.Second)
		})
		if want := time.Hour + (60+119+120)*time.Second; after != want || err == nil {
			t.Errorf("got %v after %v, want after %v", err, after, want)
		}
	})
}
