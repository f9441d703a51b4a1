package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"time"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"

	"agent/protocol"
)

// What is here runs in the picture child alone, which the daemon starts for one
// picture (dependencies.md, pictures): decoding 12 megapixels takes more memory
// than all of the daemon.

// shownQuality is that of a JPEG made here.
const shownQuality = 85

// codec reads one kind of picture.
type codec struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var codecs = map[string]codec{
	typePNG:  {png.DecodeConfig, png.Decode},
	typeJPEG: {jpeg.DecodeConfig, jpeg.Decode},
	typeGIF:  {gif.DecodeConfig, gif.Decode}, // the first frame
	typeWebP: {webp.DecodeConfig, webp.Decode},
}

// pictureChild is the child's work: the picture on r, checked and where needed
// made smaller, goes to w behind the line that describes it. It decodes all of
// the picture, since a damaged one in a conversation would make every later
// request fail.
func pictureChild(r io.Reader, w io.Writer) (int, error) {
	data, err := readAwake(io.LimitReader(r, maxPicture+1), quietTime)
	if err != nil {
		return exitFailed, fmt.Errorf("it cannot be read: %w", bare(err))
	}
	head := lookedAt{SourceBytes: int64(len(data)), SourceHash: hashText(data)}
	kept, f := head.fit(data)
	if f != nil {
		if f.Code == string(protocol.PictureLimit) {
			return exitLimit, errors.New(f.Detail)
		}
		return exitRefused, errors.New(f.Detail)
	}
	head.Bytes, head.Hash = int64(len(kept)), hashText(kept)
	line, err := json.Marshal(head)
	if err != nil {
		return exitFailed, err
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return exitFailed, err
	}
	if _, err := w.Write(kept); err != nil {
		return exitFailed, err
	}
	return 0, nil
}

// readAwake reads to the end, unless nothing comes for so long. The read that hangs is
// left behind: the child ends with it. Whoever waits for the next picture must not wait
// for a file that brings nothing.
func readAwake(r io.Reader, quiet time.Duration) (data []byte, err error) {
	type piece struct {
		bytes []byte
		err   error
	}
	pieces := make(chan piece)
	go func() {
		for {
			p := make([]byte, 64<<10)
			n, err := r.Read(p)
			pieces <- piece{p[:n], err}
			if err != nil {
				return
			}
		}
	}()
	for {
		late := time.NewTimer(quiet)
		select {
		case p := <-pieces:
			late.Stop()
			data = append(data, p.bytes...)
			if p.err == io.EOF {
				return data, nil
			}
			if p.err != nil {
				return nil, p.err
			}
		case <-late.C:
			return nil, nothingCame(quiet)
		}
	}
}

func hashText(data []byte) string {
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}

// fit gives the picture as it is kept, and describes that in h. One that is
// fine stays byte for byte as it is. An animated GIF becomes its first picture,
// since not every provider takes one that moves.
func (h *lookedAt) fit(data []byte) ([]byte, *Failure) {
	if len(data) > maxPicture {
		return nil, failuref(protocol.PictureLimit, "it is over %d bytes, the most a picture has", maxPicture)
	}
	size, f := measure(data)
	if f != nil {
		return nil, f
	}
	kind := pictureType(data)
	moves := kind == typeGIF && gifFrames(data) > 1
	picture, err := codecs[kind].decode(bytes.NewReader(data))
	if err != nil {
		return nil, damaged(kind, err)
	}
	h.MediaType, h.Width, h.Height = kind, size.Width, size.Height
	if max(size.Width, size.Height) <= keptSide && !moves {
		return data, nil
	}
	small := scaled(picture)
	if kind == typeJPEG {
		small = turned(small, orientation(data)) // the new one has nothing left that tells
	}
	h.Width, h.Height = small.Rect.Dx(), small.Rect.Dy()
	if h.MediaType, data, err = encodePicture(kind, small, maxPicture); err != nil || len(data) > maxPicture {
		return nil, failuref(protocol.PictureLimit, "it cannot be made smaller than %d bytes", maxPicture)
	}
	return data, nil
}

func damaged(kind string, err error) *Failure {
	return failuref(protocol.InvalidPicture, "the %s picture is damaged: %v", kind, err)
}

// measure checks a picture's kind and size without decoding it: a few bytes may
// claim a picture that no memory holds.
func measure(data []byte) (image.Config, *Failure) {
	kind := pictureType(data)
	if kind == "" {
		return image.Config{}, failuref(protocol.InvalidPicture, "it is no PNG, JPEG, GIF or WebP picture")
	}
	if kind == typeWebP && movingWebP(data) {
		return image.Config{}, failuref(protocol.InvalidPicture, "it is an animated WebP; only still ones are taken")
	}
	size, err := codecs[kind].config(bytes.NewReader(data))
	switch {
	case err != nil:
		return size, damaged(kind, err)
	case size.Width < 1 || size.Height < 1:
		return size, failuref(protocol.InvalidPicture, "the picture has no size")
	case size.Width > maxSide || size.Height > maxSide:
		return size, failuref(protocol.PictureLimit, "it has %d by %d pixels; at most %d a side are taken", size.Width, size.Height, maxSide)
	}
	return size, nil
}

// movingWebP reports whether a WebP has the flag of an animation.
func movingWebP(data []byte) bool {
	return len(data) > 20 && string(data[12:16]) == "VP8X" && data[20]&2 != 0
}

// gifFrames counts a GIF's pictures without decoding any: each may be as large
// as the first. It stops where the file makes no sense any more.
func gifFrames(data []byte) (frames int) {
	short := false
	take := func(n int) []byte {
		if short = short || n > len(data); short {
			return make([]byte, n)
		}
		b := data[:n]
		data = data[n:]
		return b
	}
	table := func(flags byte) int { // bytes of a colour table
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (1 + flags&7)
	}
	blocks := func() {
		for n := byte(1); n != 0; {
			n = take(1)[0]
			take(int(n))
		}
	}
	const extension, picture = 0x21, 0x2c
	take(table(take(13)[10]))
	for !short {
		switch take(1)[0] {
		case extension:
			take(1)
			blocks()
		case picture:
			take(table(take(9)[8]))
			take(1)
			if blocks(); !short {
				frames++
			}
		default:
			return frames
		}
	}
	return frames
}

// scaled is the picture with its longer side at keptSide, or as it is where
// that is no more.
func scaled(picture image.Image) *image.RGBA {
	b := picture.Bounds()
	w, h := b.Dx(), b.Dy()
	switch {
	case max(w, h) <= keptSide:
	case w >= h:
		w, h = keptSide, max(1, (h*keptSide+w/2)/w)
	default:
		w, h = max(1, (w*keptSide+h/2)/h), keptSide
	}
	small := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.ApproxBiLinear.Scale(small, small.Rect, picture, b, draw.Src, nil)
	return small
}

// turned is a picture as a camera meant it to be seen, by its Exif orientation.
func turned(p *image.RGBA, orientation int) *image.RGBA {
	if orientation < 2 || orientation > 8 {
		return p
	}
	w, h := p.Rect.Dx(), p.Rect.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	if orientation >= 5 {
		out = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch orientation {
			case 2:
				tx = w - 1 - x
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				ty = h - 1 - y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}
			out.SetRGBA(tx, ty, p.RGBAAt(x, y))
		}
	}
	return out
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
