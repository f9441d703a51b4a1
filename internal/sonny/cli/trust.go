package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agent/internal/place"
	"agent/internal/sonny/config"
	"agent/internal/sonny/screen/ahead"
)

// trustFile is where the answers are kept.
func (w *around) trustFile() string { return filepath.Join(w.sonny, "trust.json") }

// askTrust asks about the folder's own files where it has some and the person has not
// said yet (sonny.md 3.5). It reports whether the screen goes on; w.own is set where it
// goes on without them.
func (a *app) askTrust(ctx context.Context, w *around, t ahead.Terminal) (bool, error) {
	w.own = false
	if w.config.TrustFolders == "always" {
		return true, nil
	}
	files := folderFiles(w.folder.Path, w.folder.Repo.Top, place.Real(filepath.Dir(w.agent)))
	if files.count == 0 {
		return true, nil
	}
	answer, notice, err := config.TrustOf(w.trustFile(), w.folder.Path)
	if err != nil {
		return false, err
	}
	if notice != nil {
		w.notices = append(w.notices, *notice)
	}
	if answer != nil {
		w.own = !answer.Use
		return true, nil
	}
	ask := &ahead.Trust{Term: t, Folder: w.folder.Path, Files: files.names, More: files.count - len(files.names), Setup: files.setup}
	verdict, err := ask.Ask(ctx)
	if err != nil || verdict == ahead.Leave {
		return false, err
	}
	w.own = verdict == ahead.WithoutThem
	if notice, err = config.Trust(w.trustFile(), w.folder.Path, !w.own); notice != nil {
		w.notices = append(w.notices, *notice)
	}
	return true, err
}

// askedAbout refuses a folder that has files of its own by now, about which the person was
// not asked when it was opened: an agent may have written them meanwhile.
func (w *around) askedAbout() error {
	if w.own || w.config.TrustFolders == "always" {
		return nil
	}
	files := folderFiles(w.folder.Path, w.folder.Repo.Top, place.Real(filepath.Dir(w.agent)))
	if files.count == 0 {
		return nil
	}
	answer, damaged, err := config.TrustOf(w.trustFile(), w.folder.Path)
	if damaged != nil {
		return errors.New(damaged.Text + "; leave Sonny and open the folder again, and you are asked about its files")
	}
	if err == nil && answer == nil {
		err = fmt.Errorf("the folder has files by now that agents read as instructions (%s): leave Sonny and open it again, and you are asked about them", strings.Join(files.names[:min(3, len(files.names))], ", "))
	}
	return err
}

// Bounds of what is looked at of a folder's files.
const (
	maxFolderFiles = 256    // that are named
	maxFolderWalk  = 10_000 // that are counted
)

// found are the files of a folder that agents would read.
type found struct {
	names []string // those that people look for first are first; the first maxFolderFiles
	count int      // of all, up to maxFolderWalk
	setup bool     // there is an .agents/setup
}

func (f *found) add(name string) {
	if f.count++; len(f.names) < maxFolderFiles {
		f.names = append(f.names, name)
	}
}

// folderFiles are the files of a folder, and of those above it up to its checkout's top,
// that agents would read: AGENTS.md, and what lies in .agents, in folders there too. The
// .agents of the home folder, a real path, are the person's own, which bots read whatever
// folder they work in.
func folderFiles(folder, top, home string) *found {
	files := &found{}
	var deep []func()
	for dir := folder; ; dir = filepath.Dir(dir) {
		prefix, err := filepath.Rel(folder, dir)
		if err != nil {
			break
		}
		if _, err := os.Lstat(filepath.Join(dir, "AGENTS.md")); err == nil {
			files.add(filepath.Join(prefix, "AGENTS.md"))
		}
		if dir != home {
			deep = append(deep, files.below(folder, filepath.Join(dir, ".agents")))
		}
		if top == "" || dir == top || dir == filepath.Dir(dir) {
			break
		}
	}
	for _, walk := range deep {
		walk()
	}
	return files
}

// below adds what lies in an .agents itself, and gives what adds the rest, which lies in
// its folders. A folder that cannot be listed is named: it is refused when it is read.
func (f *found) below(folder, agents string) (rest func()) {
	rel := func(path string) string { name, _ := filepath.Rel(folder, path); return name }
	entries, _ := os.ReadDir(agents)
	var dirs []string
	for _, e := range entries {
		path := filepath.Join(agents, e.Name())
		if e.IsDir() {
			dirs = append(dirs, path)
			continue
		}
		f.setup = f.setup || e.Name() == "setup"
		f.add(rel(path))
	}
	return func() {
		for _, dir := range dirs {
			_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if f.count >= maxFolderWalk {
					return fs.SkipAll
				}
				if err != nil || !d.IsDir() {
					f.add(rel(path))
				}
				return nil
			})
		}
	}
}
