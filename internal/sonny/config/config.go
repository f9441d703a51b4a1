package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"agent/protocol"
)

// Config is what holds: each setting where it is set, its default elsewhere. Paths are
// absolute and clean, times are durations, "never" and "stream" are 0, and what has no
// default is the zero value or nil. It is read, never changed; safe for concurrent use.
type Config struct {
	Model           string `toml:"model"`
	Effort          string `toml:"effort"`
	JudgeModel      string `toml:"judge_model"`
	JudgeNote       string `toml:"judge_note"`
	JudgeDeadlineMS int64  `toml:"judge_deadline_ms"`
	Row             string `toml:"row"`
	SandboxMode     string `toml:"sandbox_mode"` // "": the row's
	Workspace       struct {
		WritableRoots []string `toml:"writable_roots"`
		Network       bool     `toml:"network_access"`
		Git           bool     `toml:"git"`
		ExcludeTmpdir bool     `toml:"exclude_tmpdir_env_var"`
		ExcludeTmp    bool     `toml:"exclude_slash_tmp"`
		UnixSockets   []string `toml:"unix_sockets"`
	} `toml:"sandbox_workspace_write"`
	ApprovalExpiry struct {
		Auto   time.Duration `toml:"auto"`
		Manual time.Duration `toml:"manual"` // 0: never
	} `toml:"approval_expiry"`
	WebSearch string `toml:"web_search"`
	Tools     struct {
		Disabled []string `toml:"disabled"`
	} `toml:"tools"`
	TrustFolders string `toml:"trust_folders"`
	AgentsMD     struct {
		Fallbacks []string `toml:"fallbacks"`
	} `toml:"agents_md"`
	Compaction  string `toml:"compaction"` // "auto", "off", or a path
	TaskUpdates bool   `toml:"task_updates"`
	Tasks       struct {
		Model        string        `toml:"model"`
		Effort       string        `toml:"effort"`
		In           string        `toml:"in"`
		BudgetTokens int64         `toml:"budget_tokens"` // 0: none
		SetupTimeout time.Duration `toml:"setup_timeout"`
	} `toml:"tasks"`
	Shell struct { // read by the daemon; here for what checks it
		Inherit               string            `toml:"inherit"`
		IgnoreDefaultExcludes bool              `toml:"ignore_default_excludes"`
		Exclude               []string          `toml:"exclude"`
		IncludeOnly           []string          `toml:"include_only"`
		Set                   map[string]string `toml:"set"`
	} `toml:"shell_environment_policy"`
	MCPServers map[string]*MCPServer `toml:"mcp_servers"`
	Lookout    struct {
		Enabled bool               `toml:"enabled"`
		Sources map[string]*Source `toml:"sources"`
	} `toml:"lookout"`
	Memory struct {
		Enabled      bool   `toml:"enabled"`
		Cleanup      bool   `toml:"cleanup"`
		CleanupAt    string `toml:"cleanup_at"` // "HH:MM"
		CleanupModel string `toml:"cleanup_model"`
	} `toml:"memory"`
	Commons struct {
		Enabled            bool  `toml:"enabled"`
		InviteBudgetTokens int64 `toml:"invite_budget_tokens"`
		MaxInvites         int64 `toml:"max_invites"`
	} `toml:"commons"`
	Programs struct {
		AgentBrowser string `toml:"agent_browser"`
		AgentDesktop string `toml:"agent_desktop"`
	} `toml:"programs"`
	Browser struct {
		Enabled      bool     `toml:"enabled"`
		Headless     bool     `toml:"headless"`
		AllowedHosts []string `toml:"allowed_hosts"`
		Executable   string   `toml:"executable"`
	} `toml:"browser"`
	Desktop struct {
		Enabled bool `toml:"enabled"`
	} `toml:"desktop"`
	Panes struct {
		Enabled bool   `toml:"enabled"`
		Host    string `toml:"host"`
		Split   string `toml:"split"`
	} `toml:"panes"`
	Goals struct {
		Enabled         bool  `toml:"enabled"`
		MaxChecksPerDay int64 `toml:"max_checks_per_day"`
	} `toml:"goals"`
	Triggers struct {
		Enabled bool `toml:"enabled"`
	} `toml:"triggers"`
	HomeBackup struct {
		Enabled bool   `toml:"enabled"`
		Remote  string `toml:"remote"`
	} `toml:"home_backup"`
	Snapshots struct {
		Enabled  bool          `toml:"enabled"`
		Keep     time.Duration `toml:"keep"`
		MaxBytes int64         `toml:"max_bytes"`
	} `toml:"snapshots"`
	Skills struct {
		Shipped  bool     `toml:"shipped"`
		Disabled []string `toml:"disabled"`
	} `toml:"skills"`
	Notifications Notifications    `toml:"notifications"`
	Pricing       map[string]Price `toml:"pricing"` // by PROVIDER/MODEL
	Usage         struct {
		ShowCost     bool    `toml:"show_cost"`
		DailyWarnUSD float64 `toml:"daily_warn_usd"` // 0: none
	} `toml:"usage"`
	TUI   TUI `toml:"tui"`
	Agent struct {
		Store       string         `toml:"store"`
		IdleExit    *time.Duration `toml:"idle_exit"`  // nil: not set
		MaxActive   *int64         `toml:"max_active"` // nil: not set
		Wall        []string       `toml:"wall"`
		ProtectPath []string       `toml:"protect_path"`
	} `toml:"agent"`

	settings []Setting
	leak     *protocol.Error
}

// Leak is the first secret that stands in config.toml, which names its line and never
// the value; nil for none.
func (c *Config) Leak() *protocol.Error { return c.leak }

// MCPServer is one [mcp_servers.NAME] (companions.md 7.1).
type MCPServer struct {
	Command           string             `toml:"command"` // "": a server over HTTP
	Args              []string           `toml:"args"`
	Cwd               string             `toml:"cwd"`
	Env               map[string]string  `toml:"env"`
	EnvVars           []string           `toml:"env_vars"`
	URL               string             `toml:"url"`
	BearerTokenEnvVar string             `toml:"bearer_token_env_var"`
	HTTPHeaders       map[string]string  `toml:"http_headers"`
	EnvHTTPHeaders    map[string]string  `toml:"env_http_headers"`
	AllowHTTP         bool               `toml:"allow_http"`
	Enabled           bool               `toml:"enabled"`
	Required          bool               `toml:"required"`
	StartupTimeout    time.Duration      `toml:"startup_timeout"`
	ToolTimeout       time.Duration      `toml:"tool_timeout"`
	EnabledTools      []string           `toml:"enabled_tools"` // nil: all
	DisabledTools     []string           `toml:"disabled_tools"`
	ApprovalMode      string             `toml:"approval_mode"`
	Tools             map[string]MCPTool `toml:"tools"`
	Roots             string             `toml:"roots"`

	// Off is why the server may not run although it may be enabled: something of its
	// table does not check. nil where all does.
	Off *protocol.Error
}

// MCPTool is one [mcp_servers.NAME.tools.TOOL].
type MCPTool struct {
	ApprovalMode string `toml:"approval_mode"`
}

// Source is one [lookout.sources.NAME] (companions.md 6.1).
type Source struct {
	Command  string        `toml:"command"`
	Every    time.Duration `toml:"every"` // 0: a stream
	Timeout  time.Duration `toml:"timeout"`
	MaxBytes int64         `toml:"max_bytes"`
	To       string        `toml:"to"`
	Enabled  bool          `toml:"enabled"`
	EnvVars  []string      `toml:"env_vars"`
	Cwd      string        `toml:"cwd"`

	Off *protocol.Error // as MCPServer's
}

// Notifications is [notifications] (sonny.md 28).
type Notifications struct {
	On       []string      `toml:"on"`
	When     string        `toml:"when"`
	MinTurn  time.Duration `toml:"min_turn"`
	Route    string        `toml:"route"`
	Command  []string      `toml:"command"`
	Sound    bool          `toml:"sound"`
	Progress bool          `toml:"progress"`
	Content  bool          `toml:"content"`
}

// Price is USD a million tokens; nil where the person set none.
type Price struct {
	Input      *float64 `toml:"input"`
	Cached     *float64 `toml:"cached"`
	CacheWrite *float64 `toml:"cache_write"`
	Output     *float64 `toml:"output"`
}

// TUI is [tui], the screen.
type TUI struct {
	Screen        string `toml:"screen"`
	ScreenReader  bool   `toml:"screen_reader"`
	Theme         string `toml:"theme"`
	Motion        bool   `toml:"motion"`
	ASCII         bool   `toml:"ascii"`
	AmbiguousWide bool   `toml:"ambiguous_wide"`
	Mouse         struct {
		Wheel  bool `toml:"wheel"`
		Click  bool `toml:"click"`
		Select bool `toml:"select"`
	} `toml:"mouse"`
	CopyOnSelect bool   `toml:"copy_on_select"`
	WheelRows    int64  `toml:"wheel_rows"`
	Enter        string `toml:"enter"`
	WhileRunning string `toml:"while_running"`
	DoubleEsc    bool   `toml:"double_esc"`
	Bang         bool   `toml:"bang"`
	Fold         struct {
		Output   int64  `toml:"output"` // lines
		Diff     string `toml:"diff"`
		Thoughts bool   `toml:"thoughts"`
		Reads    bool   `toml:"reads"`
	} `toml:"fold"`
	Diff      string              `toml:"diff"`
	WrapCode  bool                `toml:"wrap_code"`
	ToolColor bool                `toml:"tool_color"`
	Title     bool                `toml:"title"`
	OnExit    string              `toml:"on_exit"`
	Editor    string              `toml:"editor"`
	Keys      map[string][]string `toml:"keys"` // by action; an empty list unbinds it
}

// Origin is where a setting's value is from.
type Origin string

// The origins, from the weakest.
const (
	FromDefault Origin = "default"
	FromConfig  Origin = "config.toml"
	FromProject Origin = "project.toml"
	FromEnviron Origin = "environment"
	FromFlag    Origin = "flag"
)

// Setting is one key with the value that holds, as TOML has it.
type Setting struct {
	Key   *Key
	Name  string // with the person's names in the place of capitals
	Value any    // nil: it has no default and is not set
	From  Origin

	parts []string
	taken any
}

// Text is the value as TOML, "" for none.
func (s Setting) Text() string {
	if s.Value == nil {
		return ""
	}
	return literal(s.Value)
}

// Line is the setting as a line of config.toml, with where it is from unless that is
// the file. What has no value, or stands for a name of the person's, is a comment.
func (s Setting) Line() string {
	var b strings.Builder
	switch pattern := s.From == FromDefault && slices.ContainsFunc(s.parts, isPlaceholder); {
	case s.Value == nil:
		return "# " + s.Name + ": " + s.Key.otherwise()
	case pattern:
		b.WriteString("# ")
	}
	b.WriteString(s.Name + " = " + s.Text())
	if s.From != FromConfig {
		b.WriteString("  # " + string(s.From))
	}
	return b.String()
}

// otherwise is what holds where a key without a default is not set.
func (k *Key) otherwise() string {
	if k.Same != "" {
		return "another name of " + k.Same
	}
	return k.Else
}

// Settings are all that are set, in the order of Keys, and with defaults also those
// that are not.
func (c *Config) Settings(defaults bool) []Setting {
	var out []Setting
	for _, k := range Keys {
		set := false
		for _, s := range c.settings {
			if s.Key == k {
				out, set = append(out, s), true
			}
		}
		if defaults && !set {
			out = append(out, Setting{Key: k, Name: k.Name, Value: k.Default, From: FromDefault, parts: k.parts})
		}
	}
	return out
}

// Get is one setting, with its default where it is not set; false when no such
// setting exists. A key is dotted, as ParseKey reads it.
func (c *Config) Get(name string) (Setting, bool) {
	parts := ParseKey(name)
	k := find(parts)
	if k == nil {
		return Setting{}, false
	}
	for _, s := range c.settings {
		if slices.Equal(s.parts, parts) {
			return s, true
		}
	}
	return Setting{Key: k, Name: KeyText(parts), Value: k.Default, From: FromDefault, parts: parts}, true
}

// fill makes a Config of the settings.
func fill(settings []Setting) *Config {
	c := &Config{settings: settings}
	root := reflect.ValueOf(c).Elem()
	preset(root, nil)
	for _, s := range settings {
		name := s.parts
		if s.Key.Same != "" {
			name = append(slices.Clone(s.parts[:len(s.parts)-1]), s.Key.Same)
		}
		assign(root, s.Key.parts, 0, name, s.taken)
	}
	return c
}

// preset puts the defaults into the struct whose keys begin with above, as far as they
// need no name of the person's.
func preset(v reflect.Value, above []string) {
	for _, k := range Keys {
		if k.Default == nil || len(k.parts) <= len(above) || !slices.Equal(k.parts[:len(above)], above) {
			continue
		}
		below := k.parts[len(above):]
		if slices.ContainsFunc(below, isPlaceholder) {
			continue
		}
		taken, ok := k.kind.take(k.Default)
		if !ok {
			panic("config: the default of " + k.Name + " is none of its values")
		}
		assign(v, k.parts, len(above), below, taken)
	}
}

func isPlaceholder(part string) bool { _, ok := placeholders[part]; return ok }

// assign puts a value into the field that path leads to from v. pattern is the key's
// name in the table, of which at parts lie above v.
func assign(v reflect.Value, pattern []string, at int, path []string, value any) {
	switch {
	case len(path) == 0 && v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		v.Elem().Set(reflect.ValueOf(value))
	case len(path) == 0:
		v.Set(reflect.ValueOf(value))
	case v.Kind() == reflect.Pointer:
		assign(v.Elem(), pattern, at, path, value)
	case v.Kind() == reflect.Map:
		assignIn(v, pattern, at, path, value)
	default:
		assign(field(v, path[0]), pattern, at+1, path[1:], value)
	}
}

// assignIn puts a value into the element of a map, made with its defaults.
func assignIn(m reflect.Value, pattern []string, at int, path []string, value any) {
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	name := reflect.ValueOf(path[0])
	of := m.Type().Elem()
	element := reflect.New(of).Elem()
	if there := m.MapIndex(name); there.IsValid() {
		element.Set(there)
	} else if of.Kind() == reflect.Pointer {
		element.Set(reflect.New(of.Elem()))
		preset(element.Elem(), pattern[:at+1])
	}
	assign(element, pattern, at+1, path[1:], value)
	m.SetMapIndex(name, element)
}

// field is the field of a struct that bears a key's part.
func field(v reflect.Value, part string) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("toml") == part {
			return v.Field(i)
		}
	}
	panic(fmt.Sprintf("config: %s has no field for %s", v.Type(), part))
}

// nearest is the known key that is most like a name, or "".
func nearest(name string) string {
	best, least := "", 3
	for _, k := range Keys {
		if d := distance(strings.ToLower(name), k.Name); d < least {
			best, least = k.Name, d
		}
	}
	return best
}

// distance is how many letters differ, are missing or too many.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
