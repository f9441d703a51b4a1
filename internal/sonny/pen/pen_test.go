package pen

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agent/internal/sonny/screen/edit"
	"agent/protocol"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	h := HistoryIn(dir)
	for _, text := range []string{"one", "two\nlines", "one"} {
		if _, err := h.Add("demo", text, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := HistoryIn(dir).Add("other", "elsewhere", now); err != nil {
		t.Fatal(err)
	}
	sent, err := h.Sent("demo")
	if err != nil || !slices.Equal(sent, []string{"one", "two\nlines"}) {
		t.Errorf("sent %q, %v", sent, err)
	}
	info, err := os.Stat(filepath.Join(dir, "history"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if Keeps(" secret") || Keeps("") || !Keeps("x") {
		t.Error("what is kept")
	}
}

func TestTheHistoryIsBounded(t *testing.T) {
	var all []entry
	for i := range MaxEntries + 10 {
		all = append(all, entry{now, "demo", fmt.Sprint(i)})
	}
	data, err := encode(all)
	if n := bytes.Count(data, []byte("\n")); err != nil || n != MaxEntries {
		t.Errorf("%d entries, %v", n, err)
	}
	if !bytes.Contains(data, []byte(`"2009"`)) || bytes.Contains(data, []byte(`"9"`)) {
		t.Error("the oldest did not go first")
	}
	large := []entry{{now, "demo", strings.Repeat("a", 10<<20)}, {now, "demo", strings.Repeat("b", 10<<20)}}
	if data, err = encode(large); err != nil || bytes.Contains(data, []byte("aaa")) || !bytes.Contains(data, []byte("bbb")) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestHistoryIsNotALink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "history")); err != nil {
		t.Fatal(err)
	}
	if _, err := HistoryIn(dir).Sent("demo"); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("error %v", err)
	}
}

func TestDrafts(t *testing.T) {
	dir := t.TempDir()
	d := DraftsIn(dir)
	e := edit.New()
	e.Type("half a ")
	e.AddChip(edit.Chip{Kind: edit.PasteChip, Label: "[pasted 84 lines]", Text: "all of it"})
	key := OfBot("store", 7)
	whole := Kept{Draft: e.Draft(), Stash: []edit.Draft{{Parts: []edit.Part{{Text: "aside"}}}}}
	if err := d.Save(key, 2, whole); err != nil {
		t.Fatal(err)
	}
	if err := d.Save(key, 1, Kept{}); err != nil {
		t.Fatal(err)
	}
	k, err := DraftsIn(dir).Load(key)
	if text, _ := k.Draft.Message(); err != nil || text != "half a all of it" || len(k.Stash) != 1 {
		t.Errorf("%+v, %v", k, err)
	}
	if k, err := d.Load(OfFolder("/elsewhere")); err != nil || !k.Empty() {
		t.Errorf("another's: %+v, %v", k, err)
	}
	if err := d.Save(key, 3, Kept{}); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "drafts")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestADraftThatCannotBeSaved(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "drafts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := DraftsIn(dir)
	k := Kept{Draft: edit.Draft{Parts: []edit.Part{{Text: "x"}}}}
	if err := d.Save("a", 1, k); err == nil {
		t.Fatal("saved in a folder that is a file")
	}
	if err := os.Remove(filepath.Join(dir, "drafts")); err != nil {
		t.Fatal(err)
	}
	if err := d.Save("a", 1, k); err != nil {
		t.Errorf("the same change again: %v", err)
	}
}

// drawn is a PNG of a size.
func drawn(t *testing.T, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trace.png")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPictures(t *testing.T) {
	dir := t.TempDir()
	p := PicturesIn(dir)

	t.Run("a small one is kept as it is", func(t *testing.T) {
		path := drawn(t, 412, 96)
		got, err := p.Attach(path)
		if err != nil {
			t.Fatal(err)
		}
		was, _ := os.ReadFile(path)
		is, err := os.ReadFile(got.Path)
		if err != nil || !bytes.Equal(was, is) {
			t.Errorf("the copy differs: %v", err)
		}
		if label := got.Label(1); !strings.HasPrefix(label, "[picture 1: trace.png 412×96 ") {
			t.Errorf("label %q", label)
		}
	})

	t.Run("a large one is scaled to 2,000 pixels", func(t *testing.T) {
		got, err := p.Attach(drawn(t, 3000, 1000))
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(got.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c, kind, err := image.DecodeConfig(f)
		if err != nil || c.Width != 2000 || c.Height != 666 || kind != "png" || got.Width != 2000 {
			t.Errorf("%+v %s %v", c, kind, err)
		}
	})

	t.Run("one whose pixels would take too much memory is refused before it is decoded", func(t *testing.T) {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
			t.Fatal(err)
		}
		data := b.Bytes()
		copy(data[16:24], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // its size, in the header
		binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
		_, err := p.AttachBytes(data, "bomb.png")
		var fault *protocol.Error
		if !errors.As(err, &fault) || fault.Code != Unsupported || !strings.Contains(err.Error(), "65535×65535") {
			t.Errorf("error %v", err)
		}
	})

	t.Run("what is no picture is refused and named", func(t *testing.T) {
		_, err := p.AttachBytes([]byte("hello"), "x.png")
		if err == nil || !strings.Contains(err.Error(), "x.png") {
			t.Errorf("error %v", err)
		}
	})

	t.Run("after seven days it goes", func(t *testing.T) {
		got, err := p.Attach(drawn(t, 4, 4))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Clean(time.Now().Add(6 * 24 * time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(got.Path); err != nil {
			t.Fatal(err)
		}
		if err := p.Clean(time.Now().Add(8 * 24 * time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(got.Path); err == nil {
			t.Error("it is still there")
		}
	})
}

func TestWhatWasWrittenOnAStartScreenComesOnce(t *testing.T) {
	way := func(requests ...string) (list []OnWay) {
		for _, r := range requests {
			list = append(list, OnWay{Request: r})
		}
		return list
	}
	start := Kept{Draft: edit.Text("new"), Stash: []edit.Draft{edit.Text("aside")}, Way: way("r1", "r2"), Mark: "m"}
	for _, row := range []struct {
		name       string
		own, start Kept
		want       Kept
	}{
		{"nothing was written", Kept{Draft: edit.Text("own")}, Kept{Mark: "m"}, Kept{Draft: edit.Text("own")}},
		{"the bot has nothing", Kept{}, start, Kept{Draft: start.Draft, Stash: start.Stash, Way: start.Way, Took: "m"}},
		{
			"it comes after the bot's own, and a message on its way once",
			Kept{Draft: edit.Text("own"), Way: way("r2", "r3")},
			start,
			Kept{Draft: edit.Text("own\nnew"), Stash: start.Stash, Way: way("r2", "r3", "r1"), Took: "m"},
		},
		{"it was taken over already", Kept{Draft: edit.Text("new"), Took: "m"}, start, Kept{Draft: edit.Text("new"), Took: "m"}},
		{
			"what is edited stays apart",
			Kept{Draft: edit.Text("edited"), Edited: &Edited{Before: edit.Text("before")}},
			Kept{Draft: edit.Text("new"), Mark: "m"},
			Kept{Draft: edit.Text("edited"), Edited: &Edited{Before: edit.Text("before\nnew")}, Took: "m"},
		},
	} {
		got := row.own.With(row.start)
		text := func(k Kept) string {
			words, _ := k.Draft.Message()
			before := ""
			if k.Edited != nil {
				before, _ = k.Edited.Before.Message()
			}
			return fmt.Sprint(words, "|", before, "|", len(k.Stash), k.Way, k.Took)
		}
		if text(got) != text(row.want) {
			t.Errorf("%s: %s, want %s", row.name, text(got), text(row.want))
		}
	}
}

func TestACommandBeginsOnce(t *testing.T) {
	d := DraftsIn(t.TempDir())
	path := d.Unbegun("run_1")
	if err := d.MarkUnbegun(path); err != nil {
		t.Fatal(err)
	}
	if err := d.MarkUnbegun(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err == nil {
		t.Error("it can be taken away twice")
	}
}

func TestWhoseHandAMessageLeft(t *testing.T) {
	d := DraftsIn(t.TempDir())
	hand, lock, err := d.Sign()
	if err != nil {
		t.Fatal(err)
	}
	if !d.Lives(hand) {
		t.Error("a Sonny that runs does not")
	}
	lock.Close() // as the end of its process does
	for range 2 {
		if d.Lives(hand) {
			t.Error("a Sonny that was killed runs")
		}
	}
	if d.Lives("") || d.Lives("hand_other") {
		t.Error("one that never was runs")
	}
	if _, killed, err := d.Sign(); err != nil {
		t.Fatal(err)
	} else {
		killed.Close()
	}
	next, runs, err := d.Sign()
	if left, _ := os.ReadDir(d.dir); err != nil || len(left) != 1 || left[0].Name() != next {
		t.Errorf("the next one leaves what a killed one left: %v, %v", left, err)
	}
	d.Unsign(next, runs)
	if left, _ := os.ReadDir(d.dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
