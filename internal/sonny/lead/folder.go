package lead

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agent/client/instructions"
	"agent/internal/sonny/repo"
	"agent/protocol"
)

// Folder is a folder that Sonny is opened in.
type Folder struct {
	Path string    // the workspace: a real path
	Repo repo.Repo // none outside git
	// Astray is why a repository that git sees there counts as none; "" where it does not.
	Astray string
	// Home is where its project is named from: Path, or the same place in the source
	// checkout of a linked worktree (sonny.md 3.1).
	Home string
}

// Locate resolves a folder.
func Locate(ctx context.Context, dir string) (*Folder, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(real); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, protocol.Fail(protocol.UsageError, real+" is no folder")
	}
	f := &Folder{Path: real, Home: real}
	if f.Repo, f.Astray, err = repo.Find(ctx, real); err != nil {
		return nil, err
	}
	if f.Repo.Linked() {
		if below, err := filepath.Rel(f.Repo.Top, real); err == nil {
			f.Home = filepath.Join(f.Repo.Source(), below)
		}
	}
	return f, nil
}

// ProjectName is how the folder's project is called when no other folder has the name:
// by project.toml, else as it was recorded, else after the folder.
func (f *Folder) ProjectName(recorded string) (string, error) {
	name, stated, err := instructions.StatedProject(f.Home)
	if err != nil || stated || recorded == "" {
		return name, err
	}
	return recorded, nil
}

// PlainName is the project's name by the folder's alone: nothing in the folder is read.
func (f *Folder) PlainName() string { return instructions.ProjectOf(f.Home) }

// leadName is the nth lead's name of a project, from 1 on.
func leadName(project string, n int) string {
	if n == 1 {
		return project + ".lead"
	}
	return fmt.Sprintf("%s.lead-%d", project, n)
}

// isLeadOf reports whether a name is one of a project's leads.
func isLeadOf(name, project string) bool {
	rest, ok := strings.CutPrefix(name, project+".lead")
	if !ok {
		return false
	}
	number, ok := strings.CutPrefix(rest, "-")
	return rest == "" || ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// ProjectOf is the project that a lead's or a task's name tells: what stands before
// its last part.
func ProjectOf(bot string) string {
	if i := strings.LastIndexByte(bot, '.'); i > 0 {
		return bot[:i]
	}
	return ""
}

// Names answers which bots there are: by name, nil for none.
type Names func(name string) *protocol.Bot

// maxNumber bounds the search for a free name.
const maxNumber = 10_000

// Free names the project and the lead that a new lead of the folder gets. taken is true
// where another folder has the project's plain name, so that the folder's was changed.
func (f *Folder) Free(project string, bots Names) (name, lead string, taken bool, err error) {
	for n := 1; n < maxNumber; n++ {
		name = project
		if n > 1 {
			name = fmt.Sprintf("%s-%d", project, n)
		}
		first := bots(leadName(name, 1))
		if first != nil && !f.holds(first) {
			continue // another folder's
		}
		for k := 1; k < maxNumber; k++ {
			if bots(leadName(name, k)) == nil {
				return name, leadName(name, k), n > 1, nil
			}
		}
	}
	return "", "", false, protocol.Fail(protocol.BotExists, project+".lead and all names like it are taken; name the project in .agents/project.toml")
}

// holds reports whether a bot works in this folder.
func (f *Folder) holds(b *protocol.Bot) bool { return worksIn(b, f.Path) }
