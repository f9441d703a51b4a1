package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agent/internal/place"
)

// Checkout is a checkout by its recorded places, real paths all.
type Checkout struct {
	Top    string
	GitDir string // its own git folder
	Common string // the repository's common git folder
}

// Guarded runs git on a checkout without its repository's own config, in which whoever
// may write that file can name a program: filters, drivers of merges and diffs, signers,
// editors, what a fetch runs. Git is given a common folder of ours instead, whose config
// is a copy of the settings that name none, and whose objects and refs lead to the
// repository's. What the person's own config says holds, so that a filter which that
// defines is run as ever. Nothing is fetched, and nothing is cleared up.
//
// To look for the programs and to switch them off by name would not do: the file can be
// another by the time that git reads it.
func (g Program) Guarded(ctx context.Context, o Options, c Checkout, args ...string) (string, error) {
	if err := c.Lost(); err != nil {
		return "", err
	}
	text, err := g.settings(ctx, c)
	if err != nil {
		return "", err
	}
	common, err := standIn(c.Common, text)
	if err != nil {
		return "", err
	}
	o.Own = false
	o.Env = append(slices.Clone(o.Env), "GIT_COMMON_DIR="+common, "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_EDITOR=:", "GIT_PAGER=cat")
	if o.Within == nil {
		o.Env = append(o.Env, "GIT_OPTIONAL_LOCKS=0") // what only looks writes nothing
	}
	quiet := []string{"-c", "gc.auto=0", "-c", "maintenance.auto=false", "--git-dir=" + c.GitDir, "--work-tree=" + c.Top}
	return g.With(ctx, o, c.Top, append(quiet, args...)...)
}

// maxConfig bounds a repository's config, in bytes.
const maxConfig = 1 << 20

// A setting is one entry of a config: the section and the name in small letters.
type setting struct {
	key   string
	value string
	bare  bool // it has no value, and is true
}

// settings is the config that stands in for a checkout's.
func (g Program) settings(ctx context.Context, c Checkout) (string, error) {
	all, err := g.entries(ctx, filepath.Join(c.Common, "config"))
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(all, func(s setting) bool { return s.key == "extensions.worktreeconfig" && s.value != "false" }) {
		more, err := g.entries(ctx, filepath.Join(c.GitDir, "config.worktree"))
		if err != nil {
			return "", err
		}
		all = append(all, more...)
	}
	var text strings.Builder
	for _, s := range all {
		if harmless(s.key) {
			s.write(&text)
		}
	}
	return text.String(), nil
}

// Programs are those settings of a repository's config by which a checkout or a merge
// would run a program over its files, and includes, which may hold more of them. Their
// order is the file's.
func (g Program) Programs(ctx context.Context, c Checkout) (keys []string, err error) {
	for _, path := range []string{filepath.Join(c.Common, "config"), filepath.Join(c.GitDir, "config.worktree")} {
		all, err := g.entries(ctx, path)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			section, _, name := parts(s.key)
			if section == "filter" && name != "required" || section == "merge" && name == "driver" || section == "include" || section == "includeif" {
				keys = append(keys, s.key)
			}
		}
	}
	return keys, nil
}

// entries reads a config file; none where it is not there. Nothing that it includes is
// read, and nothing is run.
func (g Program) entries(ctx context.Context, path string) (all []setting, err error) {
	text, err := place.ReadRegular(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parsed.of(text, func() ([]setting, error) {
		o := Options{Input: bytes.NewReader(text), Env: []string{"GIT_DIR=" + os.DevNull}}
		out, err := g.With(ctx, o, "/", "config", "--file", "-", "--no-includes", "--list", "-z")
		if err != nil {
			return nil, errors.New(path + " cannot be read: " + err.Error())
		}
		for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
			if key, value, has := strings.Cut(entry, "\n"); key != "" {
				all = append(all, setting{key, value, !has})
			}
		}
		return all, nil
	})
}

// parsed keeps what was read of the newest configs, by their text.
var parsed configs

type configs struct {
	mu sync.Mutex
	by map[[sha256.Size]byte][]setting
}

// maxParsed bounds how many are kept.
const maxParsed = 64

func (c *configs) of(text []byte, parse func() ([]setting, error)) ([]setting, error) {
	sum := sha256.Sum256(text)
	c.mu.Lock()
	all, known := c.by[sum]
	c.mu.Unlock()
	if known {
		return all, nil
	}
	all, err := parse()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil || len(c.by) >= maxParsed {
		c.by = map[[sha256.Size]byte][]setting{}
	}
	c.by[sum] = all
	return all, nil
}

// parts are a key's section, what stands between, and its name.
func parts(key string) (section, sub, name string) {
	section, rest, _ := strings.Cut(key, ".")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		return section, rest[:i], rest[i+1:]
	}
	return section, "", rest
}

// kept are the names that are copied, by their sections. All of them say what files and
// refs are like; a name that is not here, such as one that git gets after this was
// written, is left out.
var kept = map[string][]string{
	"core": {
		"repositoryformatversion", "filemode", "symlinks", "ignorecase", "precomposeunicode", "protecthfs", "protectntfs",
		"autocrlf", "eol", "safecrlf", "checkstat", "trustctime", "quotepath", "excludesfile", "abbrev", "bigfilethreshold",
		"logallrefupdates", "sharedrepository", "sparsecheckout", "sparsecheckoutcone", "whitespace",
	},
	"branch": {"remote", "merge"},
	"remote": {"url", "fetch"},
	"user":   {"name", "email"},
	"merge":  {"conflictstyle", "renames", "renamelimit"},
	"diff":   {"renames", "renamelimit", "algorithm"},
	"index":  {"version", "sparse"},
	"i18n":   {"commitencoding"},
}

// harmless reports whether a setting names no program. Of the extensions all are kept, so
// that git refuses a repository whose format it does not know, but for the two by which
// it would read a further config or fetch what is missing.
func harmless(key string) bool {
	section, _, name := parts(key)
	if section == "extensions" {
		return name != "worktreeconfig" && name != "partialclone"
	}
	return slices.Contains(kept[section], name)
}

// write adds the setting as a config file has it.
func (s *setting) write(text *strings.Builder) {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)
	section, sub, name := parts(s.key)
	text.WriteString("[" + section)
	if sub != "" {
		text.WriteString(` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub) + `"`)
	}
	text.WriteString("]\n\t" + name)
	if !s.bare {
		text.WriteString(` = "` + quote.Replace(s.value) + `"`)
	}
	text.WriteString("\n")
}

// shared are what a common folder of ours leads to in the repository's.
var shared = []string{"objects", "refs", "packed-refs", "reftable", "logs", "info", "shallow", "worktrees"}

// maxStandIns bounds how many common folders are kept; the oldest go.
const maxStandIns = 256

// standIn is the common folder for a repository and a config, below ~/.agent, where no
// agent writes. It is made once and has the name of what is in it.
func standIn(common, text string) (string, error) {
	agent, err := place.MakeAgentDir()
	if err != nil {
		return "", err
	}
	all := filepath.Join(agent, "git")
	sum := sha256.Sum256([]byte(common + "\x00" + text))
	dir := filepath.Join(all, hex.EncodeToString(sum[:16]))
	if have, _, err := place.ReadOwn(filepath.Join(dir, "config"), 2*maxConfig); err == nil && string(have) == text {
		return dir, nil
	}
	if err := place.MakePrivateDir(all); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(all, ".new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	for _, name := range shared {
		if err := os.Symlink(filepath.Join(common, name), filepath.Join(fresh, name)); err != nil {
			return "", err
		}
	}
	if err := place.WritePrivate(filepath.Join(fresh, "config"), []byte(text)); err != nil {
		return "", err
	}
	err = os.Rename(fresh, dir)
	if errors.Is(err, fs.ErrExist) {
		return dir, nil // another made the same meanwhile
	}
	dropOldest(all)
	return dir, err
}

// dropOldest keeps the common folders within their number.
func dropOldest(all string) {
	entries, err := os.ReadDir(all)
	if err != nil || len(entries) <= maxStandIns {
		return
	}
	made := func(e os.DirEntry) int64 {
		if info, err := e.Info(); err == nil {
			return info.ModTime().UnixNano()
		}
		return 0
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int {
		if made(a) < made(b) {
			return -1
		}
		return 1
	})
	for _, e := range entries[:len(entries)-maxStandIns] {
		_ = os.RemoveAll(filepath.Join(all, e.Name()))
	}
}
