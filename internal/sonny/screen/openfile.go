package screen

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"agent/protocol"
)

// openFile gives the terminal to the person's editor on a file, and takes it back
// when that ends. line is where it opens where the editor is known to take one; 0: the
// beginning.
func (a *App) openFile(path string, line int) error {
	editor := a.o.Editor
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if editor == "" {
			editor = os.Getenv(name)
		}
	}
	if editor == "" {
		editor = "vi"
	}
	script, args := editor+` "$@"`, []string{path}
	if line > 0 && takesLine(editor) {
		args = []string{fmt.Sprintf("+%d", line), path}
	}
	cmd := exec.CommandContext(a.ctx, "/bin/sh", append([]string{"-c", script, "sonny"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Dir = filepath.Dir(path)
	a.o.Term.Suspend()
	err := cmd.Run()
	if back := a.o.Term.Resume(); back != nil {
		a.quit = true
		return back
	}
	if err != nil {
		return protocol.Fail("failed", fmt.Sprintf("the editor (%s) ended with %v; set VISUAL or tui.editor to another", editor, err))
	}
	return nil
}

// takesLine reports whether an editor opens at a line by +N.
func takesLine(editor string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(editor), " ")
	switch filepath.Base(name) {
	case "vi", "vim", "nvim", "nano", "emacs", "emacsclient", "kak", "micro", "joe", "ne", "mg":
		return true
	}
	return false
}
