package tool

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// How much of a stream is shown and kept (runtime.md 12), in bytes after
// redaction.
const (
	maxPreview = 64 << 10 // shown whole
	halfShown  = 32 << 10 // of a longer stream: its head and its tail
	maxRow     = 1 << 20  // kept in memory, and in a row
	maxStream  = 64 << 20 // kept at all
)

// What ends a stream, and the command it comes from, before its time.
var (
	errStreamLimit = errors.New("stream limit") // it passed maxStream
	errDiskFull    = errors.New("disk full")    // there is no room for its file
)

// capture takes in one stream: text comes in through its Write in pieces of
// any size, is made UTF-8, redacted, and only then kept. What is kept moves
// from memory to a file at 1 MiB, or before when Env.Captures has no room; the
// preview is read back from there, so a spilled capture holds no memory.
//
// A capture is for one goroutine at a time.
type capture struct {
	env    *Env
	stream string
	in     *repairer
	mask   io.WriteCloser

	tail  *tail  // gets what is kept as it comes; nil: none
	kept  []byte // while there is no file
	spill *spill
	total int64 // bytes kept, in memory or in the file
	full  bool  // the disk took no more
	over  bool  // passed maxStream
}

func newCapture(env *Env, stream string) *capture {
	c := &capture{env: env, stream: stream}
	c.mask = env.Redact.Stream((*keeper)(c))
	c.in = newRepairer(c.mask)
	return c
}

// Write takes in a piece of the stream. It returns errStreamLimit once the
// stream has passed its limit, and errDiskFull once the disk has no room for it;
// what comes then is dropped.
func (c *capture) Write(p []byte) (int, error) {
	if err := c.ended(); err != nil {
		return len(p), err
	}
	if _, err := c.in.Write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ended says why nothing more is kept, nil while something is.
func (c *capture) ended() error {
	switch {
	case c.full:
		return errDiskFull
	case c.over:
		return errStreamLimit
	}
	return nil
}

// keeper is the end of a capture's pipeline.
type keeper capture

func (k *keeper) Write(p []byte) (int, error) {
	if err := (*capture)(k).ended(); err != nil {
		return 0, err
	}
	n := len(p)
	if room := maxStream - k.total; int64(n) > room {
		k.over = true
		p = wholeCharacters(p[:room])
	}
	if k.tail != nil {
		k.tail.add(p)
	}
	k.keep(p)
	return n, (*capture)(k).ended()
}

func (k *keeper) keep(p []byte) {
	switch {
	case k.spill == nil && k.total+int64(len(p)) <= maxRow && k.grow(len(p)):
		k.kept = append(k.kept, p...)
		k.total += int64(len(p))
		return
	case k.spill == nil:
		k.toFile()
	}
	if !k.full {
		k.toSpill(p)
	}
}

// grow makes room in memory for n more bytes, if the budget has it.
func (k *keeper) grow(n int) bool {
	need := len(k.kept) + n
	if need <= cap(k.kept) {
		return true
	}
	size := min(max(4<<10, 2*cap(k.kept), need), maxRow)
	if !k.env.Captures.Take(int64(size - cap(k.kept))) {
		return false
	}
	bigger := make([]byte, len(k.kept), size)
	copy(bigger, k.kept)
	k.kept = bigger
	return true
}

// toFile moves what is kept into a new file.
func (k *keeper) toFile() {
	s, err := newSpill(k.env.FilesDir, fmt.Sprintf("%d-%s", k.env.Turn, k.stream))
	if err != nil {
		k.full = true
		return
	}
	k.spill = s
	held := k.kept
	k.total = 0
	k.toSpill(held)
	(*capture)(k).release()
}

// toSpill appends to the file, as much as the disk takes.
func (k *keeper) toSpill(p []byte) {
	n, err := k.spill.append(p)
	if err != nil {
		whole := len(wholeCharacters(p[:n]))
		if terr := k.spill.file.Truncate(k.total + int64(whole)); terr == nil {
			n = whole
		}
		k.full = true
	}
	k.total += int64(n)
}

// release gives the memory back.
func (c *capture) release() {
	c.env.Captures.Give(int64(cap(c.kept)))
	c.kept = nil
}

// captured is what became of a stream.
type captured struct {
	preview  string
	artifact *Artifact
	over     bool // it passed maxStream
	full     bool // the disk took no more
}

// finish ends the stream and gives what is shown and kept of it. A file it
// names is complete and synced. The capture must not be used afterwards; its
// memory has gone to the result, or back.
func (c *capture) finish() captured {
	// What is still held is dropped where the stream was ended.
	_ = c.in.Close()
	_ = c.mask.Close()
	defer c.release()
	if c.spill != nil {
		return c.finishSpill()
	}
	out := captured{over: c.over, full: c.full, preview: c.preview(c.kept, tailOf(c.kept), nil)}
	if c.total > maxPreview || c.full {
		out.artifact = &Artifact{Stream: c.stream, Data: fitted(c.kept), Bytes: c.total, Truncated: c.full}
	}
	return out
}

// fitted is b without spare capacity to speak of.
func fitted(b []byte) []byte {
	if cap(b)-len(b) <= len(b)/8 {
		return b
	}
	return append(make([]byte, 0, len(b)), b...)
}

func (c *capture) finishSpill() captured {
	out := captured{over: c.over, full: c.full}
	head, tail, err := c.ends()
	switch {
	case err != nil:
	case c.total <= maxRow && !c.full: // it came to the file for want of memory
		var data []byte
		if data, err = c.spill.readBack(0, c.total); err == nil && c.total > maxPreview {
			out.artifact = &Artifact{Stream: c.stream, Data: data, Bytes: c.total}
		}
		c.spill.remove()
	default:
		if err = c.spill.seal(); err == nil {
			out.artifact = &Artifact{Stream: c.stream, File: c.spill.path, Bytes: c.total, Truncated: c.full}
		} else {
			// The disk refused what it had taken: none of it can be relied on.
			c.spill.remove()
		}
	}
	out.preview = c.preview(head, tail, err)
	return out
}

// ends reads the head and the tail of the file.
func (c *capture) ends() (head, tail []byte, err error) {
	if head, err = c.spill.readBack(0, min(c.total, maxPreview)); err != nil {
		return nil, nil, err
	}
	n := min(c.total, halfShown)
	tail, err = c.spill.readBack(c.total-n, n)
	return head, tail, err
}

// preview is what the model is shown: the whole when that fits, else the first
// part of head and of tail with a line between them. head holds the first 64
// KiB at least; unkept says why the rest was not kept.
func (c *capture) preview(head, tail []byte, unkept error) string {
	switch {
	case c.total > maxPreview:
		head = wholeCharacters(head[:min(len(head), halfShown)])
		tail = fromCharacter(tail)
	case !c.full:
		return string(head)
	default:
		tail = nil // little was kept before the disk was full
	}
	newline := ""
	if len(head) > 0 && head[len(head)-1] != '\n' {
		newline = "\n"
	}
	omitted := c.total - int64(len(head)) - int64(len(tail))
	return string(head) + newline + c.notice(omitted, unkept) + string(tail)
}

func (c *capture) notice(omitted int64, unkept error) string {
	if unkept != nil {
		return fmt.Sprintf("[%d bytes omitted here; they could not be kept: %v]\n", omitted, unkept)
	}
	limits := ""
	if c.full {
		limits = fmt.Sprintf("; the disk is full: only the first %d bytes of the stream are kept", c.total)
	} else if c.over {
		limits = fmt.Sprintf("; only the first %d bytes of the stream are kept", c.total)
	}
	return fmt.Sprintf("[%d bytes omitted here%s; to read what is kept, call read with artifact %s]\n",
		omitted, limits, c.env.reference(c.stream))
}

// reference is the name of a retained stream of this call.
func (e *Env) reference(stream string) string {
	return fmt.Sprintf("%d/%s/%s", e.Turn, e.CallID, stream)
}

func tailOf(b []byte) []byte { return b[max(0, len(b)-halfShown):] }

// wholeCharacters drops a character that b's end breaks off.
func wholeCharacters(b []byte) []byte {
	whole, _ := splitBroken(b)
	return whole
}

// fromCharacter drops what is left at b's start of a character cut in two.
func fromCharacter(b []byte) []byte {
	for i := 0; i < len(b) && i < utf8.UTFMax-1; i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}
