package clipboard

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheFilesThatAPasteNames(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, pasted string
		want         []string
	}{
		{"a path", "/tmp/a.png", []string{"/tmp/a.png"}},
		{"several, one a line", "/tmp/a.png\r/tmp/b.jpg\n", []string{"/tmp/a.png", "/tmp/b.jpg"}},
		{"quoted", `'/tmp/a b.png'`, []string{"/tmp/a b.png"}},
		{"escaped", `/tmp/a\ b.png`, []string{"/tmp/a b.png"}},
		{"a URL", "file://localhost/tmp/a%20b.png", []string{"/tmp/a b.png"}},
		{"below the home folder", "~/a.png", []string{"~/a.png"}},
		{"a relative path is text", "a.png", nil},
		{"a file that is no picture is text", "/tmp/a.txt", nil},
		{"one line of text among them makes it text", "/tmp/a.png\nlook at it", nil},
		{"nothing", " \n", nil},
	} {
		if got := Paths(row.pasted); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestThePictureOfTheClipboard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := func(name, script string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	look := func(name string) (string, error) { return exec.LookPath(filepath.Join(dir, name)) }
	env := map[string]string{"SSH_TTY": "/dev/pts/1"}
	get := func() (string, error) {
		data, err := Picture(t.Context(), func(name string) string { return env[name] }, look, dir)
		return string(data), err
	}
	if _, err := get(); err == nil || !strings.Contains(err.Error(), "over SSH") {
		t.Errorf("over SSH without a program: %v", err)
	}
	delete(env, "SSH_TTY")
	if _, err := get(); err == nil || !strings.Contains(err.Error(), "no program reaches the clipboard") {
		t.Errorf("without a program: %v", err)
	}
	program("xclip", "printf picture")
	if _, err := get(); err == nil {
		t.Error("a program is asked whose display is not there")
	}
	env["DISPLAY"] = ":0"
	if got, err := get(); got != "picture" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	program("xclip", "exit 1")
	if _, err := get(); err == nil || !strings.Contains(err.Error(), "holds no picture") {
		t.Errorf("with an empty clipboard: %v", err)
	}
}

func TestATextThatFoundNoClipboardIsKept(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.MkdirAll(filepath.Join(home, ".agent", "sonny"), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := Keep("text", time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := Give(t.Context(), []string{"/bin/sh", "-c", `cat > "$0"`, out}, "text"); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(out); string(text) != "text" {
		t.Errorf("the program was given %q", text)
	}
}
