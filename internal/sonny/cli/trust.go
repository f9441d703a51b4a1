package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	if len(files) == 0 {
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
	ask := &ahead.Trust{Term: t, Folder: w.folder.Path, Files: files, Setup: slices.Contains(files, ".agents/setup")}
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
	if len(files) == 0 {
		return nil
	}
	answer, _, err := config.TrustOf(w.trustFile(), w.folder.Path)
	if err == nil && answer == nil {
		err = fmt.Errorf("the folder has files by now that agents read as instructions (%s): leave Sonny and open it again, and you are asked about them", strings.Join(files[:min(3, len(files))], ", "))
	}
	return err
}

// maxFolderFiles bounds how many files of a folder are looked at.
const maxFolderFiles = 256

// folderFiles are the files of a folder, and of those above it up to its checkout's top,
// that agents would read: AGENTS.md, and what lies in .agents. The .agents of the home
// folder, a real path, are the person's own, which bots read whatever folder they work in.
func folderFiles(folder, top, home string) (files []string) {
	for dir := folder; ; dir = filepath.Dir(dir) {
		prefix, err := filepath.Rel(folder, dir)
		if err != nil {
			return files
		}
		if _, err := os.Lstat(filepath.Join(dir, "AGENTS.md")); err == nil {
			files = append(files, filepath.Join(prefix, "AGENTS.md"))
		}
		var entries []os.DirEntry
		if dir != home {
			entries, _ = os.ReadDir(filepath.Join(dir, ".agents")) // what cannot be listed is refused when it is read
		}
		for _, e := range entries {
			if len(files) < maxFolderFiles {
				files = append(files, filepath.Join(prefix, ".agents", e.Name()))
			}
		}
		if top == "" || dir == top || dir == filepath.Dir(dir) {
			return files
		}
	}
}
