package tool

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// drawing is a picture of noise, or of one colour.
func drawing(w, h int, noise bool) *image.RGBA {
	p := image.NewRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 1))
	for i := 0; i < len(p.Pix); i += 4 {
		c := color.RGBA{200, 30, 30, 255}
		if noise {
			c = color.RGBA{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), 255}
		}
		p.Pix[i], p.Pix[i+1], p.Pix[i+2], p.Pix[i+3] = c.R, c.G, c.B, c.A
	}
	return p
}

func encoded(t testing.TB, kind string, p image.Image) string {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch kind {
	case typePNG:
		err = png.Encode(&b, p)
	case typeJPEG:
		err = jpeg.Encode(&b, p, nil)
	case typeGIF:
		err = gif.Encode(&b, p, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// answered reads what a picture child wrote.
func answered(t *testing.T, out *bytes.Buffer) (head lookedAt, kept []byte) {
	t.Helper()
	line, _ := out.ReadBytes('\n')
	p, err := head.read(line)
	if err != nil || p.Hash != sha256.Sum256(out.Bytes()) || p.Bytes != int64(out.Len()) {
		t.Fatalf("%s with %d bytes: %v", line, out.Len(), err)
	}
	return head, out.Bytes()
}

// webpDot is a WebP picture of one pixel.
const webpDot = "RIFF\x1a\x00\x00\x00WEBPVP8L\r\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"

// webpMoving is the head of an animated WebP.
const webpMoving = "RIFF\x1e\x00\x00\x00WEBPVP8X\n\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func TestReadPictures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, content, kind string
		width, height       int
		same                bool
		keptKind            string
	}{
		{"a PNG is kept as it is", encoded(t, typePNG, drawing(20, 10, false)), typePNG, 20, 10, true, typePNG},
		{"a JPEG is kept as it is", encoded(t, typeJPEG, drawing(20, 10, false)), typeJPEG, 20, 10, true, typeJPEG},
		{"a GIF is kept as it is", encoded(t, typeGIF, drawing(20, 10, false)), typeGIF, 20, 10, true, typeGIF},
		{"a WebP is kept as it is", webpDot, typeWebP, 1, 1, true, typeWebP},
		{"1,568 pixels are kept", encoded(t, typePNG, drawing(1568, 3, false)), typePNG, 1568, 3, true, typePNG},
		{"RT-37 a wide one is made smaller", encoded(t, typePNG, drawing(3136, 20, false)), typePNG, 1568, 10, false, typePNG},
		{"a tall photograph stays a JPEG", encoded(t, typeJPEG, drawing(10, 2000, false)), typeJPEG, 8, 1568, false, typeJPEG},
		{"a thin one keeps a pixel", encoded(t, typePNG, drawing(8000, 1, false)), typePNG, 1568, 1, false, typePNG},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, w := newEnv(t)
			file(t, env, "name.txt", row.content)
			r := ok(t, read(t, env, "name.txt", "offset", 3))
			if len(r.Pictures) != 1 {
				t.Fatalf("%d pictures", len(r.Pictures))
			}
			p := r.Pictures[0]
			if len(w.pictures) != 1 || p.Hold != 1 {
				t.Fatalf("%d were kept, hold %d", len(w.pictures), p.Hold)
			}
			kept := w.pictures[0]
			if p.MediaType != row.keptKind || p.Width != row.width || p.Height != row.height || p.Bytes != int64(len(kept)) ||
				p.Hash != sha256.Sum256(kept) || (string(kept) == row.content) != row.same {
				t.Errorf("kept %s %dx%d of %d bytes", p.MediaType, p.Width, p.Height, p.Bytes)
			}
			if size, f := measure(kept); f != nil || size.Width != row.width || size.Height != row.height {
				t.Errorf("what is kept measures %v, %v", size, f)
			}
			want := fmt.Sprintf(`{"path":"name.txt","media_type":%q,"width":%d,"height":%d,"bytes":%d}`, row.keptKind, row.width, row.height, len(kept))
			if r.Output != want {
				t.Errorf("got %s, want %s", r.Output, want)
			}
			if len(r.Seen) != 1 || r.Seen[0].Hash != sha256.Sum256([]byte(row.content)) {
				t.Errorf("remembered %+v", r.Seen)
			}
		})
	}
}

func TestReadPicturesThatAreRefused(t *testing.T) {
	t.Parallel()
	whole := encoded(t, typePNG, drawing(400, 400, true))
	for _, row := range []struct{ name, content, code, says string }{
		{"cut off", whole[:len(whole)/2], "invalid_picture", "damaged"},
		{"a damaged head", whole[:20] + strings.Repeat("x", 100), "invalid_picture", "damaged"},
		{"a JPEG cut off", encoded(t, typeJPEG, drawing(100, 100, true))[:2000], "invalid_picture", "damaged"},
		{"only a signature", "GIF89a", "invalid_picture", "damaged"},
		{"too wide", encoded(t, typePNG, image.NewGray(image.Rect(0, 0, 8001, 1))), "picture_limit", "8001 by 1"},
		{"a few bytes that claim ten thousand million pixels", claiming(t, 100_000, 100_000), "picture_limit", "100000 by 100000"},
		{"a few bytes that claim the most pixels", claiming(t, maxSide, maxSide), "invalid_picture", "damaged"},
		{"an animated WebP", webpMoving, "invalid_picture", "animated"},
		{"too many bytes", whole + strings.Repeat("\x00", maxPicture), "picture_limit", "4194304"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, _ := newEnv(t)
			file(t, env, "p.png", row.content)
			r := read(t, env, "p.png")
			failed(t, r, row.code, row.says)
			if len(r.Pictures) != 0 {
				t.Error("it was kept")
			}
		})
	}
}

func TestEncodePictureThatIsTooLargeAsPNG(t *testing.T) {
	t.Parallel()
	kind, data, err := encodePicture(typePNG, drawing(100, 100, true), 20_000)
	if err != nil || kind != typeJPEG || len(data) > 20_000 {
		t.Errorf("%s of %d bytes, %v", kind, len(data), err)
	}
}

func FuzzMeasure(f *testing.F) {
	f.Add([]byte(webpDot))
	f.Add([]byte(encoded(f, typePNG, drawing(3, 2, true))))
	f.Add([]byte(encoded(f, typeGIF, drawing(3, 2, true))))
	f.Add([]byte(encoded(f, typeJPEG, drawing(3, 2, true))))
	f.Fuzz(func(t *testing.T, data []byte) {
		size, failure := measure(data)
		if failure == nil && (size.Width < 1 || size.Height > maxSide) {
			t.Errorf("took %v", size)
		}
		if failure != nil || size.Width*size.Height > 1<<20 {
			return
		}
		var out bytes.Buffer
		code, err := pictureChild(bytes.NewReader(data), &out)
		if (code == 0) != (err == nil) {
			t.Errorf("code %d, %v", code, err)
		}
		if code == 0 {
			head, kept := answered(t, &out)
			if again, f := measure(kept); f != nil || again.Width != head.Width || again.Height != head.Height {
				t.Errorf("kept %+v: %v", head, f)
			}
		}
	})
}

func TestHelperMainRefusesOtherUse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"other"}, {verbRead}, {verbRead, "a", "b"}, {verbPicture, "x"}} {
		if code := HelperMain(args); code != exitUsage {
			t.Errorf("%v: %d", args, code)
		}
	}
	if !IsHelper(verbRead) || !IsHelper(verbPicture) || IsHelper("serve") {
		t.Error("IsHelper tells them wrongly")
	}
}

func TestPictureNeedsItsChild(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	env.SelfExe = filepath.Join(env.Workspace, "gone")
	file(t, env, "p", encoded(t, typePNG, drawing(2, 2, false)))
	failed(t, read(t, env, "p"), "io_error", "could not be looked at")
}

// claiming is a PNG whose header says another size than it has.
func claiming(t *testing.T, w, h uint32) string {
	t.Helper()
	p := []byte(encoded(t, typePNG, drawing(2, 2, false)))
	const header = 8 + 4 // signature, length; then the chunk's type and content
	binary.BigEndian.PutUint32(p[header+4:], w)
	binary.BigEndian.PutUint32(p[header+8:], h)
	binary.BigEndian.PutUint32(p[header+4+13:], crc32.ChecksumIEEE(p[header:header+4+13]))
	return string(p)
}

// moving is a GIF of two pictures, 6 by 4.
func moving(t *testing.T) string {
	t.Helper()
	frame := func(c color.Color) *image.Paletted {
		p := image.NewPaletted(image.Rect(0, 0, 6, 4), color.Palette{c, color.White})
		return p
	}
	var b bytes.Buffer
	g := &gif.GIF{Image: []*image.Paletted{frame(color.RGBA{0, 200, 0, 255}), frame(color.Black)}, Delay: []int{1, 1}}
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// oriented is a JPEG whose Exif segment tells an orientation.
func oriented(t *testing.T, p image.Image, order binary.AppendByteOrder, o uint16) string {
	t.Helper()
	mark := "II"
	if order == binary.AppendByteOrder(binary.BigEndian) {
		mark = "MM"
	}
	exif := []byte("Exif\x00\x00" + mark)
	exif = order.AppendUint32(order.AppendUint16(exif, 42), 8)
	exif = order.AppendUint16(exif, 2) // entries
	for _, e := range [][2]uint16{{0x100, 7}, {0x112, o}} {
		exif = order.AppendUint32(order.AppendUint16(order.AppendUint16(exif, e[0]), 3), 1)
		exif = order.AppendUint16(order.AppendUint16(exif, e[1]), 0)
	}
	jpeg := encoded(t, typeJPEG, p)
	size := binary.BigEndian.AppendUint16(nil, uint16(2+len(exif)))
	return jpeg[:2] + "\xff\xe1" + string(size) + string(exif) + jpeg[2:]
}

func TestPicturesMadeOtherwise(t *testing.T) {
	t.Parallel()
	t.Run("an animated GIF is kept as its first picture", func(t *testing.T) {
		t.Parallel()
		env, w := newEnv(t)
		file(t, env, "a.gif", moving(t))
		p := ok(t, read(t, env, "a.gif")).Pictures[0]
		got, err := png.Decode(bytes.NewReader(w.pictures[0]))
		if err != nil || p.MediaType != typePNG || p.Width != 6 || p.Height != 4 {
			t.Fatalf("%s %dx%d, %v", p.MediaType, p.Width, p.Height, err)
		}
		if r, g, b, _ := got.At(3, 2).RGBA(); r != 0 || g>>8 != 200 || b != 0 {
			t.Errorf("a pixel is %d %d %d", r>>8, g>>8, b>>8)
		}
	})
	for o, at := range map[uint16][2]bool{1: {false, false}, 2: {true, false}, 3: {true, true}, 4: {false, true}, 5: {false, false}, 6: {true, false}, 7: {true, true}, 8: {false, true}} {
		order := []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian}[o%2]
		t.Run(fmt.Sprintf("a photograph with orientation %d is turned as it is made smaller", o), func(t *testing.T) {
			t.Parallel()
			// Red where the stored picture begins, else blue.
			p := image.NewRGBA(image.Rect(0, 0, 1600, 800))
			draw.Draw(p, p.Rect, image.NewUniform(color.RGBA{0, 0, 255, 255}), image.Point{}, draw.Src)
			draw.Draw(p, image.Rect(0, 0, 400, 200), image.NewUniform(color.RGBA{255, 0, 0, 255}), image.Point{}, draw.Src)
			var out bytes.Buffer
			if code, err := pictureChild(strings.NewReader(oriented(t, p, order, o)), &out); code != 0 {
				t.Fatal(code, err)
			}
			head, kept := answered(t, &out)
			want := [2]int{1568, 784}
			if o >= 5 {
				want = [2]int{784, 1568}
			}
			if head.Width != want[0] || head.Height != want[1] || head.MediaType != typeJPEG {
				t.Fatalf("kept as %+v", head)
			}
			got, err := jpeg.Decode(bytes.NewReader(kept))
			if err != nil {
				t.Fatal(err)
			}
			x, y := 20, 20
			if at[0] {
				x = head.Width - 20
			}
			if at[1] {
				y = head.Height - 20
			}
			if r, _, b, _ := got.At(x, y).RGBA(); r>>8 < 200 || b>>8 > 60 {
				t.Errorf("the corner at %d,%d is not the stored picture's first", x, y)
			}
		})
	}
	t.Run("a small photograph keeps its own orientation", func(t *testing.T) {
		t.Parallel()
		env, w := newEnv(t)
		photo := oriented(t, drawing(30, 20, false), binary.LittleEndian, 6)
		file(t, env, "p", photo)
		if p := ok(t, read(t, env, "p")).Pictures[0]; string(w.pictures[0]) != photo || p.Width != 30 {
			t.Errorf("it was changed: %+v", p)
		}
	})
	t.Run("a model that takes no pictures is told what there is, and nothing is kept", func(t *testing.T) {
		t.Parallel()
		env, w := newEnv(t)
		env.TextOnly = true
		file(t, env, "p.png", encoded(t, typePNG, drawing(20, 10, false)))
		r := ok(t, read(t, env, "p.png"))
		if len(r.Pictures)+len(w.pictures) != 0 || !strings.HasSuffix(r.Output, `,"shown":false}`) || !strings.Contains(r.Output, `"width":20,"height":10`) {
			t.Errorf("got %s with %d pictures", r.Output, len(r.Pictures))
		}
	})
	t.Run("one that cannot be kept is not shown", func(t *testing.T) {
		t.Parallel()
		env, w := newEnv(t)
		w.keepErr = errors.New("no room")
		file(t, env, "p.png", encoded(t, typePNG, drawing(20, 10, false)))
		failed(t, read(t, env, "p.png"), "storage_error", "no room")
	})
}

// helperScript makes a script take the place of the daemon's own program.
func helperScript(t *testing.T, env *Env, script string) {
	t.Helper()
	env.SelfExe = file(t, env, "helper", "#!/bin/sh\n"+script)
	if err := os.Chmod(env.SelfExe, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestPictureChildren(t *testing.T) {
	t.Parallel()
	t.Run("a child ends with all of its group when the turn does", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		held := filepath.Join(env.Workspace, "held")
		if err := syscall.Mkfifo(held, 0o600); err != nil {
			t.Fatal(err)
		}
		file(t, env, "p.png", encoded(t, typePNG, drawing(2, 2, false)))
		// Two processes hold the pipe open; a line says that both are there.
		helperScript(t, env, `exec 3>`+held+`; sleep 1000 & echo there >&3; wait`)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan Result, 1)
		go func() { done <- callContext(t, ctx, env, "read", map[string]any{"path": "p.png"}) }()
		f, err := os.Open(held)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewReader(f)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := lines.ReadByte(); err != io.EOF {
			t.Errorf("the pipe brought %v", err)
		}
		if r := <-done; !r.Failed {
			t.Errorf("got %s", r.Output)
		}
	})
	for name, row := range map[string]struct{ script, code, says string }{
		"an answer that is none":                  {`echo hello`, "io_error", "invalid character"},
		"an answer that ends early":               {`printf '{"media_type":"image/png","width":1,"height":1,"bytes":9,"hash":"` + strings.Repeat("0", 64) + `","source_bytes":1,"source_hash":"` + strings.Repeat("0", 64) + `"}\nabc'`, "io_error", "unexpected EOF"},
		"an answer that claims too much":          {`printf '{"media_type":"image/png","width":1,"height":1,"bytes":99999999,"hash":"` + strings.Repeat("0", 64) + `","source_bytes":1,"source_hash":"` + strings.Repeat("0", 64) + `"}\n'`, "io_error", "makes no sense"},
		"an answer with other bytes than it says": {`printf '{"media_type":"image/png","width":1,"height":1,"bytes":3,"hash":"` + strings.Repeat("0", 64) + `","source_bytes":1,"source_hash":"` + strings.Repeat("0", 64) + `"}\nabc'`, "io_error", "makes no sense"},
		"an answer without an end":                {`head -c 100000 /dev/zero`, "io_error", "buffer full"},
		"no answer":                               {`true`, "io_error", "EOF"},
		"a child that runs out of memory":         {`echo "fatal error: out of memory" >&2; exit 2`, "invalid_picture", "status 2"},
		"a child that is killed":                  {`kill -9 $$`, "invalid_picture", "could not be decoded"},
		"a child that gets more than its own":     {`test "$(env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD=)" = AGENT_HELPER=1 && exit 3; exit 2`, "invalid_picture", "p.png: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, w := newEnv(t)
			file(t, env, "p.png", encoded(t, typePNG, drawing(2, 2, false)))
			helperScript(t, env, row.script)
			failed(t, read(t, env, "p.png"), row.code, row.says)
			if len(w.pictures) != 0 {
				t.Error("something was kept")
			}
		})
	}
	t.Run("the verb does nothing without the daemon's mark", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		cmd := exec.Command(env.SelfExe, verbPicture)
		cmd.Env = []string{}
		cmd.Stdin = strings.NewReader(encoded(t, typePNG, drawing(2, 2, false)))
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), "not for direct use") {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func TestAPictureThatNeverComes(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"nothing": "", "a part": "\x89PNG"} {
		t.Run(name+" comes of it", func(t *testing.T) {
			t.Parallel()
			r, w := io.Pipe()
			defer r.Close()
			go io.WriteString(w, first)
			_, err := readAwake(r, 10*time.Millisecond)
			if err == nil || !strings.Contains(err.Error(), "nothing came from it in 10ms") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("what comes in pieces is read whole", func(t *testing.T) {
		t.Parallel()
		want := bytes.Repeat([]byte("piece"), 100_000)
		if got, err := readAwake(iotest.OneByteReader(bytes.NewReader(want[:1000])), time.Minute); err != nil || !bytes.Equal(got, want[:1000]) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if got, err := readAwake(bytes.NewReader(want), time.Minute); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if _, err := readAwake(iotest.ErrReader(io.ErrUnexpectedEOF), time.Minute); err != io.ErrUnexpectedEOF {
			t.Errorf("got %v", err)
		}
	})
}
