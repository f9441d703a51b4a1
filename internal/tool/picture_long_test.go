//go:build long

package tool

import (
	"image"
	"testing"
)

func TestLargestPictures(t *testing.T) {
	side := image.Rect(0, 0, maxSide, maxSide)
	for name, p := range map[string]image.Image{
		"one byte a pixel":    image.NewGray(side),
		"eight bytes a pixel": image.NewNRGBA64(side),
	} {
		t.Run(name+" fits into the child's memory", func(t *testing.T) {
			env, w := newEnv(t)
			file(t, env, "p.png", encoded(t, typePNG, p))
			kept := ok(t, read(t, env, "p.png")).Pictures[0]
			if kept.Width != keptSide || kept.Height != keptSide || len(w.pictures[0]) > 100_000 {
				t.Errorf("kept as %dx%d in %d bytes", kept.Width, kept.Height, len(w.pictures[0]))
			}
		})
	}
}
