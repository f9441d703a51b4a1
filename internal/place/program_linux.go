package place

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Bubblewraps are where the launcher of confined commands is looked for; never on PATH,
// which a bot may have had a hand in (sandbox.md 4.1).
var Bubblewraps = []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

// TrustedProgram refuses a program, named by a real path, that someone else than root could
// have put there, or the person where own says that theirs counts too.
func TrustedProgram(path string, own bool) error {
	for _, p := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t).Uid
		switch {
		case owner != 0 && !(own && owner == uint32(os.Geteuid())):
			return fmt.Errorf("%s is not owned by root", p)
		case info.Mode().Perm()&0o022 != 0:
			return fmt.Errorf("%s may be written by others", p)
		case p == path && (!info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0):
			return fmt.Errorf("%s is no program", p)
		}
	}
	return nil
}
