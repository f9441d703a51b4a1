package questions

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"agent/internal/place"
	"agent/internal/sonny/host/tools"

	"github.com/fsnotify/fsnotify"
)

// Box is the host's side: it waits for answers. Its methods are safe for concurrent
// use.
type Box struct {
	dir   string
	watch *fsnotify.Watcher
	ended chan struct{}

	mu      sync.Mutex
	waiting map[string]chan struct{} // told, by key, that there may be something
	kept    map[string]bool
}

// OpenBox watches the answers below ~/.agent/sonny. The caller closes it.
func OpenBox(sonny string) (*Box, error) {
	dir := dirOf(sonny)
	if err := place.MakePrivateDir(dir); err != nil {
		return nil, err
	}
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := watch.Add(dir); err != nil {
		watch.Close()
		return nil, err
	}
	b := &Box{dir: dir, watch: watch, ended: make(chan struct{}), waiting: map[string]chan struct{}{}, kept: map[string]bool{}}
	go b.run()
	return b, nil
}

// Close ends the watching, and returns when it has ended.
func (b *Box) Close() {
	b.watch.Close()
	<-b.ended
}

func (b *Box) run() {
	defer close(b.ended)
	for {
		select {
		case e, ok := <-b.watch.Events:
			if !ok {
				return
			}
			b.tell(strings.TrimSuffix(filepath.Base(e.Name), ".json"))
		case _, ok := <-b.watch.Errors:
			if !ok {
				return
			}
			b.tell("") // some were lost
		}
	}
}

// tell has whoever waits look again: for one key, or "" all of them.
func (b *Box) tell(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for of, ch := range b.waiting {
		if key != "" && of != key {
			continue
		}
		select {
		case ch <- struct{}{}:
		default: // it looks already
		}
	}
}

// Wait waits for the answer under a key, until ctx ends. A file that is no answer is
// removed, and said to logf.
func (b *Box) Wait(ctx context.Context, key string, a *Arguments, logf func(string, ...any)) (*Reply, error) {
	look := make(chan struct{}, 1)
	b.mu.Lock()
	b.waiting[key] = look
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.waiting, key)
		b.mu.Unlock()
	}()
	for {
		r, err := read(b.dir, key, a)
		if err != nil {
			logf("%v", err)
		}
		if r != nil {
			return r, nil
		}
		select {
		case <-look:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// DropTurn takes away the answers to a turn's questions: the turn is over.
func (b *Box) DropTurn(turn int64) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if tools.TurnOfKey(e.Name()) == turn {
			os.Remove(filepath.Join(b.dir, e.Name()))
		}
	}
}

// Keep says that an answer's call is still open, for Sweep.
func (b *Box) Keep(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept[key] = true
}

// Sweep removes the answers of calls that are over. It is called once, before any call
// comes.
func (b *Box) Sweep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		// An answer that is being written has its key in its name too.
		if key, _, _ := strings.Cut(strings.TrimPrefix(e.Name(), "."), ".json"); !b.kept[key] {
			os.Remove(filepath.Join(b.dir, e.Name()))
		}
	}
}
