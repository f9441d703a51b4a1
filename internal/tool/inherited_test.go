package tool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

func init() {
	// Lives on when it has started clean, until its input ends.
	children["lives clean"] = func() {
		if err := StartClean(); err != nil {
			fmt.Print(err)
			return
		}
		fmt.Println("clean")
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

func TestStartCleanClosesWhatWasLeftOpen(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "TOOL_TEST_CHILD=lives clean")
	cmd.ExtraFiles = []*os.File{write, write} // as a lock or a pipe of a shell would be
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	write.Close()
	said := make([]byte, len("clean\n"))
	if _, err := io.ReadFull(stdout, said); err != nil || string(said) != "clean\n" {
		t.Fatalf("the child said %q: %v", said, err)
	}
	if err := read.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := read.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the child holds the pipe: %v", err)
	}
}
