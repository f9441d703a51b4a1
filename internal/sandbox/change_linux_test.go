package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agent/protocol"
)

// reply is a Reply in short: ok, or done, code and errno.
func (r Reply) short() string {
	if r.OK {
		return fmt.Sprint("ok ", r.Done)
	}
	return fmt.Sprint(r.Done, " ", r.Code, " ", unix.ErrnoName(unix.Errno(r.Errno)))
}

// tree is what lies below a folder of the lab, a name and its content a word.
func (l *lab) tree(rel string) string {
	l.t.Helper()
	var words []string
	filepath.WalkDir(l.path(rel), func(path string, d os.DirEntry, err error) error {
		name := strings.TrimPrefix(path, l.path(rel)+"/")
		switch {
		case err != nil || path == l.path(rel):
		case d.IsDir():
			words = append(words, name+"/")
		case d.Type().IsRegular():
			text, _ := os.ReadFile(path)
			words = append(words, name+"="+string(text))
		default:
			words = append(words, name)
		}
		return nil
	})
	return strings.Join(words, " ")
}

func TestFileChanges(t *testing.T) {
	t.Parallel()
	sum := func(text string) string { return ExpectContent([]byte(text)) }
	for _, row := range []struct {
		name string
		prep func(*lab)
		ops  []Op // paths relative to the workspace
		want string
		tree string
	}{
		{"a new file", nil, []Op{{Op: "write", Path: "f", Data: []byte("x"), Expect: ExpectAbsent}}, "ok 1", "f=x"},
		{"a new file that may be there", nil, []Op{{Op: "write", Path: "f", Data: []byte("x"), Expect: ExpectAny}}, "ok 1", "f=x"},
		{"an empty file", nil, []Op{{Op: "write", Path: "f", Expect: ExpectAbsent}}, "ok 1", "f="},
		{"a file is replaced", have("f=old"), []Op{{Op: "write", Path: "f", Data: []byte("new"), Expect: sum("old")}}, "ok 1", "f=new"},
		{"whatever it holds", have("f=old"), []Op{{Op: "write", Path: "f", Data: []byte("new"), Expect: ExpectAny}}, "ok 1", "f=new"},
		{"one that has changed is not", have("f=other"), []Op{{Op: "write", Path: "f", Data: []byte("new"), Expect: sum("old")}}, "0 changed ", "f=other"},
		{"one that was to be absent is not", have("f=old"), []Op{{Op: "write", Path: "f", Data: []byte("new"), Expect: ExpectAbsent}}, "0 exists ", "f=old"},
		{"one that is gone is not made", nil, []Op{{Op: "write", Path: "f", Data: []byte("new"), Expect: sum("old")}}, "0 missing ", ""},
		{"an unknown expectation", have("f=old"), []Op{{Op: "write", Path: "f", Expect: "md5:0"}}, "0 io ", "f=old"},
		{"an unknown expectation of what is not there", nil, []Op{{Op: "write", Path: "f"}}, "0 missing ", ""},
		{"a hard-linked file is written in place", func(l *lab) { have("f=old text")(l); os.Link(l.ws+"/f", l.ws+"/g") }, []Op{{Op: "write", Path: "f", Data: []byte("new"), Expect: sum("old text")}}, "ok 1", "f=new g=new"},
		{"delete", have("f=old"), []Op{{Op: "delete", Path: "f", Expect: sum("old")}}, "ok 1", ""},
		{"delete one that has changed", have("f=other"), []Op{{Op: "delete", Path: "f", Expect: sum("old")}}, "0 changed ", "f=other"},
		{"delete one that is gone", nil, []Op{{Op: "delete", Path: "f", Expect: ExpectAny}}, "0 missing ", ""},
		{"delete a folder", have("d/f=x"), []Op{{Op: "delete", Path: "d", Expect: ExpectAny}}, "0 not_regular ", "d/ d/f=x"},
		{"delete a link", func(l *lab) { have("f=x")(l); l.link("f", "home/ws/l") }, []Op{{Op: "delete", Path: "l", Expect: ExpectLink}}, "ok 1", "f=x"},
		{"delete what is no link any more", have("l=x"), []Op{{Op: "delete", Path: "l", Expect: ExpectLink}}, "0 changed ", "l=x"},
		{"delete a link that is gone", nil, []Op{{Op: "delete", Path: "l", Expect: ExpectLink}}, "0 missing ENOENT", ""},
		{"move", have("f=x"), []Op{{Op: "move", Path: "f", To: "g", Expect: sum("x")}}, "ok 1", "g=x"},
		{"move to a folder that is made", have("f=x"), []Op{{Op: "move", Path: "f", To: "a/b/g", Expect: sum("x"), Parents: true}}, "ok 1", "a/ a/b/ a/b/g=x"},
		{"move over another", have("f=x", "g=y"), []Op{{Op: "move", Path: "f", To: "g", Expect: sum("x")}}, "0 exists EEXIST", "f=x g=y"},
		{"move over another by a path that is made", have("f=x", "g=y"), []Op{{Op: "move", Path: "f", To: "g/h/i", Expect: sum("x"), Parents: true}}, "0 missing ENOTDIR", "f=x g=y"},
		{"move one that has changed", have("f=x"), []Op{{Op: "move", Path: "f", To: "g", Expect: sum("y")}}, "0 changed ", "f=x"},
		{"move one that is gone makes no folders", nil, []Op{{Op: "move", Path: "f", To: "a/g", Expect: ExpectAny, Parents: true}}, "0 missing ", ""},
		{"mkdir", nil, []Op{{Op: "mkdir", Path: "d"}}, "ok 1", "d/"},
		{"mkdir of what is there", have("d=x"), []Op{{Op: "mkdir", Path: "d"}}, "0 exists EEXIST", "d=x"},
		{"mkdir with parents", nil, []Op{{Op: "mkdir", Path: "a/b/c", Parents: true}}, "ok 1", "a/ a/b/ a/b/c/"},
		{"mkdir without", nil, []Op{{Op: "mkdir", Path: "a/b/c"}}, "0 missing ENOENT", ""},
		{"a write with parents", nil, []Op{{Op: "write", Path: "a/b/f", Data: []byte("x"), Expect: ExpectAbsent, Parents: true}}, "ok 1", "a/ a/b/ a/b/f=x"},
		{"parents that were made go again", nil, []Op{{Op: "write", Path: "a/b/f", Expect: sum("x"), Parents: true}}, "0 missing ", ""},
		{"a file in the way of parents", have("a=x"), []Op{{Op: "write", Path: "a/b/f", Expect: ExpectAbsent, Parents: true}}, "0 missing ENOTDIR", "a=x"},
		{"in order, up to the first that fails", nil, []Op{{Op: "mkdir", Path: "a"}, {Op: "write", Path: "a/f", Data: []byte("x"), Expect: ExpectAbsent}, {Op: "delete", Path: "b", Expect: ExpectAny}, {Op: "mkdir", Path: "c"}}, "2 missing ", "a/ a/f=x"},
		{"none", nil, nil, "ok 0", ""},
		{"an unknown operation", nil, []Op{{Op: "chmod", Path: "f"}}, "0 io ", ""},
		{"PO-37 SB-66 a link in place of a file", leadOut("f"), []Op{{Op: "write", Path: "f", Data: []byte("new"), Expect: ExpectAny}}, "0 symlink ELOOP", "f"},
		{"SB-66 a dangling link in place of a new file", func(l *lab) { l.link(l.path("nowhere"), "home/ws/f") }, []Op{{Op: "write", Path: "f", Data: []byte("new"), Expect: ExpectAbsent}}, "0 symlink ELOOP", "f"},
		{"SB-66 a link in place of the folder", leadOut("d"), []Op{{Op: "write", Path: "d/f", Data: []byte("new"), Expect: ExpectAny}}, "0 symlink ELOOP", "d"},
		{"SB-66 a link in place of a folder above", leadOut("d"), []Op{{Op: "write", Path: "d/e/f", Data: []byte("new"), Expect: ExpectAny, Parents: true}}, "0 symlink ELOOP", "d"},
		{"SB-66 a link in place of what is deleted", leadOut("f"), []Op{{Op: "delete", Path: "f", Expect: ExpectAny}}, "0 symlink ELOOP", "f"},
		{"SB-66 a link in place of what is moved", leadOut("f"), []Op{{Op: "move", Path: "f", To: "g", Expect: ExpectAny}}, "0 symlink ELOOP", "f"},
		{"SB-66 a link in place of where it is moved", func(l *lab) { have("f=x")(l); leadOut("d")(l) }, []Op{{Op: "move", Path: "f", To: "d/g", Expect: ExpectAny}}, "0 symlink ELOOP", "d f=x"},
		{"SB-66 a link in place of the new name", func(l *lab) { have("f=x")(l); leadOut("g")(l) }, []Op{{Op: "move", Path: "f", To: "g", Expect: ExpectAny}}, "0 exists EEXIST", "f=x g"},
		{"SB-66 a link in place of a new folder", leadOut("d"), []Op{{Op: "mkdir", Path: "d/e", Parents: true}}, "0 symlink ELOOP", "d"},
		{"SB-68 a FIFO", func(l *lab) { unix.Mkfifo(l.ws+"/f", 0o600) }, []Op{{Op: "write", Path: "f", Data: []byte("new"), Expect: ExpectAny}}, "0 not_regular ", "f"},
		{"SB-68 a FIFO that is deleted", func(l *lab) { unix.Mkfifo(l.ws+"/f", 0o600) }, []Op{{Op: "delete", Path: "f", Expect: ExpectAny}}, "0 not_regular ", "f"},
		{"SB-68 a FIFO that is moved", func(l *lab) { unix.Mkfifo(l.ws+"/f", 0o600) }, []Op{{Op: "move", Path: "f", To: "g", Expect: ExpectAny}}, "0 not_regular ", "f"},
		{"a folder", have("d/f=x"), []Op{{Op: "write", Path: "d", Data: []byte("new"), Expect: ExpectAny}}, "0 not_regular ", "d/ d/f=x"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t)
			l.write("outside/f", "outside")
			l.mkdir("outside/e")
			if row.prep != nil {
				row.prep(l)
			}
			if got := carryOut(l.inWorkspace(row.ops)).short(); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if got := l.tree("home/ws"); got != row.tree {
				t.Errorf("it holds %q, want %q", got, row.tree)
			}
			if got := l.tree("outside"); got != "e/ f=outside" {
				t.Errorf("outside is %q", got)
			}
		})
	}
	t.Run("SB-68 a device", func(t *testing.T) {
		r := carryOut([]Op{{Op: "write", Path: "/dev/null", Data: []byte("x"), Expect: ExpectAny}})
		if r.Code != ReplyNotRegular {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("paths that are no names of files", func(t *testing.T) {
		for _, path := range []string{"", "/", "f", "/tmp/", "/tmp/../f", "/tmp//f", "/tmp/.", "a/../../f"} {
			for _, op := range []Op{{Op: "write", Path: path, Expect: ExpectAny}, {Op: "mkdir", Path: path}, {Op: "delete", Path: path, Expect: ExpectAny}} {
				if r := carryOut([]Op{op}); r.OK || r.Code != ReplyIO {
					t.Errorf("%s %q: %+v", op.Op, path, r)
				}
			}
			l := newLab(t)
			have("f=x")(l)
			if r := carryOut([]Op{{Op: "move", Path: l.ws + "/f", To: path, Expect: ExpectAny}}); r.OK || r.Code != ReplyIO {
				t.Errorf("move to %q: %+v", path, r)
			}
		}
	})
	t.Run("modes", func(t *testing.T) {
		l := newLab(t)
		have("f=x")(l)
		os.Chmod(l.ws+"/f", 0o751)
		r := carryOut(l.inWorkspace([]Op{
			{Op: "write", Path: "f", Data: []byte("y"), Expect: ExpectAny},
			{Op: "write", Path: "g", Expect: ExpectAbsent},
			{Op: "write", Path: "h", Expect: ExpectAbsent, Mode: 0o4700},
		}))
		if !r.OK {
			t.Fatalf("got %+v", r)
		}
		for name, want := range map[string]os.FileMode{"f": 0o751, "g": 0o644 &^ umask(), "h": 0o700} {
			if info, err := os.Stat(l.ws + "/" + name); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
			}
		}
	})
	t.Run("another's file keeps its owner, or loses what a mode grants to it", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Log("only root can have the file of another")
			return
		}
		l := newLab(t)
		have("f=x")(l)
		if err := errorsOf(os.Chown(l.ws+"/f", ordinaryUser, ordinaryUser), os.Chmod(l.ws+"/f", 0o755|os.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
		op := l.inWorkspace([]Op{{Op: "write", Path: "f", Data: []byte("y"), Expect: ExpectAny}})
		see := func(uid uint32, mode os.FileMode) {
			t.Helper()
			info, err := os.Stat(l.ws + "/f")
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Sys().(*syscall.Stat_t).Uid; got != uid || info.Mode() != mode {
				t.Errorf("it is %v of %d, want %v of %d", info.Mode(), got, mode, uid)
			}
		}
		p, err := l.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		if r := carryOut(op); !r.OK {
			t.Fatalf("got %+v", r)
		}
		see(ordinaryUser, 0o755|os.ModeSetuid)
		if r, err := launcher(t).Change(t.Context(), p, op); !r.OK || err != nil {
			t.Fatalf("got %+v, %v", r, err)
		}
		see(0, 0o755)
	})
}

// umask is this process's.
func umask() os.FileMode {
	status, _ := os.ReadFile("/proc/self/status")
	var mask os.FileMode
	_, rest, _ := strings.Cut(string(status), "\nUmask:\t")
	fmt.Sscanf(rest, "%o", &mask)
	return mask
}

// have makes files of the workspace, NAME=TEXT.
func have(files ...string) func(*lab) {
	return func(l *lab) {
		for _, f := range files {
			name, text, _ := strings.Cut(f, "=")
			l.write("home/ws/"+name, text)
		}
	}
}

// leadOut makes a name of the workspace a link to what lies outside.
func leadOut(name string) func(*lab) {
	return func(l *lab) {
		to := "outside"
		if name == "f" || name == "g" {
			to = "outside/f"
		}
		l.link(l.path(to), "home/ws/"+name)
	}
}

func (l *lab) inWorkspace(ops []Op) []Op {
	var list []Op
	for _, op := range ops {
		op.Path = l.ws + "/" + op.Path
		if op.To != "" {
			op.To = l.ws + "/" + op.To
		}
		list = append(list, op)
	}
	return list
}

// TestFileChangesInside has the helper's changes inside the sandbox.
func TestFileChangesInside(t *testing.T) {
	launch := launcher(t)
	change := func(t *testing.T, p *Plan, ops ...Op) string {
		t.Helper()
		r, err := launch.Change(t.Context(), p, ops)
		if err != nil {
			t.Fatal(err)
		}
		return r.short()
	}
	modes(t, "SB-1 SB-2 SB-4 SB-66 SB-68 changes by the helper", func(t *testing.T, l *lab, in func(func(*Setting, *Call)) *Plan) {
		l.repository("home/ws")
		l.mkdir("home/ws/.agents")
		l.write("home/outside", "x")
		l.link(l.path("home/outside"), "home/ws/l")
		unix.Mkfifo(l.ws+"/fifo", 0o600)
		p := in(nil)
		written, made := "0 read_only EROFS", []string(nil)
		if p.Mode == protocol.SandboxWorkspace {
			written, made = "ok 1", []string{"home/ws/new"}
		}
		before := l.host()
		for _, row := range []struct {
			want string
			op   Op
		}{
			{written, Op{Op: "write", Path: l.ws + "/new/f", Data: []byte("x"), Expect: ExpectAbsent, Parents: true}},
			{"0 read_only EROFS", Op{Op: "write", Path: l.path("home/outside"), Data: []byte("y"), Expect: ExpectAny}},
			{"0 read_only EROFS", Op{Op: "write", Path: l.path("home/new"), Expect: ExpectAbsent}},
			{"0 read_only EROFS", Op{Op: "write", Path: l.ws + "/.git/config", Data: []byte("y"), Expect: ExpectAny}},
			{"0 read_only EROFS", Op{Op: "write", Path: l.ws + "/.git/hooks/x", Expect: ExpectAbsent}},
			{"0 read_only EROFS", Op{Op: "write", Path: l.ws + "/.agents/x", Expect: ExpectAbsent}},
			{"0 read_only EROFS", Op{Op: "delete", Path: l.path("home/outside"), Expect: ExpectAny}},
			{"0 symlink ELOOP", Op{Op: "write", Path: l.ws + "/l", Data: []byte("y"), Expect: ExpectAny}},
			{"0 not_regular ", Op{Op: "write", Path: l.ws + "/fifo", Data: []byte("y"), Expect: ExpectAny}},
		} {
			if got := change(t, p, row.op); got != row.want {
				t.Errorf("%s %s: got %q, want %q", row.op.Op, row.op.Path, got, row.want)
			}
		}
		compareHosts(t, before, l.host(), made)
	})
	t.Run("a name that a mount stands on is busy", func(t *testing.T) {
		l := socketLab(t)
		p, err := l.plan(granted(l))
		if err != nil {
			t.Fatal(err)
		}
		before := l.host()
		config := l.ws + "/.git/config"
		if got := change(t, p, Op{Op: "delete", Path: config, Expect: ExpectAny}); got != "0 busy EBUSY" {
			t.Errorf("delete: %s", got)
		}
		if got := change(t, p, Op{Op: "write", Path: config, Data: []byte("x"), Expect: ExpectAny}); got != "0 read_only EROFS" {
			t.Errorf("write: %s", got)
		}
		compareHosts(t, before, l.host(), nil)
	})
	t.Run("a request that is too long is not sent", func(t *testing.T) {
		l := socketLab(t)
		p, err := l.plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = launch.Change(t.Context(), p, []Op{{Op: "write", Path: l.ws + "/f", Data: make([]byte, 49<<20), Expect: ExpectAny}})
		if err == nil || !strings.Contains(err.Error(), "at most 67108864") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a launcher in a root is not used", func(t *testing.T) {
		l := socketLab(t)
		p, err := l.plan(roots("/usr"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = launch.Change(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), "lies in the writable folder /usr") {
			t.Errorf("got %v", err)
		}
		if _, err = launch.Prepare(t.Context(), p, []string{"/bin/true"}, nil); protocolCode(err) != protocol.SandboxDenied {
			t.Errorf("got %v", err)
		}
	})
}

// TestFileChangesWithoutRoom fills a small file system.
func TestFileChangesWithoutRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make a small file system")
		return
	}
	l := newLab(t)
	if err := unix.Mount("tmpfs", l.ws, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(l.ws, unix.MNT_DETACH) })
	have("f=old", "h=hard")(l)
	os.Link(l.ws+"/h", l.ws+"/h2")
	much := bytes.Repeat([]byte("x"), 1<<20)
	for _, op := range l.inWorkspace([]Op{
		{Op: "write", Path: "f", Data: much, Expect: ExpectAny},
		{Op: "write", Path: "d/g", Data: much, Expect: ExpectAbsent, Parents: true},
		{Op: "write", Path: "h", Data: much, Expect: ExpectAny},
	}) {
		if r := carryOut([]Op{op}); r.Code != ReplyNoSpace || r.Errno != int(unix.ENOSPC) {
			t.Errorf("%s: got %+v", op.Path, r)
		}
	}
	if got := l.tree("home/ws"); got != "f=old h=hard h2=hard" {
		t.Errorf("it holds %.100q", got)
	}
}

// TestFileChangesRace is SB-66: links are put in the way while changes go on.
func TestFileChangesRace(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.write("outside/f", "outside")
	l.mkdir("home/ws/d")
	file, folder := l.ws+"/f", l.ws+"/d"
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swap := func(path string, link string, put func()) {
		defer swaps.Done()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			os.RemoveAll(path)
			if i%2 == 0 {
				os.Symlink(link, path)
			} else {
				put()
			}
		}
	}
	swaps.Add(2)
	go swap(file, l.path("outside/f"), func() { os.WriteFile(file, []byte("inside"), 0o644) })
	go swap(folder, l.path("outside"), func() { os.Mkdir(folder, 0o755) })
	codes := map[string]int{}
	for end := time.Now().Add(time.Second); time.Now().Before(end) || codes["ok 1"] == 0 || codes["0 symlink ELOOP"] == 0; {
		for _, op := range l.inWorkspace([]Op{
			{Op: "write", Path: "f", Data: []byte("written"), Expect: ExpectAny},
			{Op: "write", Path: "d/f", Data: []byte("written"), Expect: ExpectAny, Parents: true},
			{Op: "write", Path: "d/new/f", Data: []byte("written"), Expect: ExpectAny, Parents: true},
			{Op: "mkdir", Path: "d/e"},
			{Op: "delete", Path: "d/f", Expect: ExpectAny},
			{Op: "move", Path: "f", To: "d/g", Expect: ExpectAny},
		}) {
			codes[carryOut([]Op{op}).short()]++
		}
		if got := l.tree("outside"); got != "f=outside" {
			t.Errorf("outside is %q", got)
			break
		}
	}
	close(stop)
	swaps.Wait()
	t.Log(codes)
}

func TestHelperRequests(t *testing.T) {
	t.Parallel()
	ask := func(t *testing.T, in io.Reader) Reply {
		t.Helper()
		var out bytes.Buffer
		if status := RunHelper("file", in, &out); status != 0 {
			t.Fatalf("status %d", status)
		}
		if bytes.Count(out.Bytes(), []byte("\n")) != 1 || !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
			t.Errorf("it is no line: %q", out.Bytes())
		}
		var r Reply
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for text, says := range map[string]string{
		"": "cannot be read", "{": "cannot be read", `{"v":1} x`: "cannot be read", `[]`: "cannot be read", `{"v":1,"ops":[{"data":"%"}]}`: "cannot be read",
		`{}`: "version 0", `{"v":2,"ops":[]}`: "version 2",
	} {
		if r := ask(t, strings.NewReader(text)); r.OK || r.Code != ReplyIO || !strings.Contains(r.Message, says) {
			t.Errorf("%q: got %+v", text, r)
		}
	}
	t.Run("a request of the most bytes, and of one more", func(t *testing.T) {
		head, tail := []byte(`{"v":1,"ops":[],"x":"`), []byte(`"}`)
		fill := bytes.Repeat([]byte("x"), requestLimit-len(head)-len(tail))
		if r := ask(t, io.MultiReader(bytes.NewReader(head), bytes.NewReader(fill), bytes.NewReader(tail))); !r.OK {
			t.Errorf("got %+v", r)
		}
		if r := ask(t, io.MultiReader(bytes.NewReader(head), bytes.NewReader(fill), strings.NewReader("x"), bytes.NewReader(tail))); r.OK || !strings.Contains(r.Message, "longer than") {
			t.Errorf("got %+v", r)
		}
	})
	if status := RunHelper("other", strings.NewReader(""), io.Discard); status != 2 {
		t.Errorf("an unknown mode ends with %d", status)
	}
	t.Run("as a program", func(t *testing.T) {
		l := newLab(t)
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		request, err := encodeRequest(l.inWorkspace([]Op{{Op: "write", Path: "f", Data: []byte("x"), Expect: ExpectAbsent}}))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, HelperVerb, "file")
		cmd.Stdin = bytes.NewReader(request)
		out, err := cmd.Output()
		if err != nil || string(out) != `{"ok":true,"done":1}`+"\n" || l.tree("home/ws") != "f=x" {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// FuzzRequest has whatever the helper may be told, over a folder that is not
// there: nothing is made, and nothing panics.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"ops":[{"op":"write","path":"/nowhere-at-all/f","data":"eA==","expect":"absent"}]}`,
		`{"v":1,"ops":[{"op":"move","path":"/nowhere-at-all/f","to":"../x","expect":"any"}]}`,
		`{"v":1,"ops":[{"op":"mkdir","path":"/"}]}`, `{"v":1,"ops":[{"op":"delete","path":"/nowhere-at-all/\u0000","expect":"sha256:"}]}`, `{"v":2}`, `{`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := readRequest(bytes.NewReader(text))
		if err != nil {
			return
		}
		if r.V != 1 {
			t.Fatalf("version %d was taken", r.V)
		}
		for i, op := range r.Ops {
			// Whatever the path was, it is tried below a folder that there is not.
			op.Parents = false
			if strings.HasPrefix(op.Path, "/") {
				op.Path = "/nowhere-at-all" + op.Path
			}
			r := carryOut([]Op{op})
			if r.OK {
				t.Fatalf("operation %d went through: %+v", i, op)
			}
			if clean := filepath.IsAbs(op.Path) && filepath.Clean(op.Path) == op.Path; !clean && r.Code != ReplyIO {
				t.Fatalf("%q: %+v", op.Path, r)
			}
		}
	})
}

// The sweep of internal/tool takes away what has such a name and no writer.
func TestTemporaryName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for range 20 {
		if name, err := temporary(fd, Op{Data: []byte("x")}, nil); err != nil || !regexp.MustCompile(`^\.agent-tmp-[0-9a-f]{16}$`).MatchString(name) {
			t.Errorf("it is %q (%v)", name, err)
		}
	}
}
