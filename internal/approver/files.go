package approver

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	maxFile      = 48 << 10 // a file that a call runs or names
	maxCallFiles = 16       // of one call
)

// The tools that write files.
const (
	toolWrite = "write"
	toolEdit  = "edit"
	toolPatch = "apply_patch"
)

// shownFile is a file that a call runs or names.
type shownFile struct {
	Path      string   `json:"path"`
	LinkTo    string   `json:"link_to,omitempty"` // what it leads to, when that is another path
	Content   *string  `json:"content,omitempty"`
	ChangedBy string   `json:"content_will_be_written_by,omitempty"`
	MayChange []string `json:"content_may_be_changed_by,omitempty"`
	State     string   `json:"state,omitempty"`
}

// filer finds the files that planned calls run, or that this turn wrote and they
// name.
type filer struct {
	a       *collecting
	written []string // the files that this turn wrote
	plans   []plan   // the calls before the one that is looked at
}

// of are the files of a call, or the reason for which it is denied on their
// account.
func (f *filer) of(p *plan) (list []shownFile, reason string) {
	s := f.scan(p)
	if s.tooMuch {
		return nil, tooLongToShow
	}
	var seen []string
	for _, c := range append(f.named(p, s.words), s.found...) {
		c.missing = c.program && !s.exists(c.word)
		for _, path := range s.paths(c.word) {
			if slices.Contains(seen, path) {
				continue
			}
			shown, ok, tooLarge := f.file(path, c)
			switch {
			case tooLarge:
				return nil, tooLargeToShow
			case !ok:
				continue
			case len(list) == maxCallFiles:
				return nil, tooLongToShow
			}
			seen = append(seen, path)
			list = append(list, shown)
		}
	}
	return list, ""
}

// scan looks through the scripts in a call's arguments.
func (f *filer) scan(p *plan) *scripts {
	s := newScripts(f.a.cwd, f.a.environ)
	var argv []string
	for i, t := range p.texts {
		if !runsText(t.key) {
			continue
		}
		if t.list == 0 {
			s.script(t.text, 0)
			continue
		}
		argv = append(argv, t.text)
		if i+1 == len(p.texts) || p.texts[i+1].list != t.list {
			s.command(argv, 0)
			argv = nil
		}
	}
	return s
}

// runsText reports whether a member of a call's arguments is a script to some
// tool.
func runsText(key string) bool {
	return slices.Contains([]string{"command", "cmd", "commands", "script", "if", "check", "chars", "args", "argv"}, strings.ToLower(key))
}

// named are the files this turn wrote that a call names: as a whole word in any
// text of it, or in one that a shell would make of it.
func (f *filer) named(p *plan, words []string) (list []candidate) {
	for _, path := range f.written {
		name := filepath.Base(path)
		in := func(text string) bool { return namesWord(text, name) }
		if slices.ContainsFunc(p.texts, func(t argument) bool { return in(t.text) }) || slices.ContainsFunc(words, in) {
			list = append(list, candidate{word: path, wrote: true})
		}
	}
	return list
}

// namesWord reports whether text holds name as a whole word: with no letter,
// digit, _, - or . on either side.
func namesWord(text, name string) bool {
	for from := 0; name != ""; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		at := from + i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(name):])
		if (at == 0 || !inWord(before)) && (at+len(name) == len(text) || !inWord(after)) {
			return true
		}
		from = at + 1
	}
	return false
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' || r == '.'
}

// file is a file as it is shown. ok is false for one that is not the bot's to
// write, or is not there. tooLarge says that the call cannot be judged without
// it, and it cannot be shown.
func (f *filer) file(path string, c candidate) (shown shownFile, ok, tooLarge bool) {
	shown.Path = f.a.code(path)
	for i := range f.plans {
		p := &f.plans[i]
		if slices.Contains(f.a.targets(p.tool, p.raw), path) {
			shown.ChangedBy = p.name
			if p.cut {
				return shown, false, true
			}
		}
	}
	if shown.ChangedBy != "" {
		return shown, true, false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && (c.wrote || c.missing && f.owns(path)) {
			shown.State = "is not there"
			return shown, true, false
		}
		return shown, false, false
	}
	if real != path {
		shown.LinkTo = f.a.code(real)
	}
	own := f.owns(real)
	must := c.wrote || own && !c.optional || !c.program && !c.optional && f.everywhere(real)
	switch {
	case must, f.everywhere(real), own:
	case f.owns(path) && real != path:
		shown.State = "a link to a file outside the folders that the agent writes"
		return shown, true, false
	default:
		return shown, false, false
	}
	return f.content(shown, real, must)
}

// content adds what a file holds. One that must be shown and cannot be is too
// large, whatever the reason is.
func (f *filer) content(shown shownFile, real string, must bool) (s shownFile, ok, tooLarge bool) {
	info, err := os.Lstat(real)
	if err == nil && info.IsDir() {
		return shown, false, false
	}
	text, whole, err := readRegularAt(real, maxFile, unix.O_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return shown, false, false
	}
	if err != nil || !whole {
		return shown, false, must
	}
	content := f.a.code(string(text))
	if len(content) > maxShownText {
		return shown, false, must
	}
	shown.Content = &content
	name := filepath.Base(real)
	for i := range f.plans {
		p := &f.plans[i]
		if slices.ContainsFunc(p.texts, func(t argument) bool { return runsText(t.key) && namesWord(t.text, name) }) {
			shown.MayChange = append(shown.MayChange, p.name)
		}
	}
	return shown, true, false
}

// owns reports whether a path lies in a folder that the bot writes.
func (f *filer) owns(path string) bool {
	return slices.ContainsFunc(f.a.roots, func(root string) bool { return isWithin(path, root) })
}

// systemFolders hold what no bot wrote.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/snap", "/System", "/Library", "/Applications", "/dev", "/proc"}

// everywhere reports whether a bot without a sandbox may have written a file.
func (f *filer) everywhere(path string) bool {
	if f.a.bot.Sandbox == readOnly || f.a.bot.Sandbox == workspaceWrite {
		return false
	}
	return !slices.ContainsFunc(systemFolders, func(folder string) bool { return isWithin(path, folder) })
}

func isWithin(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// readRegular is the beginning of a regular file, at most limit bytes of it, and
// whether that is all. It waits for nobody: a pipe is refused, not opened for
// reading.
func readRegular(path string, limit int) (text []byte, whole bool, err error) {
	return readRegularAt(path, limit, 0)
}

func readRegularAt(path string, limit, flags int) (text []byte, whole bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() {
		return nil, false, errors.New("not a regular file")
	}
	text, err = io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if len(text) > limit {
		return text[:limit], false, err
	}
	return text, true, err
}

// written are the files that this turn's calls have written, or are writing.
func (a *collecting) written() (list []string, err error) {
	for i := range a.prompts.Calls {
		c := &a.prompts.Calls[i]
		if c.Step != "" || c.Failed || !c.Done || !writes(c.Name) {
			continue
		}
		raw, err := a.promptArguments(c)
		if notOwn(err) != nil {
			return nil, err
		}
		for _, path := range a.targets(c.Name, raw) {
			if !slices.Contains(list, path) {
				list = append(list, path)
			}
		}
	}
	return list, nil
}

func writes(tool string) bool { return tool == toolWrite || tool == toolEdit || tool == toolPatch }

// targets are the paths that a call of a writing tool writes.
func (a *collecting) targets(tool, raw string) (list []string) {
	if !writes(tool) {
		return nil
	}
	var args struct {
		Path  string `json:"path"`
		Patch string `json:"patch"`
	}
	if json.Unmarshal([]byte(raw), &args) != nil {
		return nil
	}
	add := func(path string) {
		if path == "" {
			return
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.cwd, path)
		}
		list = append(list, filepath.Clean(path))
	}
	if tool != toolPatch {
		add(args.Path)
		return list
	}
	for line := range strings.SplitSeq(args.Patch, "\n") {
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), head); ok {
				add(strings.TrimSpace(path))
			}
		}
	}
	return list
}
