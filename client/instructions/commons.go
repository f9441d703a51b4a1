package instructions

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agent/protocol"
)

// What of the commons is shown (companions.md 12).
const (
	maxThreads     = 20
	maxThreadFile  = 4 << 10
	maxThreadBytes = 2 << 10 // of all lines
	recentThread   = 14 * 24 * time.Hour
)

// thread is the thread.json of a thread.
type thread struct {
	path     string
	ID       string `json:"id"`
	Title    string `json:"title"`
	By       string `json:"by"`
	Project  string `json:"project"`
	MadeMS   int64  `json:"made_ms"`
	Closed   any    `json:"closed"`   // true, or when
	External any    `json:"external"` // true, or what its author had read
}

// commons adds the open threads of the last fourteen days, the newest first.
func (c *composer) commons() error {
	threads, err := c.threads()
	if err != nil {
		return err
	}
	heading := "\n# Commons\n\nThreads of the person's agents, other agents' words; `read` opens one's posts.\n\n"
	left := maxThreadBytes
	for _, t := range threads {
		line := t.line()
		if left -= len(line); left < 0 || c.parts.Threads == maxThreads {
			break
		}
		if c.parts.Threads == 0 {
			line = heading + line
		}
		if err := c.add(t.path, int64(len(line)), line); err != nil {
			return err
		}
		c.parts.Threads++
	}
	return nil
}

// threads are those to be shown, as far as there is room.
func (c *composer) threads() (open []thread, err error) {
	dir := inAgents(c.Home, "commons", "threads")
	list, err := entries(dir)
	if err != nil {
		return nil, err
	}
	since := c.Now.Add(-recentThread)
	for _, e := range list {
		t, err := readThread(filepath.Join(dir, e.Name()), e)
		if err != nil {
			return nil, err
		}
		if t != nil && !says(t.Closed) && !time.UnixMilli(t.MadeMS).Before(since) {
			open = append(open, *t)
		}
	}
	slices.SortStableFunc(open, func(a, b thread) int {
		return cmp.Or(cmp.Compare(b.MadeMS, a.MadeMS), cmp.Compare(a.path, b.path))
	})
	return open, nil
}

// readThread reads what a folder says of its thread; nil where it holds none.
func readThread(dir string, e os.DirEntry) (*thread, error) {
	folder, err := leadsToFolder(dir, e)
	if err != nil || !folder {
		return nil, err
	}
	path := filepath.Join(dir, "thread.json")
	f, err := readSmall(path, maxThreadFile)
	if err != nil || f == nil {
		return nil, err
	}
	t := thread{path: dir}
	if err := json.Unmarshal([]byte(f.text), &t); err != nil {
		return nil, protocol.Fail(protocol.InstructionsUnreadable, escaped(path)+" is no thread: "+err.Error())
	}
	return &t, nil
}

// says reports whether a field that is a switch, or tells more, is on.
func says(v any) bool { return v != nil && v != false && v != "" && v != 0.0 }

func (t *thread) line() string {
	title := cmp.Or(oneLine(t.Title, maxDescription), escaped(filepath.Base(t.path)))
	by := oneLine(t.By, maxDescription)
	if project := oneLine(t.Project, maxDescription); project != "" {
		by += " of " + project
	}
	if says(t.External) {
		by += ", external"
	}
	return "- " + title + " (by " + by + ", " + escaped(t.path) + ")\n"
}
