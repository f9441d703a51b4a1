package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agent/client/envfile"
	"agent/internal/place"
	"agent/protocol"
)

// MaxSize is the greatest size of config.toml, in bytes.
const MaxSize = 256 << 10

// Path is the file that holds the settings: SONNY_CONFIG of an environment, as
// os.Environ gives it, else ~/.agent/config.toml.
func Path(environ []string) (string, error) {
	if path := envfile.Get(environ, "SONNY_CONFIG"); path != "" {
		return filepath.Abs(path)
	}
	dir, err := place.AgentDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "config.toml"), nil
}

// Stated is a setting that a line of the person's states: by a flag of its own, or by
// --set KEY=VALUE.
type Stated struct {
	Key, Value string // the value as typed
	Flag       string // the flag, "--row"; "" for --set
}

// Sources are where settings come from, the weakest first.
type Sources struct {
	Path     string   // config.toml
	Project  *Project // of the folder; nil: none, or opened without it
	Environ  []string // as os.Environ gives it
	Stated   []Stated // of the line; a later one wins over an earlier
	Terminal bool     // the line was typed at one: its stdin is a terminal
	Further  Reader   // refuses what the line states; nil: nothing more is looked at
}

// Load reads a config.toml by itself: Resolve of its path alone.
func Load(path string) (*Config, []Notice, error) { return Resolve(Sources{Path: path}) }

// Resolve gives the settings that hold (sonny.md 2 and 20). A missing file sets
// nothing. An unknown key and a wrong value of a key that confines nothing are
// notices, and the default holds.
//
// The Config is never nil. Errors, all *protocol.Error: config_invalid for a file that
// cannot be used, or a wrong value of a confining key, with its line; usage for what the
// line states. With config_invalid the Config is good for showing, but no bot may be
// made and nothing that a confining key is about may run: the defaults in it may be
// wider than what was meant.
func Resolve(s Sources) (*Config, []Notice, error) {
	r := newResolver()
	fault := r.file(s.Path)
	r.project(s.Project)
	r.environ(s.Environ)
	unstated := fill(r.settings())
	stated := r.stated(s.Stated, s.Terminal)
	c := fill(r.settings())
	if stated == nil && len(s.Stated) > 0 {
		stated = s.Further.worse(unstated, c)
	}
	c.leak = r.leak
	r.check(c)
	if r.more > 0 {
		r.notices = append(r.notices, Notice{Text: fmt.Sprintf("%d more like these", r.more)})
	}
	switch {
	case stated != nil:
		return c, r.notices, stated
	case fault != nil:
		return c, r.notices, fault
	}
	return c, r.notices, firstOf(r.faults)
}

// firstOf is one error that stands for all.
func firstOf(faults []*protocol.Error) error {
	if len(faults) == 0 {
		return nil
	}
	e := *faults[0]
	if more := len(faults) - 1; more > 0 {
		e.Detail += fmt.Sprintf(" (and %d more)", more)
	}
	return &e
}

type resolver struct {
	held    map[string]Setting // by the name with the table's own last part
	notices []Notice
	more    int                        // notices beyond those
	faults  []*protocol.Error          // of confining keys
	off     map[string]*protocol.Error // of servers and sources, by their table's name
	leak    *protocol.Error            // the first secret in the file
}

func newResolver() *resolver {
	return &resolver{held: map[string]Setting{}, off: map[string]*protocol.Error{}}
}

// maxNoticed bounds the notices of one reading; the rest is counted.
const maxNoticed = 64

func (r *resolver) notice(key, format string, args ...any) { r.tell(Other, key, format, args...) }

func (r *resolver) tell(kind NoticeKind, key, format string, args ...any) {
	if len(r.notices) >= maxNoticed {
		r.more++
		return
	}
	r.notices = append(r.notices, Notice{kind, key, fmt.Sprintf(format, args...)})
}

// settings are all that are held, by name.
func (r *resolver) settings() []Setting {
	return slices.SortedFunc(maps.Values(r.held), func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
}

// hold takes a setting in, over what a weaker source said.
func (r *resolver) hold(s Setting) {
	name := slices.Clone(s.parts)
	if s.Key.Same != "" {
		name[len(name)-1] = s.Key.Same
	}
	r.held[KeyText(name)] = s
}

// project takes in what a checkout may say.
func (r *resolver) project(p *Project) {
	if p == nil {
		return
	}
	for _, s := range p.settings() {
		r.text(s.Key, s.Value, FromProject, "project.toml")
	}
}

// ofEnviron are the settings that a variable states.
var ofEnviron = []struct{ variable, key string }{
	{"AGENT_MODEL", "model"}, {"SONNY_SCREEN", "tui.screen"}, {"SONNY_THEME", "tui.theme"},
}

func (r *resolver) environ(environ []string) {
	for _, of := range ofEnviron {
		if value := envfile.Get(environ, of.variable); value != "" {
			r.text(of.key, value, FromEnviron, of.variable)
		}
	}
	if envfile.Get(environ, "NO_MOTION") != "" {
		r.text("tui.motion", "false", FromEnviron, "NO_MOTION")
	}
}

// text takes in a setting that is no confining one, or says why not.
func (r *resolver) text(name, value string, from Origin, of string) {
	parts := ParseKey(name)
	k := find(parts)
	v, ok := k.typed(value)
	if !ok {
		r.notice(name, "%s%s must be %s; it is not used", of, shown(value), k.Must())
		return
	}
	r.put(k, parts, v, from)
}

func (r *resolver) put(k *Key, parts []string, v any, from Origin) {
	taken, _ := k.kind.take(v)
	r.hold(Setting{Key: k, Name: KeyText(parts), Value: v, From: from, parts: parts, taken: taken})
}

// stated takes in what the line says.
func (r *resolver) stated(all []Stated, terminal bool) error {
	for _, s := range all {
		if err := r.state(s, terminal); err != nil {
			return err
		}
	}
	return nil
}

func (r *resolver) state(s Stated, terminal bool) error {
	flag := s.Flag
	if flag == "" {
		flag = "--set " + s.Key
	}
	parts := ParseKey(s.Key)
	k := find(parts)
	if k == nil {
		return Unknown(s.Key)
	}
	v, ok := k.typed(s.Value)
	if !ok {
		return failf(protocol.UsageError, "%s: the value must be %s", flag, k.Must())
	}
	if refusedSecret(k, parts, v) {
		return secretRefused(s.Key)
	}
	if s.Flag == "" && !terminal && k.Confining() && k.loosens(r.holds(k, parts), valueOf(k.kind.take(v))) {
		return failf(protocol.UsageError,
			"--set %s would let a bot do more, and standard input is no terminal; set it with sonny config set, or use the flag of its own where it has one", s.Key)
	}
	r.put(k, parts, v, FromFlag)
	return nil
}

// holds is the value that holds without the line, as Config has it.
func (r *resolver) holds(k *Key, parts []string) any {
	name := slices.Clone(parts)
	if k.Same != "" {
		name[len(name)-1] = k.Same
	}
	if s, ok := r.held[KeyText(name)]; ok {
		return s.taken
	}
	if k.Name == "sandbox_mode" { // without one the row says
		return r.rowsSandbox()
	}
	if k.Default == nil {
		return nil
	}
	return valueOf(k.kind.take(k.Default))
}

func valueOf(v any, _ bool) any { return v }

// rowsSandbox is the sandbox that the row brings.
func (r *resolver) rowsSandbox() string {
	switch r.held["row"].taken {
	case "look":
		return "read-only"
	case "full":
		return "danger-full-access"
	}
	return "workspace-write"
}

// Unknown is the usage error for a key that names no setting; it says which was meant.
func Unknown(name string) error {
	const code = protocol.UsageError
	if parts := ParseKey(name); parts != nil && isTable(parts) {
		return failf(code, "%s is a table; name one of its settings, as sonny config list --defaults shows them", name)
	}
	if near := nearest(name); near != "" {
		return failf(code, "%s is no setting; did you mean %s?", name, near)
	}
	return failf(code, "%s is no setting; sonny config list --defaults lists them", name)
}

// judgeMargin is what a gate's expiry must leave beside the judge's deadline.
const judgeMargin = 15 * time.Second

// check looks at what several settings say together.
func (r *resolver) check(c *Config) {
	least := time.Duration(c.JudgeDeadlineMS)*time.Millisecond + judgeMargin
	if c.ApprovalExpiry.Auto < least {
		c.ApprovalExpiry.Auto = least
		if _, set := r.held["approval_expiry.auto"]; set {
			r.notice("approval_expiry.auto", "approval_expiry.auto is below the judge's deadline and 15 s; %s holds", least)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.MCPServers)) {
		s := c.MCPServers[name]
		r.together(KeyText([]string{"mcp_servers", name}), s.fault(), &s.Off)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Lookout.Sources)) {
		s := c.Lookout.Sources[name]
		why := ""
		if s.Command == "" {
			why = "needs a command"
		}
		r.together(KeyText([]string{"lookout", "sources", name}), why, &s.Off)
	}
}

// together keeps why a server or a source is off.
func (r *resolver) together(table, why string, off **protocol.Error) {
	if *off = r.off[table]; *off != nil || why == "" {
		return
	}
	*off = protocol.Fail(protocol.ConfigInvalid, table+" "+why)
	r.faults = append(r.faults, *off)
}

// fault is why the settings of a server do not go together.
func (s *MCPServer) fault() string {
	switch {
	case s.Command == "" && s.URL == "":
		return "needs a command or a url"
	case s.Command != "" && s.URL != "":
		return "has a command and a url; keep one"
	case s.Command != "" && (s.BearerTokenEnvVar != "" || len(s.HTTPHeaders)+len(s.EnvHTTPHeaders) > 0 || s.AllowHTTP):
		return "has a command, and settings that are for a url: bearer_token_env_var, http_headers, env_http_headers, allow_http"
	case s.URL != "" && (len(s.Args)+len(s.Env)+len(s.EnvVars) > 0 || s.Cwd != ""):
		return "has a url, and settings that are for a command: args, env, env_vars, cwd"
	}
	return ""
}
