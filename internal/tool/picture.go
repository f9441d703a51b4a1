package tool

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"agent/internal/model"
	"agent/protocol"
)

const (
	sniffed    = 16 // bytes that tell a picture from text
	maxPicture = protocol.MaxPictureBytes
	maxSide    = 8000 // pixels
	keptSide   = 1568 // pixels of the longer side of a kept picture
)

const (
	typePNG  = "image/png"
	typeJPEG = "image/jpeg"
	typeGIF  = "image/gif"
	typeWebP = "image/webp"
)

// pictureType tells a picture by its first bytes, whatever its name is; "" for
// none.
func pictureType(start []byte) string {
	switch {
	case bytes.HasPrefix(start, []byte("\x89PNG\r\n\x1a\n")):
		return typePNG
	case bytes.HasPrefix(start, []byte("\xff\xd8\xff")):
		return typeJPEG
	case bytes.HasPrefix(start, []byte("GIF87a")), bytes.HasPrefix(start, []byte("GIF89a")):
		return typeGIF
	case len(start) >= 12 && string(start[:4]) == "RIFF" && string(start[8:12]) == "WEBP":
		return typeWebP
	}
	return ""
}

// PictureData is a picture that is fit to be shown to a model, and how it was
// kept.
type PictureData struct {
	model.Picture
	Width, Height int
	// Hold is what its keeper has for it, 0 for one that is not kept. Whoever
	// records what shows the picture ends the hold there, or gives it up.
	Hold int64
	// Path is where a client had the picture, "" for one that a tool read.
	Path string
}

// PictureKeeper puts pictures where they last, before what shows them is
// recorded.
type PictureKeeper interface {
	// Keep keeps a picture of p.Bytes bytes and sets p.Hold. It reads all of them
	// or, where it has them already, any part.
	Keep(p *PictureData, bytes io.Reader) error
	// Drop gives up what Keep kept, whole or not. It does not block.
	Drop(p PictureData)
}

// pictureSlots lets one picture be looked at at a time, daemon-wide: its child
// may need hundreds of MiB for a moment.
var pictureSlots = NewSlots(1)

// pictureTime bounds one look: a file may hang, a child may be starved.
const pictureTime = 60 * time.Second

func (e *Env) readPicture(ctx context.Context, path string) Result {
	p, seen, f := e.Picture(ctx, path)
	if f != nil {
		return e.refuse(f)
	}
	masked := string(e.Redact.Bytes([]byte(path)))
	facts := fmt.Sprintf(`{"path":%s,"media_type":%s,"width":%d,"height":%d,"bytes":%d`,
		quote(masked), quote(p.MediaType), p.Width, p.Height, p.Bytes)
	result := Result{Output: facts + "}", Pictures: []PictureData{p}}
	if e.TextOnly {
		result = Result{Output: facts + `,"shown":false}`}
	}
	if seen.Path != "" {
		result.Seen = []SeenFile{seen}
	}
	return result
}

// Picture looks at the picture in a file and makes it fit to be kept (runtime.md
// 11, read): it must be whole, at most 4 MiB and 8,000 pixels a side, and is
// made smaller where its longer side has more than 1,568. A child of the
// daemon's own program does all that reads the picture. What it gives back goes
// to e.Pictures as it comes, unless the bot's model takes none. It waits for its
// turn, at most until ctx ends. Errors are picture_limit, invalid_picture and
// those of a file that cannot be read.
func (e *Env) Picture(ctx context.Context, path string) (PictureData, SeenFile, *Failure) {
	if err := pictureSlots.Acquire(ctx); err != nil {
		return PictureData{}, SeenFile{}, failuref(protocol.Cancelled, "%s: the turn ended before it was looked at", path)
	}
	defer pictureSlots.Release()
	look, cancel := context.WithTimeoutCause(ctx, pictureTime, errPictureTime)
	defer cancel()
	file, f := e.openPicture(look, path)
	if f != nil {
		return PictureData{}, SeenFile{}, f
	}
	defer file.Close()
	p, head, f := e.lookAt(look, file.File)
	if f != nil {
		return PictureData{}, SeenFile{}, fileFailure(protocol.InvalidPicture, path, f)
	}
	return p, e.seenAt(path, file.info, head.SourceBytes, head.source), nil
}

var errPictureTime = errors.New("it was not looked at in " + pictureTime.String())

type pictureFile struct {
	*quietFile
	info os.FileInfo
}

// openPicture opens the file for the child to read: the daemon itself reads
// nothing of it.
func (e *Env) openPicture(ctx context.Context, path string) (pictureFile, *Failure) {
	type opened struct {
		file pictureFile
		err  error
	}
	o, err := beside(ctx, fileWork, func() opened {
		f, info, err := e.openRegular(e.resolve(path), os.O_RDONLY)
		return opened{pictureFile{f, info}, err}
	})
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errPictureTime):
		return pictureFile{}, failuref(protocol.FileUnreadable, "%s: %v", path, errPictureTime)
	case err != nil:
		return pictureFile{}, leftFailure(path, err)
	case errors.Is(o.err, errStore):
		return pictureFile{}, failuref(protocol.InvalidPicture, "%s: it is one of the daemon's own files", path)
	case o.err != nil:
		return pictureFile{}, fileFailure(protocol.FileUnreadable, path, o.err)
	case o.file.info.Size() > maxPicture:
		o.file.Close()
		return pictureFile{}, failuref(protocol.PictureLimit, "%s: it is %d bytes; a picture has at most %d", path, o.file.info.Size(), maxPicture)
	}
	return o.file, nil
}

// lookedAt is the line that a picture child writes before the picture.
type lookedAt struct {
	MediaType   string `json:"media_type"`
	Width       int    `json:"width"`
	Height      int    `json:"height"`
	Bytes       int64  `json:"bytes"`
	Hash        string `json:"hash"` // SHA-256 in hex
	SourceBytes int64  `json:"source_bytes"`
	SourceHash  string `json:"source_hash"`
	source      [32]byte
}

// maxAnswerLine bounds that line.
const maxAnswerLine = 1 << 10

// lookAt has a child look at a picture. The picture is the child's to read; what
// it writes is believed in nothing but the facts that are shown. A child that
// does not even die, since its file hangs, is left behind.
func (e *Env) lookAt(ctx context.Context, file *os.File) (PictureData, lookedAt, *Failure) {
	l, err := beside(ctx, fileWork, func() *look {
		l := &look{env: e}
		end := e.runHelper(ctx, []string{verbPicture}, file, l.take)
		if l.failed = l.failure(end); l.failed == nil && ctx.Err() != nil {
			l.failed = failuref(protocol.Cancelled, "the turn ended first")
		}
		if l.failed != nil && l.picture.Hold != 0 {
			e.Pictures.Drop(l.picture)
		}
		return l
	})
	if err != nil {
		return PictureData{}, lookedAt{}, failuref(protocol.IoError, "it could not be looked at: %v", err)
	}
	return l.picture, l.head, l.failed
}

// look is what comes of one child.
type look struct {
	env     *Env
	head    lookedAt
	picture PictureData
	failed  *Failure
}

var errNonsense = errors.New("the child's answer makes no sense")

// take keeps what the child writes, as it comes.
func (l *look) take(r io.Reader) error {
	lines := bufio.NewReaderSize(r, maxAnswerLine)
	line, err := lines.ReadSlice('\n')
	if err != nil {
		return err
	}
	if l.picture, err = l.head.read(line); err != nil {
		return err
	}
	hash := sha256.New()
	bytes := io.TeeReader(io.LimitReader(lines, l.picture.Bytes), hash)
	if !l.env.TextOnly {
		if err := l.env.Pictures.Keep(&l.picture, bytes); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				err = failuref(protocol.StorageError, "it could not be kept: %v", err)
			}
			return err
		}
	}
	if _, err := io.Copy(io.Discard, bytes); err != nil {
		return err
	}
	if [32]byte(hash.Sum(nil)) != l.picture.Hash {
		return errNonsense
	}
	return nil
}

// failure is how a look failed, nil when it did not.
func (l *look) failure(end helperEnd) *Failure {
	var own *Failure
	switch {
	case errors.As(end.err, &own):
		return own
	case end.err != nil:
		return failuref(protocol.IoError, "it could not be looked at: %v", end.err)
	case end.code == exitLimit:
		return failuref(protocol.PictureLimit, "%s", end.says)
	case end.code == exitRefused:
		return failuref(protocol.InvalidPicture, "%s", end.says)
	case end.code != 0:
		return failuref(protocol.InvalidPicture, "it could not be decoded: the child that tried ended with status %d", end.code)
	}
	return nil
}

// read reads the line.
func (h *lookedAt) read(line []byte) (p PictureData, err error) {
	if err := json.Unmarshal(line, h); err != nil {
		return p, err
	}
	hash, ok := readHash(h.Hash)
	source, sourceOK := readHash(h.SourceHash)
	_, known := codecs[h.MediaType]
	if !known || !ok || !sourceOK || h.Bytes < 1 || h.Bytes > maxPicture || h.Width < 1 || h.Height < 1 {
		return p, errNonsense
	}
	h.source = source
	return PictureData{
		Picture: model.Picture{Hash: hash, MediaType: h.MediaType, Bytes: h.Bytes}, Width: h.Width, Height: h.Height,
	}, nil
}

func readHash(text string) (hash [32]byte, ok bool) {
	b, err := hex.DecodeString(text)
	return [32]byte(append(b, make([]byte, len(hash))...)), err == nil && len(b) == len(hash)
}
