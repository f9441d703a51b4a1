package sandbox

import (
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

// table reads a mount table, "ID PARENT DEVICE ROOT AT" a line.
func table(t *testing.T, text string) []Mount {
	t.Helper()
	var lines []string
	for _, line := range strings.Split(strings.Trim(text, "\n"), "\n") {
		lines = append(lines, line+" rw,relatime shared:1 - ext4 /dev/x rw")
	}
	mounts, err := readMounts(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return mounts
}

func TestAliases(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, table, path, want string }{
		{"one mount", "1 0 8:1 / /", "/home/p/.agent", ""},
		{"the root a second time", "1 0 8:1 / /\n2 1 8:1 / /mnt", "/home/p/.agent", "/mnt/home/p/.agent"},
		{"a folder above it", "1 0 8:1 / /\n2 1 8:1 /home /var/home", "/home/p/.agent", "/var/home/p/.agent"},
		{"itself", "1 0 8:1 / /\n2 1 8:1 /home/p/.agent /srv/a", "/home/p/.agent", "/srv/a"},
		{"what lies in it", "1 0 8:1 / /\n2 1 8:1 /home/p/.agent/run /srv/run", "/home/p/.agent", "/srv/run"},
		{"what lies beside it", "1 0 8:1 / /\n2 1 8:1 /home/p/.agents /srv/run", "/home/p/.agent", ""},
		{"the same place on another device", "1 0 8:1 / /\n2 1 8:2 / /mnt", "/home/p/.agent", ""},
		{"a home on a device of its own", "1 0 8:1 / /\n2 1 8:2 / /home\n3 1 8:2 /p /srv/p", "/home/p/.agent", "/srv/p/.agent"},
		{"a part of a device", "1 0 8:1 / /\n2 1 8:2 /@home /home\n3 1 8:2 / /mnt", "/home/p/.agent", "/mnt/@home/p/.agent"},
		{"another part of it", "1 0 8:1 / /\n2 1 8:2 /@home /home\n3 1 8:2 /@root /mnt", "/home/p/.agent", ""},
		{"bound onto itself", "1 0 8:1 / /\n2 1 8:1 /home/p/.agent /home/p/.agent", "/home/p/.agent", ""},
		{"a parent bound onto itself", "1 0 8:1 / /\n2 1 8:1 /home /home", "/home/p/.agent", ""},
		{"covered by another", "1 0 8:1 / /\n2 1 8:1 /home /mnt\n3 2 8:9 / /mnt", "/home/p/.agent", ""},
		{"covered in part", "1 0 8:1 / /\n2 1 8:1 /home /mnt\n3 2 8:9 / /mnt/p", "/home/p/.agent", ""},
		{"covered from above", "1 0 8:1 / /\n2 1 8:1 /home /mnt/h\n3 1 8:9 / /mnt", "/home/p/.agent", ""},
		{"covered from above, and mounted again there", "1 0 8:1 / /\n2 1 8:1 /home /mnt/h\n3 1 8:9 / /mnt\n4 3 8:1 /home /mnt/h", "/home/p/.agent", "/mnt/h/p/.agent"},
		{"what covers the path is what shows", "1 0 8:1 / /\n2 1 8:2 / /home\n3 2 8:3 / /home\n4 1 8:3 /p /srv/p", "/home/p/.agent", "/srv/p/.agent"},
		{"what the path's mount is covered by from above", "1 0 8:1 / /\n2 1 8:2 / /home/p\n3 1 8:3 / /home\n4 1 8:3 / /srv\n5 1 8:2 / /old", "/home/p/.agent", "/srv/p/.agent"},
		{"a root over the first one", "1 1 0:2 / /\n2 1 8:1 / /\n3 2 8:1 /home /var/home", "/home/p/.agent", "/var/home/p/.agent"},
		{"a root that is not listed", "7 3 8:1 /x/home /home\n8 3 8:1 /x/home /mnt", "/home/p/.agent", "/mnt/p/.agent"},
		{"blanks and other bytes", "1 0 8:1 / /\n2 1 8:1 /home/a\\040b\\011c\\012d\\134e /mnt/x\\040y", "/home/a b\tc\nd\\e/f", "/mnt/x y/f"},
		{"what only looks like an escape or a blank", "1 0 8:1 / /\n2 1 8:1 /home/\\134040\r\u00a0 /mnt/x\r", "/home/\\040\r\u00a0", "/mnt/x\r"},
		{"several", "1 0 8:1 / /\n2 1 8:1 /home /a\n3 1 8:1 /home/p /b\n4 1 8:1 /home/p/.agent/run /c", "/home/p/.agent", "/a/p/.agent /b/.agent /c"},
		{"no table", "x", "/home", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := strings.Join(aliases(table(t, row.table), row.path), " "); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
	t.Run("this machine's own table is read", func(t *testing.T) {
		mounts, err := HostMounts()
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := mountOf(mounts, t.TempDir()); len(mounts) > 0 && (!ok || !filepath.IsAbs(m.at)) {
			t.Errorf("nothing is found: %v", m)
		}
	})
}

// TestAliasesInPlans is SB-90 on made-up tables.
func TestAliasesInPlans(t *testing.T) {
	t.Parallel()
	second := func(of, at string) []Mount {
		return []Mount{{"1", "0", "8:1", "/", "/"}, {"2", "1", "8:1", of, at}}
	}
	t.Run("SB-90 sockets and walls are hidden there, too", func(t *testing.T) {
		l := newLab(t)
		l.write("home/.agent/state.sqlite.sock", "")
		l.mkdir("second")
		p, err := l.plan(func(_ *Setting, c *Call) { c.Mounts = second(l.path("home/.agent"), l.path("second")) })
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range p.Hidden {
			got = append(got, strings.TrimPrefix(h.Path, l.dir+"/"))
		}
		if s := strings.Join(got, " "); s != "second/state.sqlite.sock second/state.sqlite.sock.d second/run home/.agent/state.sqlite.sock home/.agent/state.sqlite.sock.d home/.agent/run" {
			t.Errorf("hidden: %s", s)
		}
	})
	for name, at := range map[string]string{"is": "far/ws", "holds": "far/ws/deep/second", "lies in": "far"} {
		t.Run("SB-90 a root that "+name+" another place of the store's folder", func(t *testing.T) {
			l := newLab(t)
			l.mkdir("far/ws/deep/second")
			l.ws = l.path("far/ws")
			_, err := l.plan(func(_ *Setting, c *Call) { c.Mounts = second(l.path("home/.agent"), l.path(at)) })
			if e, ok := err.(*protocol.Error); !ok || e.Code != protocol.SandboxDenied || !strings.Contains(e.Detail, l.ws) || !strings.Contains(e.Detail, l.path("home/.agent")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzMounts has any table: what is found lies where its mounts are.
func FuzzMounts(f *testing.F) {
	f.Add("1 0 8:1 / / rw\n2 1 8:1 /home /mnt rw\n", "/home/p")
	f.Add("1 0 8:1 / /\n2 3 8:1 / /\n3 2 8:1 / /\n1 1 8:1 /a /a", "/a/b")
	f.Add("1 1 0:1 / /\n\\134", "/")
	f.Fuzz(func(t *testing.T, text, path string) {
		mounts, err := readMounts(strings.NewReader(text))
		if err != nil || !filepath.IsAbs(path) || filepath.Clean(path) != path {
			return
		}
		for _, other := range aliases(mounts, path) {
			m, ok := mountOf(mounts, other)
			if !ok || !within(other, m.at) {
				t.Fatalf("%q of %q lies on no mount", other, path)
			}
			if within(other, path) {
				t.Fatalf("%q is named as another place of %q", other, path)
			}
		}
	})
}
