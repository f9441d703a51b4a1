package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"agent/internal/place"
	"agent/internal/secret"
	"agent/protocol"
)

// judgeConfig is what config.toml says of the automatic approver.
type judgeConfig struct {
	path        string // of the file
	model, note string
	deadline    time.Duration // 0: not set
}

// The range of judge_deadline_ms, what it is without that, and what a gate's
// expiry must leave beside it (approvals.md 9 and 10).
const (
	leastJudgeDeadlineMS   = 1_000
	mostJudgeDeadlineMS    = 90_000
	defaultJudgeDeadlineMS = 30_000
	judgeMarginMS          = 15_000
)

// readJudgeConfig reads the keys that begin with judge_. One that is not known, or
// whose value is not of its kind, is config_invalid: a slip of the pen must not
// leave the calls to another judge.
func readJudgeConfig() (*judgeConfig, error) {
	dir, err := place.AgentDir()
	if err != nil {
		return nil, err
	}
	c := &judgeConfig{path: filepath.Join(dir, "config.toml")}
	file, err := secret.ReadConfig(c.path)
	if err != nil {
		return nil, err
	}
	var keys []string
	for key := range file {
		if strings.HasPrefix(key, "judge") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if why := c.set(key, file[key]); why != "" {
			return nil, protocol.Fail(protocol.ConfigInvalid, c.path+": "+why)
		}
	}
	return c, nil
}

// set takes one key in and says what is wrong with it, "" when nothing is.
func (c *judgeConfig) set(key string, value any) string {
	text, isText := value.(string)
	switch key {
	case "judge_model":
		if _, _, ok := protocol.ParseModelRef(text); !ok {
			return `judge_model must be a text "PROVIDER/MODEL"`
		}
		c.model = text
	case "judge_note":
		home, err := place.Home()
		if rest, ok := strings.CutPrefix(text, "~/"); ok && err == nil {
			text = filepath.Join(home, rest)
		}
		if !isText || !filepath.IsAbs(text) {
			return "judge_note must be the path of a file, absolute or beginning with ~/"
		}
		c.note = text
	case "judge_deadline_ms":
		ms, isNumber := value.(int64)
		if !isNumber || ms < leastJudgeDeadlineMS || ms > mostJudgeDeadlineMS {
			return fmt.Sprintf("judge_deadline_ms must be an integer from %d to %d", leastJudgeDeadlineMS, mostJudgeDeadlineMS)
		}
		c.deadline = time.Duration(ms) * time.Millisecond
	default:
		return key + " is no setting; there are judge_model, judge_note and judge_deadline_ms"
	}
	return ""
}

// leastAutoExpireMS is the shortest expiry of a gate that a judge answers, so that
// its deadline passes first.
func (c *judgeConfig) leastAutoExpireMS() int64 {
	deadline := c.deadline.Milliseconds()
	if deadline == 0 {
		deadline = defaultJudgeDeadlineMS
	}
	return deadline + judgeMarginMS
}

// maxNote bounds the person's note, in bytes.
const maxNote = 8192

// readNote reads the note: a regular file, opened without waiting for a writer.
func readNote(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", invalidNote(path, "is no regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxNote+1))
	switch {
	case err != nil:
		return "", errors.Join(invalidNote(path, "cannot be read"), err)
	case len(text) > maxNote:
		return "", invalidNote(path, fmt.Sprintf("is longer than %d bytes", maxNote))
	case !utf8.Valid(text):
		return "", invalidNote(path, "is not UTF-8")
	}
	return string(text), nil
}

func invalidNote(path, what string) error {
	return protocol.Fail(protocol.ConfigInvalid, "the note "+path+" "+what)
}
