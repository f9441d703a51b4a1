package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"zombiezen.com/go/sqlite"

	"agent/internal/place"
	"agent/protocol"
)

// Options say which store to open and who hears of what it commits.
type Options struct {
	Path string // canonical, place.Canonical
	Sink Sink   // nil: nobody; then the functions of a batch are called by the publisher
	// Faults makes it fail on purpose, in tests.
	Faults *Faults
	// FileSystem tells the type of the file system a path lies on. Nil:
	// place.FileSystem.
	FileSystem func(path string) (name string, network bool, err error)
	// Owned is called once the store is this process's and before anything of it is
	// touched, with what tells the store's lock from every other. Nil: nothing.
	Owned func(lock string)

	schema *schema // nil: current
}

// Store is an open store, owned by this process until Close. It is safe for
// concurrent use.
type Store struct {
	path     string
	lock     *place.OwnerLock
	faults   *Faults
	writer   *sqlite.Conn
	readers  pool
	queue    chan *job
	pub      *publisher
	stats    counters
	instance string
	lineage  string

	closing  sync.RWMutex // held for reading while a job is put in the queue
	closed   bool
	worked   chan struct{} // closed when the writer has ended
	answered answered
	broken   atomic.Pointer[protocol.Error] // the file is damaged or gone, and nothing is written any more; what jobs are told
	fatal    chan error
	files    [2]fileID // of the file and its write-ahead log, as they were opened
}

// fileID tells a file from another one at its path.
type fileID struct{ dev, ino uint64 }

// Open takes a store's lock and opens it, making it when there is none. What it
// refuses it has not changed: store_hard_links_unsupported,
// store_on_network_filesystem, store_already_owned, store_corrupt,
// store_schema_newer, store_schema_unsupported, store_migration_failed,
// invalid_store_path, storage_error; every error is a *protocol.Error.
func Open(opt Options) (*Store, error) {
	if opt.FileSystem == nil {
		opt.FileSystem = place.FileSystem
	}
	if opt.schema == nil {
		opt.schema = current
	}
	if err := checkPlace(opt); err != nil {
		return nil, openError(err)
	}
	lock, err := ownLock(opt.Path)
	if err != nil {
		return nil, openError(fileError(err))
	}
	absent := absentFiles(opt.Path)
	s, err := openLocked(opt, lock)
	if err == nil {
		return s, nil
	}
	for _, file := range absent {
		os.Remove(file)
	}
	lock.Close()
	return nil, openError(err)
}

// ownLock takes a store's lock; whoever has it listens at the store's socket, as a rule.
func ownLock(path string) (*place.OwnerLock, error) {
	return place.OwnLock(path+".owner-lock", string(protocol.StoreAlreadyOwned), socketOf(path))
}

// socketOf is the socket beside a store, "" where its path is too long for one.
func socketOf(path string) string {
	socket, err := place.SocketFor(path)
	if err != nil {
		return ""
	}
	return socket
}

// absentFiles are those files of a store that are to be made. When there is no
// store and it cannot be made, on a full disk for one, they are removed again:
// an empty file would look like a store. What was there stays as it is, a log
// that has lost its store included.
func absentFiles(path string) (absent []string) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(path + suffix); errors.Is(err, fs.ErrNotExist) {
			absent = append(absent, path+suffix)
		}
	}
	return absent
}

func openLocked(opt Options, lock *place.OwnerLock) (*Store, error) {
	if opt.Owned != nil {
		id, err := lock.ID()
		if err != nil {
			return nil, fileError(err)
		}
		opt.Owned(id)
	}
	if err := claim(opt, lock); err != nil {
		return nil, err
	}
	return start(opt, lock)
}

// claim does what must be done before SQLite sees the file: it makes it 0600,
// locks it, too, and judges it.
func claim(opt Options, lock *place.OwnerLock) error {
	if err := create(opt.Path); err != nil {
		return fileError(err)
	}
	if err := lock.Guard(opt.Path, string(protocol.StoreAlreadyOwned), socketOf(opt.Path)); err != nil {
		return fileError(err)
	}
	// SQLite keeps no rollback journal here: an empty one is a launcher's mount point.
	// Of the other files it makes its own.
	if err := place.RemoveMountPoint(opt.Path + "-journal"); err != nil {
		return fileError(err)
	}
	for _, sidecar := range []string{"-wal", "-shm", "-journal"} {
		if err := tighten(opt.Path + sidecar); err != nil {
			return fileError(err)
		}
	}
	return judge(opt.Path, opt.schema.version())
}

// checkPlace refuses a path where a store cannot be kept; it makes nothing.
func checkPlace(opt Options) error {
	if !filepath.IsAbs(opt.Path) {
		return protocol.Fail(protocol.InvalidStorePath, "the path "+opt.Path+" is not absolute")
	}
	info, err := os.Stat(filepath.Dir(opt.Path))
	if err != nil || !info.IsDir() {
		return protocol.Fail(protocol.InvalidStorePath, filepath.Dir(opt.Path)+" is not an existing folder; make it first")
	}
	info, err = os.Lstat(opt.Path)
	if err == nil && !info.Mode().IsRegular() {
		return protocol.Fail(protocol.InvalidStorePath, opt.Path+" is not a regular file")
	}
	if err == nil && info.Sys().(*syscall.Stat_t).Nlink > 1 {
		return protocol.Fail(protocol.StoreHardLinksUnsupported,
			opt.Path+" has more than one name; copy the file instead of linking it")
	}
	name, network, err := opt.FileSystem(opt.Path)
	if err != nil {
		return fileError(err)
	}
	if network {
		return protocol.Fail(protocol.StoreOnNetworkFilesystem, fmt.Sprintf(
			"%s lies on %s, which cannot keep a write-ahead log safe; name a local place with --store PATH or AGENT_STORE",
			opt.Path, name))
	}
	return nil
}

// create makes the file, empty and 0600, unless it exists; then it makes it
// 0600. SQLite gives its sidecars the mode it finds.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return tighten(path)
	}
	if err != nil {
		return err
	}
	if err := f.Chmod(0o600); err != nil { // the umask may have taken the owner's bits
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return place.SyncDir(filepath.Dir(path))
}

// tighten makes a file 0600 if it exists.
func tighten(path string) error {
	f, err := place.OpenPrivate(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// judge reads the header plainly and gives the verdict on it.
func judge(path string, version int) error {
	f, err := place.OpenPrivate(path, os.O_RDONLY)
	if err != nil {
		return fileError(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileError(err)
	}
	head := make([]byte, judgedBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return fileError(err)
	}
	if wal, err := os.Lstat(path + "-wal"); err == nil && info.Size() == 0 && wal.Size() > 0 {
		// SQLite would throw the log away and begin anew.
		return corrupt("the file is empty but its write-ahead log is not")
	}
	return judgeHeader(head[:n], info.Size(), version)
}

// start opens the connections of a claimed file and the two goroutines.
func start(opt Options, lock *place.OwnerLock) (_ *Store, err error) {
	s := &Store{
		path:   opt.Path,
		lock:   lock,
		faults: opt.Faults,
		queue:  make(chan *job, queueLimit),
		worked: make(chan struct{}),
		fatal:  make(chan error, 1),
	}
	logged := hasLog(opt.Path)
	defer func() {
		if err != nil && !(logged && isDamage(err)) { // see disconnect
			s.disconnect()
		}
	}()
	if s.writer, err = connect(opt.Path); err != nil {
		return nil, err
	}
	if _, _, err := opt.schema.checkVersion(s.writer); err != nil {
		return nil, err
	}
	if err := configure(s.writer, unlinkedSettings); err != nil {
		return nil, err
	}
	if err := opt.schema.prepare(s.writer, opt.Faults); err != nil {
		return nil, err
	}
	if err := configure(s.writer, linkedSettings); err != nil {
		return nil, err
	}
	for range readerCount {
		if err := s.addReader(); err != nil {
			return nil, err
		}
	}
	if err := s.identify(); err != nil {
		return nil, err
	}
	if err := s.checkSidecars(); err != nil {
		return nil, err
	}
	s.pub = newPublisher(opt.Sink, opt.Faults)
	go s.work()
	return s, nil
}

// hasLog reports whether a file has a write-ahead log with something in it.
func hasLog(path string) bool {
	info, err := os.Lstat(path + "-wal")
	return err == nil && info.Size() > 0
}

func (s *Store) addReader() error {
	c, err := connect(s.path)
	if err != nil {
		return err
	}
	if err := configure(c, readerSettings); err != nil {
		c.Close()
		return err
	}
	s.readers.free = append(s.readers.free, newReader(c))
	return nil
}

// identify reads the lineage and makes the instance of it (runtime.md 1).
func (s *Store) identify() error {
	identity, err := integer(s.writer, qLineage)
	if err != nil {
		return err
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return fileError(err)
	}
	id := idOf(info)
	var b [24]byte
	binary.BigEndian.PutUint64(b[:], uint64(identity))
	binary.BigEndian.PutUint64(b[8:], id.dev)
	binary.BigEndian.PutUint64(b[16:], id.ino)
	sum := sha256.Sum256(b[:])
	s.instance = fmt.Sprintf("%x", sum[:16])
	s.lineage = fmt.Sprintf("%016x", uint64(identity))
	return nil
}

// Identity is the store's identity and lineage as ready gives them.
func (s *Store) Identity() (instance, lineage string) { return s.instance, s.lineage }

// Path is the store's canonical path.
func (s *Store) Path() string { return s.path }

// checkSidecars looks at the modes SQLite gave its files. By path: opening one
// now would cost SQLite its locks.
func (s *Store) checkSidecars() error {
	for i, name := range []string{s.path, s.path + "-wal", s.path + "-shm"} {
		info, err := os.Lstat(name)
		if err != nil {
			return fileError(err)
		}
		if i < len(s.files) {
			s.files[i] = idOf(info)
		}
		if info.Mode().Perm() != 0o600 {
			if err := os.Chmod(name, 0o600); err != nil {
				return fileError(err)
			}
		}
	}
	return nil
}

func idOf(info os.FileInfo) fileID {
	st := info.Sys().(*syscall.Stat_t)
	return fileID{uint64(st.Dev), uint64(st.Ino)}
}

// inPlace refuses a store whose file or log is not at its path any more: what would be
// committed to it could not be found again.
func (s *Store) inPlace() error {
	for i, name := range []string{s.path, s.path + "-wal"} {
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &gone{name + " was removed"}
		case err == nil && idOf(info) != s.files[i]:
			return &gone{name + " was replaced by another file"}
		case err != nil:
			return fileError(err)
		}
	}
	return nil
}

// gone is the error of a store whose files are others' now.
type gone struct{ what string }

func (e *gone) Error() string {
	return e.what + " while the daemon had it open; nothing more is written. What was answered last may be in no file: put the files back, or a copy of them, and start again"
}

// IsStoreFile reports whether a file is the store's own, its write-ahead log or
// its shared memory, which nothing in this process but SQLite may open
// (runtime.md 10).
func (s *Store) IsStoreFile(info os.FileInfo) bool {
	for _, name := range []string{s.path, s.path + "-wal", s.path + "-shm"} {
		own, err := os.Lstat(name)
		if err == nil && os.SameFile(own, info) {
			return true
		}
	}
	return false
}

// Fatal gives the one error after which the store writes nothing more: SQLite
// called the file damaged (store_corrupt), or it is not at its path any more
// (storage_error). The daemon then ends with status 1.
func (s *Store) Fatal() <-chan error { return s.fatal }

// fail makes known, once, that the store is damaged or gone.
func (s *Store) fail(cause error) {
	e, told := corrupt("SQLite calls "+s.path+" damaged"), protocol.Fail(protocol.StorageError, "the store is damaged")
	if left := (*gone)(nil); errors.As(cause, &left) {
		told = protocol.Fail(protocol.StorageError, left.Error())
		e = protocol.Fail(protocol.StorageError, left.Error())
	}
	e.Cause = cause
	if s.broken.CompareAndSwap(nil, told) {
		s.fatal <- e
	}
}

// fileError is an error of the file system's at open.
func fileError(err error) error {
	var refused *place.Error
	if err == nil || protocol.CodeOf(err) != "" || errors.As(err, &refused) {
		return err
	}
	return &protocol.Error{Code: protocol.InvalidStorePath, Detail: err.Error(), Cause: err}
}
