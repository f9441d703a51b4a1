package cli

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// written is standard output that keeps the first thing that went wrong with it, so that
// no verb ends with 0 whose words nobody got.
type written struct {
	*os.File
	err error
}

func (w *written) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

func (w *written) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// file is a stream's file; nil where it has none.
func file(stream any) *os.File {
	switch s := stream.(type) {
	case *os.File:
		return s
	case *written:
		return s.File
	}
	return nil
}

// unwritten is why what was said did not arrive, of which nothing was said yet; nil where
// it did, and where a reader left who had enough.
func (a *app) unwritten(err error) error {
	if out, ok := a.stdout.(*written); ok && err == nil && !errors.Is(out.err, syscall.EPIPE) {
		return out.err
	}
	return err
}

// lent is standard output for a program that is run in this one's place.
func (a *app) lent() io.Writer {
	if f := file(a.stdout); f != nil {
		return f
	}
	return a.stdout
}
