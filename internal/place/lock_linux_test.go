package place

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestOwnLock(t *testing.T) {
	// heldByChild leaves the lock of a daemon that is dead with a child of its, and its
	// listener, too; end ends the child.
	heldByChild := func(t *testing.T, path, socket string) (end func()) {
		t.Helper()
		l, err := Listen(socket)
		if err != nil {
			t.Fatal(err)
		}
		lock, err := Lock(path, "held")
		if err != nil {
			t.Fatal(err)
		}
		listener, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("cat")
		cmd.ExtraFiles = []*os.File{lock.file, listener}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// As a kill does: the lock is not given up, and the socket stays.
		lock.file.Close()
		listener.Close()
		l.UnixListener.Close()
		t.Cleanup(func() { l.lock.Close() })
		return func() { in.Close(); cmd.Wait() }
	}
	t.Run("one that a dead daemon's child holds is taken when that is gone", func(t *testing.T) {
		dir := shortFolder(t)
		path, socket := dir+"/lock", dir+"/s.sock"
		end := heldByChild(t, path, socket)
		tried := 0
		lock, err := lockWhile(path, "held", func() bool {
			if tried++; tried == 1 {
				end()
			}
			return true
		})
		if err != nil || tried == 0 {
			t.Fatal(tried, err)
		}
		lock.Close()
	})
	t.Run("a connection that such a child's listener takes is no answer", func(t *testing.T) {
		dir := shortFolder(t)
		path, socket := dir+"/lock", dir+"/s.sock"
		end := heldByChild(t, path, socket)
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		taken := make(chan error)
		go func() {
			lock, err := lockWhile(path, "held", func() bool { return !answers(socket, time.Now().Add(time.Minute)) })
			if err == nil {
				err = lock.Close()
			}
			taken <- err
		}()
		end()
		if err := <-taken; err != nil {
			t.Error(err)
		}
		if !refuses(socket) {
			t.Error("the socket is not stale")
		}
	})
	t.Run("one whose daemon answers is told at once", func(t *testing.T) {
		dir := shortFolder(t)
		path, socket := dir+"/lock", dir+"/s.sock"
		held, err := Lock(path, "held")
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan int)
		go func() {
			n := 0
			for {
				c, err := l.Accept()
				if err != nil {
					answered <- n
					return
				}
				n++
				c.Write([]byte("{}\n"))
				c.Close()
			}
		}()
		if _, err := OwnLock(path, "held", socket); codeOf(err) != "held" {
			t.Errorf("error is %v", err)
		}
		l.Close()
		if n := <-answered; n != 1 {
			t.Errorf("it asked %d times", n)
		}
	})
	t.Run("one that stays held while nobody answers is told in the end", func(t *testing.T) {
		path := shortFolder(t) + "/lock"
		held, err := Lock(path, "held")
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		if _, err := OwnLock(path, "held", path+".none"); codeOf(err) != "held" {
			t.Errorf("error is %v", err)
		}
	})
}
