package screen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"agent/internal/place"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/clipboard"
	"agent/internal/sonny/screen/edit"
	"agent/protocol"
)

// pictureKeys attach pictures (sonny.md 10.1).
var pictureKeys = feature{
	commands: []slashCommand{{"image", "PATH", "attach a picture", func(a *App, args string) error {
		if args == "" {
			return protocol.Fail(protocol.UsageError, "name the picture: /image PATH")
		}
		path := a.absolute(clipboard.Unquoted(args))
		a.attach([]string{path}, nil)
		return nil
	}}},
	actions: map[string]func(*App){"paste_picture": (*App).pastePicture},
}

// cleanPictures takes away what was attached long ago, and what a crash left of an edit.
func (a *App) cleanPictures() {
	now := a.o.Now()
	scratch := pen.Scratch(a.o.Kept)
	do(a, func(context.Context) (struct{}, error) {
		return struct{}{}, errors.Join(a.pen.pictures.Clean(now), place.SweepScratch(scratch))
	},
		func(_ struct{}, err error) {
			if err != nil {
				a.notes.fail(err)
			}
		})
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

// attach puts pictures into what is being written, each as a chip. instead is done
// where the first is no file; nil says so.
func (a *App) attach(paths []string, instead func()) {
	c := a.composing()
	if !a.fits(c, len(paths)) {
		return
	}
	c.reading += len(paths)
	do(a, func(context.Context) (list []*pen.Picture, err error) {
		for _, path := range paths {
			p, err := a.pen.pictures.Attach(a.absolute(path))
			if err != nil {
				return list, err
			}
			list = append(list, p)
		}
		return list, nil
	}, func(list []*pen.Picture, err error) {
		c.reading -= len(paths)
		c.add(list)
		switch {
		case err != nil && os.IsNotExist(err) && instead != nil && len(list) == 0:
			instead()
		case err != nil:
			a.notes.fail(err)
		}
	})
}

// fits reports whether so many pictures may still be added, and says where not.
func (a *App) fits(c *composer, n int) bool {
	_, pictures := c.Editor().Draft().Message()
	if len(pictures)+c.reading+n <= protocol.MaxPictures {
		return true
	}
	a.notes.say(fmt.Sprintf("a message holds at most %d pictures", protocol.MaxPictures))
	return false
}

// add puts pictures at the caret.
func (c *composer) add(list []*pen.Picture) {
	for _, p := range list {
		_, there := c.Editor().Draft().Message()
		c.Editor().AddChip(edit.Chip{Kind: edit.PictureChip, Label: p.Label(len(there) + 1), Path: p.Path})
	}
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
