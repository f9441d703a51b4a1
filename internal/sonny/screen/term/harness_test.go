package term

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/screen/theme"

	"github.com/charmbracelet/x/vt"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// glass is an emulator with a terminal on it, and what was written to it.
type glass struct {
	*Terminal
	t       *testing.T
	resized chan struct{}

	mu     sync.Mutex
	em     *vt.Emulator
	w, h   int
	sent   bytes.Buffer
	modes  map[int]bool
	frames []FrameStats
}

func (g *glass) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent.Write(p)
	return g.em.Write(p)
}

func (g *glass) Read(p []byte) (int, error) { return g.em.Read(p) }

func (g *glass) size() (int, int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.w, g.h, nil
}

// resize gives the emulator another size and says so.
func (g *glass) resize(w, h int) {
	g.mu.Lock()
	g.w, g.h = w, h
	g.em.Resize(w, h)
	g.mu.Unlock()
	g.resized <- struct{}{}
}

// written takes what was written since the last call.
func (g *glass) written() string {
	g.Flush()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sent.String()
	g.sent.Reset()
	return s
}

// rows is the emulator's screen without blanks at the ends of rows.
func (g *glass) rows() []string {
	g.Flush()
	g.mu.Lock()
	defer g.mu.Unlock()
	rows := strings.Split(g.em.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " \r")
	}
	return rows
}

func (g *glass) cursor() (x, y int) {
	g.Flush()
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.em.CursorPosition()
	return p.X, p.Y
}

func (g *glass) last() FrameStats {
	g.Flush()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.frames) == 0 {
		g.t.Fatal("no frame was written")
	}
	return g.frames[len(g.frames)-1]
}

// open opens a terminal on an emulator. more changes the options.
func open(t *testing.T, w, h int, more ...func(*Options)) *glass {
	t.Helper()
	g := &glass{t: t, em: vt.NewEmulator(w, h), w: w, h: h, resized: make(chan struct{}), modes: map[int]bool{}}
	o := Options{
		In: g, Out: g, Size: g.size, Resized: g.resized,
		Env:   func(name string) string { return map[string]string{"TERM": "xterm-256color"}[name] },
		Theme: theme.None(), Depth: theme.Mono,
		OnFrame: func(s FrameStats) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.frames = append(g.frames, s)
		},
	}
	for _, f := range more {
		f(&o)
	}
	term, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	g.Terminal = term
	t.Cleanup(func() {
		term.Close()
		_ = g.em.InputPipe().(io.Closer).Close()
	})
	return g
}

// event waits for the next one.
func (g *glass) event() Event {
	g.t.Helper()
	select {
	case e := <-g.Events():
		return e
	case <-time.After(10 * time.Second):
		g.t.Fatal("no event within 10 s")
		return nil
	}
}

// screenOf is a frame of plain rows with the cursor after the last.
func screenOf(w, h int, rows ...string) *Frame {
	f := NewFrame(w, h)
	for y, s := range rows {
		f.SetCursor(f.Put(0, y, text.Of(text.Plain, s), w), y)
	}
	return f
}
