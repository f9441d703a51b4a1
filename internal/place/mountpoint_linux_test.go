package place

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What a launcher of confined commands leaves where it was to mount something.
func TestMountPoints(t *testing.T) {
	const ofLauncher = 0o444
	plant := func(t *testing.T, path, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []os.FileMode{ofLauncher, 0o644, 0o666} {
		t.Run(fmt.Sprintf("an empty file of mode %#o in the socket's place makes room", mode), func(t *testing.T) {
			path := shortFolder(t) + "/s.sock"
			plant(t, path, "", mode)
			l, err := Listen(path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			c, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		})
	}
	t.Run("a claim alone removes nothing", func(t *testing.T) {
		dir := shortFolder(t)
		plant(t, dir+"/file", "", ofLauncher)
		leaveStale(t, dir+"/stale")
		for _, path := range []string{dir + "/file", dir + "/stale"} {
			c, err := ClaimSocket(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(path); err != nil {
				t.Error(err)
			}
			c.Close()
		}
	})
	others := map[string]func(t *testing.T, path string){
		"PR-11 a file with content": func(t *testing.T, path string) { plant(t, path, "mine", ofLauncher) },
		"PR-11 a link to an empty file": func(t *testing.T, path string) {
			plant(t, path+".to", "", ofLauncher)
			if err := os.Symlink(path+".to", path); err != nil {
				t.Fatal(err)
			}
		},
		"an empty file with a second name": func(t *testing.T, path string) {
			plant(t, path, "", ofLauncher)
			if err := os.Link(path, path+".again"); err != nil {
				t.Fatal(err)
			}
		},
		"an empty folder": func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"a FIFO": func(t *testing.T, path string) {
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	}
	if os.Geteuid() == 0 {
		others["an empty file of somebody else's"] = func(t *testing.T, path string) {
			plant(t, path, "", ofLauncher)
			if err := os.Chown(path, 12345, 12345); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, put := range others {
		t.Run(what+" in the socket's place stays, and is refused", func(t *testing.T) {
			path := shortFolder(t) + "/s.sock"
			put(t, path)
			before, _ := os.Lstat(path)
			if _, err := Listen(path); codeOf(err) != codeSocketNotSocket {
				t.Errorf("error is %v", err)
			}
			after, err := os.Lstat(path)
			if err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() || before.Size() != after.Size() {
				t.Errorf("%v, %v", after, err)
			}
		})
	}
	t.Run("one in a private file's place becomes the file", func(t *testing.T) {
		dir := shortFolder(t)
		plant(t, dir+"/empty", "", ofLauncher)
		plant(t, dir+"/full", "content", ofLauncher)
		out := asOrdinary(t, dir, "^TestChildOpensPrivate$")
		if want := "empty: <nil> 600\nfull: permission denied 444\n"; !strings.Contains(out, want) {
			t.Errorf("it said %q, not %q", out, want)
		}
	})
}

// asOrdinary runs a test of this program with a folder of its own as a user whom the
// mode of a file stops.
func asOrdinary(t *testing.T, dir, test string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run="+test)
	cmd.Env, cmd.Dir = append(os.Environ(), "PLACE_OPENS="+dir), "/"
	if os.Geteuid() == 0 {
		const ordinary = 61234
		files, _ := filepath.Glob(dir + "/*")
		for _, path := range append(files, dir) {
			if err := os.Chown(path, ordinary, ordinary); err != nil {
				t.Fatal(err)
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestChildOpensPrivate is run by another test in a process of its own.
func TestChildOpensPrivate(t *testing.T) {
	dir := os.Getenv("PLACE_OPENS")
	if dir == "" {
		return
	}
	for _, name := range []string{"empty", "full"} {
		f, err := OpenPrivate(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE)
		f.Close()
		info, _ := os.Stat(filepath.Join(dir, name))
		fmt.Printf("%s: %v %o\n", name, reason(err), info.Mode().Perm())
	}
}
