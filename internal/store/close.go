package store

import (
	"errors"
	"time"
)

// drainLimit is how long Close lets the publisher hand on what is committed
// (runtime.md 28).
const drainLimit = 5 * time.Second

// Close runs what is queued, hands on what was committed for at most five
// seconds, waits for the reads under way, checkpoints the write-ahead log,
// closes the file and gives up the lock. Jobs and reads that come later are
// answered storage_error. A second Close does nothing.
func (s *Store) Close() error {
	s.closing.Lock()
	if s.closed {
		s.closing.Unlock()
		return nil
	}
	s.closed = true
	close(s.queue)
	s.closing.Unlock()

	giveUp := time.AfterFunc(drainLimit, s.pub.abandon)
	<-s.worked
	s.pub.close()
	giveUp.Stop()

	if s.broken.Load() != nil {
		s.readers.close()
		return s.lock.Close()
	}
	return errors.Join(script(s.writer, "PRAGMA wal_checkpoint(TRUNCATE)"), s.disconnect(), s.lock.Close())
}

// disconnect closes every connection, the readers first: the last one to close
// writes the log into the file and removes it. So those of a damaged store stay open
// until the process ends: nothing of it is to be written any more, and the log may be
// all that is whole (runtime.md 26). One whose file was replaced would remove the log
// of the other.
func (s *Store) disconnect() error {
	var errs []error
	for _, r := range s.readers.close() {
		errs = append(errs, r.close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	return failed(errors.Join(errs...))
}
