package sandbox

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Mount is a line of /proc/self/mountinfo.
type Mount struct {
	device string // MAJOR:MINOR
	root   string // the part of the file system that is mounted
	at     string
}

// readMounts reads a mount table. Lines that say nothing it can use are left out.
func readMounts(r io.Reader) (mounts []Mount, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 5 {
			continue
		}
		mounts = append(mounts, Mount{device: f[2], root: unescapeMount(f[3]), at: unescapeMount(f[4])})
	}
	return mounts, lines.Err()
}

var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func unescapeMount(s string) string { return mountEscapes.Replace(s) }

// aliases are the other places at which a path, or what lies in it, shows on this
// machine: a second mount of the same part of a file system (sandbox.md 4.5).
func aliases(mounts []Mount, path string) (others []string) {
	own, ok := mountOf(mounts, path)
	if !ok {
		return nil
	}
	rel, err := filepath.Rel(own.at, path)
	if err != nil {
		return nil
	}
	inside := filepath.Join(own.root, rel) // in the file system itself
	for _, m := range mounts {
		if m.device != own.device {
			continue
		}
		other := ""
		switch {
		case within(inside, m.root):
			rel, err := filepath.Rel(m.root, inside)
			if err != nil {
				continue
			}
			other = filepath.Join(m.at, rel)
		case below(m.root, inside):
			other = m.at
		default:
			continue
		}
		if !within(other, path) && visible(mounts, m, other) {
			others = append(others, other)
		}
	}
	return others
}

// mountOf is the mount that a path lies on: the last of the deepest.
func mountOf(mounts []Mount, path string) (found Mount, ok bool) {
	for _, m := range mounts {
		if within(path, m.at) && (!ok || depth(m.at) >= depth(found.at)) {
			found, ok = m, true
		}
	}
	return found, ok
}

// visible reports whether a path that m shows is not covered by another mount.
func visible(mounts []Mount, m Mount, path string) bool {
	top, ok := mountOf(mounts, path)
	return ok && top == m
}

// HostMounts is this machine's mount table; none where there is no such file.
func HostMounts() ([]Mount, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMounts(f)
}
