package pen

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif" // for image.Decode
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"agent/internal/place"
	"agent/protocol"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // for image.Decode
)

// Unsupported is the code of a picture that cannot be attached.
const Unsupported protocol.Code = "picture_unsupported"

// Bounds of a picture: the long side of what is sent, the file that is read, and its
// pixels, which bound the memory that scaling takes (four bytes each).
const (
	MaxSide        = 2000
	maxPictureFile = 64 << 20
	maxPixels      = 40_000_000
)

// keptFor is how long a picture that was attached is kept.
const keptFor = 7 * 24 * time.Hour

// Picture is one that can be sent.
type Picture struct {
	Name          string // as the person knows it
	Path          string // of the copy that is sent
	Width, Height int
	Bytes         int
}

// Label is the picture as its chip names it.
func (p *Picture) Label(n int) string {
	return fmt.Sprintf("[picture %d: %s %d×%d %s]", n, p.Name, p.Width, p.Height, size(p.Bytes))
}

func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", (n+1<<9)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// Pictures are the copies of what was attached, in Sonny's folder. Its methods may be
// called at once; one picture is worked on at a time, for the sake of memory.
type Pictures struct {
	dir string
	mu  sync.Mutex
}

// PicturesIn are the pictures in Sonny's folder, ~/.agent/sonny.
func PicturesIn(dir string) *Pictures { return &Pictures{dir: filepath.Join(dir, "pictures")} }

// extensions are those of files that are taken for pictures by their name.
var extensions = []string{".png", ".jpg", ".jpeg", ".gif", ".webp"}

// LooksLike reports whether a path is that of a picture by its name.
func LooksLike(path string) bool {
	return slices.Contains(extensions, strings.ToLower(filepath.Ext(path)))
}

// Attach reads a picture, scales it where it is too large, and keeps what is to be
// sent. picture_unsupported says what is wrong with it and what can be attached.
func (p *Pictures) Attach(path string) (*Picture, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, err := readPicture(path)
	if err != nil {
		return nil, err
	}
	return p.keep(data, filepath.Base(path))
}

// AttachBytes is Attach of a picture that is in no file, called name.
func (p *Pictures) AttachBytes(data []byte, name string) (*Picture, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keep(data, name)
}

func readPicture(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, unsupported(path, "is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPictureFile+1))
	if err == nil && len(data) > maxPictureFile {
		err = unsupported(path, fmt.Sprintf("is over %d MiB; make it smaller first", maxPictureFile>>20))
	}
	return data, err
}

func unsupported(name, why string) error {
	return protocol.Fail(Unsupported, name+" "+why)
}

// CheckPicture refuses a file that is none that can be sent, as Attach does.
func CheckPicture(path string) error {
	data, err := readPicture(path)
	if err == nil {
		_, _, err = look(data, path)
	}
	return err
}

// look reads a picture's size and kind.
func look(data []byte, name string) (c image.Config, kind string, err error) {
	if c, kind, err = image.DecodeConfig(bytes.NewReader(data)); err != nil {
		return c, "", unsupported(name, "is no picture that can be read: PNG, JPEG, GIF and WebP can be attached")
	}
	if c.Width <= 0 || c.Height <= 0 || c.Width > maxPixels/c.Height {
		return c, "", unsupported(name, fmt.Sprintf("has %d×%d pixels, more than the %d million that are scaled; make it smaller first", c.Width, c.Height, maxPixels/1_000_000))
	}
	return c, kind, nil
}

// keep writes what is to be sent.
func (p *Pictures) keep(data []byte, name string) (*Picture, error) {
	c, kind, err := look(data, name)
	if err != nil {
		return nil, err
	}
	out := &Picture{Name: name, Width: c.Width, Height: c.Height}
	if max(c.Width, c.Height) > MaxSide || len(data) > protocol.MaxPictureBytes {
		if data, kind, err = scaled(data, kind, out); err != nil {
			return nil, unsupported(name, "cannot be scaled: "+err.Error())
		}
	}
	out.Bytes = len(data)
	if err := makeFolder(p.dir); err != nil {
		return nil, err
	}
	out.Path = filepath.Join(p.dir, rand.Text()+"."+kind)
	return out, place.CreatePrivate(out.Path, data)
}

// scaled is a picture of at most MaxSide pixels and MaxPictureBytes. What has no
// transparency and would be large as PNG becomes a JPEG.
func scaled(data []byte, kind string, p *Picture) ([]byte, string, error) {
	defer debug.FreeOSMemory()
	src, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, "", err
	}
	img := fit(src, MaxSide)
	for side := MaxSide; side >= 250; side /= 2 {
		img = fit(img, side)
		p.Width, p.Height = img.Bounds().Dx(), img.Bounds().Dy()
		if kind != "jpeg" {
			if out, err := encoded(png.Encode, img); err != nil || len(out) <= protocol.MaxPictureBytes {
				return out, "png", err
			}
		}
		if out, err := encoded(asJPEG, img); err != nil || len(out) <= protocol.MaxPictureBytes {
			return out, "jpeg", err
		}
	}
	return nil, "", errors.New("it stays too large")
}

// fit scales a picture whose long side is over a bound.
func fit(src image.Image, side int) image.Image {
	b := src.Bounds()
	long := max(b.Dx(), b.Dy())
	if long <= side {
		return src
	}
	dst := image.NewRGBA(image.Rect(0, 0, max(1, b.Dx()*side/long), max(1, b.Dy()*side/long)))
	draw.ApproxBiLinear.Scale(dst, dst.Bounds(), src, b, draw.Src, nil)
	return dst
}

// asJPEG writes a picture on white where it has holes.
func asJPEG(w io.Writer, img image.Image) error {
	flat := image.NewRGBA(img.Bounds())
	draw.Draw(flat, flat.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(flat, flat.Bounds(), img, img.Bounds().Min, draw.Over)
	return jpeg.Encode(w, flat, &jpeg.Options{Quality: 85})
}

func encoded(encode func(io.Writer, image.Image) error, img image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := encode(&b, img)
	return b.Bytes(), err
}

// Clean takes pictures away that were attached more than seven days before now.
func (p *Pictures) Clean(now time.Time) error {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || now.Sub(info.ModTime()) < keptFor {
			continue
		}
		if err := os.Remove(filepath.Join(p.dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
