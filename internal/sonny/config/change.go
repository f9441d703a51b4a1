package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"agent/internal/place"
	"agent/protocol"
)

// Set puts a setting into a config.toml, which is made when missing: value as a person
// types it, TOML or a bare text. Comments, order and every other byte stay; the file is
// 0600 afterwards. Errors: usage for a key that is none or a value that is none of its;
// config_secret_refused for a value that looks like a secret; config_invalid for a file
// that cannot be read, or in which the setting has no place; and what further readers
// find wrong with the setting, as usage.
func Set(path, name, value string, further Reader) error {
	parts, v, err := read(name, value)
	if err != nil {
		return err
	}
	_, err = change(path, func(d *document) ([]byte, error) {
		text := d.set(parts, literal(v))
		if text == nil {
			return nil, invalidf("%s has no place for %s that leaves the rest as it is; use sonny config edit", path, name)
		}
		without, _ := d.unset(parts)
		return text, further.worseText(path, without, text)
	})
	return err
}

// Typed is what was typed, read as a value of a setting. Its errors are those of Takes.
func Typed(name, value string) (any, error) {
	_, v, err := read(name, value)
	return v, err
}

// Takes reports why Set would refuse a setting whatever its file; nil where it would not.
func Takes(name, value string) error {
	_, err := Typed(name, value)
	return err
}

// read gives a setting's key in parts and what was typed as a value of it.
func read(name, value string) (parts []string, v any, err error) {
	if parts = ParseKey(name); parts == nil {
		return nil, nil, Unknown(name)
	}
	k := find(parts)
	if refusedSecret(k, parts, value) {
		return nil, nil, secretRefused(name)
	}
	if k == nil {
		return nil, nil, Unknown(name)
	}
	v, ok := k.typed(value)
	if !ok {
		return nil, nil, failf(protocol.UsageError, "%s%s must be %s", name, shown(value), k.Must())
	}
	if refusedSecret(k, parts, v) {
		return nil, nil, secretRefused(name)
	}
	return parts, v, nil
}

// Unset takes a setting out of a config.toml, or all settings of a table such as
// mcp_servers.NAME, and reports whether there was one. A key need not be known.
// Errors: usage for a text that is no key, and those of Set for the file and of further,
// which looks at what holds then.
func Unset(path, name string, further Reader) (bool, error) {
	parts := ParseKey(name)
	if parts == nil {
		return false, failf(protocol.UsageError, "%s is no key", name)
	}
	return change(path, func(d *document) ([]byte, error) {
		text, there := d.unset(parts)
		if there && text == nil {
			return nil, invalidf("%s cannot be taken out of %s without touching the rest; use sonny config edit", name, path)
		}
		return text, further.worseText(path, d.text, text)
	})
}

// change replaces a config.toml by what edit makes of it, if that is another text.
func change(path string, edit func(*document) ([]byte, error)) (bool, error) {
	return rewrite(path, func() ([]byte, []byte, error) {
		file, err := readConfig(path)
		if err != nil {
			return nil, nil, err
		}
		var old []byte
		if file != nil {
			old = file.data
		}
		d, err := parse(old)
		if err != nil {
			return nil, nil, invalidf("%s: %w; use sonny config edit", path, err)
		}
		now, err := edit(d)
		if err == nil && len(now) > MaxSize {
			err = invalidf("%s would be longer than %d bytes", path, MaxSize)
		}
		return old, now, err
	})
}

// rewrite replaces a file by what edit gives, under its folder's lock, and reports
// whether it did: an unchanged file is left alone, unless others may read it.
func rewrite(path string, edit func() (old, now []byte, err error)) (bool, error) {
	if err := makeFolder(path); err != nil {
		return false, err
	}
	lock, err := place.LockDir(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	defer lock.Close()
	old, now, err := edit()
	if err != nil {
		return false, err
	}
	if bytes.Equal(old, now) && private(path) {
		return false, nil
	}
	return !bytes.Equal(old, now), place.WritePrivate(path, now)
}

// private reports whether a file is closed to others, or not there.
func private(path string) bool {
	info, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm() == 0o600
}

// makeFolder makes the folder of a file of Sonny's: ~/.agent, or a folder in it.
func makeFolder(path string) error {
	dir := filepath.Dir(path)
	agent, err := place.AgentDir()
	if err != nil || dir != agent && filepath.Dir(dir) != agent {
		return err
	}
	if _, err := place.MakeAgentDir(); err != nil || dir == agent {
		return err
	}
	return place.MakePrivateDir(dir)
}

// Replace puts a whole text in the place of a config.toml that still reads old. It is
// for a person's editor. Errors: config_invalid for a text that is no TOML or has a
// wrong value of a confining key, config_secret_refused for one with a secret, and
// config_invalid when the file has changed since.
func Replace(path string, old, now []byte) error {
	if err := Check(path, now); err != nil {
		return err
	}
	_, err := rewrite(path, func() ([]byte, []byte, error) {
		file, err := readConfig(path)
		switch {
		case err != nil:
			return nil, nil, err
		case file == nil && len(old) > 0, file != nil && !bytes.Equal(file.data, old):
			return nil, nil, invalidf("%s was changed by somebody else meanwhile", path)
		}
		return old, now, nil
	})
	return err
}

// Check reads a text as if it were the config.toml at path.
func Check(path string, text []byte) error {
	if len(text) > MaxSize {
		return invalidf("%s would be longer than %d bytes", path, MaxSize)
	}
	d, err := parse(text)
	if err != nil {
		return invalidf("%s: %w", path, err)
	}
	r := newResolver()
	f := fileWalk{resolver: r, path: path, doc: d}
	f.table(nil, d.tree)
	r.check(fill(r.settings()))
	if r.leak != nil {
		return r.leak
	}
	return firstOf(r.faults)
}

// Text is what a config.toml holds, nil when there is none. Errors: config_invalid.
func Text(path string) ([]byte, error) {
	file, err := readConfig(path)
	if file == nil {
		return nil, err
	}
	return file.data, nil
}

// Stamp tells one state of a file from another.
type Stamp struct{ info os.FileInfo } // nil: missing

// StampOf is a file's state now. What cannot be looked at counts as missing.
func StampOf(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{}
	}
	return Stamp{info}
}

// Changed reports whether a file is another than it was, and its state now. It costs
// one look at the file; whoever has a moment for it calls it (each prompt sent, and
// every 10 s in the companions).
func Changed(path string, since Stamp) (Stamp, bool) {
	now := StampOf(path)
	if now.info == nil || since.info == nil {
		return now, now.info != since.info
	}
	same := os.SameFile(now.info, since.info) && now.info.Size() == since.info.Size() && now.info.ModTime().Equal(since.info.ModTime())
	return now, !same
}
