package sandbox

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"agent/internal/place"
)

// Placeholders are what stands on the host where a missing name is to be kept
// from being made: only what is there can be mounted over (sandbox.md 3.6). Each
// carries a shared lock for as long as a command stands on it; while anybody has
// one the name must not go, since the kernel would drop the mount with it. It is
// safe for concurrent use.
//
// Who made a placeholder takes it away again: at the end of the call, at the end
// of a later one when another daemon still stood on it, or at the next start,
// which finds it in the journal.
type Placeholders struct {
	path    string
	mu      sync.Mutex
	journal *os.File             // nil until the first placeholder
	ours    map[fileKey]standing // made by this daemon and not yet taken away
}

// standing is where a placeholder is: its name in its folder, which is open, so
// that it is found wherever the folder goes, and nothing else is if a link takes
// the folder's place. One of the journal's is known by its path alone.
type standing struct {
	path   string
	parent int // -1: not open
}

// OpenPlaceholders reads the journal, if there is one, takes away what an earlier
// daemon left, and begins it anew. path is beside the store.
func OpenPlaceholders(path string) (*Placeholders, error) {
	ph := &Placeholders{path: path, ours: map[fileKey]standing{}}
	f, err := place.OpenPrivate(path, os.O_RDWR|os.O_APPEND)
	if errors.Is(err, fs.ErrNotExist) {
		return ph, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the journal of placeholders: %w", err)
	}
	ph.journal = f
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<10)
	for lines.Scan() {
		switch key, path, ok := parseNote(lines.Text()); {
		case !ok:
		case key != fileKey{}:
			ph.ours[key] = standing{path, -1}
		case strings.HasPrefix(filepath.Base(path), temporaryPrefix):
			takeAway(key, standing{path, -1}) // one in the making
		}
	}
	ph.mu.Lock()
	defer ph.mu.Unlock()
	ph.clear()
	return ph, nil
}

// Close takes away what can be, and closes the journal. Commands that still stand
// on placeholders keep them; the next start takes those away.
func (ph *Placeholders) Close() error {
	ph.mu.Lock()
	defer ph.mu.Unlock()
	ph.clear()
	for key, s := range ph.ours {
		if s.parent >= 0 {
			unix.Close(s.parent)
		}
		ph.ours[key] = standing{s.path, -1}
	}
	if ph.journal == nil {
		return nil
	}
	return ph.journal.Close()
}

func note(key fileKey, path string) string {
	return fmt.Sprintf("%d %d %s\n", key.dev, key.ino, strconv.Quote(path))
}

func parseNote(line string) (key fileKey, path string, ok bool) {
	f := strings.SplitN(line, " ", 3)
	if len(f) != 3 {
		return key, "", false
	}
	dev, err1 := strconv.ParseUint(f[0], 10, 64)
	ino, err2 := strconv.ParseUint(f[1], 10, 64)
	path, err3 := strconv.Unquote(f[2])
	return fileKey{dev, ino}, path, err1 == nil && err2 == nil && err3 == nil && filepath.IsAbs(path)
}

// Placed is a plan whose placeholders stand on the host, and what a command must
// find unchanged at its end.
type Placed struct {
	Plan *Plan
	ph   *Placeholders
	held []int // descriptors with a shared lock
	was  map[string]fileKey
}

// errChanged says that something has appeared where the plan wants a placeholder.
var errChanged = errors.New("a protected name appeared meanwhile")

// Place makes the placeholders of a plan. With changed the caller plans anew:
// somebody made one of the names meanwhile. The other error is sandbox_denied.
func (ph *Placeholders) Place(p *Plan) (placed *Placed, changed bool, err error) {
	placed = &Placed{Plan: p, ph: ph, was: map[string]fileKey{}}
	entries := make([]Entry, 0, len(p.Entries))
	for _, e := range p.Entries {
		keep, err := placed.stand(e)
		if err != nil {
			placed.Remove()
			if errors.Is(err, errChanged) {
				return nil, true, nil
			}
			return nil, false, err
		}
		if keep {
			entries = append(entries, e)
		}
	}
	if len(entries) < len(p.Entries) {
		less := *p
		less.Entries = entries
		placed.Plan = &less
	}
	return placed, false, nil
}

// stand makes sure of one entry; keep is false where nothing can be made there,
// by a command either.
func (d *Placed) stand(e Entry) (keep bool, err error) {
	switch e.Kind {
	case AbsentFolder, AbsentFile:
		return d.hold(e)
	case ReadOnly:
		if e.Root != "" {
			return true, d.share(e)
		}
	}
	return true, nil
}

// share locks a protected entry that may be another daemon's placeholder, and
// notes which file it is.
func (d *Placed) share(e Entry) error {
	var st unix.Stat_t
	if err := unix.Lstat(e.Path, &st); err != nil {
		return errChanged
	}
	d.was[e.Path] = key(&st)
	fd, err := openAt(unix.AT_FDCWD, e.Path, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil // it may not be read, and so is nobody's placeholder
	}
	if !isPlaceholder(fd) {
		unix.Close(fd)
		return nil
	}
	if err := flock(fd, unix.LOCK_SH); err != nil {
		unix.Close(fd)
		return nil
	}
	d.held = append(d.held, fd)
	if unix.Lstat(e.Path, &st) != nil || key(&st) != d.was[e.Path] {
		return errChanged
	}
	return nil
}

// hold makes the placeholder of an entry, or takes the one that is there, and
// locks it.
func (d *Placed) hold(e Entry) (keep bool, err error) {
	parent, err := openAt(unix.AT_FDCWD, filepath.Dir(e.Path), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false, errChanged
	}
	defer unix.Close(parent)
	name := filepath.Base(e.Path)
	for range 100 {
		fd, key, err := d.ph.put(parent, name, e)
		if errors.Is(err, unix.EEXIST) {
			fd, key, err = take(parent, name, e)
		} else if err != nil {
			return false, cannot(e, parent, err)
		}
		if errors.Is(err, unix.ENOENT) {
			continue // taken away again by whoever made it
		}
		if err != nil {
			return false, err
		}
		d.held = append(d.held, fd)
		d.was[e.Path] = key
		return true, nil
	}
	return false, errChanged
}

// put makes a placeholder, with a lock on it, and fails with EEXIST where the
// name is taken. It gets its name once the journal knows which file it is: one
// that a killed daemon leaves is known at the next start, whenever that was, and
// is never taken for a folder of the person's.
func (ph *Placeholders) put(parent int, name string, e Entry) (fd int, key fileKey, err error) {
	var st unix.Stat_t
	if unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		return -1, key, unix.EEXIST
	}
	ph.mu.Lock() // nobody empties the journal, or looks for the name, meanwhile
	defer ph.mu.Unlock()
	temporary := temporaryPrefix + rand.Text()
	ph.write(note(fileKey{}, filepath.Join(filepath.Dir(e.Path), temporary)))
	flags := 0
	if e.Kind == AbsentFolder {
		flags = unix.AT_REMOVEDIR
		err = unix.Mkdirat(parent, temporary, e.mode())
	} else {
		err = makeFile(parent, temporary, e.Text)
	}
	if err != nil {
		return -1, key, err
	}
	if fd, err = openAt(parent, temporary, unix.O_RDONLY|unix.O_NONBLOCK); err == nil {
		if key, err = keyOf(fd); err == nil {
			_ = flock(fd, unix.LOCK_SH) // without locks nobody takes it away, either
			ph.write(note(key, e.Path))
			err = renameNew(parent, temporary, parent, name)
		}
	}
	if err != nil {
		_ = unix.Unlinkat(parent, temporary, flags)
		unix.Close(fd)
		return -1, key, err
	}
	again, err := unix.FcntlInt(uintptr(parent), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		again = -1
	}
	ph.ours[key] = standing{e.Path, again}
	return fd, key, nil
}

// mode is that of the folder that stands for an entry. One of the daemon's own is
// closed, as the daemon would make it: other daemons refuse /tmp/agent-UID otherwise.
func (e Entry) mode() uint32 {
	if e.Root == "" {
		return 0o700
	}
	return 0o755
}

// temporaryPrefix begins the names of placeholders in the making.
const temporaryPrefix = ".agent-tmp-"

func makeFile(parent int, name, text string) error {
	fd, err := unix.Openat(parent, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(text))
	unix.Close(fd)
	if err != nil {
		_ = unix.Unlinkat(parent, name, 0)
	}
	return err
}

// take locks the placeholder that stands at a name: another call's, or another
// daemon's. What is no placeholder is errChanged.
func take(parent int, name string, e Entry) (fd int, key fileKey, err error) {
	fd, err = openAt(parent, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, unix.ENOENT) {
		return -1, key, err
	}
	if err != nil {
		return -1, key, errChanged
	}
	key, err = keyOf(fd)
	switch {
	case err != nil || !holds(fd, e.Text, e.Kind == AbsentFolder):
		err = errChanged
	case flock(fd, unix.LOCK_SH) != nil || !isAt(parent, name, key):
		err = unix.ENOENT
	}
	if err != nil {
		unix.Close(fd)
	}
	return fd, key, err
}

// cannot is what a placeholder that cannot be made means: nothing, where no
// command could make the name either.
func cannot(e Entry, parent int, err error) error {
	dir := filepath.Dir(e.Path)
	switch {
	case errors.Is(err, unix.EROFS):
		return nil
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		var st unix.Stat_t
		if unix.Fstat(parent, &st) == nil && st.Uid != uint32(os.Geteuid()) {
			return nil
		}
		return denied("a command could make " + e.Path + " and the daemon cannot keep it from that: chmod u+w " + dir)
	}
	return denied("the placeholder " + e.Path + " cannot be made: " + err.Error())
}

// Remove lets go of the placeholders, and takes those away on which nobody stands
// any more.
func (d *Placed) Remove() {
	for _, fd := range d.held {
		// A process that is being started at this moment has a copy of the
		// descriptor: closing ours alone would not let go of the lock.
		_ = flock(fd, unix.LOCK_UN)
		unix.Close(fd)
	}
	d.held = nil
	d.ph.mu.Lock()
	defer d.ph.mu.Unlock()
	d.ph.clear()
}

// Changed are the protected entries that are another file at the command's end
// than at its start: somebody outside replaced them, and the mask went with the
// name (sandbox.md 11).
func (d *Placed) Changed() []string {
	return replaced(d.was)
}

// write adds a line to the journal. Without it the next start leaves what a
// killed daemon made. The caller holds the lock.
func (ph *Placeholders) write(line string) {
	if ph.journal == nil {
		f, err := os.OpenFile(ph.path, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return
		}
		ph.journal = f
	}
	_, _ = ph.journal.WriteString(line)
}

// clear takes away what nobody stands on, and empties the journal once nothing is
// left. The caller holds the lock.
func (ph *Placeholders) clear() {
	for key, s := range ph.ours {
		if takeAway(key, s) {
			if s.parent >= 0 {
				unix.Close(s.parent)
			}
			delete(ph.ours, key)
		}
	}
	if len(ph.ours) == 0 && ph.journal != nil {
		_ = ph.journal.Truncate(0)
	}
}

// takeAway removes a placeholder; it reports whether there is nothing left to do.
// One that somebody filled or replaced is theirs. The zero key is any file.
func takeAway(want fileKey, s standing) (done bool) {
	parent, name := s.parent, filepath.Base(s.path)
	if parent < 0 {
		var err error
		if parent, err = openAt(unix.AT_FDCWD, filepath.Dir(s.path), unix.O_PATH|unix.O_DIRECTORY); err != nil {
			return !closed(err)
		}
		defer unix.Close(parent)
	}
	fd, err := openAt(parent, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return !closed(err)
	}
	defer unix.Close(fd)
	now, err := keyOf(fd)
	if err != nil || now != want && want != (fileKey{}) {
		return true
	}
	if flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	if !isPlaceholder(fd) || !isAt(parent, name, now) {
		return true
	}
	flags := 0
	if isFolder(fd) {
		flags = unix.AT_REMOVEDIR
	}
	return !closed(unix.Unlinkat(parent, name, flags))
}

// closed reports whether an error says that a folder is closed, as a command may
// have left it; a later try may find it open.
func closed(err error) bool { return errors.Is(err, unix.EACCES) }

func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); err != unix.EINTR {
			return err
		}
	}
}

func keyOf(fd int) (fileKey, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return key(&st), err
}

// isAt reports whether a name still is that file.
func isAt(parent int, name string, want fileKey) bool {
	var st unix.Stat_t
	return unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && key(&st) == want
}

func isFolder(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// isPlaceholder reports whether a file is what any placeholder is: an empty
// folder, an empty file, or one with the bytes of a placeholder.
func isPlaceholder(fd int) bool {
	if isFolder(fd) {
		return holds(fd, "", true)
	}
	return holds(fd, "", false) || slices.ContainsFunc(gitEntries, func(g gitEntry) bool {
		return g.text != "" && holds(fd, g.text, false)
	})
}

// holds reports whether a file is an empty folder, or a regular file of exactly
// text.
func holds(fd int, text string, folder bool) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return folder && emptyFolder(fd)
	case unix.S_IFREG:
		if folder || st.Size != int64(len(text)) {
			return false
		}
		b := make([]byte, len(text)+1)
		n, err := unix.Pread(fd, b, 0)
		return err == nil && string(b[:n]) == text
	}
	return false
}

func emptyFolder(fd int) bool {
	again, err := openAt(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(again), ".")
	defer f.Close()
	names, err := f.Readdirnames(1)
	return len(names) == 0 && errors.Is(err, io.EOF)
}
