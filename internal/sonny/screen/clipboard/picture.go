package clipboard

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"agent/internal/place"
	"agent/internal/sonny/brief"
)

// timeLimit is how long a clipboard's program may take.
const timeLimit = 5 * time.Second

// pictures are the programs that give the clipboard's picture as PNG, each where it is
// there and its display is.
var pictures = []struct {
	display string // the variable without which it reaches nothing; "" for none
	argv    []string
}{
	{"WAYLAND_DISPLAY", []string{"wl-paste", "--no-newline", "--type", "image/png"}},
	{"DISPLAY", []string{"xclip", "-selection", "clipboard", "-target", "image/png", "-out"}},
	{"", []string{"pngpaste", "-"}},
}

// Picture is the clipboard's picture, of the first program that can reach one and has one.
// env and look are the environment, and what finds a program in it. An error says why
// there is none, and how to attach a picture all the same. scratch is where a program that
// prints nothing writes.
func Picture(ctx context.Context, env func(string) string, look func(string) (string, error), scratch string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	asked := false
	for _, p := range pictures {
		path, err := look(p.argv[0])
		if err != nil || p.display != "" && env(p.display) == "" {
			continue
		}
		asked = true
		if data := output(ctx, path, p.argv[1:]...); len(data) > 0 {
			return data, nil
		}
	}
	if path, err := look("osascript"); err == nil {
		asked = true
		if data := fromAppleScript(ctx, path, scratch); len(data) > 0 {
			return data, nil
		}
	}
	switch {
	case asked:
		return nil, errors.New("the clipboard holds no picture; paste or drop a file's path, or /image PATH")
	case env("SSH_CONNECTION") != "" || env("SSH_TTY") != "":
		return nil, errors.New("over SSH your clipboard is on the other machine; copy the picture here and paste its path, or /image PATH")
	}
	return nil, errors.New("no program reaches the clipboard (wl-paste, xclip, pngpaste); paste or drop a file's path, or /image PATH")
}

// most bounds what a program gives, in bytes.
const most = 64 << 20

// output is what a program printed; nil where it failed or printed too much.
func output(ctx context.Context, path string, args ...string) []byte {
	var out limited
	cmd := brief.Command(ctx, append([]string{path}, args...)...)
	cmd.Stdout = &out
	if cmd.Run() != nil || out.full {
		return nil
	}
	return out.buf.Bytes()
}

// limited is a buffer that refuses what is too much.
type limited struct {
	buf  bytes.Buffer
	full bool
}

func (l *limited) Write(b []byte) (int, error) {
	if l.buf.Len()+len(b) > most {
		l.full = true
		return 0, errors.New("too much")
	}
	return l.buf.Write(b)
}

// fromAppleScript has the system write the picture to a private file, and reads that.
func fromAppleScript(ctx context.Context, osascript, scratch string) []byte {
	dir, err := place.NewScratch(scratch)
	if err != nil {
		return nil
	}
	defer dir.Close()
	path := filepath.Join(dir.Path, "clipboard.png")
	script := `on run argv
set f to open for access POSIX file (item 1 of argv) with write permission
write (the clipboard as «class PNGf») to f
close access f
end run`
	if brief.Command(ctx, osascript, "-e", script, path).Run() != nil {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > most {
		return nil
	}
	data, _ := os.ReadFile(path)
	return data
}
