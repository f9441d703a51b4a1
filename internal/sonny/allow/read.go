package allow

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"agent/client"
	"agent/protocol"
)

// ReadFolder reads the person's own command rules. What others than the person may have
// written is rules_unreadable and named: a rule lets commands run with all of the
// person's permissions, and a link may lead to where an agent writes (sonny.md 31).
// A folder that is missing holds none.
func ReadFolder(dir string) (*protocol.Rules, error) {
	if err := ownFolder(dir); err != nil {
		return nil, protocol.Fail(protocol.RulesUnreadable, err.Error())
	}
	return client.ReadRules(dir)
}

func ownFolder(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is a link or no folder; put the folder itself there", dir)
	}
	if err := persons(dir, info); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".rules") || e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link; put the file itself there", path)
		}
		if err := persons(path, info); err != nil {
			return err
		}
	}
	return nil
}

// persons refuses what belongs to another, or what others may write.
func persons(path string, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", path)
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("%s may be written by others (mode %04o); take that away with chmod go-w", path, perm)
	}
	return nil
}
