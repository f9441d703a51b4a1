package chatgpt

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"agent/internal/model"
	"agent/internal/place"
	"agent/internal/secret"
)

const (
	fileVersion = 1
	fileLimit   = 256 << 10 // bytes of the file; the tokens take a few KiB

	lockHeld  = "sign_in_locked"
	lockPause = 20 * time.Millisecond
	// lockWait is more than the 30 s that whoever holds the lock may wait for
	// the issuer.
	lockWait = 60 * time.Second
)

// File is where the sign-in is kept: Path, and beside it Path.lock. It is safe
// for concurrent use by any number of processes.
type File struct {
	Path string
	step func(string) // called between the steps of a write; nil but in tests
}

// DefaultFile is ~/.agent/chatgpt.json.
func DefaultFile() (File, error) {
	dir, err := place.AgentDir()
	return File{Path: filepath.Join(dir, "chatgpt.json")}, err
}

// token is a secret in the file.
type token struct{ secret.Value }

func (t *token) UnmarshalText(text []byte) error {
	t.Value = secret.NewValue(string(text))
	return nil
}

// Read is the sign-in that the file holds, and which file that was. It fails
// with provider_login_unavailable, for a missing file (an error that is
// fs.ErrNotExist) as for one that is not the caller's own and private.
func (f File) Read() (*SignIn, os.FileInfo, error) {
	file, err := os.OpenFile(f.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, f.unreadable(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, f.unreadable(err)
	}
	if err := f.private(info); err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, fileLimit+1))
	if err != nil {
		return nil, nil, f.unreadable(err)
	}
	if len(text) > fileLimit {
		return nil, nil, unavailable("%s is longer than %d KiB", f.Path, fileLimit>>10)
	}
	s, err := f.parse(text)
	return s, info, err
}

// unreadable explains an error of the system. The way to a missing file is told
// to those, too, who have signed in for Codex and may expect that to do.
func (f File) unreadable(err error) error {
	var e *model.Error
	switch {
	case errors.Is(err, fs.ErrNotExist) && CodexSignedIn():
		e = model.Errorf("provider_login_unavailable",
			"%s is missing. Codex is signed in; this program needs its own sign-in: agent login chatgpt", f.Path)
	case errors.Is(err, fs.ErrNotExist):
		e = unavailable("%s is missing", f.Path)
	case errors.Is(err, syscall.ELOOP):
		e = unavailable("%s is a symlink, and the sign-in is kept in a file of its own", f.Path)
	default:
		e = unavailable("%s cannot be read: %v", f.Path, reason(err))
	}
	e.Cause = err
	return e
}

// private refuses a file that others can read or have written.
func (f File) private(info os.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return unavailable("%s is not a regular file", f.Path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return unavailable("%s belongs to another user", f.Path)
	case info.Mode().Perm()&0o077 != 0:
		return model.Errorf("provider_login_unavailable",
			"%s has mode %#o, so others may have its tokens; run chmod 600 on it, or agent login chatgpt", f.Path, info.Mode().Perm())
	}
	return nil
}

func (f File) parse(text []byte) (*SignIn, error) {
	var in struct {
		Version     int       `json:"version"`
		Account     string    `json:"account_id"`
		Access      token     `json:"access_token"`
		Refresh     token     `json:"refresh_token"`
		ID          token     `json:"id_token"`
		ExpiresAt   int64     `json:"expires_at"`
		LastRefresh time.Time `json:"last_refresh"`
		Issuer      string    `json:"issuer"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		// What the decoder quotes of the text may be a token.
		return nil, unavailable("%s is no sign-in file: it is not the JSON of one", f.Path)
	}
	switch {
	case in.Version != fileVersion:
		return nil, unavailable("%s has version %d, and this program reads version %d", f.Path, in.Version, fileVersion)
	case !printable(in.Access.Reveal()) || !printable(in.Refresh.Reveal()) || !printable(in.Account):
		return nil, unavailable("%s lacks a token or the account, or holds what none can", f.Path)
	case in.Issuer != "" && CheckIssuer(in.Issuer) != "":
		return nil, unavailable("%s names an issuer that cannot be used: %s", f.Path, CheckIssuer(in.Issuer))
	}
	return &SignIn{
		Account: in.Account, Access: in.Access.Value, Refresh: in.Refresh.Value, ID: in.ID.Value,
		ExpiresAt: in.ExpiresAt, LastRefresh: in.LastRefresh, Issuer: in.Issuer,
	}, nil
}

// printable reports a text that may stand in a header.
func printable(text string) bool {
	for _, b := range []byte(text) {
		if b < '!' || b > '~' {
			return false
		}
	}
	return text != ""
}

// encode is the file's text. It is spelled out here since nothing else may turn
// the tokens into text.
func (s *SignIn) encode() []byte {
	b := []byte(`{"version":` + strconv.Itoa(fileVersion))
	for _, field := range []struct{ name, value string }{
		{"account_id", s.Account},
		{"access_token", s.Access.Reveal()},
		{"refresh_token", s.Refresh.Reveal()},
		{"id_token", s.ID.Reveal()},
	} {
		b = model.AppendString(append(b, `,"`+field.name+`":`...), field.value)
	}
	b = strconv.AppendInt(append(b, `,"expires_at":`...), s.ExpiresAt, 10)
	b = model.AppendString(append(b, `,"last_refresh":`...), s.LastRefresh.UTC().Format(time.RFC3339))
	if s.Issuer != "" {
		b = model.AppendString(append(b, `,"issuer":`...), s.Issuer)
	}
	return append(b, "}\n"...)
}

// Lock keeps every other writer of the file away until the lock is closed. It
// waits a minute at most for one that has it. The folder must exist.
func (f File) Lock(ctx context.Context) (*place.OwnerLock, error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		lock, err := place.Lock(f.Path+".lock", lockHeld)
		var held *place.Error
		if err == nil || !errors.As(err, &held) || held.Code != lockHeld {
			return lock, err
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("another process keeps %s.lock: %w", f.Path, context.Cause(ctx))
		}
	}
}

// Write replaces the file by one of s as one step: whoever reads it, after a
// crash too, finds the old sign-in or the new one, whole. The caller holds the
// lock. What a write that was cut off left behind is removed: it holds tokens.
func (f File) Write(s *SignIn) error {
	f.sweep()
	f.at("begin")
	temp, err := os.OpenFile(f.Path+"."+rand.Text()+".tmp", os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if err := fill(temp, s.encode()); err != nil {
		os.Remove(temp.Name())
		return err
	}
	f.at("written")
	if err := os.Rename(temp.Name(), f.Path); err != nil {
		os.Remove(temp.Name())
		return err
	}
	return place.SyncDir(filepath.Dir(f.Path))
}

func (f File) at(step string) {
	if f.step != nil {
		f.step(step)
	}
}

func fill(file *os.File, text []byte) error {
	defer file.Close()
	if err := file.Chmod(0o600); err != nil { // whatever the umask
		return err
	}
	if _, err := file.Write(text); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return file.Close()
}

// sweep removes the temporary files of writers that were killed.
func (f File) sweep() {
	left, err := filepath.Glob(globQuote(f.Path) + ".*.tmp")
	if err != nil {
		return
	}
	for _, path := range left {
		os.Remove(path)
	}
}

// globQuote spells a path so that Glob takes it for itself.
func globQuote(path string) string {
	var quoted []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[', '\\':
			quoted = append(quoted, '\\')
		}
		quoted = append(quoted, path[i])
	}
	return string(quoted)
}

// Remove deletes the sign-in and reports whether there was one. The caller
// holds the lock.
func (f File) Remove() (bool, error) {
	f.sweep()
	err := os.Remove(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, place.SyncDir(filepath.Dir(f.Path))
}

// same reports that two looks at the file's path saw one content: a writer
// always puts another file in its place.
func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() &&
		a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

// reason is an error without the path that the caller names already.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
