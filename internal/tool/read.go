package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"agent/protocol"
)

var (
	//go:embed read.md
	readText string
	//go:embed read.json
	readParameters string
)

// readTool reads files, pictures and kept output (runtime.md 11, read).
var readTool = &builtin[readArgs]{
	name: "read", description: readText, parameters: readParameters, check: checkRead, run: runRead,
}

type readArgs struct {
	Path     arg[string] `json:"path"`
	Artifact arg[string] `json:"artifact"`
	Offset   arg[int64]  `json:"offset"`
	Limit    arg[int64]  `json:"limit"`
}

const (
	maxLines     = 5000
	defaultLines = 500
)

func checkRead(a *readArgs) *Failure {
	if a.Path.given == a.Artifact.given {
		return invalidf("give either path or artifact")
	}
	if f := first(within("offset", a.Offset, 1, math.MaxInt64), within("limit", a.Limit, 1, maxLines)); f != nil {
		return f
	}
	if a.Artifact.given {
		_, f := parseReference(a.Artifact.value)
		return f
	}
	return checkPath(a.Path)
}

func runRead(ctx context.Context, env *Env, a *readArgs) Result {
	if a.Artifact.given {
		return env.readKept(ctx, a)
	}
	got, err := beside(ctx, fileWork, func() readFile { return env.readFile(ctx, a) })
	switch {
	case err != nil:
		return env.refuse(leftFailure(a.Path.value, err))
	case got.store:
		return env.readStoreFile(ctx, a)
	case got.picture:
		return env.readPicture(ctx, a.Path.value)
	}
	return got.result
}

// readFile is what became of a file: its page, or what still has to be done
// with it.
type readFile struct {
	result  Result
	store   bool // one of the store's: the helper must read it
	picture bool // a picture, to be looked at
}

func (e *Env) readFile(ctx context.Context, a *readArgs) readFile {
	path := a.Path.value
	failed := func(code protocol.Code, err error) readFile {
		return readFile{result: e.refuse(fileFailure(code, path, err))}
	}
	f, info, err := e.openRegular(e.resolve(path), os.O_RDONLY)
	if errors.Is(err, errStore) {
		return readFile{store: true}
	}
	if err != nil {
		return failed(protocol.FileUnreadable, err)
	}
	defer f.Close()
	start := make([]byte, sniffed)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return failed(protocol.FileUnreadable, err)
	}
	whole := io.MultiReader(bytes.NewReader(start[:n]), f)
	if pictureType(start[:n]) != "" {
		return readFile{picture: true}
	}
	if info.Size() > maxFile {
		return failed(protocol.FileTooLarge, tooLarge(info.Size()))
	}
	page := newPager(a.Offset.or(1), a.Limit.or(defaultLines))
	size, hash, err := e.pageText(ctx, whole, page)
	if err != nil {
		return failed(protocol.FileUnreadable, err)
	}
	r := page.result(e, "the file")
	if s := e.seenAt(path, info, size, hash); s.Path != "" {
		r.Seen = []SeenFile{s}
	}
	return readFile{result: r}
}

// seenAt is seenFile for a path as it was given; without a Path where that
// leads nowhere any more.
func (e *Env) seenAt(path string, info os.FileInfo, size int64, hash [32]byte) SeenFile {
	real, err := filepath.EvalSymlinks(e.resolve(path))
	if err != nil {
		return SeenFile{}
	}
	return seenFile(real, info, size, hash)
}

// readStoreFile has the helper read one of the store's own files.
func (e *Env) readStoreFile(ctx context.Context, a *readArgs) Result {
	path := a.Path.value
	page := newPager(a.Offset.or(1), a.Limit.or(defaultLines))
	err := e.helperRead(ctx, e.resolve(path), func(r io.Reader) error {
		_, _, err := e.pageText(ctx, r, page)
		return err
	})
	if err != nil {
		return e.refuse(fileFailure(protocol.FileUnreadable, path, err))
	}
	return page.result(e, "the file")
}

// pageText reads text to its end through redaction into page, and gives its
// size and hash as it is in the file.
func (e *Env) pageText(ctx context.Context, r io.Reader, page *pager) (int64, [32]byte, error) {
	hash := sha256.New()
	mask := e.Redact.Stream(page)
	repair := newRepairer(mask)
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	size := int64(0)
	for {
		n, err := io.ReadFull(r, buffer[:])
		text := buffer[:n]
		hash.Write(text)
		if size == 0 {
			if name := wideText(text); name != "" {
				return 0, [32]byte{}, notUTF8(name)
			}
			text = bytes.TrimPrefix(text, []byte(byteOrderMark))
		}
		if size += int64(n); size > maxFile {
			return 0, [32]byte{}, tooLarge(size)
		}
		if _, werr := repair.Write(text); werr != nil {
			return 0, [32]byte{}, werr
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return 0, [32]byte{}, err
		}
	}
	if err := errors.Join(repair.Close(), mask.Close(), page.Close()); err != nil {
		return 0, [32]byte{}, err
	}
	return size, [32]byte(hash.Sum(nil)), nil
}

func (p *pager) result(env *Env, what string) Result {
	text, f := p.text(what)
	if f != nil {
		return env.refuse(f)
	}
	return Result{Output: text}
}

// reference names kept output: a stream of a call, or, with node set, a whole
// tool result.
type reference struct {
	turn         int64
	call, stream string
	node         int64
}

// parseReference reads TURN/CALL_ID/STREAM or result/NODE. The call id is the
// provider's and may itself hold a slash.
func parseReference(text string) (reference, *Failure) {
	bad := failuref(protocol.InvalidArtifactReference,
		"%s is no reference: it must be TURN/CALL_ID/STREAM, with STREAM stdout, stderr, body or output, or result/NODE", shown(text))
	if node, ok := strings.CutPrefix(text, "result/"); ok {
		n, ok := positive(node)
		if !ok {
			return reference{}, bad
		}
		return reference{node: n}, nil
	}
	turn, rest, _ := strings.Cut(text, "/")
	n, ok := positive(turn)
	slash := strings.LastIndexByte(rest, '/')
	if !ok || slash <= 0 {
		return reference{}, bad
	}
	switch stream := rest[slash+1:]; stream {
	case "stdout", "stderr", "body", "output":
		return reference{turn: n, call: rest[:slash], stream: stream}, nil
	}
	return reference{}, bad
}

// positive reads a number that is printed the way it was given.
func positive(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n > 0 && strconv.FormatInt(n, 10) == text
}

// readKept pages through kept output, which was redacted when it was kept.
func (e *Env) readKept(ctx context.Context, a *readArgs) Result {
	ref, _ := parseReference(a.Artifact.value)
	page := newPager(a.Offset.or(1), a.Limit.or(defaultLines))
	var from io.ReadCloser
	var err error
	if ref.node > 0 {
		page.pieces = true // a result is one long line of JSON
		var text string
		text, err = e.Past.ToolResult(ctx, ref.node)
		from = io.NopCloser(strings.NewReader(text))
	} else {
		from, err = e.Past.Artifact(ctx, ref.turn, ref.call, ref.stream)
	}
	if err != nil {
		return e.refuse(pastFailure(err))
	}
	defer from.Close()
	if err := copyPage(ctx, page, from); err != nil {
		return e.refuse(pastFailure(err))
	}
	return page.result(e, "the output")
}

func copyPage(ctx context.Context, page *pager, from io.Reader) error {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	repair := newRepairer(page)
	for {
		n, err := from.Read(buffer[:])
		if _, werr := repair.Write(buffer[:n]); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) {
			return errors.Join(repair.Close(), page.Close())
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}
