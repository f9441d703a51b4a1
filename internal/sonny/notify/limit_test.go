package notify

import (
	"bufio"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a command started ends with it when its time is over: the reader of a pipe that all of
// them hold open to write sees its end.
func TestWhatACommandStartedEndsWithItsTime(t *testing.T) {
	was := runFor
	t.Cleanup(func() { runFor = was })
	runFor = 200 * time.Millisecond
	fifo := t.TempDir() + "/held"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(fifo, os.O_RDWR, 0) // so that none waits for the other to open it
	if err != nil {
		t.Fatal(err)
	}
	n := Note{Event: "done", Title: "sonny", Body: "it is done"}
	err = n.Run(context.Background(), Command, []string{"sh", "-c", `exec 9> "$0"; sh -c 'echo began >&9; sleep 1000'; :`, fifo})
	if err == nil || !strings.Contains(err.Error(), "sh did not end within 200ms") {
		t.Errorf("%v", err)
	}
	held, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	pipe.Close()
	for lines := bufio.NewScanner(held); lines.Scan(); {
	}
}
