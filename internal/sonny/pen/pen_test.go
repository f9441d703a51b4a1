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

// signed are the drafts of a Sonny that runs.
func signed(t *testing.T, dir string) *Drafts {
	t.Helper()
	d := DraftsIn(dir)
	if _, err := d.Sign(); err != nil {
		t.Fatal(err)
	}
	return d
}

// ends ends a Sonny as a kill does: its name stays, and nobody holds it.
func ends(d *Drafts) { d.lock.Close() }

func draftFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "drafts", "*.json*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// words are what a draft says.
func words(d edit.Draft) string { text, _ := d.Message(); return text }

func TestDrafts(t *testing.T) {
	dir := t.TempDir()
	d := signed(t, dir)
	defer d.Unsign()
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
	k, err := d.Load(key)
	if text, _ := k.Draft.Message(); err != nil || text != "half a all of it" || len(k.Stash) != 1 {
		t.Errorf("%+v, %v", k, err)
	}
	if k, err := d.Load(OfFolder("/elsewhere")); err != nil || !k.Empty() {
		t.Errorf("another's: %+v, %v", k, err)
	}
	if err := d.Save(key, 3, Kept{}); err != nil {
		t.Fatal(err)
	}
	if left := draftFiles(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestTwoSonnysWriteForOneBot(t *testing.T) {
	key := OfBot("store", 7)
	save := func(t *testing.T, d *Drafts, n int, k Kept) {
		t.Helper()
		if err := d.Save(key, n, k); err != nil {
			t.Fatal(err)
		}
	}
	leaves := func(t *testing.T, d *Drafts) Kept {
		t.Helper()
		k, _, err := d.Left(key)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	two := func(t *testing.T) (dir string, one, other *Drafts) {
		dir = t.TempDir()
		one, other = signed(t, dir), signed(t, dir)
		save(t, one, 1, Kept{Draft: edit.Text("ONE"), Mark: "m1", Held: []edit.Draft{edit.Text("held")}})
		past := time.Now().Add(-time.Hour)
		if err := os.Chtimes(one.own(key), past, past); err != nil {
			t.Fatal(err)
		}
		save(t, other, 1, Kept{Draft: edit.Text("TWO"), Mark: "m2"})
		return dir, one, other
	}

	t.Run("each has its own, and a third one nothing of theirs", func(t *testing.T) {
		dir, one, other := two(t)
		if k, err := one.Load(key); err != nil || words(k.Draft) != "ONE" {
			t.Errorf("the one has %+v, %v", k, err)
		}
		if k, err := other.Load(key); err != nil || words(k.Draft) != "TWO" {
			t.Errorf("the other has %+v, %v", k, err)
		}
		if k := leaves(t, signed(t, dir)); !k.Empty() {
			t.Errorf("the third has %+v", k)
		}
	})

	t.Run("what both left is the next one's, all of it and once", func(t *testing.T) {
		dir, one, other := two(t)
		ends(one)
		other.Unsign()
		next := signed(t, dir)
		got := leaves(t, next)
		if words(got.Draft) != "ONE\nTWO" || len(got.Held) != 1 {
			t.Errorf("given %+v", got)
		}
		if again := leaves(t, next); !again.Empty() {
			t.Errorf("given twice: %+v", again)
		}
		if another := leaves(t, signed(t, dir)); !another.Empty() {
			t.Errorf("given to another, too: %+v", another)
		}
		save(t, next, 1, got)
		if files := draftFiles(t, dir); !slices.Equal(files, []string{next.own(key)}) {
			t.Errorf("files: %v", files)
		}
		save(t, next, 2, Kept{})
		if files := draftFiles(t, dir); len(files) != 0 {
			t.Errorf("files: %v", files)
		}
	})

	t.Run("what was given and not saved is given again", func(t *testing.T) {
		dir, one, other := two(t)
		ends(one)
		ends(other)
		next := signed(t, dir)
		leaves(t, next)
		ends(next)
		if k := leaves(t, signed(t, dir)); words(k.Draft) != "ONE\nTWO" {
			t.Errorf("given %+v", k)
		}
	})

	t.Run("what was saved when Sonny was killed before it removed the others' comes once", func(t *testing.T) {
		dir, one, other := two(t)
		ends(one)
		ends(other)
		next := signed(t, dir)
		got := leaves(t, next)
		got.Pieces, got.Mark = []string{"m1", "m2"}, "m3"
		if err := next.put(key, got); err != nil {
			t.Fatal(err)
		}
		ends(next)
		if k := leaves(t, signed(t, dir)); words(k.Draft) != "ONE\nTWO" {
			t.Errorf("given %+v", k)
		}
		if files := draftFiles(t, dir); len(files) != 1 {
			t.Errorf("files: %v", files)
		}
	})

	t.Run("what a Sonny wrote that knew one file for all is given too", func(t *testing.T) {
		dir := t.TempDir()
		d := signed(t, dir)
		if err := os.WriteFile(d.stem(key)+".json", []byte(`{"draft":{"parts":[{"text":"before"}]}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if k := leaves(t, d); words(k.Draft) != "before" {
			t.Errorf("given %+v", k)
		}
	})

	t.Run("what cannot be read is put aside and said once", func(t *testing.T) {
		dir := t.TempDir()
		d := signed(t, dir)
		path := d.stem(key) + ".json"
		if err := os.WriteFile(path, []byte(`{`), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Left(key); err == nil || !strings.Contains(err.Error(), path+".broken") {
			t.Errorf("error %v", err)
		}
		if _, _, err := d.Left(key); err != nil {
			t.Errorf("again: %v", err)
		}
	})

	t.Run("where its folder is taken away it is made anew, and the Sonny lives in it", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "sonny")
		d := signed(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		save(t, d, 1, Kept{Draft: edit.Text("after")})
		next := signed(t, dir)
		if k := leaves(t, next); !k.Empty() {
			t.Errorf("another was given %+v", k)
		}
		ends(d)
		if k := leaves(t, next); words(k.Draft) != "after" {
			t.Errorf("given %+v", k)
		}
	})
}

func TestOfTwoMessagesThatAreChangedOneIsHeld(t *testing.T) {
	one := Kept{Draft: edit.Text("first, changed"), Edited: &Edited{Number: 1, Was: edit.Text("first"), Before: edit.Text("draft")}}
	other := Kept{Draft: edit.Text("second, changed"), Edited: &Edited{Number: 2, Was: edit.Text("second"), After: []edit.Draft{edit.Text("third")}, Before: edit.Text("another")}}
	k := one.Join(other)
	if words(k.Draft) != "first, changed" || k.Edited == nil || words(k.Edited.Before) != "draft\nanother" {
		t.Errorf("changed: %+v", k)
	}
	if len(k.Held) != 2 || words(k.Held[0]) != "second, changed" || words(k.Held[1]) != "third" {
		t.Errorf("held: %+v", k.Held)
	}
	if k = (Kept{Draft: edit.Text("own")}).Join(other); k.Edited == nil || words(k.Draft) != "second, changed" || words(k.Edited.Before) != "own\nanother" {
		t.Errorf("beside a draft: %+v, %+v", k, k.Edited)
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
		{"the bot has nothing", Kept{}, start, Kept{Draft: start.Draft, Stash: start.Stash, Way: start.Way, Took: []string{"m"}}},
		{
			"it comes after the bot's own, and a message on its way once",
			Kept{Draft: edit.Text("own"), Way: way("r2", "r3")},
			start,
			Kept{Draft: edit.Text("own\nnew"), Stash: start.Stash, Way: way("r2", "r3", "r1"), Took: []string{"m"}},
		},
		{"it was taken over already", Kept{Draft: edit.Text("new"), Took: []string{"m"}}, start, Kept{Draft: edit.Text("new"), Took: []string{"m"}}},
		{
			"what is edited stays apart",
			Kept{Draft: edit.Text("edited"), Edited: &Edited{Before: edit.Text("before")}},
			Kept{Draft: edit.Text("new"), Mark: "m"},
			Kept{Draft: edit.Text("edited"), Edited: &Edited{Before: edit.Text("before\nnew")}, Took: []string{"m"}},
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
	dir := t.TempDir()
	one, d := signed(t, dir), DraftsIn(dir)
	if !d.Lives(one.hand) {
		t.Error("a Sonny that runs does not")
	}
	ends(one) // as the end of its process does
	for range 2 {
		if d.Lives(one.hand) {
			t.Error("a Sonny that was killed runs")
		}
	}
	if d.Lives("") || d.Lives("hand_other") {
		t.Error("one that never was runs")
	}
	killed := signed(t, dir)
	ends(killed)
	next, err := d.Sign()
	if left, _ := os.ReadDir(d.dir); err != nil || len(left) != 1 || left[0].Name() != next {
		t.Errorf("the next one leaves what a killed one left: %v, %v", left, err)
	}
	d.Unsign()
	if left, _ := os.ReadDir(d.dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
