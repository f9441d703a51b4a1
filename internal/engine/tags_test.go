package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agent/protocol"
)

// pushed is a session that keeps what is pushed to it.
type pushed struct{ lines []string }

func (p *pushed) Push(line []byte, stands func() bool) {
	if stands() {
		p.lines = append(p.lines, string(line))
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	fresh := func() *tags {
		s := &tags{served: protocol.ToolsServed, lost: protocol.ToolsLost, lostKind: protocol.KindToolsLost}
		s.init()
		return s
	}
	grant := func(t *testing.T, s *tags, srv Server) *lease {
		t.Helper()
		l, err := s.serve("x", srv, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		l.extend()
		return l
	}
	for _, row := range []struct {
		name string
		run  func(t *testing.T, s *tags, a, b *pushed)
	}{
		{"the period begins when the answer is queued", func(t *testing.T, s *tags, a, b *pushed) {
			l, _ := s.serve("x", a, time.Second)
			time.Sleep(time.Minute)
			if l.lapsed() {
				t.Error("it ran out before it began")
			}
			l.extend()
			time.Sleep(time.Second + 1)
			if !l.lapsed() {
				t.Error("it does not run out")
			}
		}},
		{"a quiet holder has the tag until another serves it", func(t *testing.T, s *tags, a, b *pushed) {
			first := grant(t, s, a)
			if _, err := s.serve("x", b, time.Second); err == nil || err.Code != protocol.ToolsServed || string(err.Facts["lease_left_ms"]) != "1000" {
				t.Errorf("refusal %v", err)
			}
			time.Sleep(2 * time.Second)
			if _, err := s.held("x", a, first.n); err != nil || len(a.lines) != 0 {
				t.Errorf("%v, told %v", err, a.lines)
			}
			second := grant(t, s, b)
			if second.n != first.n+1 || first.stands() || len(a.lines) != 1 || !strings.Contains(a.lines[0], `"tools_lost"`) {
				t.Errorf("leases %d and %d, told %v", first.n, second.n, a.lines)
			}
		}},
		{"a quiet holder loses the tag when a call is due to it", func(t *testing.T, s *tags, a, b *pushed) {
			grant(t, s, a)
			if s.due("x") == nil {
				t.Error("nobody serves")
			}
			time.Sleep(2 * time.Second)
			if s.due("x") != nil || len(a.lines) != 1 || len(s.byTag) != 0 {
				t.Errorf("told %v", a.lines)
			}
		}},
		{"a quiet holder loses the tag when it renews", func(t *testing.T, s *tags, a, b *pushed) {
			l := grant(t, s, a)
			time.Sleep(900 * time.Millisecond)
			if _, err := s.renew("x", a, l.n); err != nil {
				t.Error(err)
			}
			time.Sleep(1100 * time.Millisecond)
			if _, err := s.renew("x", a, l.n); err == nil || err.Code != protocol.ToolsLost || len(a.lines) != 1 {
				t.Errorf("%v, told %v", err, a.lines)
			}
		}},
		{"the clock stands while an answer is in progress", func(t *testing.T, s *tags, a, b *pushed) {
			l := grant(t, s, a)
			time.Sleep(600 * time.Millisecond)
			l.enter()
			time.Sleep(time.Minute)
			if _, err := s.serve("x", b, time.Second); err == nil || string(err.Facts["lease_left_ms"]) != "400" {
				t.Errorf("refusal %v", err)
			}
			l.leave(false)
			time.Sleep(300 * time.Millisecond)
			if l.lapsed() {
				t.Error("the time of the answer counted")
			}
			time.Sleep(200 * time.Millisecond)
			if !l.lapsed() {
				t.Error("a refused answer began a new period")
			}
		}},
		{"an answer that counted begins a new period", func(t *testing.T, s *tags, a, b *pushed) {
			l := grant(t, s, a)
			time.Sleep(600 * time.Millisecond)
			l.enter()
			l.enter()
			time.Sleep(time.Second)
			l.leave(true)
			l.leave(false)
			time.Sleep(900 * time.Millisecond)
			if l.lapsed() {
				t.Error("it ran out")
			}
		}},
		{"a closed session frees its tags without a word", func(t *testing.T, s *tags, a, b *pushed) {
			l := grant(t, s, a)
			s.drop(a)
			if l.stands() || s.due("x") != nil || len(a.lines) != 0 {
				t.Errorf("told %v", a.lines)
			}
			grant(t, s, b)
		}},
		{"lease numbers start anywhere and stay below 2^53", func(t *testing.T, s *tags, a, b *pushed) {
			if o := fresh(); o.last == s.last || o.last < 1 || o.last > protocol.MaxInteger/2+1 {
				t.Errorf("%d and %d", o.last, s.last)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { row.run(t, fresh(), &pushed{}, &pushed{}) })
		})
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		cut        bool
	}{
		{"64 KiB are shown whole", strings.Repeat("x", 64<<10), false},
		{"one byte more is cut", strings.Repeat("x", 64<<10+1), true},
		{"characters stay whole", "a" + strings.Repeat("€", 40<<10), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			shown, cut := preview(row.text, "1/c/output")
			if cut != row.cut || !cut && shown != row.text {
				t.Fatalf("%d bytes, cut %v", len(shown), cut)
			}
			head, rest, found := strings.Cut(shown, "\n[")
			_, tail, _ := strings.Cut(rest, "1/c/output]\n")
			if found != cut || cut && (!strings.HasPrefix(row.text, head) || !strings.HasSuffix(row.text, tail) || len(head)+len(tail) > 64<<10 || len(head)+len(tail) < 64<<10-8) {
				t.Errorf("head %d, tail %d", len(head), len(tail))
			}
		})
	}
}

func TestEntryArguments(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		cut        bool
	}{
		{"512 KiB go whole", strings.Repeat("x", 512<<10), false},
		{"more is cut", strings.Repeat("x", 512<<10+1), true},
		{"what would not fit a line once quoted is cut", strings.Repeat(`"`, 512<<10), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			shown, cut := entryArguments(row.text)
			quoted, _ := protocol.Append(nil, shown)
			if cut != row.cut || !strings.HasPrefix(row.text, shown) || len(quoted) > 1000<<10 {
				t.Errorf("%d bytes, %d quoted, cut %v", len(shown), len(quoted), cut)
			}
		})
	}
}
