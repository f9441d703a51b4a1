package modelsfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agent/protocol"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       []Model
	}{
		{"nothing", "", []Model{}},
		{"blank lines and notes of their own are skipped", "\n # a note\n\t\n", []Model{}},
		{"a note goes with its model", "p/m # quick, 200,000 context\r\nq/a/b#x", []Model{{"p/m", "quick, 200,000 context"}, {"q/a/b", "x"}}},
		{"a repeated model keeps its first place and note", "p/m # one\nq/n\np/m # two\n", []Model{{"p/m", "one"}, {"q/n", ""}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse("f", []byte(row.text))
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("got %q %v", got, err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, detail string }{
		{"a second line that is no model", "p/m\nnonsense\n", "f:2: "},
		{"a provider with a dot", "p.q/m", "f:1: "},
		{"a model with a blank", "p/m n", "f:1: "},
		{"a model of nothing", "p/", "f:1: "},
		{"text that is not UTF-8", "p/m\xff", "UTF-8"},
		{"a file over 1 MiB", strings.Repeat("#\n", MaxSize/2) + "#", "larger than"},
	} {
		t.Run("CL-74 "+row.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("f", []byte(row.text))
			if !errors.Is(err, protocol.ModelsInvalid) || !strings.Contains(err.Error(), row.detail) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if list, there, err := Read(path("missing")); list != nil || there || err != nil {
		t.Errorf("a missing file: %v %v %v", list, there, err)
	}
	if err := syscall.Mkfifo(path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(path("fifo")); !errors.Is(err, protocol.ModelsInvalid) {
		t.Errorf("CL-74 a FIFO: %v", err)
	}
	if err := os.Symlink("loop", path("loop")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(path("loop")); !errors.Is(err, protocol.ModelsUnreadable) {
		t.Errorf("a link to itself: %v", err)
	}
	if err := os.WriteFile(path("list"), []byte("p/m # n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, there, err := Read(path("list"))
	if !slices.Equal(list, []Model{{"p/m", "n"}}) || !there || err != nil {
		t.Errorf("a list: %v %v %v", list, there, err)
	}
}

// Whatever the file holds: each model that is read would be read back.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "p/m", "p/m # note\n\nq/a/b", "# \x1b[2J", "p/m\u2028x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Parse("f", text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, m := range list {
			again.WriteString(m.ID + " # " + m.Note + "\n")
		}
		back, err := Parse("f", []byte(again.String()))
		if err != nil || len(back) != len(list) {
			t.Fatalf("%q reads back as %q: %v", list, back, err)
		}
		for i := range list {
			if back[i].ID != list[i].ID {
				t.Fatalf("%q became %q", list[i].ID, back[i].ID)
			}
		}
	})
}
