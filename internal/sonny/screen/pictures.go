package screen

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"agent/internal/place"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/edit"
	"agent/protocol"
)

// pictureKeys attach pictures (sonny.md 10.1).
var pictureKeys = feature{
	commands: []slashCommand{{"image", "PATH", "attach a picture", func(a *App, args string) error {
		if args == "" {
			return protocol.Fail(protocol.UsageError, "name the picture: /image PATH")
		}
		path := a.absolute(unquoted(args))
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

// picturePaths are the files that a dropped or pasted text names: one a line, quoted as
// a shell has them or as URLs. nil where it is anything else.
func picturePaths(s string) (paths []string) {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\r", "\n"))
	if s == "" || len(s) > 16<<10 {
		return nil
	}
	for line := range strings.SplitSeq(s, "\n") {
		path := unquoted(line)
		if !filepath.IsAbs(path) && !strings.HasPrefix(path, "~/") || !pen.LooksLike(path) {
			return nil
		}
		paths = append(paths, path)
	}
	return paths
}

// unquoted is a path without the quoting that a terminal gives what is dropped on it.
func unquoted(s string) string {
	s = strings.TrimSpace(s)
	if rest, is := strings.CutPrefix(s, "file://"); is {
		if path, err := url.PathUnescape(strings.TrimPrefix(rest, "localhost")); err == nil {
			return path
		}
	}
	if len(s) > 1 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
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
		if b := a.world.Bot(s.bot); b != nil {
			model = b.Record.ModelRef()
		}
	} else {
		model = a.start.model
	}
	note := strings.ToLower(a.o.ModelNotes[model])
	return model, strings.Contains(note, "no pictures") || strings.Contains(note, "text only")
}
