package screen

import (
	"os"
	"path/filepath"
	"strings"

	"agent/internal/sonny/screen/clipboard"
	"agent/protocol"
)

// pictureKeys attach pictures (sonny.md 10.1).
var pictureKeys = feature{
	commands: []slashCommand{{"image", "PATH", "attach a picture", func(a *App, args string) error {
		if args == "" {
			return protocol.Fail(protocol.UsageError, "name the picture: /image PATH")
		}
		a.attach([]string{clipboard.Unquoted(args)}, nil)
		return nil
	}}},
	actions: map[string]func(*App){"paste_picture": (*App).pastePicture},
}

// absolute is a path as the person means it in the folder.
func (a *App) absolute(path string) string {
	if rest, is := strings.CutPrefix(path, "~/"); is {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.o.Folder.Path, path)
}

// attach puts pictures into what is being written. instead is done where the first is no
// file; nil says so.
func (a *App) attach(paths []string, instead func()) {
	whole := make([]string, len(paths))
	for i, path := range paths {
		whole[i] = a.absolute(path)
	}
	a.out.Attach(&a.composing().Box, whole, instead)
}

// blind reports whether the model of a message is known to take no pictures.
func (a *App) blind() (model string, blind bool) {
	if b := a.bot(); b != nil && a.at() == a.session {
		model = b.Record.ModelRef()
	} else if s := a.at(); s != nil {
		if b := a.botAt(s); b != nil {
			model = b.Record.ModelRef()
		}
	} else {
		model = a.start.model
	}
	note := strings.ToLower(a.o.ModelNotes[model])
	return model, strings.Contains(note, "no pictures") || strings.Contains(note, "text only")
}
