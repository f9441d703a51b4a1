package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"agent/client"
	"agent/client/envfile"
	"agent/client/termsafe"
	"agent/internal/secret"
	"agent/internal/sonny/setup"
)

// discretion keeps what doctor prints free of secrets, of what a terminal acts on, and
// of paths outside the home. A report is made to be shown to others.
type discretion struct {
	redactor *secret.Redactor
	homes    []string // as HOME spells it, and its real path
	known    []known  // paths outside of it that may hold blanks, the longest first
}

// known is a path, and what finds it with all that lies below.
type known struct {
	path  string
	below *regexp.Regexp
}

// maxText bounds a line of the report, in characters.
const maxText = 600

func newDiscretion(o *Options, vars []envfile.Var, environ []string) *discretion {
	values := &secret.Values{}
	add := func(name, value string) { values.Add(secret.Named{Name: name, Value: secret.NewValue(value)}) }
	keys := client.KeyVariables(client.ImpliedProviders(environ))
	for _, p := range setup.Providers() {
		keys = append(keys, p.Variable)
	}
	for _, v := range vars {
		if secret.SecretName(v.Name) || slices.Contains(keys, v.Name) {
			add(v.Name, v.Value)
		}
	}
	for _, entry := range append(slices.Clone(o.Environ), environ...) {
		if name, value, ok := strings.Cut(entry, "="); ok && (secret.SecretName(name) || slices.Contains(keys, name)) {
			add(name, value)
		}
	}
	d := &discretion{redactor: secret.NewRedactor(values)}
	for _, home := range []string{o.Home, envfile.Get(o.Environ, "HOME")} {
		if home = filepath.Clean(home); filepath.IsAbs(home) && home != "/" && !slices.Contains(d.homes, home) {
			d.homes = append(d.homes, home)
		}
	}
	for _, path := range []string{o.Folder, o.Repo.Top, o.Repo.Common, o.Reach.Target.Store, o.Reach.Target.Socket, o.ConfigPath, o.Agent, os.TempDir()} {
		if filepath.IsAbs(path) && path != "/" && d.tilde(path) == path {
			d.known = append(d.known, known{path, regexp.MustCompile(regexp.QuoteMeta(path) + `(?:/` + inPath + `*)?`)})
		}
	}
	slices.SortFunc(d.known, func(a, b known) int { return len(b.path) - len(a.path) })
	return d
}

// text is a text that may be printed: one line.
func (d *discretion) text(s string) string {
	s = string(d.redactor.Bytes([]byte(s)))
	for _, home := range d.homes {
		s = replacePath(s, home, "~")
	}
	for _, k := range d.known {
		s = k.below.ReplaceAllStringFunc(s, outside)
	}
	s = absolute.ReplaceAllStringFunc(s, func(found string) string {
		at := strings.IndexByte(found, '/')
		return found[:at] + outside(found[at:])
	})
	s = termsafe.OneLine(s)
	if runes := []rune(s); len(runes) > maxText {
		s = string(runes[:maxText]) + "…"
	}
	return s
}

// tilde is a path in the home as people write it; another as it is.
func (d *discretion) tilde(path string) string {
	for _, home := range d.homes {
		if path == home {
			return "~"
		}
		if below, ok := strings.CutPrefix(path, home+"/"); ok {
			return "~/" + below
		}
	}
	return path
}

// outside stands for a path outside the home: its last name alone.
func outside(path string) string {
	name := filepath.Base(path)
	if name == "/" || name == "." {
		return "/"
	}
	return "…/" + name
}

// absolute finds a path that begins at the root.
var absolute = regexp.MustCompile("(?:^|[\\s\"'`(\\[{<=:,;|])/[^/\\s\"'`:;,)\\]}>|]" + inPath + "*")

// inPath is a character that goes on with a path.
const inPath = "[^\\s\"'`:;,)\\]}>|]"

// replacePath replaces a path where it stands whole or begins a longer one.
func replacePath(s, path, with string) string {
	var b strings.Builder
	for {
		at := strings.Index(s, path)
		if at < 0 {
			return b.String() + s
		}
		after := s[at+len(path):]
		begins := at == 0 || !pathByte(s[at-1])
		if begins && ends(after) {
			b.WriteString(s[:at] + with)
		} else {
			b.WriteString(s[:at+len(path)])
		}
		s = after
	}
}

// ends reports whether a path has ended where this follows it, or a name below it does.
func ends(after string) bool {
	switch {
	case after == "" || after[0] == '/':
		return true
	case after[0] == '.': // of a sentence, or of a longer name
		return len(after) == 1 || !pathByte(after[1])
	}
	return !pathByte(after[0])
}

// pathByte reports whether a byte may go on with a path's name.
func pathByte(c byte) bool {
	return c == '-' || c == '_' || c == '/' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= 0x80
}
