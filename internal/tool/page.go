package tool

import (
	"bytes"
	"fmt"

	"agent/protocol"
)

const (
	maxPage    = 64 << 10 // bytes of a page, with its notices
	noticeRoom = 256      // bytes of it kept for notices
	pieceSize  = 4 << 10  // longest numbered piece of a tool result's line
)

// pager makes one page of numbered lines of the text written to it. It holds
// the page and the line it is in, no more.
type pager struct {
	from, limit int64 // the first line, and how many
	pieces      bool  // lines over pieceSize are split into numbered pieces

	page    []byte
	line    []byte // so far, of the line being written
	open    bool   // that line has begun
	tooLong bool   // and does not fit a page
	number  int64  // lines ended
	last    int64  // last line on the page
	full    bool   // the page takes no more lines
	stuck   int64  // the first line asked for, which fits no page
}

func newPager(from, limit int64) *pager { return &pager{from: from, limit: limit} }

func (p *pager) Write(text []byte) (int, error) {
	n := len(text)
	for len(text) > 0 {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			p.add(text)
			break
		}
		p.add(text[:i])
		p.end()
		text = text[i+1:]
	}
	return n, nil
}

// Close ends the last line, where the text did not.
func (p *pager) Close() error {
	if p.open {
		p.end()
	}
	return nil
}

// wanted reports whether the line being written may come onto the page.
func (p *pager) wanted() bool {
	number := p.number + 1
	return number >= p.from && number-p.from < p.limit && !p.full && p.stuck == 0
}

func (p *pager) add(text []byte) {
	p.open = true
	if p.pieces {
		p.addPieces(text)
		return
	}
	if !p.wanted() || p.tooLong {
		return
	}
	if len(p.line)+len(text) > maxPage {
		p.tooLong = true
		return
	}
	p.line = append(p.line, text...)
}

func (p *pager) addPieces(text []byte) {
	for len(p.line)+len(text) > pieceSize {
		n := pieceSize - len(p.line)
		p.line = append(p.line, text[:n]...)
		text = text[n:]
		whole := wholeCharacters(p.line)
		rest := append([]byte(nil), p.line[len(whole):]...)
		p.line = whole
		p.end()
		p.line = append(p.line, rest...)
		p.open = true
	}
	p.line = append(p.line, text...)
}

// end ends a line, which goes onto the page if it is wanted and fits.
func (p *pager) end() {
	wanted := p.wanted()
	p.number++
	if wanted {
		line := bytes.TrimSuffix(p.line, []byte("\r"))
		size := len(fmt.Sprintf("%6d\t\n", p.number)) + len(line)
		switch {
		case !p.tooLong && len(p.page)+size <= maxPage-noticeRoom:
			p.page = fmt.Appendf(p.page, "%6d\t%s\n", p.number, line)
			p.last = p.number
		case len(p.page) == 0:
			p.stuck = p.number
		default:
			p.full = true
		}
	}
	p.line, p.open, p.tooLong = p.line[:0], false, false
}

// text is the page with its notices; what is named in them.
func (p *pager) text(what string) (string, *Failure) {
	switch {
	case p.stuck > 0:
		return "", failuref(protocol.ReadLineTooLong,
			"line %d does not fit a page of %d bytes; look at it with shell (cut -b), or go on with offset %d", p.stuck, maxPage, p.stuck+1)
	case p.number == 0:
		return fmt.Sprintf("[%s is empty]\n", what), nil
	case p.from > p.number:
		return fmt.Sprintf("[offset %d is past the end: %s has %d lines]\n", p.from, what, p.number), nil
	case p.full:
		p.page = fmt.Appendf(p.page, "[the page is full; go on with offset %d]\n", p.last+1)
	}
	if p.last < p.number || p.from > 1 {
		p.page = fmt.Appendf(p.page, "[lines %d to %d of %d]\n", p.from, p.last, p.number)
	}
	return string(p.page), nil
}
