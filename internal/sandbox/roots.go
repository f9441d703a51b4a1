package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agent/protocol"
)

// Limits of a setting (sandbox.md 2).
const (
	maxRoots   = 64
	maxSockets = 64
)

// Real is an absolute path without links, as far as it exists, and with the rest
// as it is written.
func Real(path string) (string, error) {
	if !filepath.IsAbs(path) || strings.IndexByte(path, 0) >= 0 {
		return "", fmt.Errorf("%q is not an absolute path", path)
	}
	path = filepath.Clean(path)
	rest := ""
	for {
		real, err := RealPath(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || path == "/" {
			return "", err
		}
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("%s is a link to nothing", path)
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// CheckRoots resolves writable folders, workspace first, and refuses those that
// no bot may have: invalid_writable_root, writable_root_walled (sandbox.md 3.1).
// It reads the file system.
func (w *World) CheckRoots(workspace string, given []string) (roots []string, err error) {
	if len(given) > maxRoots {
		return nil, badRoot(fmt.Sprintf("%d writable folders of at most %d", len(given), maxRoots))
	}
	for _, path := range given {
		real, err := Real(path)
		if err != nil {
			return nil, badRoot(err.Error())
		}
		if real != workspace && !slices.Contains(roots, real) {
			roots = append(roots, real)
		}
	}
	all := roots
	if workspace != "" {
		all = append([]string{workspace}, roots...)
	}
	for _, r := range all {
		if err := w.checkRoot(r, workspace, all); err != nil {
			return nil, err
		}
	}
	return roots, nil
}

func badRoot(why string) error { return protocol.Fail(protocol.InvalidWritableRoot, why) }

func (w *World) checkRoot(r, workspace string, all []string) error {
	if r == "/" {
		return badRoot("/ cannot be a writable folder; name the folders that are needed, or use danger-full-access")
	}
	for _, wall := range w.Walls {
		if within(r, wall) {
			return protocol.Fail(protocol.WritableRootWalled, r+" lies in the hidden folder "+wall+"; name a folder outside it")
		}
	}
	if info, err := os.Lstat(r); err == nil && !info.IsDir() {
		return badRoot(r + " is no folder")
	}
	for _, guarded := range append([]string{w.SocketDir, w.FallbackDir, w.Store + ".companions", w.Store + ".files"}, w.Protect...) {
		if guarded != "" && within(r, guarded) {
			return badRoot(r + " lies in " + guarded + ", which is protected in every sandbox")
		}
	}
	if within(r, w.AgentDir) && !below(r, filepath.Join(w.AgentDir, "worktrees")) {
		return badRoot(r + " is protected in every sandbox: of " + w.AgentDir + " only folders below worktrees may be writable")
	}
	if dir := w.storeFolder(workspace); dir != "" && within(r, dir) && !below(r, filepath.Join(dir, "worktrees")) {
		return badRoot(r + " lies in " + dir + ", which holds the store and of which only folders below worktrees may be writable")
	}
	return checkNames(r, all)
}

// storeFolder is the folder of the store where it is protected whole: not where
// the store lies loose in a folder that others are in, or around the workspace.
func (w *World) storeFolder(workspace string) string {
	if w.Store == "" {
		return ""
	}
	dir := filepath.Dir(w.Store)
	for _, p := range []string{workspace, w.Home, w.Tmp, w.Tmpdir} {
		if p != "" && within(p, dir) {
			return ""
		}
	}
	return dir
}

// checkNames refuses a root in a folder that is protected by its name.
func checkNames(r string, all []string) error {
	for dir := r; dir != "/"; dir = filepath.Dir(dir) {
		name := filepath.Base(dir)
		switch name {
		case ".git":
			if !isGitFolder(r) {
				return badRoot(r + " lies in a .git and is no git folder itself; a git folder may be given, to commit to")
			}
		case ".agents", ".codex", ".aws":
			if slices.Contains(all, filepath.Dir(dir)) {
				return badRoot(r + " lies in " + dir + ", which is protected")
			}
		}
	}
	return nil
}

// CheckSockets resolves the Unix sockets of a setting: invalid_sandbox.
func CheckSockets(given []string) (paths []string, err error) {
	if len(given) > maxSockets {
		return nil, protocol.Fail(protocol.InvalidSandbox, fmt.Sprintf("%d unix_sockets of at most %d", len(given), maxSockets))
	}
	for _, path := range given {
		if !filepath.IsAbs(path) || strings.IndexByte(path, 0) >= 0 {
			return nil, protocol.Fail(protocol.InvalidSandbox, fmt.Sprintf("unix_sockets: %q is not an absolute path", path))
		}
		if path = filepath.Clean(path); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// width orders the modes, the narrowest first.
func width(mode string) int {
	switch mode {
	case protocol.SandboxReadOnly:
		return 0
	case protocol.SandboxWorkspace:
		return 1
	}
	return 2
}

// own are the writable folders that the setting itself names.
func (s *Setting) own() []string {
	if s.Workspace == "" {
		return s.Roots
	}
	return append([]string{s.Workspace}, s.Roots...)
}

// writable are all folders the setting makes writable, those of the daemon's
// among them.
func (w *World) writable(s *Setting) []string {
	roots := s.own()
	if !s.NoSlashTmp && w.Tmp != "" {
		roots = append(roots, w.Tmp)
	}
	if !s.NoTmpdir && w.Tmpdir != "" && !below(s.Workspace, w.Tmpdir) {
		roots = append(roots, w.Tmpdir)
	}
	return roots
}

// Widens says what of child goes beyond its creator, or beyond the bot that it is
// a fork of; "" when nothing does (sandbox.md 9). It reads the file system.
func (w *World) Widens(child, creator *Setting) string {
	switch {
	case !creator.Confines():
		return ""
	case width(child.Mode) > width(creator.Mode):
		return "the mode " + modeName(child.Mode) + " is wider than " + modeName(creator.Mode)
	case child.Network && !creator.Network:
		return "network is off for the bot it comes from"
	case creator.NoSlashTmp && !child.NoSlashTmp && child.Mode == protocol.SandboxWorkspace:
		return w.Tmp + " is left out of the folders of the bot it comes from"
	case creator.NoTmpdir && !child.NoTmpdir && child.Mode == protocol.SandboxWorkspace:
		return "$TMPDIR is left out of the folders of the bot it comes from"
	}
	for _, path := range child.UnixSockets {
		if !creator.Network && !slices.Contains(creator.UnixSockets, path) {
			return "the socket " + path + " is none of those of the bot it comes from"
		}
	}
	if child.Mode != protocol.SandboxWorkspace {
		return ""
	}
	plan := w.reach(creator)
	for _, r := range child.own() {
		if !plan.opens(r) && !ownWorktree(r, child, creator, plan) {
			return "the folder " + r + " lies in none of the writable folders of the bot it comes from"
		}
		if isGitFolder(r) && !slices.ContainsFunc(creator.own(), func(c string) bool { return within(r, c) && isGitFolder(c) }) && inGit(r) {
			return "the git folder " + r + " was not given to the bot it comes from"
		}
	}
	return ""
}

// opens reports whether a plan makes a path writable.
func (p *Plan) opens(path string) bool {
	e, ok := p.Of(path)
	return ok && (e.Kind == Writable || e.Kind == Pinned)
}

// ownWorktree reports whether a folder is the git folder of a linked worktree that the
// child works in and the creator may write, of a repository whose git folder was given
// to the creator. It lies in what is protected for the creator, worktrees, which keeps
// the worktrees of other bots from it; this one is the child's own. What its gitdir
// says is git's: no sandbox lets that file be written.
func ownWorktree(r string, child, creator *Setting, plan *Plan) bool {
	all := filepath.Dir(r)
	common := filepath.Dir(all)
	if filepath.Base(all) != "worktrees" || !isGitFolder(r) || !isGitFolder(common) || !slices.Contains(creator.own(), common) {
		return false
	}
	pointer := firstLine(filepath.Join(r, "gitdir"))
	tree, err := RealPath(filepath.Dir(pointer))
	if err != nil || !filepath.IsAbs(pointer) || filepath.Base(pointer) != ".git" {
		return false
	}
	works := func(root string) bool { return within(root, tree) }
	return plan.opens(tree) && slices.ContainsFunc(child.own(), works)
}

// inGit reports whether a git folder is, or lies in, some .git.
func inGit(path string) bool {
	for dir := path; dir != "/"; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == ".git" {
			return true
		}
	}
	return false
}

func modeName(mode string) string {
	if mode == "" {
		return protocol.SandboxFull
	}
	return mode
}

// reach is the plan of a setting without a call: which paths it makes writable.
func (w *World) reach(s *Setting) *Plan {
	p := &Plan{World: w, Mode: s.Mode}
	if s.Mode != protocol.SandboxWorkspace {
		return p
	}
	b := builder{plan: p, at: map[string]int{}}
	for _, r := range w.writable(s) {
		if isDir(r) || !exists(r) {
			p.Roots = append(p.Roots, r)
			b.put(Entry{Path: r, Kind: Writable})
		}
	}
	_ = b.protect(s) // a link refuses calls, and settles nothing here
	b.walls()
	b.sort()
	return p
}

// Bind narrows a bot's setting to what its creator's allows now: a creator that is
// narrowed narrows what it made, at their next call (sandbox.md 9).
func (w *World) Bind(s, creator Setting) Setting {
	if !creator.Confines() {
		return s
	}
	if width(creator.Mode) < width(s.Mode) {
		s.Mode = creator.Mode
	}
	s.Network = s.Network && creator.Network
	if !creator.Network {
		s.UnixSockets = slices.DeleteFunc(slices.Clone(s.UnixSockets), func(path string) bool {
			return !slices.Contains(creator.UnixSockets, path)
		})
	}
	s.NoSlashTmp = s.NoSlashTmp || creator.NoSlashTmp
	s.NoTmpdir = s.NoTmpdir || creator.NoTmpdir
	above := slices.Concat(s.Above, creator.own(), creator.Above)
	slices.Sort(above)
	s.Above = slices.Compact(above)
	git := slices.Concat(s.Git, creator.Git)
	slices.Sort(git)
	s.Git = slices.Compact(git)
	if s.Mode != protocol.SandboxWorkspace {
		return s
	}
	outside := func(r string) bool {
		return !slices.ContainsFunc(w.writable(&creator), func(c string) bool { return within(r, c) })
	}
	if s.Workspace != "" && outside(s.Workspace) {
		s.Workspace = ""
	}
	s.Roots = slices.DeleteFunc(slices.Clone(s.Roots), outside)
	return s
}

// TrustedPath is a PATH without the entries that are empty, relative, or in a
// folder that a bot of this setting may write.
func (w *World) TrustedPath(path string, s *Setting) string {
	roots := w.writable(s)
	kept := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
		if !filepath.IsAbs(dir) {
			return true
		}
		real, err := RealPath(dir)
		if err != nil {
			return true
		}
		return slices.ContainsFunc(roots, func(r string) bool { return within(real, r) || within(filepath.Clean(dir), r) })
	})
	return strings.Join(kept, string(filepath.ListSeparator))
}
