package screen

import (
	"context"
	"os"
	"os/exec"

	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/clipboard"
)

// pastePicture attaches the clipboard's picture.
func (a *App) pastePicture() {
	c := a.composing()
	if !a.fits(c, 1) {
		return
	}
	c.reading++
	scratch := pen.Scratch(a.o.Kept)
	do(a, func(ctx context.Context) (*pen.Picture, error) {
		data, err := clipboard.Picture(ctx, os.Getenv, exec.LookPath, scratch)
		if err != nil {
			return nil, err
		}
		return a.pen.pictures.AttachBytes(data, "clipboard")
	}, func(p *pen.Picture, err error) {
		c.reading--
		if err != nil {
			a.notes.fail(err)
			return
		}
		c.add([]*pen.Picture{p})
	})
}
