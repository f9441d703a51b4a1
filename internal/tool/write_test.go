package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func write(t testing.TB, env *Env, path, content string) Result {
	t.Helper()
	return call(t, env, "write", map[string]any{"path": path, "content": content})
}

func read(t testing.TB, env *Env, path string, more ...any) Result {
	t.Helper()
	args := map[string]any{"path": path}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return call(t, env, "read", args)
}

func TestWrite(t *testing.T) {
	t.Parallel()
	t.Run("a new file takes the umask and its folders are made", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		r := ok(t, write(t, env, "a/b/c.txt", "hi\n"))
		if r.Output != "Wrote 3 bytes to a/b/c.txt." {
			t.Errorf("got %s", r.Output)
		}
		path := filepath.Join(env.Workspace, "a/b/c.txt")
		holds(t, path, "hi\n")
		other, err := os.Create(filepath.Join(env.Workspace, "other"))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		want, _ := other.Stat()
		if info, _ := os.Stat(path); info.Mode() != want.Mode() {
			t.Errorf("mode %v, want %v", info.Mode(), want.Mode())
		}
		noTemporary(t, filepath.Dir(path))
	})
	t.Run("the mode of a file is kept", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "run.sh", "old")
		if err := os.Chmod(path, 0o754); err != nil {
			t.Fatal(err)
		}
		ok(t, read(t, env, "run.sh"))
		ok(t, write(t, env, "run.sh", "new"))
		if info, _ := os.Stat(path); info.Mode().Perm() != 0o754 {
			t.Errorf("mode %v", info.Mode())
		}
		holds(t, path, "new")
	})
	t.Run("RT-33 a link to a file in the same folder stays a link", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "target", "old")
		link := filepath.Join(env.Workspace, "link")
		if err := os.Symlink("target", link); err != nil {
			t.Fatal(err)
		}
		ok(t, read(t, env, "link"))
		ok(t, write(t, env, "link", "new"))
		holds(t, path, "new")
		if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Error("the link is gone")
		}
		ok(t, write(t, env, "target", "newer")) // known by either name
		holds(t, path, "newer")
	})
	t.Run("RT-33 a link's end in another folder is written in place", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		dir := filepath.Join(env.Workspace, "other")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		path := file(t, env, "other/target", "a longer old text")
		if err := os.Symlink("other/target", filepath.Join(env.Workspace, "link")); err != nil {
			t.Fatal(err)
		}
		before := inode(t, path)
		ok(t, read(t, env, "link"))
		ok(t, write(t, env, "link", "new"))
		holds(t, path, "new")
		if inode(t, path) != before {
			t.Error("it is another file now")
		}
	})
	t.Run("a dangling link is written to where it points", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		if err := os.Symlink("later", filepath.Join(env.Workspace, "link")); err != nil {
			t.Fatal(err)
		}
		ok(t, write(t, env, "link", "new"))
		holds(t, filepath.Join(env.Workspace, "later"), "new")
	})
	t.Run("a file with two names keeps both", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "one", "old and long")
		two := filepath.Join(env.Workspace, "two")
		if err := os.Link(path, two); err != nil {
			t.Fatal(err)
		}
		ok(t, read(t, env, "one"))
		ok(t, write(t, env, "one", "new"))
		holds(t, two, "new")
	})
	t.Run("links in a circle", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		if err := os.Symlink("link", filepath.Join(env.Workspace, "link")); err != nil {
			t.Fatal(err)
		}
		failed(t, write(t, env, "link", "new"), "io_error", "too many links")
	})
	t.Run("a path below a file", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		file(t, env, "f", "")
		failed(t, write(t, env, "f/below", "new"), "io_error", "not a directory")
		failed(t, write(t, env, "sub/", "new"), "file_not_regular", "folder")
		failed(t, write(t, env, ".", "new"), "file_not_regular", "folder")
	})
}

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return uint64(st.Ino)
}

func TestStaleFiles(t *testing.T) {
	t.Parallel()
	t.Run("RT-116 a file changed since it was read is not overwritten", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "f", "one")
		ok(t, read(t, env, "f"))
		file(t, env, "f", "TWO")
		failed(t, write(t, env, "f", "mine"), "file_changed", "read it again")
		holds(t, path, "TWO")
		ok(t, read(t, env, "f"))
		ok(t, write(t, env, "f", "mine"))
		holds(t, path, "mine")
		ok(t, write(t, env, "f", "mine again")) // as the bot itself last wrote it
		ok(t, edit(t, env, "f", "again", "once more"))
		ok(t, write(t, env, "f", "and again"))
	})
	t.Run("RT-116 a file never read is not overwritten, a new one is made", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "f", "one")
		failed(t, write(t, env, "f", "mine"), "file_changed", "have not read it")
		holds(t, path, "one")
		ok(t, write(t, env, "g", "mine"))
	})
	t.Run("a file that was only touched has not changed", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "f", "one")
		ok(t, read(t, env, "f"))
		if err := os.Chtimes(path, time.Now(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		ok(t, write(t, env, "f", "mine"))
	})
	t.Run("a change between the check and the writing is seen", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "f", "one")
		target, f := env.target("f")
		if f != nil {
			t.Fatal(f)
		}
		if err := os.WriteFile(path, []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := env.put(t.Context(), target, []byte("mine")); err != errMoved {
			t.Errorf("got %v", err)
		}
		holds(t, path, "other")
		fresh, f := env.target("g")
		if f != nil {
			t.Fatal(f)
		}
		made := file(t, env, "g", "somebody's")
		if _, err := env.put(t.Context(), fresh, []byte("mine")); err != errMoved {
			t.Errorf("got %v", err)
		}
		holds(t, made, "somebody's")
		noTemporary(t, env.Workspace)
	})
}

func TestWriteKeepsTheEncoding(t *testing.T) {
	t.Parallel()
	t.Run("RT-113 a mark that read hides is kept, and not doubled", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "f", byteOrderMark+"old\n")
		if r := ok(t, read(t, env, "f")); r.Output != "     1\told\n" {
			t.Errorf("read %q", r.Output)
		}
		ok(t, write(t, env, "f", "new\n"))
		holds(t, path, byteOrderMark+"new\n")
		ok(t, write(t, env, "f", byteOrderMark+"newer\n"))
		holds(t, path, byteOrderMark+"newer\n")
	})
	t.Run("line endings are written as given", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "f", "a\r\nb\r\n")
		ok(t, read(t, env, "f"))
		ok(t, write(t, env, "f", "a\nb\r\n"))
		holds(t, path, "a\nb\r\n")
	})
	t.Run("a replacement character never gets into a file by way of read", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		path := file(t, env, "f", "caf\xe9\n")
		if r := ok(t, read(t, env, "f")); r.Output != "     1\tcaf\uFFFD\n" {
			t.Errorf("read %q", r.Output)
		}
		failed(t, write(t, env, "f", "caf\uFFFD au lait\n"), "file_not_utf8", "U+FFFD")
		holds(t, path, "caf\xe9\n")
		ok(t, write(t, env, "f", "café\n"))
	})
	t.Run("a UTF-16 file is neither read nor overwritten", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		file(t, env, "f", "\xff\xfea\x00")
		failed(t, read(t, env, "f"), "file_not_utf8", "UTF-16")
		failed(t, write(t, env, "f", "a"), "file_changed", "have not read it")
	})
}

func TestOddFilesDoNotHang(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	fifo := filepath.Join(env.Workspace, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("RT-29 a FIFO is refused at once by every file tool", func(t *testing.T) {
		start := time.Now()
		failed(t, read(t, env, "fifo"), "file_not_regular", "named pipe")
		failed(t, write(t, env, "fifo", "x"), "file_not_regular", "named pipe")
		failed(t, edit(t, env, "fifo", "x", "y"), "file_not_regular", "named pipe")
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
	})
	t.Run("a device and a folder are refused", func(t *testing.T) {
		failed(t, read(t, env, "/dev/null"), "file_not_regular", "device")
		failed(t, read(t, env, "."), "file_not_regular", "folder")
	})
	t.Run("a path swapped for a FIFO is found out once it is open", func(t *testing.T) {
		plain := file(t, env, "plain", "x")
		stop := make(chan struct{})
		var swapping sync.WaitGroup
		swapping.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, to := range []string{fifo, plain} {
					name := filepath.Join(env.Workspace, "next")
					_ = os.Symlink(to, name)
					_ = os.Rename(name, filepath.Join(env.Workspace, "swapped"))
				}
			}
		})
		defer swapping.Wait()
		defer close(stop)
		for range 300 {
			r := read(t, env, "swapped")
			if r.Failed && !strings.Contains(r.Output, "file_not_regular") && !strings.Contains(r.Output, "no such file") {
				t.Fatalf("got %s", r.Output)
			}
		}
	})
}

func TestStoreFilesAreNeverOpened(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t, "sk-12345678")
	path := file(t, env, "state.sqlite", "SQLite format 3\x00 sk-12345678\n")
	store, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	env.IsStoreFile = func(info os.FileInfo) bool { return os.SameFile(info, store) }
	t.Run("RT-123 the helper reads them, redacted like the rest", func(t *testing.T) {
		r := ok(t, read(t, env, "state.sqlite"))
		if want := "     1\tSQLite format 3\x00 [REDACTED]\n"; r.Output != want {
			t.Errorf("got %q, want %q", r.Output, want)
		}
		if len(r.Seen) != 0 {
			t.Error("it is remembered, and could be overwritten")
		}
	})
	t.Run("RT-123 reading one drops no lock of this process", func(t *testing.T) {
		held, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		if err := unix.FcntlFlock(held.Fd(), unix.F_SETLK, &lock); err != nil {
			t.Fatal(err)
		}
		ok(t, read(t, env, "state.sqlite"))
		write(t, env, "state.sqlite", "x")
		edit(t, env, "state.sqlite", "SQLite", "x")
		if out := child(t, "locked", path); out != "locked" {
			t.Errorf("another process finds it %s", out)
		}
	})
	t.Run("they are neither written nor edited, by another name either", func(t *testing.T) {
		failed(t, write(t, env, "state.sqlite", "x"), "io_error", "store")
		failed(t, edit(t, env, "state.sqlite", "SQLite", "x"), "io_error", "store")
		if err := os.Link(path, filepath.Join(env.Workspace, "other")); err != nil {
			t.Fatal(err)
		}
		failed(t, write(t, env, "other", "x"), "io_error", "store")
	})
	t.Run("what the helper cannot read is an error", func(t *testing.T) {
		for _, row := range []struct{ path, says string }{
			{env.Workspace + "/gone", "no such file"}, {env.Workspace, "a folder"},
		} {
			err := env.helperRead(t.Context(), row.path, func(r io.Reader) error {
				_, err := io.Copy(io.Discard, r)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s: %v", row.path, err)
			}
		}
	})
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	live, err := newTemporary(env.Workspace, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer live.drop()
	file(t, env, temporaryPrefix+"0123456789abcdef", "left by one that was killed")
	file(t, env, temporaryPrefix+"note", "not ours")
	ok(t, write(t, env, "f", "x"))
	var names []string
	for _, entry := range entries(t, env.Workspace) {
		if strings.HasPrefix(entry, temporaryPrefix) {
			names = append(names, entry)
		}
	}
	if want := []string{temporaryPrefix + "note", filepath.Base(live.path)}; len(names) != 2 || !contains(names, want...) {
		t.Errorf("left are %v, want %v", names, want)
	}
}

func contains(all []string, want ...string) bool {
	for _, w := range want {
		found := false
		for _, a := range all {
			found = found || a == w
		}
		if !found {
			return false
		}
	}
	return true
}

func entries(t testing.TB, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

func noTemporary(t testing.TB, dir string) {
	t.Helper()
	for _, name := range entries(t, dir) {
		if strings.HasPrefix(name, temporaryPrefix) {
			t.Errorf("%s is left", name)
		}
	}
}

func TestConcurrentWritersDoNotSweepEachOther(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			one, _ := newEnv(t)
			one.Workspace = env.Workspace
			for j := range 20 {
				ok(t, write(t, one, fmt.Sprintf("f%d", i), fmt.Sprintf("%d", j)))
			}
		})
	}
	all.Wait()
	noTemporary(t, env.Workspace)
}

func init() {
	children["locked"] = func() {
		f, err := os.OpenFile(os.Getenv("TOOL_TEST_DIR"), os.O_RDWR, 0)
		if err != nil {
			fmt.Print(err)
			return
		}
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK {
			fmt.Print("free")
			return
		}
		fmt.Print("locked")
	}
	// Writes two contents in turn until it is killed.
	children["writer"] = func() {
		env := childEnv()
		env.Workspace = os.Getenv("TOOL_TEST_DIR")
		w := &world{seen: map[string]SeenFile{}}
		env.Seen = w
		for i := 0; ; i++ {
			raw, _ := json.Marshal(map[string]any{"path": "target", "content": whole(i)})
			r := writeTool.Run(context.Background(), env, raw)
			if r.Failed && strings.Contains(r.Output, "have not read") {
				raw, _ := json.Marshal(map[string]any{"path": "target"})
				r = readTool.Run(context.Background(), env, raw)
			}
			if len(r.Seen) != 1 {
				fmt.Println(r.Output)
				os.Exit(1)
			}
			w.seen[r.Seen[0].Path] = r.Seen[0]
			if i == 0 {
				fmt.Println("started")
			}
		}
	}
}

// whole is one of two large contents.
func whole(i int) string { return strings.Repeat(string(rune('a'+i%2))+"\n", 128<<10) }

func TestKilledWriters(t *testing.T) {
	t.Parallel()
	t.Run("RT-119 kill -9 at 50 instants leaves the old or the new content and no temporary file", func(t *testing.T) {
		t.Parallel()
		env, _ := newEnv(t)
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
		for range 50 {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), "TOOL_TEST_CHILD=writer", "TOOL_TEST_DIR="+env.Workspace)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line := make([]byte, 8)
			if _, err := io.ReadFull(out, line); err != nil || !bytes.Equal(line, []byte("started\n")) {
				t.Fatalf("%q, %v", line, err)
			}
			kill := time.NewTimer(time.Duration(r.IntN(10_000)) * time.Microsecond)
			<-kill.C
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			got, err := os.ReadFile(filepath.Join(env.Workspace, "target"))
			if err != nil {
				t.Fatal(err)
			}
			if s := string(got); s != whole(0) && s != whole(1) {
				t.Fatalf("a mixture of %d bytes", len(s))
			}
			// This process stands for a new daemon each time, which has swept
			// nothing yet.
			swept.forget(env.Workspace)
			ok(t, write(t, env, "another", "x"))
			noTemporary(t, env.Workspace)
		}
	})
}

func (s *sweeper) forget(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, dir)
}
