package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent/internal/place"
)

// A killed daemon leaves its companions running. They exit when they see their
// connection close; one that does not would stand beside the one that the next
// daemon starts. So a note, NAME.pid, says which process a companion is, and the
// next daemon ends who is left before it starts any.

// noteCompanion writes down which process a companion is. It is not synced:
// after a power loss nobody is left.
func noteCompanion(path string, pid int) error {
	born, ok := place.BornAt(pid)
	if !ok {
		return nil // it has ended already
	}
	f, err := place.OpenPrivate(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %s\n", pid, born)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// survivor is a companion of an earlier daemon.
type survivor struct {
	pid  int
	born string
	note string
}

// lives reports whether the process is still there, and still that one.
func (s survivor) lives() bool {
	born, ok := place.BornAt(s.pid)
	return ok && born == s.born
}

// survivors are the companions that an earlier daemon left running: this daemon
// has the store's lock, so all of them are. The other notes are taken away; those
// of survivors stay until they are gone, so that a daemon that is killed before
// leaves them to the next one.
func survivors(folder string) (list []survivor) {
	notes, _ := filepath.Glob(filepath.Join(folder, "*.pid"))
	for _, note := range notes {
		if s := (survivor{note: note}); s.read() && s.lives() && s.leads() {
			list = append(list, s)
		} else {
			os.Remove(note)
		}
	}
	return list
}

// read reads the note, and reports whether it names a process.
func (s *survivor) read() bool {
	text, err := readNote(s.note)
	if err != nil {
		return false
	}
	n, _ := fmt.Sscan(text, &s.pid, &s.born)
	return n == 2 && s.pid > 1
}

// leads reports whether the process leads a group of its own.
func (s survivor) leads() bool {
	group, err := unix.Getpgid(s.pid)
	return err == nil && group == s.pid
}

func readNote(path string) (string, error) {
	f, err := place.OpenPrivate(path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	buf := make([]byte, 256)
	n, _ := f.Read(buf)
	return strings.TrimSpace(string(buf[:n])), nil
}

// endSurvivors ends them as companions are ended: SIGTERM, and SIGKILL for what
// is there after within. It returns when they are gone, at the latest twice
// that later. They are no children of this process, so that their end can only
// be asked for; it is, ever less often.
func endSurvivors(list []survivor, within time.Duration, log *slog.Logger) {
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGKILL} {
		for _, s := range list {
			if s.lives() {
				log.Info("a companion of an earlier daemon is ended", "pid", s.pid, "signal", unix.SignalName(sig))
				_ = unix.Kill(-s.pid, sig)
			}
		}
		until := time.Now().Add(within)
		for wait := time.Millisecond; len(list) > 0 && time.Now().Before(until); wait = min(2*wait, 50*time.Millisecond) {
			time.Sleep(wait)
			list = living(list)
		}
	}
	for _, s := range list {
		log.Warn("a companion of an earlier daemon does not end", "pid", s.pid)
	}
}

func living(list []survivor) (left []survivor) {
	for _, s := range list {
		if s.lives() {
			left = append(left, s)
		} else {
			os.Remove(s.note)
		}
	}
	return left
}
