package tool

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"agent/protocol"
)

// sniffSize is how many bytes of a page say what it is, and in which characters.
const sniffSize = 1024

// pageRead is what reading a page came to.
type pageRead struct {
	contentType string // as the server names it, or by the content
	truncated   bool   // there was more
	over        bool   // its text passed maxFetched
}

// readPage writes a page's text to w as it comes.
func readPage(res *http.Response, w io.Writer) (pageRead, error) {
	packed := &bounded{r: res.Body, left: maxBody}
	plain, err := unpack(packed, res.Header.Get("Content-Encoding"))
	if err != nil {
		return pageRead{}, err
	}
	body := &bounded{r: plain, left: maxBody}
	p := pageRead{contentType: res.Header.Get("Content-Type")}
	limited := &limitedWriter{w: w, left: maxFetched}
	err = p.read(res, bufio.NewReaderSize(body, 4<<10), limited)
	if errors.Is(err, errTextLimit) || errors.Is(err, errStreamLimit) || errors.Is(err, errDiskFull) {
		p.over, err = true, nil
	}
	if packed.cut && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // what is packed ends where reading was stopped
	}
	p.truncated = packed.cut || body.cut || p.over
	return p, err
}

// unpack undoes the one encoding that was asked for.
func unpack(r io.Reader, encoding string) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return r, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(r)
		if errors.Is(err, io.EOF) {
			return strings.NewReader(""), nil
		}
		return z, err
	}
	return nil, failuref(protocol.FetchContentUnsupported, "the page is encoded as %s, which was not asked for", shown(encoding))
}

func (p *pageRead) read(res *http.Response, r *bufio.Reader, w io.Writer) error {
	start, err := r.Peek(sniffSize)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if len(start) == 0 {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	}
	declared := p.contentType
	if p.contentType == "" {
		p.contentType = http.DetectContentType(start)
	}
	media := mediaType(p.contentType)
	isHTML := media == "text/html" || media == "application/xhtml+xml"
	if !isText(media) {
		return failuref(protocol.FetchContentUnsupported, "the page is %s, which is no text", shown(media))
	}
	text, wide := decoded(r, start, declared, isHTML)
	if !wide && bytes.IndexByte(start, 0) >= 0 {
		return failuref(protocol.FetchContentUnsupported, "the page says that it is %s, but it is no text", shown(media))
	}
	text = withoutMark(text)
	if isHTML {
		return htmlToText(text, w, res.Request.URL)
	}
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	_, err = io.CopyBuffer(onlyWriter{w}, onlyReader{text}, buffer[:])
	return err
}

// onlyReader and onlyWriter keep io.CopyBuffer to its buffer.
type onlyReader struct{ io.Reader }

type onlyWriter struct{ io.Writer }

func mediaType(contentType string) string {
	media, _, _ := mime.ParseMediaType(contentType)
	if media == "" {
		media, _, _ = strings.Cut(contentType, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	return media
}

// textTypes are the types of text that do not say so by their first half.
var textTypes = []string{
	"application/json", "application/xml", "application/xhtml+xml", "application/javascript", "application/x-javascript",
	"application/ecmascript", "application/x-ndjson", "application/jsonl", "application/yaml", "application/x-yaml",
	"application/toml", "application/sql", "application/graphql", "application/x-sh", "application/x-httpd-php",
	"application/x-www-form-urlencoded", "application/rtf", "application/x-tex", "application/x-perl", "application/x-ruby",
}

func isText(media string) bool {
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") ||
		strings.HasSuffix(media, "+yaml") || slices.Contains(textTypes, media)
}

// decoded makes a page UTF-8: by its mark, by what the server says, by what an
// HTML page says of itself. One that says nothing is taken as UTF-8, and where
// it is none as windows-1252, as browsers do. wide says that its characters
// are of more bytes, zeros among them.
func decoded(r io.Reader, start []byte, contentType string, isHTML bool) (text io.Reader, wide bool) {
	encoding, name, certain := charset.DetermineEncoding(start, contentType)
	// The names that are guessed where nothing is said; windows-1252 that is
	// said comes to the same.
	if !certain && (!isHTML || name == "utf-8" || name == "windows-1252") {
		return &looseReader{r: r}, false
	}
	if name == "utf-8" {
		return r, false // what is none becomes U+FFFD in the capture
	}
	return encoding.NewDecoder().Reader(r), strings.HasPrefix(name, "utf-16")
}

// withoutMark drops a byte-order mark.
func withoutMark(r io.Reader) io.Reader {
	b := bufio.NewReaderSize(r, 4<<10)
	if start, _ := b.Peek(len(byteOrderMark)); string(start) == byteOrderMark {
		_, _ = b.Discard(len(byteOrderMark))
	}
	return b
}

// looseReader passes UTF-8 on and takes every other byte as windows-1252.
type looseReader struct {
	r    io.Reader
	in   []byte // not yet looked at: the beginning of a character
	out  []byte // not yet read
	made []byte // the memory of out
	room [4 << 10]byte
	err  error
}

// highHalf are the characters of windows-1252 from 0x80 to 0x9f.
var highHalf = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

func (l *looseReader) Read(p []byte) (int, error) {
	for len(l.out) == 0 && l.err == nil {
		n := copy(l.room[:], l.in)
		more, err := l.r.Read(l.room[n:])
		l.in, l.err = l.room[:n+more], err
		l.made = l.take(l.made[:0])
		l.out = l.made
	}
	if len(l.out) == 0 {
		return 0, l.err
	}
	n := copy(p, l.out)
	l.out = l.out[n:]
	return n, nil
}

// take appends what is whole of the input, all of it at the end.
func (l *looseReader) take(out []byte) []byte {
	for len(l.in) > 0 && (l.err != nil || utf8.FullRune(l.in)) {
		r, size := utf8.DecodeRune(l.in)
		switch b := l.in[0]; {
		case r != utf8.RuneError || size > 1:
			out = append(out, l.in[:size]...)
		case b < 0xa0:
			out = utf8.AppendRune(out, highHalf[b-0x80])
		default:
			out = utf8.AppendRune(out, rune(b))
		}
		l.in = l.in[size:]
	}
	return out
}

// errTextLimit says that a page's text passed maxFetched.
var errTextLimit = errors.New("text limit")

// limitedWriter passes on at most left bytes.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		n, _ := l.w.Write(p[:l.left])
		l.left = 0
		return n, errTextLimit
	}
	l.left -= int64(len(p))
	return l.w.Write(p)
}
