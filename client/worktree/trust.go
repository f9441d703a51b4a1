package worktree

import (
	"iter"
	"path/filepath"
	"strings"

	"agent/internal/place"
	"agent/protocol"
)

// MayConfigure reports whether a bot's sandbox lets it write the config and the hooks of
// a repository, whose common git folder it is told, a real path. The sandbox keeps the
// .git at the top of a writable folder, and the config, hooks and modules of a git folder
// that is itself given; a repository that lies deeper in a writable folder is the bot's to
// write, and so to have made. A bot without a sandbox writes all that the person may, and
// is not meant.
func MayConfigure(b *protocol.Bot, common string) bool {
	if b.Sandbox != protocol.SandboxWorkspace {
		return false
	}
	if b.Workspace != nil && holdsUnkept(*b.Workspace, common) {
		return true
	}
	for _, root := range b.WritableRoots {
		if holdsUnkept(root, common) {
			return true
		}
	}
	return false
}

// holdsUnkept reports whether a git folder lies in a writable folder where the sandbox
// does not keep it.
func holdsUnkept(root, common string) bool {
	below, err := filepath.Rel(place.Real(root), common)
	if err != nil || !filepath.IsLocal(below) {
		return false
	}
	first, _, _ := strings.Cut(below, "/")
	if first == ".git" {
		return false
	}
	return !likeGitFolder(root) || first != "." && first != "modules"
}

// likeGitFolder reports whether a folder is called as git folders are. A plain folder
// that was given could be made to look like one, but has not the name.
func likeGitFolder(dir string) bool {
	return strings.Contains(dir+"/", "/.git/") || strings.HasSuffix(dir, ".git") || strings.HasPrefix(filepath.Base(dir), ".")
}

// Trust is a Request's, by all bots of the daemon: worktree_needs_git for a repository
// that one of them may configure, since a checkout runs the filters that the config names,
// as the person.
func Trust(bots iter.Seq2[*protocol.Bot, error], p *Plan) error {
	for b, err := range bots {
		if err != nil {
			return err
		}
		if MayConfigure(b, p.Common) {
			return protocol.Fail(protocol.WorktreeNeedsGit, "the repository of "+p.Source+" is configured by "+p.Common+
				", which the bot "+b.Name+" may write, and a checkout would run the programs that it names; make the worktree yourself, or work in the folder")
		}
	}
	return nil
}
