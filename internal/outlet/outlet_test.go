package outlet

import (
	"os"
	"testing"
	"time"
)

func TestGone(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	gone := Gone(w)
	select {
	case <-gone:
		t.Fatal("the reader is there")
	default:
	}
	r.Close()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("nobody noticed that the reader has gone")
	}
}

func TestAFileLosesNoReader(t *testing.T) {
	t.Parallel()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Gone(f) != nil {
		t.Error("a file was taken for a pipe")
	}
}
