package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/protocol"
)

// Kind is what becomes of a path and all below it, as far as no deeper entry
// says otherwise.
type Kind int

const (
	Writable     Kind = iota // a root
	ReadOnly                 // protected
	AbsentFolder             // protected: a missing folder that nobody may make
	AbsentFile               // the same for a file
	Pinned                   // writable as what lies around it, but never renamed
	Walled                   // hidden
)

// Entry is one path of a plan.
type Entry struct {
	Path string
	Kind Kind
	Text string // AbsentFile: what the placeholder holds
	Root string // for a protected name of a root, that root; else ""
}

// Plan is what one call of a bot may touch. It is made anew before each call, is
// never changed, and is safe for concurrent use.
type Plan struct {
	World *World
	Mode  string
	Class Class
	Cwd   string // real
	// Roots are the writable folders in force, in the order of sandbox.md 3.1.
	Roots []string
	// Entries are sorted by depth: of two that cover a path the later one counts.
	// Without roots there are none but walls.
	Entries []Entry
	// Hidden are the sockets and folders that no command sees, parents first.
	Hidden []Hidden
	// BotSocket is the bot's own socket; "" where it has none.
	BotSocket   string
	UnixSockets []string
}

// Hidden is a path that exists and is out of sight of every command.
type Hidden struct {
	Path string
	Kind HiddenKind
}

// HiddenKind says how a path is hidden.
type HiddenKind int

const (
	HiddenSocket  HiddenKind = iota // the daemon's own
	HiddenSockets                   // a folder of sockets, which shows the bot's own alone
	HiddenWall                      // a folder that cannot even be listed
)

// Call is what a plan depends on beside the bot's setting.
type Call struct {
	Cwd       string // the turn's folder
	Beyond    bool   // the command outlives its call: git folders are read-only
	BotSocket string
	Mounts    []Mount // the machine's, of HostMounts
}

// NewPlan plans one call. It reads the file system, and fails with
// workspace_unavailable or sandbox_denied, whose detail names the path.
func NewPlan(w *World, s *Setting, c Call) (*Plan, error) {
	cwd, err := RealPath(c.Cwd)
	if err != nil || !isDir(cwd) {
		return nil, protocol.Fail(protocol.WorkspaceUnavailable, "the workspace "+c.Cwd+" is gone")
	}
	p := &Plan{World: w, Mode: s.Mode, Class: s.Class(), Cwd: cwd, BotSocket: c.BotSocket, UnixSockets: s.UnixSockets}
	for _, wall := range w.Walls {
		if within(cwd, wall) {
			return nil, denied("the workspace " + cwd + " lies in the hidden folder " + wall + "; use another")
		}
	}
	b := builder{plan: p, at: map[string]int{}}
	if s.Mode != protocol.SandboxWorkspace {
		if err := b.hide(c.Mounts); err != nil {
			return nil, err
		}
		return p, p.checkBytes()
	}
	if err := b.roots(s, c); err != nil {
		return nil, err
	}
	if err := b.protect(s); err != nil {
		return nil, err
	}
	b.walls()
	if err := b.reachable(); err != nil {
		return nil, err
	}
	if err := b.hide(c.Mounts); err != nil {
		return nil, err
	}
	b.sort()
	b.pin()
	return p, p.checkBytes()
}

// hide adds what no command sees, and what is protected, at every place where
// the machine shows it (sandbox.md 3.3, 3.4, 4.5).
func (b *builder) hide(mounts []Mount) error {
	w := b.plan.World
	for _, h := range append([]Hidden{{w.Socket, HiddenSocket}, {w.FallbackDir, HiddenSockets}, {w.SocketDir, HiddenSockets}}, walled(w.Walls)...) {
		if h.Path == "" {
			continue
		}
		if there, err := seen(h.Path); err != nil || !there {
			if err != nil {
				return err
			}
			continue
		}
		b.plan.Hidden = append(b.plan.Hidden, h)
		for _, other := range aliases(mounts, h.Path) {
			if err := b.alias(h.Path, other); err != nil {
				return err
			}
			b.plan.Hidden = append(b.plan.Hidden, Hidden{other, h.Kind})
		}
	}
	for _, path := range append([]string{w.AgentDir, filepath.Dir(w.Store)}, w.Protect...) {
		if path == "" {
			continue
		}
		for _, other := range aliases(mounts, path) {
			if err := b.alias(path, other); err != nil {
				return err
			}
		}
	}
	b.plan.Hidden = outermost(b.plan.Hidden)
	return nil
}

// outermost are the hidden paths that lie in no other, parents first.
func outermost(hidden []Hidden) (kept []Hidden) {
	slices.SortStableFunc(hidden, func(x, y Hidden) int { return depth(x.Path) - depth(y.Path) })
	for _, h := range hidden {
		if !slices.ContainsFunc(kept, func(k Hidden) bool { return within(h.Path, k.Path) }) {
			kept = append(kept, h)
		}
	}
	return kept
}

// alias refuses a root that is, holds, or lies in another place of a guarded
// path.
func (b *builder) alias(path, other string) error {
	for _, r := range b.plan.Roots {
		if within(r, other) || within(other, r) {
			return denied("the writable folder " + r + " reaches " + path + " under the name " + other + "; configure the bot's folders anew")
		}
	}
	return nil
}

func walled(paths []string) (hidden []Hidden) {
	for _, p := range paths {
		hidden = append(hidden, Hidden{p, HiddenWall})
	}
	return hidden
}

// checkBytes refuses what no argument list can carry.
func (p *Plan) checkBytes() error {
	for _, e := range p.Entries {
		if strings.IndexByte(e.Path, 0) >= 0 {
			return denied("a path holds a NUL byte")
		}
	}
	return nil
}

// builder makes the entries of one plan.
type builder struct {
	plan *Plan
	at   map[string]int // path → index of its entry
}

// put adds an entry, unless its path has one.
func (b *builder) put(e Entry) {
	if _, there := b.at[e.Path]; there {
		return
	}
	b.at[e.Path] = len(b.plan.Entries)
	b.plan.Entries = append(b.plan.Entries, e)
}

// covered reports whether a root holds path, or is it.
func (b *builder) covered(path string) bool {
	return slices.ContainsFunc(b.plan.Roots, func(r string) bool { return within(path, r) })
}

// roots takes the writable folders that there are now.
func (b *builder) roots(s *Setting, c Call) error {
	w := b.plan.World
	list := append([]string{s.Workspace}, s.Roots...)
	if !s.NoSlashTmp {
		list = append(list, w.Tmp)
	}
	if !s.NoTmpdir && !below(s.Workspace, w.Tmpdir) {
		list = append(list, w.Tmpdir)
	}
	for i, r := range list {
		if _, there := b.at[r]; there || r == "" {
			continue
		}
		if i > 0 {
			there, err := seen(r)
			if err != nil {
				return err
			}
			if !there {
				continue // one that is to come
			}
		}
		if !isDir(r) || !isReal(r) {
			return denied("the writable folder " + r + " is not what it was: it has become a link or is gone; configure the bot's folders anew")
		}
		if c.Beyond && (s.isGit(r) || isGitFolder(r)) {
			b.put(Entry{Path: r, Kind: ReadOnly})
			continue
		}
		b.plan.Roots = append(b.plan.Roots, r)
		b.put(Entry{Path: r, Kind: Writable})
	}
	return nil
}

// protect adds what stays as it is in every root, then what does so everywhere.
func (b *builder) protect(s *Setting) error {
	for _, root := range b.plan.Roots {
		if err := b.root(s, root); err != nil {
			return err
		}
	}
	for _, root := range s.Above {
		if !b.open(root) {
			continue
		}
		if _, err := seen(root); err != nil {
			return err
		}
		if !isDir(root) {
			continue
		}
		if err := b.root(s, root); err != nil {
			return err
		}
	}
	return b.guard()
}

// root protects the names at the top of a root. One that looks like a git folder
// keeps the names of an ordinary one protected, too, unless it lies in a .git: a
// command could have made it look so.
func (b *builder) root(s *Setting, root string) error {
	if !inGit(root) {
		if err := b.plainRoot(root); err != nil {
			return err
		}
	}
	if s.isGit(root) || isGitFolder(root) {
		return b.gitRoot(root)
	}
	return nil
}

// open reports whether a command may write to path as far as the entries until
// now say.
func (b *builder) open(path string) bool {
	nearest := Entry{Kind: ReadOnly}
	for _, e := range b.plan.Entries {
		if within(path, e.Path) && len(e.Path) > len(nearest.Path) {
			nearest = e
		}
	}
	return nearest.Kind == Writable
}

// guard adds what is protected in every sandbox, as far as a root covers it
// (sandbox.md 3.3).
func (b *builder) guard() error {
	dirs, files := b.plan.guarded()
	for i, path := range slices.Concat(dirs, files) {
		if path == "" || !b.covered(path) {
			continue
		}
		there, err := seen(path)
		switch {
		case err != nil:
			return err
		case there:
			b.put(Entry{Path: path, Kind: ReadOnly})
		case path == b.plan.World.Socket || !isDir(filepath.Dir(path)): // nothing can stand there
		case i < len(dirs):
			// Whoever made it would say what the daemon and its commands read, or
			// where they write.
			b.put(Entry{Path: path, Kind: AbsentFolder})
		default:
			b.put(Entry{Path: path, Kind: AbsentFile})
		}
	}
	return nil
}

// guarded is what is protected in every sandbox, there or not. The files are the
// lock of a socket, and those of a store, that lie loose in a root; "" among the
// folders is none.
func (p *Plan) guarded() (dirs, files []string) {
	w := p.World
	dirs = append([]string{w.AgentDir, w.SocketDir, w.FallbackDir, w.Socket}, w.Protect...)
	home := filepath.Dir(w.Store)
	holdsRoot := slices.ContainsFunc(p.Roots, func(r string) bool { return within(r, home) })
	switch {
	case w.Store == "":
	case holdsRoot && !within(home, w.AgentDir):
		var loose []string
		files, loose = w.storeFiles()
		dirs = append(dirs, loose...)
	default:
		dirs = append(dirs, home)
	}
	lock := w.Socket + ".owner-lock"
	if w.Socket != "" && !slices.ContainsFunc(dirs, func(dir string) bool { return within(lock, dir) }) {
		files = append(files, lock)
	}
	return dirs, files
}

// plainRoot protects the names at the top of an ordinary root (sandbox.md 3.2).
func (b *builder) plainRoot(root string) error {
	for _, name := range []string{".git", ".agents", ".codex", ".aws"} {
		path := filepath.Join(root, name)
		if _, err := seen(path); err != nil {
			return err
		}
		info, err := os.Lstat(path)
		switch {
		case err != nil && name == ".aws":
		case err != nil:
			b.put(Entry{Path: path, Kind: AbsentFolder, Root: root})
		case info.Mode()&os.ModeSymlink != 0:
			return denied(path + " is a symbolic link, which cannot be protected; replace it with what it points to")
		default:
			b.put(Entry{Path: path, Kind: ReadOnly, Root: root})
		}
		if err == nil && name == ".git" && info.Mode().IsRegular() {
			if err := b.pointed(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// pointed protects the git folders behind a .git file, where a root covers them
// and the bot was not given them.
func (b *builder) pointed(file string) error {
	dirs, err := gitFolders(file, b.covered)
	for _, dir := range dirs {
		if b.covered(dir) {
			b.put(Entry{Path: dir, Kind: ReadOnly})
		}
	}
	return err
}

// gitRoot protects the names in a git folder that the bot may commit to.
func (b *builder) gitRoot(root string) error {
	for _, g := range gitEntries {
		path := filepath.Join(root, g.name)
		if _, err := seen(path); err != nil {
			return err
		}
		info, err := os.Lstat(path)
		switch {
		case err == nil && info.Mode()&os.ModeSymlink != 0:
			return denied(path + " is a symbolic link, which cannot be protected; replace it with what it points to")
		case err == nil:
			b.put(Entry{Path: path, Kind: ReadOnly, Root: root})
		case g.only:
		case g.dir:
			b.put(Entry{Path: path, Kind: AbsentFolder, Root: root})
		default:
			b.put(Entry{Path: path, Kind: AbsentFile, Text: g.text, Root: root})
		}
	}
	return nil
}

// storeFiles are the store's own files and folders, for a store that lies loose
// in a root: its folder cannot be protected as a whole then.
func (w *World) storeFiles() (files, dirs []string) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".owner-lock", ".log", ".placeholders"} {
		files = append(files, w.Store+suffix)
	}
	return files, []string{w.Store + ".files", w.Store + ".companions"}
}

// walls adds the hidden folders that a root covers: what lies around one is
// pinned. All of them are hidden in any case.
func (b *builder) walls() {
	for _, wall := range b.plan.World.Walls {
		if b.covered(wall) {
			b.put(Entry{Path: wall, Kind: Walled})
		}
	}
}

// reachable refuses a plan in which a link stands on the way to a protected path:
// whoever turns the link leads the protection elsewhere.
func (b *builder) reachable() error {
	for _, e := range b.plan.Entries {
		path := e.Path
		if e.Kind == AbsentFolder || e.Kind == AbsentFile {
			path = filepath.Dir(path)
		}
		if e.Kind != Writable && !noLinkTo(path) {
			return denied("a symbolic link stands on the way to " + e.Path + ", which is to be protected; replace it")
		}
	}
	return nil
}

func (b *builder) sort() {
	slices.SortStableFunc(b.plan.Entries, func(x, y Entry) int { return depth(x.Path) - depth(y.Path) })
}

// pin adds the folders between a root and what is nested in it: renaming one
// would take the nested path from under its rule (sandbox.md 3.5). One whose
// surroundings are read-only cannot be renamed and must not be made writable.
func (b *builder) pin() {
	p := b.plan
	var pins []Entry
	for _, e := range p.Entries {
		around, ok := p.around(e.Path)
		if !ok || around.Kind != Writable {
			continue
		}
		for dir := filepath.Dir(e.Path); below(dir, around.Path); dir = filepath.Dir(dir) {
			pins = append(pins, Entry{Path: dir, Kind: Pinned})
		}
	}
	for _, pin := range pins {
		b.put(pin)
	}
	b.sort()
}

// forHelper is the plan for a change of files by the helper. It goes where it is
// told and follows no link, so that nothing is put where a name is missing.
func (p *Plan) forHelper() *Plan {
	h := *p
	h.Class, h.BotSocket = Closed, ""
	h.Entries = slices.DeleteFunc(slices.Clone(p.Entries), func(e Entry) bool {
		return e.Kind == AbsentFolder || e.Kind == AbsentFile
	})
	return &h
}

// around is the nearest entry that lies around path and is not it.
func (p *Plan) around(path string) (nearest Entry, ok bool) {
	for _, e := range p.Entries { // sorted by depth: the last is the nearest
		if below(path, e.Path) {
			nearest, ok = e, true
		}
	}
	return nearest, ok
}

// Of is the entry that decides about path, which is real as far as it exists; ok
// is false where none does, and path is read-only.
func (p *Plan) Of(path string) (Entry, bool) {
	for _, wall := range p.World.Walls {
		if within(path, wall) {
			return Entry{Path: wall, Kind: Walled}, true
		}
	}
	var nearest Entry
	found := false
	for _, e := range p.Entries {
		if within(path, e.Path) {
			nearest, found = e, true
		}
	}
	return nearest, found
}

// Inside reports whether a file change at path, which is real as far as it
// exists, is allowed in the sandbox (sandbox.md 6.1).
func (p *Plan) Inside(path string) bool {
	if path == p.World.Socket {
		return false
	}
	e, ok := p.Of(path)
	if !ok || e.Kind != Writable && (e.Kind != Pinned || path == e.Path) {
		return false
	}
	return !foldsNames || !p.respelt(path)
}

// String is the plan for a log or a test: one entry a line.
func (p *Plan) String() string {
	var b strings.Builder
	for _, e := range p.Entries {
		fmt.Fprintf(&b, "%s %s\n", [...]string{"writable", "protected", "no-folder", "no-file", "pinned", "hidden"}[e.Kind], e.Path)
	}
	return b.String()
}
