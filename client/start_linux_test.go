package client

import (
	"strings"
	"testing"
)

func TestFullDiskAtStart(t *testing.T) {
	t.Run("RT-93 a daemon that a full disk kept from speaking is spoken for", func(t *testing.T) {
		ended := child{code: 1}
		got := ended.failure("/dev/full") // takes no byte, as the log's disk
		if !strings.HasPrefix(got, "agent serve exited with status 1; the disk that holds /dev/full is full") {
			t.Errorf("got %q", got)
		}
	})
}
