// Package term is Sonny's way to the terminal (sonny.md 7.3): it switches a terminal to
// the modes a screen needs and back, says what the person does as events, and turns
// frames into the few bytes that make the terminal show them. It is the one room that
// knows escape sequences.
//
// There is no clock in it: whoever owns the screen decides when to draw.
package term

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"agent/internal/sonny/screen/text"
	"agent/internal/sonny/screen/theme"

	"github.com/muesli/cancelreader"
	xterm "golang.org/x/term"
)

// answerWait is how long Open waits for what the terminal says of itself.
const answerWait = 100 * time.Millisecond

// closeWait is how long a terminal that takes nothing is waited for at the end.
const closeWait = 500 * time.Millisecond

// Options say how a terminal is opened. In and Out are needed.
type Options struct {
	In  io.Reader
	Out io.Writer
	// Size gives the size in cells; nil asks Out, which then must be a terminal.
	Size func() (w, h int, err error)
	// Resized tells that the size may have changed; nil takes the process's SIGWINCH.
	Resized <-chan struct{}
	Env     func(string) string // nil is os.Getenv

	Inline bool // the live region below the scrollback, no alternate screen, no mouse
	Lines  bool // lines of text alone (Write): nothing is drawn and no sequence is ever sent
	Mouse  MouseUse
	Theme  theme.Theme
	Depth  theme.Depth
	ASCII  bool
	Tmux   Tmux // AskTmux

	OnFrame func(FrameStats) // after each frame, on the painting goroutine
}

// Features are what the terminal said it has.
type Features struct {
	Answered bool // it answers questions at all
	Sync     bool // frames show at once (mode 2026)
	Unicode  bool // it measures by grapheme cluster (mode 2027)
	Keyboard bool // the extended keyboard protocol
	Paste    bool // it puts brackets around a paste
}

// Terminal is an open terminal. Draw, Print and the setters are for the goroutine that
// owns the screen; Close may be called from any.
type Terminal struct {
	o      Options
	plain  bool // a terminal that knows few sequences
	screen bool // inside GNU screen
	p      *painter
	events chan Event
	stop   chan struct{}
	wg     sync.WaitGroup

	mu         sync.Mutex
	feats      Features
	background Background
	reported   bool // background is what the terminal answered
	asked      int  // questions for the background that are open
	answered   chan struct{}
	mouse      MouseUse
	saved      *xterm.State
	session    *session
	suspended  bool
	closed     bool
	once       sync.Once // Closed is sent once
	closing    sync.Once
}

// Open switches a terminal to the screen's modes and asks it what it has, for which it
// waits 100 ms at most. It must be closed. An error is of switching to raw mode; the
// terminal is then as it was.
func Open(o Options) (*Terminal, error) {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	name := o.Env("TERM")
	t := &Terminal{
		o: o, mouse: o.Mouse, plain: plainTerm(name) || o.Lines,
		screen: strings.HasPrefix(name, "screen") && o.Env("TMUX") == "",
		events: make(chan Event, 1024), stop: make(chan struct{}), answered: make(chan struct{}),
	}
	t.o.Tmux.Inside = o.Env("TMUX") != ""
	t.feats.Paste = !o.Lines && (t.o.Tmux.Inside || t.screen)
	if err := t.raw(); err != nil {
		return nil, err
	}
	t.p = newPainter(o.Out, t.renderer(), t.traced(), t.gone)
	t.p.send(t.enter())
	if err := t.read(); err != nil {
		t.Close()
		return nil, err
	}
	t.wg.Go(t.watchSize)
	t.ask()
	return t, nil
}

func (t *Terminal) renderer() renderer {
	r := renderer{inline: t.o.Inline, looks: looks{
		theme: t.o.Theme, depth: t.o.Depth, ascii: t.o.ASCII, links: !t.plain && !t.screen,
	}}
	if t.o.Depth == theme.Mono {
		r.theme = theme.None()
	}
	return r
}

// traced is where frames are reported to: the caller's, and the trace of a test build.
func (t *Terminal) traced() func(FrameStats) {
	trace := traceTo(t.o.Env("SONNY_TRACE"))
	if trace == nil {
		return t.o.OnFrame
	}
	return func(s FrameStats) {
		trace(s)
		if t.o.OnFrame != nil {
			t.o.OnFrame(s)
		}
	}
}

// raw switches the terminal's line discipline off.
func (t *Terminal) raw() error {
	f, ok := t.o.In.(*os.File)
	if !ok || !xterm.IsTerminal(int(f.Fd())) {
		return nil
	}
	saved, err := xterm.MakeRaw(int(f.Fd()))
	if err != nil {
		return err
	}
	t.saved = saved
	return nil
}

func (t *Terminal) cooked() {
	if f, ok := t.o.In.(*os.File); ok && t.saved != nil {
		_ = xterm.Restore(int(f.Fd()), t.saved)
	}
}

// ask asks what the terminal has, and waits a little for the answers.
func (t *Terminal) ask() {
	if t.plain {
		return
	}
	t.mu.Lock()
	t.asked = 1
	t.mu.Unlock()
	t.p.send(questions)
	late := time.NewTimer(answerWait)
	defer late.Stop()
	select {
	case <-t.answered:
	case <-late.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = 0 // an answer from here on is too late to choose a theme by
}

// session is one stretch of reading, from Open or Resume on.
type session struct {
	reader cancelreader.CancelReader
	quit   chan struct{} // closed to end it
	ended  chan struct{} // closed when it has
}

// read starts reading. It ends with the session where the input is a file, else with the
// input.
func (t *Terminal) read() error {
	r, err := cancelreader.NewReader(t.o.In)
	if err != nil {
		return err
	}
	s := &session{reader: r, quit: make(chan struct{}), ended: make(chan struct{})}
	t.mu.Lock()
	t.session = s
	t.mu.Unlock()
	in := &input{emit: func(e Event) { t.emit(e, s.quit) }, answer: t.answer, bracketed: t.hasPaste}
	chunks, understood := make(chan []byte), make(chan struct{})
	t.wg.Go(func() {
		defer close(understood)
		in.run(chunks, s.quit)
	})
	go func() {
		defer close(s.ended)
		err := chunked(r, chunks, s.quit)
		close(chunks)
		<-understood
		if !errors.Is(err, cancelreader.ErrCanceled) {
			t.gone(err)
		}
	}()
	return nil
}

// end ends a session and waits for it, where its input can be left. It reports whether
// it has ended.
func (s *session) end() bool {
	close(s.quit)
	if !s.reader.Cancel() {
		return false
	}
	<-s.ended
	_ = s.reader.Close()
	return true
}

// chunked hands on what is read, until it fails or is ended.
func chunked(r io.Reader, chunks chan<- []byte, stop <-chan struct{}) error {
	for {
		b := make([]byte, 4096)
		n, err := r.Read(b)
		if n > 0 {
			select {
			case chunks <- b[:n]:
			case <-stop:
				return cancelreader.ErrCanceled
			}
		}
		if err != nil {
			return err
		}
	}
}

// gone says that the terminal went away.
func (t *Terminal) gone(err error) {
	t.mu.Lock()
	closed := t.closed
	t.mu.Unlock()
	if !closed {
		t.once.Do(func() { t.emit(Closed{Err: err}, t.stop) })
	}
}

// emit hands on an event. One that nobody takes is waited for, so that the keys after it
// wait in the terminal, until quit closes.
func (t *Terminal) emit(e Event, quit <-chan struct{}) {
	if _, ok := e.(Key); ok {
		t.p.key(time.Now())
	}
	select {
	case t.events <- e:
	case <-quit:
	}
}

// answer takes what the terminal says of itself.
func (t *Terminal) answer(r reply, e Event) {
	t.mu.Lock()
	tell, s := t.learn(r, e), t.session
	t.mu.Unlock()
	if tell {
		t.emit(e, s.quit)
	}
}

// learn notes an answer, and reports whether it is an event too. The lock is held.
func (t *Terminal) learn(r reply, e Event) bool {
	switch {
	case r.begins:
		t.feats.Paste = true
	case r.kitty:
		t.feats.Keyboard = true
	case r.colored:
		return t.coloured(e)
	case r.known && r.mode == modeSync:
		t.feats.Sync = true
	case r.known && r.mode == modeUnicode:
		t.feats.Unicode = true
	case r.known && r.mode == modePaste:
		t.feats.Paste = true
	case r.done && !t.feats.Answered:
		t.feats.Answered = true
		t.grant()
		close(t.answered)
	}
	return false
}

// grant uses what the terminal said it has. Its lock is held.
func (t *Terminal) grant() {
	f := t.feats
	t.p.look(func(r *renderer) { r.sync, r.unicode = f.Sync, f.Unicode })
	if !t.suspended && !t.closed {
		t.p.send(f.granted())
	}
}

// coloured takes the answer to a question for the background, and reports whether it is
// news. One that nobody asked for, or that came too late to choose a theme by, is dropped.
func (t *Terminal) coloured(e Event) bool {
	b, ok := e.(Background)
	if !ok || t.asked == 0 {
		return false
	}
	t.asked--
	opening := !t.feats.Answered
	t.background, t.reported = b, t.reported || opening
	return !opening
}

// Events are what happens, in order. The last is Closed; the channel is not closed.
func (t *Terminal) Events() <-chan Event { return t.events }

// Features are what the terminal has said of itself so far.
func (t *Terminal) Features() Features {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.feats
}

func (t *Terminal) hasPaste() bool { return t.Features().Paste }

// Background is what the terminal answered for its background as it was opened, false
// where it did not within 100 ms.
func (t *Terminal) Background() (Background, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.background, t.reported
}

// AskBackground asks anew, after a report of the terminal that its scheme changed: the
// answer comes as Background with its Color.
func (t *Terminal) AskBackground() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.feats.Answered {
		t.asked++
		t.p.send(askBackground)
	}
}

// Size is the terminal's size in cells.
func (t *Terminal) Size() (w, h int, err error) {
	if t.o.Size != nil {
		return t.o.Size()
	}
	f, ok := t.o.Out.(*os.File)
	if !ok {
		return 0, 0, errors.New("the output is no terminal and Options.Size is not set")
	}
	return xterm.GetSize(int(f.Fd()))
}

// watchSize reports each change of the size.
func (t *Terminal) watchSize() {
	if t.o.Resized != nil {
		t.sizes(t.o.Resized)
		return
	}
	signals, resized := make(chan os.Signal, 1), make(chan struct{}, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	defer signal.Stop(signals)
	t.wg.Go(func() { t.sizes(resized) })
	for {
		select {
		case <-signals:
			select {
			case resized <- struct{}{}:
			default:
			}
		case <-t.stop:
			return
		}
	}
}

func (t *Terminal) sizes(resized <-chan struct{}) {
	for {
		select {
		case <-resized:
			if w, h, err := t.Size(); err == nil {
				t.emit(Resize{W: w, H: h}, t.stop)
			}
		case <-t.stop:
			return
		}
	}
}

// Draw shows a frame and takes it over. It does not wait: while the terminal is busy
// with one, only the newest of those that follow is drawn.
func (t *Terminal) Draw(f *Frame) {
	if !t.o.Lines {
		t.p.draw(f)
	}
}

// Write writes text as it is, for a terminal that is opened for Lines. It waits only
// while 1 MiB waits.
func (t *Terminal) Write(s string) { t.p.write(s) }

// Print puts finished lines into the scrollback above the live region, each exactly
// once and in order. It waits only while 10,000 lines wait. In the full mode there is no
// scrollback and it does nothing.
func (t *Terminal) Print(lines []text.Line) {
	if t.o.Inline {
		t.p.print(lines)
	}
}

// SetTheme changes the looks from the next frame on, which is written whole.
func (t *Terminal) SetTheme(th theme.Theme) {
	t.p.look(func(r *renderer) {
		if r.depth != theme.Mono {
			r.theme = th
		}
		r.again()
	})
}

// Redraw has the next frame written whole.
func (t *Terminal) Redraw() { t.p.look(func(r *renderer) { r.again() }) }

// SetMouse changes what is taken from the terminal's mouse.
func (t *Terminal) SetMouse(m MouseUse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mouse = m
	if !t.o.Inline && !t.o.Lines && !t.suspended {
		t.p.send(mouseOff + m.on())
	}
}

// Flush waits until everything is written, 500 ms at most, and reports whether it is.
func (t *Terminal) Flush() bool { return t.p.flush(closeWait) }

// Suspend gives the terminal back, for another program or a stopped process. Frames and
// lines wait until Resume.
func (t *Terminal) Suspend() {
	t.mu.Lock()
	if t.suspended || t.closed {
		t.mu.Unlock()
		return
	}
	t.suspended = true
	s := t.session
	t.mu.Unlock()
	t.p.hold(true)
	s.end()
	t.p.flush(closeWait)
	t.p.send(t.leave(t.Features(), t.p.row()))
	t.p.flush(closeWait)
	t.cooked()
}

// Resume takes the terminal back. The next frame is written whole. An error is of
// switching to raw mode or of reading; the terminal must then be closed.
func (t *Terminal) Resume() error {
	t.mu.Lock()
	if !t.suspended || t.closed {
		t.mu.Unlock()
		return nil
	}
	t.suspended = false
	f := t.feats
	t.mu.Unlock()
	if err := t.raw(); err != nil {
		return err
	}
	t.p.look(func(r *renderer) { r.reset() })
	t.p.send(t.enter() + f.granted())
	t.p.hold(false)
	return t.read()
}

// Close gives the terminal back as it was and ends everything. It may be called from any
// goroutine and more than once, after a crash too; a terminal that takes nothing is
// waited for half a second.
func (t *Terminal) Close() {
	t.closing.Do(t.close)
}

func (t *Terminal) close() {
	t.mu.Lock()
	t.closed = true
	s, suspended := t.session, t.suspended
	t.mu.Unlock()
	written := t.p.flush(closeWait)
	if !suspended {
		t.p.hold(true)
		t.p.send(t.leave(t.Features(), t.p.row()))
	}
	t.p.finish()
	written = written && t.p.flush(closeWait)
	if !suspended {
		t.cooked()
	}
	close(t.stop)
	if s != nil && !suspended {
		s.end()
	}
	if written {
		<-t.p.done
	}
	t.wg.Wait()
	t.once.Do(func() {
		select {
		case t.events <- Closed{}:
		default:
		}
	})
}

// Settle joins size changes into one relayout, 50 ms after the last (sonny.md 7.3). The
// zero value is ready; its clock is the caller's.
type Settle struct {
	size Resize
	due  time.Time
}

const settleWait = 50 * time.Millisecond

// Note takes a change, and says when to ask for it.
func (s *Settle) Note(r Resize, now time.Time) time.Time {
	s.size, s.due = r, now.Add(settleWait)
	return s.due
}

// Due is the size to lay out for, once, when its time has come.
func (s *Settle) Due(now time.Time) (Resize, bool) {
	if s.due.IsZero() || now.Before(s.due) {
		return Resize{}, false
	}
	s.due = time.Time{}
	return s.size, true
}
