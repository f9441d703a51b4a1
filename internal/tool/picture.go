package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"

	"agent/internal/model"
	"agent/protocol"
)

const (
	sniffed      = 16      // bytes that tell a picture from text
	maxPicture   = 4 << 20 // bytes
	maxSide      = 8000    // pixels
	keptSide     = 1568    // pixels of the longer side of a kept picture
	shownQuality = 85      // of a JPEG made here
)

const (
	typePNG  = "image/png"
	typeJPEG = "image/jpeg"
	typeGIF  = "image/gif"
	typeWebP = "image/webp"
)

// pictureType tells a picture by its first bytes; "" for none.
func pictureType(start []byte) string {
	switch {
	case bytes.HasPrefix(start, []byte("\x89PNG\r\n\x1a\n")):
		return typePNG
	case bytes.HasPrefix(start, []byte("\xff\xd8\xff")):
		return typeJPEG
	case bytes.HasPrefix(start, []byte("GIF87a")), bytes.HasPrefix(start, []byte("GIF89a")):
		return typeGIF
	case len(start) >= 12 && string(start[:4]) == "RIFF" && string(start[8:12]) == "WEBP":
		return typeWebP
	}
	return ""
}

// codec reads one kind of picture.
type codec struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var codecs = map[string]codec{
	typePNG:  {png.DecodeConfig, png.Decode},
	typeJPEG: {jpeg.DecodeConfig, jpeg.Decode},
	typeGIF:  {gif.DecodeConfig, gif.Decode},
	typeWebP: {webp.DecodeConfig, webp.Decode},
}

// pictureSlots lets one picture child run at a time: each may need hundreds of
// MiB for a moment.
var pictureSlots = NewSlots(1)

func (e *Env) readPicture(ctx context.Context, path string, file readFile) Result {
	p, f := e.Picture(ctx, file.picture)
	if f != nil {
		return e.refuse(fileFailure(protocol.InvalidPicture, path, f))
	}
	masked := string(e.Redact.Bytes([]byte(path)))
	result := Result{
		Output: fmt.Sprintf(`{"path":%s,"media_type":%s,"width":%d,"height":%d,"bytes":%d}`,
			quote(masked), quote(p.MediaType), p.Width, p.Height, p.Bytes),
		Pictures: []PictureData{p},
	}
	if file.seen.Path != "" {
		result.Seen = []SeenFile{file.seen}
	}
	return result
}

// Picture makes a picture fit to be kept (runtime.md 11, read): it must be
// whole, at most 4 MiB and 8,000 pixels a side, and is made smaller where its
// longer side has more than 1,568. The work is done in a helper child. Errors
// are picture_limit and invalid_picture. It owns data from here on.
func (e *Env) Picture(ctx context.Context, data []byte) (PictureData, *Failure) {
	if len(data) > maxPicture {
		return PictureData{}, failuref(protocol.PictureLimit, "the picture is over %d bytes", maxPicture)
	}
	if _, f := measure(data); f != nil {
		return PictureData{}, f
	}
	if err := pictureSlots.Acquire(ctx); err != nil {
		return PictureData{}, failuref(protocol.Cancelled, "the turn ended before the picture was looked at")
	}
	defer pictureSlots.Release()
	var made []byte
	code, says, err := e.helper(ctx, []string{verbPicture}, bytes.NewReader(data), func(r io.Reader) (err error) {
		made, err = io.ReadAll(io.LimitReader(r, maxPicture+1<<10))
		return err
	})
	switch {
	case err != nil:
		return PictureData{}, failuref(protocol.IoError, "the picture could not be looked at: %v", err)
	case code == exitRefused:
		return PictureData{}, failuref(protocol.InvalidPicture, "%s", says)
	case code != 0:
		return PictureData{}, failuref(protocol.InvalidPicture, "the picture could not be decoded")
	}
	return keptPicture(data, made)
}

// shrunk is the line that a picture child writes before the picture's bytes;
// none follow where the picture stays as it is.
type shrunk struct {
	MediaType string `json:"media_type"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Same      bool   `json:"same"`
}

func keptPicture(data, made []byte) (PictureData, *Failure) {
	line, rest, ok := bytes.Cut(made, []byte("\n"))
	var s shrunk
	if !ok || json.Unmarshal(line, &s) != nil {
		return PictureData{}, failuref(protocol.IoError, "the picture could not be looked at")
	}
	if !s.Same {
		data = append(make([]byte, 0, len(rest)), rest...)
	}
	return PictureData{
		Picture: model.Picture{Hash: sha256.Sum256(data), MediaType: s.MediaType, Bytes: int64(len(data))},
		Width:   s.Width, Height: s.Height, Data: data,
	}, nil
}

// measure checks a picture's kind and size without decoding it.
func measure(data []byte) (image.Config, *Failure) {
	kind := pictureType(data)
	if kind == "" {
		return image.Config{}, failuref(protocol.InvalidPicture, "it is no PNG, JPEG, GIF or WebP picture")
	}
	size, err := codecs[kind].config(bytes.NewReader(data))
	switch {
	case err != nil:
		return size, failuref(protocol.InvalidPicture, "the %s picture is damaged: %v", kind, err)
	case size.Width < 1 || size.Height < 1:
		return size, failuref(protocol.InvalidPicture, "the picture has no size")
	case size.Width > maxSide || size.Height > maxSide:
		return size, failuref(protocol.PictureLimit, "the picture has %d by %d pixels; at most %d a side are taken", size.Width, size.Height, maxSide)
	}
	return size, nil
}

// shrinkPicture is the picture child's work. It decodes all of the picture,
// since a damaged one in a conversation would make every later request fail.
func shrinkPicture(r io.Reader, w io.Writer) (int, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPicture+1))
	if err != nil {
		return exitFailed, err
	}
	size, f := measure(data)
	if f != nil {
		return exitRefused, errors.New(f.Detail)
	}
	kind := pictureType(data)
	picture, err := codecs[kind].decode(bytes.NewReader(data))
	if err != nil {
		return exitRefused, fmt.Errorf("the %s picture is damaged: %w", kind, err)
	}
	s := shrunk{MediaType: kind, Width: size.Width, Height: size.Height, Same: true}
	var made []byte
	if max(size.Width, size.Height) > keptSide {
		small := scaled(picture)
		s.Width, s.Height, s.Same = small.Rect.Dx(), small.Rect.Dy(), false
		if s.MediaType, made, err = encodePicture(kind, small, maxPicture); err != nil {
			return exitFailed, err
		}
	}
	line, err := json.Marshal(s)
	if err != nil {
		return exitFailed, err
	}
	if _, err := w.Write(append(append(line, '\n'), made...)); err != nil {
		return exitFailed, err
	}
	return 0, nil
}

// scaled is the picture with its longer side at keptSide.
func scaled(picture image.Image) *image.RGBA {
	b := picture.Bounds()
	w, h := b.Dx(), b.Dy()
	if w >= h {
		w, h = keptSide, max(1, (h*keptSide+w/2)/w)
	} else {
		w, h = max(1, (w*keptSide+h/2)/h), keptSide
	}
	small := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.ApproxBiLinear.Scale(small, small.Rect, picture, b, draw.Src, nil)
	return small
}

// encodePicture keeps a photograph a JPEG; anything else becomes a PNG, or a
// JPEG on white where that would take more than limit bytes.
func encodePicture(kind string, picture *image.RGBA, limit int) (string, []byte, error) {
	var out bytes.Buffer
	if kind != typeJPEG {
		if err := png.Encode(&out, picture); err != nil {
			return "", nil, err
		}
		if out.Len() <= limit {
			return typePNG, out.Bytes(), nil
		}
		out.Reset()
		flat := image.NewRGBA(picture.Rect)
		draw.Draw(flat, flat.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.Draw(flat, flat.Rect, picture, image.Point{}, draw.Over)
		picture = flat
	}
	err := jpeg.Encode(&out, picture, &jpeg.Options{Quality: shownQuality})
	return typeJPEG, out.Bytes(), err
}
