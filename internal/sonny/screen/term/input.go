package term

import (
	"bytes"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
)

// How long input waits for what belongs together.
const (
	escWait   = 50 * time.Millisecond // a lone ESC is Esc after it
	restWait  = time.Second           // the rest of a sequence or paste that began
	burstWait = 30 * time.Millisecond // more newlines, where pastes have no brackets
	burstMost = 3                     // newlines that may be typed within it
)

// MaxPaste bounds a paste: 16 MiB. What comes after it is dropped.
const MaxPaste = 16 << 20

var (
	pasteBegin = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// input makes events of what the terminal sends. One goroutine runs it, and it never
// waits for drawing.
type input struct {
	emit      func(Event)
	answer    func(reply, Event)
	bracketed func() bool // the terminal puts brackets around a paste

	dec  uv.EventDecoder
	buf  []byte    // read and not understood yet
	last time.Time // when the newest of it came

	pasting bool
	paste   []byte
	cut     bool
	doubt   bool // its end was there, and more came with it (pasted)

	held   []Event // a burst that may be a paste without brackets
	since  time.Time
	breaks int
}

// run reads chunks until there are no more or stop closes.
func (in *input) run(chunks <-chan []byte, stop <-chan struct{}) {
	timer := time.NewTimer(restWait)
	defer timer.Stop()
	for {
		select {
		case chunk, ok := <-chunks:
			if !ok {
				in.expire()
				return
			}
			in.take(chunk)
		case <-timer.C:
			in.expire()
		case <-stop:
			return
		}
		timer.Stop()
		if at, waiting := in.deadline(); waiting {
			timer.Reset(time.Until(at))
		}
	}
}

// deadline is when what is held back is taken for what it is.
func (in *input) deadline() (time.Time, bool) {
	switch {
	case len(in.held) > 0 && in.breaks > burstMost:
		return in.last.Add(burstWait), true
	case len(in.held) > 0:
		return in.since.Add(burstWait), true
	case in.doubt:
		return in.last.Add(burstWait), true
	case in.pasting || len(in.buf) > 2:
		return in.last.Add(restWait), true
	}
	return in.last.Add(escWait), len(in.buf) > 0
}

func (in *input) take(chunk []byte) {
	in.last = time.Now()
	if !in.bracketed() && !in.pasting && len(in.held) == 0 && newlines(chunk) > burstMost {
		in.since = in.last
		in.held = make([]Event, 0, len(chunk))
		in.breaks = 0
		in.buf = append(in.buf, chunk...)
		in.scan(in.hold)
		return
	}
	in.buf = append(in.buf, chunk...)
	in.scan(in.deliver)
}

func newlines(b []byte) int {
	return max(bytes.Count(b, []byte{'\n'}), bytes.Count(b, []byte{'\r'}))
}

// scan takes every whole sequence from the buffer.
func (in *input) scan(to func(Event)) {
	for len(in.buf) > 0 {
		if in.pasting {
			if !in.pasted() {
				return
			}
			continue
		}
		n, whole := sequence(in.buf)
		if !whole {
			return
		}
		seq := in.buf[:n]
		in.buf = in.buf[n:]
		in.one(seq, to)
	}
	in.buf = nil
}

func (in *input) one(seq []byte, to func(Event)) {
	if len(seq) == 1 && seq[0] == esc {
		to(Key{Name: "esc"})
		return
	}
	e, r := decode(&in.dec, seq)
	switch {
	case r.begins:
		in.release()
		in.pasting, in.paste, in.cut = true, nil, false
		in.answer(r, nil)
	case r != (reply{}):
		in.answer(r, e)
	case e != nil:
		to(e)
	}
}

// pasted moves what is of a paste, and reports whether there is more to be looked at.
//
// Some terminals pass on the end of a paste that lies in the pasted text itself: what
// follows would be keys, which send and run. So where something comes right behind an
// end, it is held for a moment: a second end, with no beginning before it, says that it
// was pasted, too.
func (in *input) pasted() bool {
	end := bytes.Index(in.buf, pasteEnd)
	begin := bytes.Index(in.buf, pasteBegin)
	switch {
	case in.doubt && begin >= 0 && (end < 0 || begin < end):
		in.finish()
		return true
	case end >= 0:
		in.keep(in.buf[:end])
		in.buf = in.buf[end+len(pasteEnd):]
		if in.doubt = len(in.buf) > 0; !in.doubt {
			in.finish()
		}
		return true
	case in.doubt:
		return false
	}
	whole := len(in.buf) - (len(pasteEnd) - 1) // the end may have begun
	if whole > 0 {
		in.keep(in.buf[:whole])
		in.buf = append([]byte{}, in.buf[whole:]...)
	}
	return false
}

func (in *input) keep(b []byte) {
	room := MaxPaste - len(in.paste)
	if len(b) > room {
		b, in.cut = b[:room], true
	}
	in.paste = append(in.paste, b...)
}

func (in *input) finish() {
	in.emit(Paste{Text: strings.ToValidUTF8(string(in.paste), "\uFFFD"), Cut: in.cut})
	in.pasting, in.paste, in.doubt = false, nil, false
}

// deliver hands an event on, or holds it back where it may be the first of a burst.
func (in *input) deliver(e Event) {
	if len(in.held) == 0 && (in.bracketed() || breakOf(e) == 0) {
		in.emit(e)
		return
	}
	if len(in.held) == 0 {
		in.since, in.breaks = in.last, 0
	}
	in.hold(e)
}

func (in *input) hold(e Event) {
	if k, ok := e.(Key); !ok || burstText(k) == "" {
		in.release()
		in.emit(e)
		return
	}
	b := breakOf(e)
	if b == '\n' && len(in.held) > 0 && breakOf(in.held[len(in.held)-1]) == '\r' {
		return // the second half of a CRLF
	}
	if b != 0 {
		in.breaks++
	}
	if len(in.held) < MaxPaste {
		in.held = append(in.held, e)
	}
}

// release says what was held: a paste, or the keys it came as.
func (in *input) release() {
	held := in.held
	in.held = nil
	if in.breaks <= burstMost {
		for _, e := range held {
			in.emit(e)
		}
		return
	}
	in.breaks = 0
	var b strings.Builder
	for _, e := range held {
		b.WriteString(burstText(e.(Key)))
	}
	in.emit(Paste{Text: b.String()})
}

// burstText is what a key would be in a paste, "" for one that is none of it.
func burstText(k Key) string {
	switch k.Name {
	case "enter", "ctrl+j":
		return "\n"
	case "tab":
		return "\t"
	}
	return k.Text
}

func breakOf(e Event) byte {
	if k, ok := e.(Key); ok && k.Name == "enter" {
		return '\r'
	} else if ok && k.Name == "ctrl+j" {
		return '\n'
	}
	return 0
}

// expire takes what is held back for what it is, since no more of it came.
func (in *input) expire() {
	if len(in.held) > 0 {
		in.release()
	}
	if in.doubt {
		in.finish()
		in.scan(in.deliver)
		return
	}
	if in.pasting {
		in.keep(in.buf)
		in.buf = nil
		in.finish()
		return
	}
	switch b := in.buf; {
	case len(b) == 0:
	case len(b) == 1 && b[0] == esc:
		in.emit(Key{Name: "esc"})
	case len(b) == 2 && b[0] == esc && b[1] == esc:
		in.emit(Key{Name: "esc"})
		in.emit(Key{Name: "esc"})
	case len(b) == 2 && b[0] == esc:
		in.one(b, in.emit)
	case len(b) == 3 && b[0] == esc && b[1] == esc:
		in.emit(Key{Name: "esc"})
		in.one(b[1:], in.emit)
	}
	in.buf = nil
}
