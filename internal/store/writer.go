package store

import (
	"errors"
	"runtime"
	"time"

	"zombiezen.com/go/sqlite"

	"agent/protocol"
)

const (
	queueLimit  = 32 // jobs waiting for the writer
	groupLimit  = 32 // jobs sharing a commit
	answersHold = 3  // commits that what waits for the answers may be put off

	// answersLead is how long much of it is put off behind the last of them: 32
	// clients take less to read theirs, a turn's start takes a quarter of it.
	answersLead = 2 * time.Millisecond
)

// job is a piece of writing and whoever waits for it.
type job struct {
	op   string
	run  func(*Tx) error
	done func(error)

	tx  Tx
	err error

	queuedAt time.Time
	begunAt  time.Time // first run
	ran      time.Duration
}

// Tx is a job's view of the transaction it shares with its group. It belongs to
// the writer's goroutine and is of no use once the job has returned.
type Tx struct {
	conn    *sqlite.Conn
	events  []Event
	commit  []func()
	answers []func()
	publish []func()
}

// Conn is the writer's connection. A job leaves no statement open on it and
// begins and ends no transaction.
func (tx *Tx) Conn() *sqlite.Conn { return tx.conn }

// Emit adds an event to what the group's commit makes known, in the order of
// the jobs. A job that fails makes nothing known.
func (tx *Tx) Emit(ev Event) { tx.events = append(tx.events, ev) }

// AfterCommit has f run on the writer's goroutine once the commit is on disk,
// before anybody is answered: the place for what the job changes in memory. It
// must not block and must not call the store.
func (tx *Tx) AfterCommit(f func()) { tx.commit = append(tx.commit, f) }

// AfterAnswers has f run on the writer's goroutine once everybody whose job is in
// the commit is answered, and everybody who came meanwhile, but at most three
// commits and two milliseconds later: the place for what begins work that would
// hold the answers up, or keep those who got them from the processors. It must
// not block and must not call the store.
func (tx *Tx) AfterAnswers(f func()) { tx.answers = append(tx.answers, f) }

// AfterPublish hands f to the sink behind the events of the same commit.
func (tx *Tx) AfterPublish(f func()) { tx.publish = append(tx.publish, f) }

var (
	qBegin     = stmt("BEGIN IMMEDIATE")
	qCommit    = stmt("COMMIT")
	qRollback  = stmt("ROLLBACK")
	qSavepoint = stmt("SAVEPOINT job")
	qRelease   = stmt("RELEASE job")
	qUndo      = stmt("ROLLBACK TO job")
)

// Go queues a job; it blocks only while the queue of 32 is full. The job runs
// whatever becomes of its caller, on the writer's goroutine, inside a
// transaction that it may share with others; it may be run a second time, so it
// touches nothing but the transaction (runtime.md 25). It returns its first
// error.
//
// done, which may be nil, is called exactly once, on the writer's goroutine:
// with nil after the commit is on disk, or with the job's own error, or
// storage_error. It must not block and must not call the store.
func (s *Store) Go(op string, run func(*Tx) error, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	j := &job{op: op, run: run, done: done, queuedAt: time.Now()}
	s.closing.RLock()
	closed := s.closed
	if !closed {
		s.queue <- j
	}
	s.closing.RUnlock()
	if closed {
		done(errClosed())
	}
}

// Do is Go and waiting for the answer.
func (s *Store) Do(op string, run func(*Tx) error) error {
	answer := make(chan error, 1)
	s.Go(op, run, func(err error) { answer <- err })
	return <-answer
}

func errClosed() error { return protocol.Fail(protocol.StorageError, "the store is closed") }

// work is the writer's goroutine.
func (s *Store) work() {
	defer close(s.worked)
	s.answered.lead = time.NewTimer(answersLead)
	defer s.answered.run()
	group := make([]*job, 0, groupLimit)
	for {
		select {
		case first, open := <-s.queue:
			if !open {
				return
			}
			group = s.gather(append(group, first))
			s.runGroup(group)
			clear(group)
			group = group[:0]
		case <-s.answered.lead.C:
			s.answered.run()
		}
	}
}

// gather takes the jobs that wait already. A lone job is not held back for
// company.
func (s *Store) gather(group []*job) []*job {
	for len(group) < groupLimit {
		select {
		case j, ok := <-s.queue:
			if !ok {
				return group
			}
			group = append(group, j)
		default:
			return group
		}
	}
	return group
}

// runGroup runs jobs under one commit. When that cannot be had, each is run
// once more as a group by itself, so that one too big for the disk fails alone.
func (s *Store) runGroup(group []*job) {
	if s.try(group) == nil {
		s.settle(group)
		return
	}
	for i := range group {
		alone := group[i : i+1]
		if err := s.try(alone); err != nil {
			alone[0].lose(err)
		}
		s.settle(alone)
	}
}

// try runs jobs in one transaction. An error means that nothing of any of them
// is in the store; nil, that all but those with an error of their own are.
func (s *Store) try(group []*job) error {
	if e := s.broken.Load(); e != nil {
		return e
	}
	err := s.transact(group)
	if err == nil {
		return nil
	}
	if !s.writer.AutocommitEnabled() {
		s.control(qRollback)
	}
	if left := (*gone)(nil); errors.As(err, &left) {
		s.fail(err)
		return s.broken.Load()
	}
	if isDamage(err) {
		s.fail(err)
	}
	return err
}

func (s *Store) transact(group []*job) error {
	if err := failed(s.faults.Hit("begin")); err != nil {
		return err
	}
	if err := s.control(qBegin); err != nil {
		return err
	}
	for _, j := range group {
		j.err = s.runJob(j)
		// A job may take the whole transaction with it. A further savepoint
		// would then begin a transaction of its own, and its release commit it.
		if j.err != nil && (s.writer.AutocommitEnabled() || isDamage(j.err)) {
			return j.err
		}
	}
	if err := failed(s.faults.Hit("commit")); err != nil {
		return err
	}
	if err := s.inPlace(); err != nil {
		return err
	}
	return s.control(qCommit)
}

// runJob runs a job inside a savepoint, which takes back what it wrote when it
// fails.
func (s *Store) runJob(j *job) error {
	start := time.Now()
	if j.begunAt.IsZero() {
		j.begunAt = start
	}
	defer func() { j.ran += time.Since(start) }()

	j.tx = Tx{conn: s.writer}
	if err := s.control(qSavepoint); err != nil {
		return err
	}
	err := s.callJob(j)
	if err == nil {
		err = s.control(qRelease)
	}
	if err == nil {
		return nil
	}
	j.tx = Tx{}
	if !s.writer.AutocommitEnabled() {
		if undo := errors.Join(s.control(qUndo), s.control(qRelease)); undo != nil {
			s.control(qRollback) // what cannot be taken back must not be committed
		}
	}
	return err
}

func (s *Store) callJob(j *job) error {
	if err := failed(s.faults.hitOp("job", j.op)); err != nil {
		return err
	}
	err := storageError(j.run(&j.tx))
	if left := resetAll(s.writer); left && err == nil {
		err = protocol.Fail(protocol.StorageError, "the job "+j.op+" left a statement open")
	}
	if fault := failed(s.faults.hitOp("wrote", j.op)); fault != nil {
		s.control(qRollback)
		return fault
	}
	return err
}

// control runs a statement that begins or ends a transaction.
func (s *Store) control(q *query) error { return exec(s.writer, q) }

// lose gives a job that was alone and still failed its error: its own, if it
// has one.
func (j *job) lose(err error) {
	j.tx = Tx{}
	if j.err == nil {
		j.err = err
	}
}

// settle is what follows a commit: memory first, then the answers in order of
// arrival, then what waits for them, then the events.
func (s *Store) settle(group []*job) {
	s.faults.Hit("after-commit")
	for _, j := range group {
		for _, f := range j.tx.commit {
			f()
		}
	}
	now := time.Now()
	s.stats.group(group, now)
	for _, j := range group {
		j.done(j.err)
	}
	s.runAnswered(group)
	s.faults.Hit("after-answer")
	s.pub.publish(known(group))
}

// runAnswered begins what waits for the answers to be given. It puts it off while
// others wait for theirs, since what comes together is answered together, though
// it does not come in one commit; and for a moment where there is more of it than
// there are processors, since it would take them all from those who read the
// answers.
func (s *Store) runAnswered(group []*job) {
	a := &s.answered
	for _, j := range group {
		a.waiting = append(a.waiting, j.tx.answers...)
	}
	if len(a.waiting) == 0 {
		return
	}
	runtime.Gosched() // whoever is about to queue a job does
	if len(s.queue) == 0 && len(a.waiting) <= runtime.GOMAXPROCS(0) || a.held == answersHold {
		a.run()
		return
	}
	a.held++
	a.lead.Reset(answersLead)
}

// answered is what waits for answers. It is the writer's own.
type answered struct {
	waiting []func()
	held    int         // commits
	lead    *time.Timer // runs while anything waits
}

func (a *answered) run() {
	a.lead.Stop()
	for _, f := range a.waiting {
		f()
	}
	clear(a.waiting)
	a.waiting, a.held = a.waiting[:0], 0
}

// known is what a group's commit makes known.
func known(group []*job) Batch {
	var b Batch
	for _, j := range group {
		b.Events = append(b.Events, j.tx.events...)
		b.After = append(b.After, j.tx.publish...)
	}
	return b
}

// resetAll resets statements that were left in the middle of their rows, and
// reports whether there was one: a defect, but one that must not hold the
// write-ahead log for ever.
func resetAll(c *sqlite.Conn) (left bool) {
	for sql := c.CheckReset(); sql != ""; sql = c.CheckReset() {
		left = true
		if _, err := c.Prepare(sql); err != nil {
			break
		}
	}
	return left
}
