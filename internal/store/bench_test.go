package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkJobs writes one small row a job from a number of callers at once.
func BenchmarkJobs(b *testing.B) {
	for _, callers := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := mustOpen(b, Options{Path: storePath(b)})
			b.ReportAllocs()
			b.ResetTimer()
			var next atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						if err := s.Do("put", put(fmt.Sprint(n), 300)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			st := s.Stats()
			b.ReportMetric(float64(st.Groups.Jobs)/float64(st.Groups.Count), "jobs/commit")
		})
	}
}

// BenchmarkSlowSync is the same on a disk that takes 2 ms for a sync.
func BenchmarkSlowSync(b *testing.B) {
	faults := &Faults{}
	s := mustOpen(b, Options{Path: storePath(b), Faults: faults})
	faults.At("commit", func() error { time.Sleep(2 * time.Millisecond); return nil })
	var wg sync.WaitGroup
	for i := range b.N {
		wg.Add(1)
		s.Go("put", put(fmt.Sprint(i), 300), func(error) { wg.Done() })
	}
	wg.Wait()
}

func BenchmarkOpen(b *testing.B) {
	path := storePath(b)
	mustOpen(b, Options{Path: path}).Close()
	for range b.N {
		s, err := Open(Options{Path: path})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
