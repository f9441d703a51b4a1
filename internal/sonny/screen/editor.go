package screen

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"agent/internal/place"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/edit"
	"agent/protocol"
)

// editorKeys open the draft in the person's editor (sonny.md 10.1).
var editorKeys = feature{
	commands: []slashCommand{{"editor", "", "the draft in your editor", func(a *App, _ string) error {
		a.composing().Clear()
		a.openEditor()
		return nil
	}}},
	actions: map[string]func(*App){"editor": (*App).openEditor},
}

// maxEdited bounds what is taken back from an editor, in bytes.
const maxEdited = 16 << 20

// openEditor hands the draft to the editor and takes back what it saved, unsent. Nothing
// is drawn meanwhile: the terminal is the editor's. What fails changes nothing.
func (a *App) openEditor() {
	argv := a.editor()
	if len(argv) == 0 {
		return
	}
	c := a.composing()
	was, pictures := c.Editor().Message()
	now, err := a.edit(argv, was)
	switch {
	case err != nil:
		a.notes.fail(fmt.Errorf("nothing was changed: %w", err))
	case now != was:
		d := edit.Draft{Parts: []edit.Part{{Text: now}}}
		for _, p := range pictures {
			d.Parts = append(d.Parts, edit.Part{Chip: &p})
		}
		c.Editor().SetDraft(d)
	}
}

// editor is the editor's command; where none is set that is said.
func (a *App) editor() []string {
	argv := editorOf(a.o.Editor, os.Getenv)
	if len(argv) == 0 {
		a.notes.say("no editor is set: $VISUAL, $EDITOR, or tui.editor")
	}
	return argv
}

// editorOf is the editor's command: of the setting, else of the environment.
func editorOf(setting string, env func(string) string) []string {
	for _, s := range []string{setting, env("VISUAL"), env("EDITOR")} {
		if strings.TrimSpace(s) != "" {
			return strings.Fields(s)
		}
	}
	return nil
}

// edit has the editor change a text, in a private file that is gone afterwards and that
// no agent reaches.
func (a *App) edit(argv []string, text string) (string, error) {
	dir, err := place.NewScratch(pen.Scratch(a.o.Kept))
	if err != nil {
		return "", err
	}
	defer dir.Close()
	path := filepath.Join(dir.Path, "message.md")
	if err := place.CreatePrivate(path, []byte(text)); err != nil {
		return "", err
	}
	if err := a.lendEditor(exec.Command(argv[0], append(argv[1:len(argv):len(argv)], path)...)); err != nil {
		return "", err
	}
	data, _, err := place.ReadOwn(path, maxEdited)
	if err != nil && !errors.Is(err, place.ErrNotOwn) {
		return "", err
	}
	if err != nil {
		return "", protocol.Fail(PasteTooLarge, err.Error())
	}
	return strings.TrimSuffix(string(data), "\n"), nil
}

// lend gives the terminal to a program until it ends. The error is the program's, or says
// that the terminal did not come back.
func (a *App) lend(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	a.o.Term.Suspend()
	ran := cmd.Run()
	if err := a.o.Term.Resume(); err != nil {
		a.quit = true
		return err
	}
	a.o.Term.Redraw()
	return ran
}

// lendEditor gives the terminal to the person's editor.
func (a *App) lendEditor(cmd *exec.Cmd) error {
	if err := a.lend(cmd); err != nil {
		return fmt.Errorf("%s: %w; set VISUAL or tui.editor to another editor", cmd.Args[0], err)
	}
	return nil
}
