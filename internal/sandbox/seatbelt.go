package sandbox

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"agent/protocol"
)

// sandboxExec is the one program that confines on macOS. It is never looked for
// elsewhere.
const sandboxExec = "/usr/bin/sandbox-exec"

//go:embed seatbelt_base.sbpl
var seatbeltBase string

//go:embed seatbelt_network.sbpl
var seatbeltNetwork string

// profile is a Seatbelt profile under construction. Its text holds no path: each
// stands behind a parameter, so that no path can be read as a rule.
type profile struct {
	plan   *Plan
	text   strings.Builder
	params []param
	of     map[string]string // path → the parameter that stands for it
	groups []nameGroup
}

type param struct{ name, value string }

// newProfile is the profile of a plan, in the order of sandbox.md 5: base, reads,
// writes, network, and last what is denied whatever came before. Later rules win,
// but it is reported that an allow made of require-all can beat a later plain
// denial; so what is protected is left out of the allow too. cacheDir is the
// person's DARWIN_USER_CACHE_DIR, "" for none.
//
// All it reads are the paths of the Unix sockets that a bot may reach.
func newProfile(p *Plan, cacheDir string) *profile {
	s := &profile{plan: p, of: map[string]string{}}
	s.text.WriteString(seatbeltBase)
	s.reads()
	s.writes()
	s.network(cacheDir)
	s.section("Whatever came before.")
	if s.writable() || s.of[cacheDir] != "" {
		s.denyWrites()
	}
	s.denySockets()
	return s
}

func (s *profile) section(title string) { fmt.Fprintf(&s.text, "\n; %s\n", title) }

func (s *profile) rule(format string, args ...any) { fmt.Fprintf(&s.text, format+"\n", args...) }

// bind makes name stand for a value.
func (s *profile) bind(name, value string) string {
	s.params = append(s.params, param{name, value})
	return name
}

// path is the parameter that stands for a path: the one it has, or PREFIX_n.
func (s *profile) path(prefix string, n int, path string) string {
	if s.of[path] == "" {
		s.of[path] = s.bind(fmt.Sprintf("%s_%d", prefix, n), path)
	}
	return s.of[path]
}

// both are the two filters that name a path and what lies below it. Each counts:
// the second alone lets a folder itself be created.
func both(name string) []string {
	return []string{fmt.Sprintf("(literal (param %q))", name), fmt.Sprintf("(subpath (param %q))", name)}
}

func not(filters []string) (negated []string) {
	for _, f := range filters {
		negated = append(negated, "(require-not "+f+")")
	}
	return negated
}

// all is the filter of what fits every one.
func all(filters ...string) string {
	if len(filters) == 1 {
		return filters[0]
	}
	return "(require-all\n    " + strings.Join(filters, "\n    ") + ")"
}

// reads allows reading everything but what is hidden.
func (s *profile) reads() {
	s.section("Reads.")
	filters := []string{`(subpath "/")`}
	var walls []string
	for i, wall := range s.walls() {
		name := s.path("WALL", i, wall)
		walls = append(walls, name)
		filters = append(filters, not(both(name))...)
	}
	s.rule("(allow file-read*\n  %s)", all(filters...))
	for _, name := range walls {
		s.rule("(allow file-read-metadata (literal (param %q)))", name)
	}
}

// walls are the hidden folders, wherever the machine shows them.
func (s *profile) walls() []string {
	walls := slices.Clone(s.plan.World.Walls)
	for _, h := range s.plan.Hidden {
		if h.Kind == HiddenWall && !slices.Contains(walls, h.Path) {
			walls = append(walls, h.Path)
		}
	}
	return walls
}

func (s *profile) writable() bool { return s.plan.Mode == protocol.SandboxWorkspace }

// roots are the writable folders in the order of the entries: a deeper one after
// what lies around it.
func (s *profile) roots() (roots []string) {
	for _, e := range s.plan.Entries {
		if e.Kind == Writable {
			roots = append(roots, e.Path)
		}
	}
	return roots
}

// writes allows writing in each root, less what is protected in it.
func (s *profile) writes() {
	s.section("Writes.")
	if !s.writable() {
		return
	}
	s.groups = s.plan.nameGroups()
	for i, root := range s.roots() {
		s.allowWrites(fmt.Sprintf("WRITE_%d", i), root)
	}
}

// allowWrites allows writing in a folder, less what is protected in it.
func (s *profile) allowWrites(name, root string) {
	s.of[root] = s.bind(name, root)
	filters := []string{fmt.Sprintf("(subpath (param %q))", name)}
	for i, path := range s.protected(root) {
		kept := s.bind(fmt.Sprintf("%s_NOT_%d", name, i), path)
		filters = append(filters, not(both(kept))...)
	}
	for i := range s.groups {
		g := &s.groups[i]
		if !within(g.dir, root) {
			continue
		}
		if g.param == "" {
			g.param = s.bind(fmt.Sprintf("NAMES_%d", i), g.regex())
		}
		filters = append(filters, fmt.Sprintf("(require-not (regex (param %q)))", g.param))
	}
	s.rule("(allow file-write*\n  %s)", all(filters...))
}

// protected are the paths below root that its rule must leave out.
func (s *profile) protected(root string) (paths []string) {
	add := func(path string) {
		if below(path, root) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for _, e := range s.plan.Entries {
		switch e.Kind {
		case ReadOnly, AbsentFolder, AbsentFile, Walled:
			add(e.Path)
		case Writable, Pinned:
		}
	}
	for _, path := range slices.Concat(s.walls(), s.guarded()) {
		add(path)
	}
	return paths
}

// guarded is what no command writes, there or not, less what is a root.
func (s *profile) guarded() (paths []string) {
	dirs, files := s.plan.guarded()
	roots := s.roots()
	for _, path := range slices.Concat(dirs, files) {
		if path != "" && !slices.Contains(paths, path) && !slices.Contains(roots, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// denyWrites denies renaming and removing what a nested path hangs on, then all
// writing in what is protected everywhere.
//
// The first goes for each root, for one that lies in no other too: from one root
// into another it could be moved away from under its rule.
func (s *profile) denyWrites() {
	pins := 0
	for _, e := range s.plan.Entries {
		switch e.Kind {
		case Writable:
			s.rule("(deny file-write-unlink (literal (param %q)))", s.of[e.Path])
		case Pinned:
			s.rule("(deny file-write-unlink (literal (param %q)))", s.path("PIN", pins, e.Path))
			pins++
		case ReadOnly, AbsentFolder, AbsentFile, Walled:
		}
	}
	for i, path := range s.guarded() {
		var deeper []string
		for _, root := range s.roots() {
			if below(root, path) {
				deeper = append(deeper, not(both(s.of[root]))...)
			}
		}
		for _, filter := range both(s.path("DENY", i, path)) {
			s.rule("(deny file-write* %s)", all(append([]string{filter}, deeper...)...))
		}
	}
	s.rule("(deny file-write-setugid)")
}

// network allows what the setting says; without any rule everything is refused,
// Unix sockets and the host's loopback too.
func (s *profile) network(cacheDir string) {
	s.section("Network.")
	switch s.plan.Class {
	case Closed:
	case Unix:
		s.sockets()
	case Open:
		s.text.WriteString(seatbeltNetwork)
		if cacheDir != "" {
			s.allowWrites("DARWIN_USER_CACHE_DIR", cacheDir)
		}
	}
}

// sockets allows the Unix sockets that the bot may reach with the network off.
// One that is named may be a folder.
func (s *profile) sockets() {
	var allowed []string
	for _, path := range s.plan.UnixSockets {
		real, ok := resolved(path)
		if ok && !slices.Contains(allowed, real) && !s.concealed(real) {
			allowed = append(allowed, real)
		}
	}
	if len(allowed) == 0 {
		return
	}
	s.rule("(allow system-socket (socket-domain AF_UNIX))")
	for i, path := range allowed {
		for _, filter := range both(s.bind(fmt.Sprintf("SOCK_%d", i), path)) {
			s.rule("(allow network-outbound (remote unix-socket %s))", filter)
			s.rule("(allow network-bind (local unix-socket %s))", filter)
		}
	}
}

// concealed reports whether a socket is the daemon's, another bot's or walled.
func (s *profile) concealed(path string) bool {
	return path != s.plan.BotSocket && slices.ContainsFunc(s.hidden(), func(h Hidden) bool { return within(path, h.Path) })
}

// hidden are the sockets and folders of sockets that no command reaches, there or
// not: a socket may appear while a command runs.
func (s *profile) hidden() (hidden []Hidden) {
	w := s.plan.World
	known := []Hidden{{w.Socket, HiddenSocket}, {w.SocketDir, HiddenSockets}, {w.FallbackDir, HiddenSockets}}
	for _, h := range slices.Concat(known, walled(w.Walls), s.plan.Hidden) {
		if h.Path != "" && !slices.Contains(hidden, h) {
			hidden = append(hidden, h)
		}
	}
	return hidden
}

// denySockets denies connecting to what is hidden, and listening there. To deny
// the file is not enough: connecting is an operation of the network.
func (s *profile) denySockets() {
	for i, h := range s.hidden() {
		for _, filter := range both(s.path("HIDE", i, h.Path)) {
			remote := []string{"(remote unix-socket " + filter + ")"}
			if own := s.plan.BotSocket; own != "" && below(own, h.Path) && h.Kind == HiddenSockets {
				remote = append(remote, fmt.Sprintf("(require-not (remote unix-socket (literal (param %q))))", s.path("BOT_SOCKET", 0, own)))
			}
			s.rule("(deny network-outbound %s)", all(remote...))
			s.rule("(deny network-bind (local unix-socket %s))", filter)
		}
	}
}

// nameGroup are names at the top of a folder that are protected however they are
// spelt: the file system may fold case.
type nameGroup struct {
	dir   string
	names []string
	more  string // a regular expression of further names
	param string // "" until a rule names it
}

// above7F is a byte above 0x7F, the zero byte being none that a path can hold.
const above7F = "[^\x01-\x7f]"

// Folding turns some letters beyond ASCII into letters of a protected name: the
// last of .agentſ is an s. Beside a .git only names with a dot could be meant; in
// a git folder no name of git's own holds such a letter.
const (
	moreDotNames = `\.[^/]*` + above7F + "[^/]*"
	moreNames    = "[^/]*" + above7F + "[^/]*"
)

// nameGroups are the protected names of a plan by folder.
func (p *Plan) nameGroups() (groups []nameGroup) {
	at := map[string]int{}
	group := func(dir string) *nameGroup {
		if _, there := at[dir]; !there {
			at[dir] = len(groups)
			groups = append(groups, nameGroup{dir: dir})
		}
		return &groups[at[dir]]
	}
	for _, e := range p.Entries {
		if e.Root == "" {
			continue
		}
		g := group(e.Root)
		name := filepath.Base(e.Path)
		g.names = append(g.names, name)
		switch {
		case !strings.HasPrefix(name, "."):
			g.more = moreNames
		case g.more == "":
			g.more = moreDotNames
		}
	}
	_, files := p.guarded()
	for _, path := range files {
		g := group(filepath.Dir(path))
		g.names = append(g.names, filepath.Base(path))
	}
	for i := range groups {
		if g := &groups[i]; g.more == moreDotNames && !slices.Contains(g.names, ".git") && !p.isRoot(g.dir+"/.git") {
			g.names = append(g.names, ".git") // one that the call sees read-only
		}
	}
	return groups
}

// respelt reports whether a path, which lies in a root, goes through a protected
// name of it in any spelling.
func (p *Plan) respelt(path string) bool {
	root := ""
	for _, e := range p.Entries { // sorted by depth: the last is the nearest
		if e.Kind == Writable && within(path, e.Path) {
			root = e.Path
		}
	}
	return slices.ContainsFunc(p.nameGroups(), func(g nameGroup) bool {
		return within(g.dir, root) && regexp.MustCompile(g.regex()).MatchString(path)
	})
}

func (p *Plan) isRoot(path string) bool {
	return slices.ContainsFunc(p.Entries, func(e Entry) bool { return e.Path == path && e.Kind == Writable })
}

// regex fits the names in either letter case and what lies below them.
func (g *nameGroup) regex() string {
	var alternatives []string
	for _, name := range g.names {
		alternatives = append(alternatives, eitherCase(name))
	}
	if g.more != "" {
		alternatives = append(alternatives, g.more)
	}
	return "^" + regexp.QuoteMeta(strings.TrimSuffix(g.dir, "/")) + "/(" + strings.Join(alternatives, "|") + ")(/.*)?$"
}

func eitherCase(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := rune(name[i])
		if lower, upper := unicode.ToLower(c), unicode.ToUpper(c); c < 0x80 && lower != upper {
			fmt.Fprintf(&b, "[%c%c]", lower, upper)
			continue
		}
		b.WriteString(regexp.QuoteMeta(name[i : i+1]))
	}
	return b.String()
}

// resolved is a path without links, as far as it exists.
func resolved(path string) (string, bool) {
	if !filepath.IsAbs(path) {
		return "", false
	}
	path = filepath.Clean(path)
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := RealPath(dir); err == nil {
			return filepath.Join(real, rest), true
		}
		if exists(dir) || dir == "/" {
			return "", false // a link that leads nowhere
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// seatbeltLine is the command line that runs argv under a profile, with env for
// its whole environment.
func seatbeltLine(s *profile, argv, env []string) ([]string, error) {
	line := []string{sandboxExec, "-p", s.text.String()}
	for _, p := range s.params {
		line = append(line, "-D"+p.name+"="+p.value)
	}
	line = append(line, "--", "/usr/bin/env", "-i")
	for _, v := range env {
		// What has no name, or one that env would take for an option, is no
		// variable that a program could look for.
		if strings.Contains(v, "=") && v[0] != '=' && v[0] != '-' {
			line = append(line, v)
		}
	}
	if strings.Contains(argv[0], "=") {
		return nil, denied("the program " + argv[0] + " cannot be started confined, since its path holds an equals sign; move it")
	}
	line = append(line, argv...)
	if slices.ContainsFunc(line, func(word string) bool { return strings.IndexByte(word, 0) >= 0 }) {
		return nil, denied("a path, an argument or a variable of the command holds a NUL byte")
	}
	return line, nil
}

// seatbeltHint says what to do about a failure that is known.
func seatbeltHint(stderr string) string {
	if strings.Contains(stderr, "sandbox_apply: Operation not permitted") {
		return " (the daemon is confined by Seatbelt itself, and a sandbox holds no other: start it outside)"
	}
	return ""
}
