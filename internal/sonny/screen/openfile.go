package screen

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// openFile gives the terminal to the person's editor on a file, and takes it back
// when that ends. line is where it opens where the editor is known to take one; 0: the
// beginning.
func (a *App) openFile(path string, line int) error {
	argv := editorOf(a.o.Editor, os.Getenv)
	if len(argv) == 0 {
		argv = []string{"vi"}
	}
	argv = slices.Clip(argv)
	if line > 0 && takesLine(argv[0]) {
		argv = append(argv, fmt.Sprintf("+%d", line))
	}
	cmd := exec.Command(argv[0], append(argv[1:], path)...)
	cmd.Dir = filepath.Dir(path)
	return a.lendEditor(cmd)
}

// takesLine reports whether an editor opens at a line by +N.
func takesLine(editor string) bool {
	switch filepath.Base(editor) {
	case "vi", "vim", "nvim", "nano", "emacs", "emacsclient", "kak", "micro", "joe", "ne", "mg":
		return true
	}
	return false
}
