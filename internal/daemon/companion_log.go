package daemon

import (
	"log/slog"
	"os"
	"time"

	"agent/internal/place"
)

const (
	// maxCompanionLog is where a companion's log is set aside, in bytes.
	maxCompanionLog = 4 << 20
	// companionDrain is how long what a companion left in its pipe is read.
	companionDrain = 250 * time.Millisecond
)

// companionLog takes down what a companion says: NAME.log, and in NAME.log.1 what
// was before. It reads a pipe, since only who writes the file can keep to a
// size. One goroutine and 4 KiB, until the pipe ends.
type companionLog struct {
	path string
	log  *slog.Logger
	pipe *os.File // its reading end
	file *os.File // nil: it could not be opened again
	size int64
	done chan struct{}
}

// openCompanionLog opens a log and gives the end of its pipe that the companion
// writes to, which is the caller's. Both files are 0600 whatever they were and
// whatever the umask; neither is followed to another place.
func openCompanionLog(path string, log *slog.Logger) (l *companionLog, out *os.File, err error) {
	l = &companionLog{path: path, log: log, done: make(chan struct{})}
	if err := l.open(); err != nil {
		return nil, nil, err
	}
	if old, err := place.OpenPrivate(path+".1", os.O_RDONLY); err == nil {
		old.Close() // it is tightened
	}
	if l.pipe, out, err = os.Pipe(); err != nil {
		l.file.Close()
		return nil, nil, err
	}
	go l.copy()
	return l, out, nil
}

func (l *companionLog) open() error {
	f, err := place.OpenPrivate(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.size = f, info.Size()
	return nil
}

// copy writes down what comes until the pipe ends. What the disk does not take
// is dropped: the companion is never held up by its log.
func (l *companionLog) copy() {
	defer close(l.done)
	buf := make([]byte, 4<<10)
	for {
		n, err := l.pipe.Read(buf)
		l.write(buf[:n])
		if err != nil {
			break
		}
	}
	l.pipe.Close()
	if l.file != nil {
		l.file.Close()
	}
}

func (l *companionLog) write(p []byte) {
	if l.size+int64(len(p)) > maxCompanionLog {
		l.setAside()
	}
	if l.file == nil {
		return
	}
	n, _ := l.file.Write(p)
	l.size += int64(n)
}

// setAside makes the log the older one and begins it anew. A log that cannot be
// renamed is emptied: its size holds.
func (l *companionLog) setAside() {
	if l.file == nil {
		return
	}
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		l.log.Warn("a companion's log could not be set aside and was emptied", "log", l.path, "error", err)
		if l.file.Truncate(0) == nil {
			l.size = 0
		}
		return
	}
	l.file.Close()
	l.file = nil
	if err := l.open(); err != nil {
		l.log.Warn("a companion's log could not be opened again; what it says is dropped", "log", l.path, "error", err)
	}
}

// finish reads out what is left once the companion has ended. A pipe that does
// not end is held by something that left its group.
func (l *companionLog) finish() {
	_ = l.pipe.SetReadDeadline(time.Now().Add(companionDrain))
	<-l.done
}
