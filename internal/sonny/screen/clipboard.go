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
	scratch := pen.Scratch(a.o.Kept)
	a.out.AttachFrom(&a.composing().Box, "clipboard", func(ctx context.Context) ([]byte, error) {
		return clipboard.Picture(ctx, os.Getenv, exec.LookPath, scratch)
	})
}
