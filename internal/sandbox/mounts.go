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
	id, parent string
	device     string // MAJOR:MINOR
	root       string // the part of the file system that is mounted
	at         string
}

// readMounts reads a mount table. Lines that say nothing it can use are left out.
func readMounts(r io.Reader) (mounts []Mount, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		// A blank parts the fields, and nothing else that looks like one: the
		// kernel writes those as they are.
		f := strings.Split(lines.Text(), " ")
		if len(f) < 5 {
			continue
		}
		mounts = append(mounts, Mount{id: f[0], parent: f[1], device: f[2], root: unescapeMount(f[3]), at: unescapeMount(f[4])})
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

// mountOf is the mount that a path lies on. It goes down from the root as a
// look-up does: of what is mounted on one mount, the first on the way counts, and
// what had been mounted behind that is covered.
func mountOf(mounts []Mount, path string) (found Mount, ok bool) {
	ids := make(map[string]bool, len(mounts))
	for _, m := range mounts {
		ids[m.id] = true
	}
	for range mounts { // a table of the kernel has no circles
		var next Mount
		on := false
		for _, m := range mounts {
			first := !ids[m.parent] || m.parent == m.id
			held := ok && m.parent == found.id && m.id != found.id || !ok && first
			if held && within(path, m.at) && (!on || depth(m.at) <= depth(next.at)) {
				next, on = m, true
			}
		}
		if !on {
			break
		}
		found, ok = next, true
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
