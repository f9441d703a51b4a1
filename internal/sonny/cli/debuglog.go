package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"agent/client/termsafe"
	"agent/internal/place"
	"agent/internal/sonny/fault"
	"agent/protocol"
)

// debugLog is the file of --log: a JSON object a line, of what a run of the command did.
// Names and codes alone stand there; with --log-content the daemon's events whole too. It
// may be used by several goroutines, and is nothing at all without --log.
type debugLog struct {
	mu      sync.Mutex
	file    *os.File
	content bool
}

// openLog opens the file of --log, at its end.
func (a *app) openLog() error {
	if a.flags.log == "" {
		if a.flags.logContent {
			return usagef("--log-content goes with --log FILE")
		}
		return nil
	}
	f, err := place.OpenPrivate(a.flags.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return usagef("--log: %s", fault.Verb.Words(err))
	}
	a.log = &debugLog{file: f, content: a.flags.logContent}
	return nil
}

// logged is one line.
type logged struct {
	At     time.Time       `json:"at"`
	What   string          `json:"what"`
	Detail string          `json:"detail,omitempty"`
	Bot    string          `json:"bot,omitempty"`
	Turn   int64           `json:"turn,omitempty"`
	Cursor int64           `json:"cursor,omitempty"`
	Event  json.RawMessage `json:"event,omitempty"`
}

func (l *debugLog) write(line logged) {
	if l == nil {
		return
	}
	line.At = time.Now().UTC()
	text, err := json.Marshal(line)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.file.Write(append(termsafe.AppendJSON(nil, text), '\n')) // what is logged cannot be kept: the work goes on
}

// say logs what happened, in words that hold no content.
func (l *debugLog) say(what, detail string) { l.write(logged{What: what, Detail: detail}) }

// sayf is say for what formats its words itself.
func (l *debugLog) sayf(format string, args ...any) { l.say("client", fmt.Sprintf(format, args...)) }

// heard logs an event of the daemon's. Streamed text is content.
func (l *debugLog) heard(e *protocol.Event) {
	if l == nil || e.IsDelta() && !l.content {
		return
	}
	line := logged{What: e.Kind, Bot: e.Bot, Turn: e.Turn, Cursor: e.Cursor}
	if l.content {
		line.Event = json.RawMessage(e.Line)
	}
	l.write(line)
}
