package config

import (
	"sync"
	"time"
)

// lookAfter is how long what was read of a file holds without another look at it
// (sonny.md 20): with a look as often, a change is seen within ten seconds.
const lookAfter = 5 * time.Second

// Watch is a config.toml for a program that runs on: it is read again when it has
// changed. It is safe for concurrent use.
type Watch struct {
	path string

	mu     sync.Mutex
	stamp  Stamp
	looked time.Time
	config *Config
	err    error
}

// NewWatch is the watch of a file, which need not be there. Nothing is read yet.
func NewWatch(path string) *Watch { return &Watch{path: path} }

// Path is the file's.
func (w *Watch) Path() string { return w.path }

// Config is what the file says, as of a few seconds ago at most. It is never nil; with
// config_invalid, of Resolve, nothing may run that it confines. It is shared and not to
// be changed.
func (w *Watch) Config() (*Config, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.config != nil && time.Since(w.looked) < lookAfter {
		return w.config, w.err
	}
	w.looked = time.Now()
	now, changed := Changed(w.path, w.stamp)
	if w.config == nil || changed {
		w.stamp = now
		w.config, _, w.err = Load(w.path)
	}
	return w.config, w.err
}
