package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"agent/internal/place"
	"agent/internal/secret"
	"agent/protocol"
)

// file reads config.toml.
func (r *resolver) file(path string) error {
	text, err := readConfig(path)
	if err != nil || text == nil {
		return err
	}
	if mode := text.mode; mode&0o077 != 0 {
		r.notice("", "%s may be read by others (mode %04o); run: chmod 600 %s", path, mode, path)
	}
	d, err := parse(text.data)
	if err != nil {
		return invalidf("%s: %w", path, err)
	}
	f := fileWalk{resolver: r, path: path, doc: d}
	f.table(nil, d.tree)
	return nil
}

type fileText struct {
	data []byte
	mode fs.FileMode
}

// readConfig is the file's text, nil when there is none.
func readConfig(path string) (*fileText, error) {
	data, mode, err := place.ReadOwn(path, MaxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, invalidf("%w", err)
	case mode&0o022 != 0:
		return nil, invalidf("%s may be written by others (mode %04o), who could widen what bots may do; look through it, then: chmod 600 %s", path, mode, path)
	}
	return &fileText{data, mode}, nil
}

// fileWalk goes through the tables of one file.
type fileWalk struct {
	*resolver
	path string
	doc  *document
}

func (f *fileWalk) table(above []string, table map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		parts := append(slices.Clone(above), name)
		value := table[name]
		k := find(parts)
		below, isMap := value.(map[string]any)
		switch {
		case k != nil:
			f.value(k, parts, value)
		case isTable(parts) && isMap:
			f.table(parts, below)
		case isTable(parts):
			f.wrong(parts, confiningTable(parts), KeyText(parts)+" must be a table")
		default:
			f.unknown(parts, value)
		}
	}
}

// confiningTable reports whether a table holds confining keys.
func confiningTable(parts []string) bool {
	return slices.ContainsFunc(Keys, func(k *Key) bool { return len(k.parts) > len(parts) && k.begins(parts) && k.Confining() })
}

// value takes one setting of the file in.
func (f *fileWalk) value(k *Key, parts []string, value any) {
	name := KeyText(parts)
	taken, ok := k.kind.take(value)
	switch {
	case !ok && refusedSecret(k, parts, value):
		f.secret(parts)
		fallthrough // what it confines is no less wrong
	case !ok:
		f.wrong(parts, k.Confining(), fmt.Sprintf("%s%s must be %s", name, shown(value), k.Must()))
	case refusedSecret(k, parts, value):
		f.secret(parts)
	case k.Same != "" && f.has(append(slices.Clone(parts[:len(parts)-1]), k.Same)):
		f.wrong(parts, k.Confining(), fmt.Sprintf("%s is %s under another name; keep one of the two", name, k.Same))
	default:
		f.hold(Setting{Key: k, Name: name, Value: value, From: FromConfig, parts: parts, taken: taken})
	}
}

func (f *fileWalk) has(parts []string) bool {
	_, there := lookup(f.doc.tree, parts)
	return there
}

// shown is a wrong value for an error, where it is short and no secret.
func shown(value any) string {
	s, ok := value.(string)
	if !ok || len(s) > 64 || secret.SecretForm(s) || secret.SecretDense(s) {
		return ""
	}
	return " is " + quote(s) + " and"
}

// wrong is a value that does not check.
func (f *fileWalk) wrong(parts []string, confining bool, what string) {
	what = f.where(parts) + what
	if !confining {
		f.notice(KeyText(parts), "%s; the default holds", what)
		return
	}
	e := protocol.Fail(protocol.ConfigInvalid, what)
	f.faults = append(f.faults, e)
	f.turnOff(parts, e)
}

// secret is a secret in the file: it is not taken in, the person is told, and a server
// that has it is off.
func (f *fileWalk) secret(parts []string) {
	name := KeyText(parts)
	e := protocol.Fail(SecretRefused, f.where(parts)+name+" holds what looks like a secret; put it in ~/.agent/env (sonny env set NAME) and name the variable here")
	f.tell(SecretValue, name, "%s", e.Detail)
	if f.leak == nil {
		f.leak = e
	}
	f.turnOff(parts, e)
}

func (f *fileWalk) unknown(parts []string, value any) {
	name := KeyText(parts)
	if refusedSecret(nil, parts, value) {
		f.secret(parts)
		return
	}
	if len(f.notices) >= maxNoticed && ownTable(parts) == "" {
		f.more++ // without a search for what was meant
		return
	}
	what := f.where(parts) + name + " is no setting"
	if near := nearest(name); near != "" {
		what += "; did you mean " + near + "?"
	}
	f.tell(UnknownKey, name, "%s", what)
	f.turnOff(parts, protocol.Fail(protocol.ConfigInvalid, what))
}

// where is the file, and the line that a setting stands on.
func (f *fileWalk) where(parts []string) string {
	if n := f.doc.lineOf(parts); n > 0 {
		return fmt.Sprintf("%s:%d: ", f.path, n)
	}
	return f.path + ": "
}

// ownTable is the name of the server's or the source's table that a setting stands in,
// or "".
func ownTable(parts []string) string {
	for _, family := range []string{"mcp_servers", "lookout.sources"} {
		if n := strings.Count(family, ".") + 1; len(parts) > n && strings.Join(parts[:n], ".") == family {
			return KeyText(parts[:n+1])
		}
	}
	return ""
}

func (r *resolver) turnOff(parts []string, why *protocol.Error) {
	if t := ownTable(parts); t != "" && r.off[t] == nil {
		r.off[t] = why
	}
}

// refusedSecret reports whether a value of the person's must not stand in config.toml.
// k is nil for an unknown key.
func refusedSecret(k *Key, parts []string, value any) bool {
	last := parts[len(parts)-1]
	free := k == nil || k.kind.free
	named := k == nil && ownTable(parts) != "" || k != nil && free && isPlaceholder(k.parts[len(k.parts)-1])
	for _, text := range textsOf(value) {
		if text != "" && (named && secret.SecretName(last) || secret.SecretForm(text) || free && secret.SecretDense(text)) {
			return true
		}
	}
	return false
}

func textsOf(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, item := range v {
			out = append(out, textsOf(item)...)
		}
		return out
	}
	return nil
}

func secretRefused(name string) error {
	return failf(SecretRefused, "the value of %s looks like a secret, and config.toml holds none; put it in ~/.agent/env with sonny env set NAME", name)
}
