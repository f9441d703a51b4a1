package engine

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// waits knows who waits for which handles: parked turns and the wait requests
// of clients. It holds no goroutine for any of them; all deadlines share one
// timer (runtime.md 8).
type waits struct {
	mu       sync.Mutex
	byHandle map[string]map[*waiter]bool
	due      deadlines
	timer    *time.Timer
	clients  int64 // waiters of clients, for stats
	added    int64 // waiters that ever stood
}

// waiter is one wait. Its fields belong to waits once it is added.
type waiter struct {
	left     map[string]bool // handles not resolved yet
	any      bool
	deadline time.Time // zero: none
	client   bool
	seq      int64 // in the order of their standing
	// outcomes are those captured when a turn ended while this wait stood;
	// whoever waits with it shares them, and none changes them.
	outcomes map[string]json.RawMessage
	fire     func() // called once, without the lock, when the condition is met
	at       int    // in due, -1 when not there
	over     bool
}

func newWaiter(handles []string, any bool, deadline time.Time, fire func()) *waiter {
	w := &waiter{left: map[string]bool{}, any: any, deadline: deadline, fire: fire, at: -1, outcomes: map[string]json.RawMessage{}}
	for _, h := range handles {
		w.left[h] = true
	}
	return w
}

// add makes a wait stand. Look the handles up after it, so that what resolves
// in between is not missed.
func (ws *waits) add(w *waiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byHandle == nil {
		ws.byHandle = map[string]map[*waiter]bool{}
	}
	for h := range w.left {
		set := ws.byHandle[h]
		if set == nil {
			set = map[*waiter]bool{}
			ws.byHandle[h] = set
		}
		set[w] = true
	}
	ws.added++
	w.seq = ws.added
	if w.client {
		ws.clients++
	}
	if !w.deadline.IsZero() {
		heap.Push(&ws.due, w)
		ws.arm()
	}
}

// waited reports whether anyone waits for a handle.
func (ws *waits) waited(handle string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.byHandle[handle]) > 0
}

// resolve tells everyone who waits for a handle, of the turns or of the clients,
// first come first. outcome may be nil: it is then read when it is wanted.
func (ws *waits) resolve(handle string, outcome json.RawMessage, clients bool) {
	ws.mu.Lock()
	var told []*waiter
	for w := range ws.byHandle[handle] {
		if w.client == clients {
			told = append(told, w)
		}
	}
	slices.SortFunc(told, func(a, b *waiter) int { return cmp.Compare(a.seq, b.seq) })
	var fire []func()
	for _, w := range told {
		if f := ws.resolved(w, handle, outcome); f != nil {
			fire = append(fire, f)
		}
	}
	ws.mu.Unlock()
	for _, f := range fire {
		f()
	}
}

// resolveFor tells one waiter.
func (ws *waits) resolveFor(w *waiter, handle string) {
	ws.mu.Lock()
	f := ws.resolved(w, handle, nil)
	ws.mu.Unlock()
	if f != nil {
		f()
	}
}

// resolved notes a resolution and gives what is to be called then. ws.mu is
// held.
func (ws *waits) resolved(w *waiter, handle string, outcome json.RawMessage) func() {
	if w.over || !w.left[handle] {
		return nil
	}
	delete(w.left, handle)
	ws.unlist(w, handle)
	if outcome != nil {
		w.outcomes[handle] = outcome
	}
	if !w.any && len(w.left) > 0 {
		return nil
	}
	return ws.end(w)
}

// end takes a waiter out. ws.mu is held.
func (ws *waits) end(w *waiter) func() {
	w.over = true
	for h := range w.left {
		ws.unlist(w, h)
	}
	if w.at >= 0 {
		heap.Remove(&ws.due, w.at)
	}
	if w.client {
		ws.clients--
	}
	return w.fire
}

func (ws *waits) unlist(w *waiter, handle string) {
	if set := ws.byHandle[handle]; set != nil {
		if delete(set, w); len(set) == 0 {
			delete(ws.byHandle, handle)
		}
	}
}

// drop forgets a wait that is not wanted any more. It reports whether it still
// stood: then it never fires.
func (ws *waits) drop(w *waiter) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.over {
		return false
	}
	ws.end(w)
	return true
}

// arm sets the timer to the nearest deadline. ws.mu is held.
func (ws *waits) arm() {
	if len(ws.due) == 0 {
		return
	}
	d := max(time.Until(ws.due[0].deadline), 0)
	if ws.timer == nil {
		ws.timer = time.AfterFunc(d, ws.passed)
		return
	}
	ws.timer.Reset(d)
}

// passed fires the waits whose deadline has come.
func (ws *waits) passed() {
	ws.mu.Lock()
	var fire []func()
	now := time.Now()
	for len(ws.due) > 0 && !ws.due[0].deadline.After(now) {
		fire = append(fire, ws.end(ws.due[0]))
	}
	ws.arm()
	ws.mu.Unlock()
	for _, f := range fire {
		f()
	}
}

// stop ends the timer; nothing fires by time any more.
func (ws *waits) stop() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.timer != nil {
		ws.timer.Stop()
	}
	for _, w := range ws.due {
		w.at = -1 // so that it can still be dropped
	}
	ws.due = nil
}

func (ws *waits) waiters() int64 {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.clients
}

// deadlines is a heap by deadline.
type deadlines []*waiter

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i]; d[i].at, d[j].at = i, j }
func (d *deadlines) Push(x any)        { w := x.(*waiter); w.at = len(*d); *d = append(*d, w) }
func (d *deadlines) Pop() any {
	old := *d
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	w.at = -1
	return w
}
