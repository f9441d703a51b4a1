package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent/internal/place"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

const (
	firstRestart = time.Second      // from a companion's end to its next start; doubled at each end
	lastRestart  = 60 * time.Second // the longest that becomes
	steadyAfter  = 60 * time.Second // a run this long makes the next restart a first one
	stopWithin   = 5 * time.Second  // from SIGTERM to SIGKILL
)

// companions are the client programs that the daemon keeps running beside itself
// (runtime.md 9, approvals.md 16). One that runs costs two goroutines, one that
// waits for its restart a timer, one that was taken out nothing. It is safe for
// concurrent use.
type companions struct {
	db     *store.Store
	folder string
	home   string
	self   string   // the daemon's own program
	env    []string // the daemon's own, without what names a companion
	log    *slog.Logger
	now    func() time.Time
	after  func(time.Duration, func()) stopper

	// used says that an earlier daemon had companions: the folder was there. Later it may
	// be there as a confined command's placeholder, and go again.
	used bool

	ops sync.Mutex // one change of the set at a time; held until the first start

	mu     sync.Mutex
	list   []*companion
	closed bool // nothing starts any more
}

// stopper is a timer that can be stopped.
type stopper interface{ Stop() bool }

// companion is one of them. Its fields are guarded by companions.mu.
type companion struct {
	spec     protocol.CompanionSpec
	program  program // what was started last, zero before
	run      *companionRun
	timer    stopper // of the next start; nil: none is due
	delay    time.Duration
	since    time.Time // since when it runs, or does not
	restarts int64
	lastExit json.RawMessage
	held     bool // it is being stopped, or was: its end starts nothing
}

// companionRun is one process of a companion.
type companionRun struct {
	group *tool.Group
	log   *companionLog
	over  chan struct{} // closed once it is gone and its end is noted
}

// program is a file on disk as it was when it was started.
type program struct {
	device, inode uint64
	changed       unix.Timespec
}

func programAt(path string) (p program, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return p, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return program{uint64(st.Dev), st.Ino, st.Ctim}, nil
}

func (d *Daemon) newCompanions() (*companions, error) {
	home, err := place.Home()
	if err != nil {
		return nil, err
	}
	cs := &companions{
		db: d.store, folder: d.opt.Store + ".companions", home: home, self: d.opt.Engine.Self, log: d.opt.Log, now: time.Now,
		after: func(wait time.Duration, f func()) stopper { return time.AfterFunc(wait, f) },
	}
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "AGENT_SOCKET", "AGENT_STORE", "AGENT_COMPANION":
		default:
			cs.env = append(cs.env, v)
		}
	}
	cs.env = append(cs.env, "AGENT_SOCKET="+d.opt.Socket, "AGENT_STORE="+d.opt.Store)
	_, err = os.Lstat(cs.folder)
	cs.used = err == nil
	cs.ops.Lock()
	return cs, cs.load()
}

// load takes the set that is stored; it starts nothing. An entry that cannot be
// read is left out: no companion stops the daemon.
func (cs *companions) load() error {
	err := cs.db.Read(context.Background(), "companions", func(r *store.Reader) error {
		specs, err := store.Companions(r.Conn())
		cs.list = nil
		for _, spec := range specs {
			cs.list = append(cs.list, cs.fresh(spec))
		}
		return err
	})
	if protocol.CodeOf(err) == protocol.StoreRowInvalid {
		cs.log.Error("a companion is left out", "error", err)
		return nil
	}
	return err
}

func (cs *companions) fresh(spec protocol.CompanionSpec) *companion {
	return &companion{spec: spec, delay: firstRestart, since: cs.now()}
}

// start starts what is stored, in its order, once nothing of an earlier daemon
// runs any more. It is called once; until it returns the set cannot be changed.
func (cs *companions) start() {
	defer cs.ops.Unlock()
	if cs.used {
		if err := place.MakePrivateDir(cs.folder); err != nil {
			cs.log.Warn("the companions' folder cannot be used", "error", err)
		} else {
			endSurvivors(survivors(cs.folder), stopWithin, cs.log)
		}
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.list {
		cs.begin(c)
	}
}

// begin starts a companion that does not run. One that cannot start is reported
// and tried again like one that ended. cs.mu is held.
func (cs *companions) begin(c *companion) {
	if cs.closed {
		return
	}
	c.held, c.timer = false, nil
	run, err := cs.launch(c)
	c.since = cs.now()
	if err != nil {
		cs.log.Warn("a companion could not be started", "companion", c.spec.Name, "error", err)
		c.lastExit, _ = protocol.Append(nil, struct {
			Error string `json:"error"`
		}{err.Error()})
		cs.again(c)
		return
	}
	c.run = run
	began := c.since
	go func() {
		<-run.group.Ended()
		status := run.group.Finish()
		run.log.finish()
		cs.ended(c, run, began, status)
	}()
}

func (cs *companions) launch(c *companion) (*companionRun, error) {
	if err := place.MakePrivateDir(cs.folder); err != nil {
		return nil, err
	}
	now, err := programAt(c.spec.Command[0])
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	log, out, err := openCompanionLog(cs.path(c, ".log"), cs.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	env := append(slices.Clone(cs.env), "AGENT_COMPANION="+c.spec.Name)
	group, err := tool.StartGroup(cs.self, c.spec.Command, env, cs.home, null, out, func(pid int) { cs.note(c, pid) })
	if err != nil {
		out.Close()
		log.finish()
		return nil, fmt.Errorf("%s: %w", c.spec.Command[0], err)
	}
	c.program = now
	return &companionRun{group: group, log: log, over: make(chan struct{})}, nil
}

// note writes down which process a companion is, before its program runs there.
func (cs *companions) note(c *companion, pid int) {
	if err := noteCompanion(cs.path(c, ".pid"), pid); err != nil {
		cs.log.Warn("a companion's process is not written down", "companion", c.spec.Name, "error", err)
	}
}

func (cs *companions) path(c *companion, suffix string) string {
	return filepath.Join(cs.folder, c.spec.Name+suffix)
}

// ended notes the end of a run and has the next one come.
func (cs *companions) ended(c *companion, run *companionRun, began time.Time, status syscall.WaitStatus) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	defer close(run.over)
	if err := os.Remove(cs.path(c, ".pid")); err != nil && !os.IsNotExist(err) {
		cs.log.Warn("a companion's note was not removed", "companion", c.spec.Name, "error", err)
	}
	c.run, c.since, c.lastExit = nil, cs.now(), exitOf(status)
	if c.since.Sub(began) >= steadyAfter {
		c.delay = firstRestart
	}
	if !c.held {
		cs.log.Info("a companion ended", "companion", c.spec.Name, "exit", string(c.lastExit), "restart_in", c.delay)
		cs.again(c)
	}
}

func exitOf(status syscall.WaitStatus) json.RawMessage {
	if status.Signaled() {
		return fmt.Appendf(nil, `{"exit_code":null,"signal":%q}`, unix.SignalName(status.Signal()))
	}
	return fmt.Appendf(nil, `{"exit_code":%d}`, status.ExitStatus())
}

// again has a companion started after its delay, and makes the next one longer.
// cs.mu is held.
func (cs *companions) again(c *companion) {
	if cs.closed {
		return
	}
	var timer stopper
	timer = cs.after(c.delay, func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		if c.timer == timer && !c.held {
			c.restarts++
			cs.begin(c)
		}
	})
	c.timer = timer
	c.delay = min(2*c.delay, lastRestart)
}

// hold keeps a companion from starting and gives its run, nil when it has none.
// cs.mu is held.
func (c *companion) hold() *companionRun {
	c.held = true
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	return c.run
}

// end ends runs: SIGTERM, and SIGKILL for those that are there after
// stopWithin. It returns when all are gone.
func (cs *companions) end(runs []*companionRun) {
	if len(runs) == 0 {
		return
	}
	for _, run := range runs {
		run.group.Signal(unix.SIGTERM)
	}
	kill := cs.after(stopWithin, func() {
		for _, run := range runs {
			run.group.Signal(unix.SIGKILL)
		}
	})
	for _, run := range runs {
		<-run.over
	}
	kill.Stop()
}

// change lists the companions, after replacing the set and restarting those
// named where the request asks for that. Its answer comes when all that had to
// end has ended and all that had to start has started or failed to, stopWithin
// later at most.
func (cs *companions) change(req *protocol.CompanionsRequest) (*protocol.Companions, *protocol.Error) {
	if req.Set != nil || len(req.Restart) > 0 {
		cs.ops.Lock()
		defer cs.ops.Unlock()
		if err := cs.replace(req.Set, req.Restart); err != nil {
			return nil, err
		}
	}
	return &protocol.Companions{Companions: cs.records()}, nil
}

// replace makes set the set, nil leaves it, and restarts some. cs.ops is held.
func (cs *companions) replace(set []protocol.CompanionSpec, restart []string) *protocol.Error {
	if err := checkCompanions(set); err != nil {
		return err
	}
	cs.mu.Lock()
	old := cs.list
	cs.mu.Unlock()
	names := map[string]bool{}
	for _, c := range old {
		names[c.spec.Name] = set == nil
	}
	for _, spec := range set {
		names[spec.Name] = true
	}
	for _, name := range restart {
		if !names[name] {
			return protocol.Fail(protocol.InvalidCompanion, "restart names "+name+", which is none of the set")
		}
	}
	if set != nil {
		err := cs.db.Do("companions", func(tx *store.Tx) error { return tx.SetCompanions(set) })
		if err != nil {
			return storageError(err)
		}
	}
	cs.settle(set, restart)
	return nil
}

func storageError(err error) *protocol.Error {
	if p, ok := err.(*protocol.Error); ok {
		return p
	}
	return protocol.Fail(protocol.StorageError, err.Error())
}

// settle brings what runs into line with the set.
func (cs *companions) settle(set []protocol.CompanionSpec, restart []string) {
	cs.mu.Lock()
	list := cs.list
	if set != nil {
		list = cs.kept(set)
	}
	var ending []*companionRun
	starts := map[*companion]bool{}
	for _, c := range cs.list {
		if slices.Contains(list, c) && !slices.Contains(restart, c.spec.Name) {
			continue
		}
		if run := c.hold(); run != nil {
			ending = append(ending, run)
		}
	}
	for _, c := range list {
		again := slices.Contains(restart, c.spec.Name)
		if again && slices.Contains(cs.list, c) {
			c.restarts++
		}
		starts[c] = again || !slices.Contains(cs.list, c)
	}
	cs.mu.Unlock()
	cs.end(ending)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.list = list
	for _, c := range list {
		if starts[c] {
			c.delay = firstRestart
			cs.begin(c)
		}
	}
}

// kept is the new set: an entry whose command and whose program on disk are what
// was started stays the companion it is. cs.mu is held.
func (cs *companions) kept(set []protocol.CompanionSpec) (list []*companion) {
	for _, spec := range set {
		next := cs.fresh(spec)
		for _, c := range cs.list {
			if c.spec.Name != spec.Name || !slices.Equal(c.spec.Command, spec.Command) {
				continue
			}
			if now, err := programAt(spec.Command[0]); err == nil && now == c.program {
				next = c
			}
		}
		list = append(list, next)
	}
	return list
}

// checkCompanions refuses a set that could never run.
func checkCompanions(set []protocol.CompanionSpec) *protocol.Error {
	bad := func(format string, args ...any) *protocol.Error {
		return protocol.Fail(protocol.InvalidCompanion, fmt.Sprintf(format, args...))
	}
	if len(set) > protocol.MaxCompanions {
		return bad("%d companions of at most %d", len(set), protocol.MaxCompanions)
	}
	seen := map[string]bool{}
	for _, spec := range set {
		switch {
		case !protocol.ValidName(spec.Name):
			return bad("a companion's name is 1 to %d bytes of letters, digits, - _ .", protocol.MaxName)
		case seen[spec.Name]:
			return bad("%s is there twice", spec.Name)
		case len(spec.Command) == 0 || !filepath.IsAbs(spec.Command[0]):
			return bad("%s: its command begins with the absolute path of a program", spec.Name)
		case slices.ContainsFunc(spec.Command, func(arg string) bool { return strings.Contains(arg, "\x00") }):
			return bad("%s: an argument holds a NUL character", spec.Name)
		}
		info, err := os.Stat(spec.Command[0])
		if err != nil {
			return bad("%s: %v", spec.Name, err)
		}
		if !info.Mode().IsRegular() || unix.Access(spec.Command[0], unix.X_OK) != nil {
			return bad("%s: %s is no program that may be run", spec.Name, spec.Command[0])
		}
		seen[spec.Name] = true
	}
	return nil
}

// records are the companions as they are told.
func (cs *companions) records() []protocol.Companion {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	list := make([]protocol.Companion, 0, len(cs.list))
	for _, c := range cs.list {
		r := protocol.Companion{
			Name: c.spec.Name, Command: c.spec.Command, SinceMS: c.since.UnixMilli(), Restarts: c.restarts,
			LastExit: c.lastExit, Log: cs.path(c, ".log"),
		}
		if c.run != nil {
			pid := int64(c.run.group.PID())
			r.PID = &pid
		}
		list = append(list, r)
	}
	return list
}

// owns reports whether a process, or the group it is in, is a companion's.
func (cs *companions) owns(pid int) bool {
	group, err := unix.Getpgid(pid)
	if err != nil {
		group = pid
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.ContainsFunc(cs.list, func(c *companion) bool {
		return c.run != nil && (c.run.group.PID() == pid || c.run.group.PID() == group)
	})
}

// freeze keeps every companion from starting from here on.
func (cs *companions) freeze() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = true
	for _, c := range cs.list {
		c.hold()
	}
}

// close ends them all and returns when they are gone.
func (cs *companions) close() {
	cs.freeze()
	var runs []*companionRun
	cs.mu.Lock()
	for _, c := range cs.list {
		if c.run != nil {
			runs = append(runs, c.run)
		}
	}
	cs.mu.Unlock()
	cs.end(runs)
}
