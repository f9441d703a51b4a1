package config

import (
	"math"
	"slices"
	"strings"
)

// Key is one setting of config.toml, or a family of settings: a part of the name in
// capitals stands for a name that the person gives.
type Key struct {
	Name    string // dotted, as in mcp_servers.NAME.command
	Default any    // as it would stand in the file; nil: none
	Else    string // without a default: what holds then
	Means   string // one line
	Live    bool   // a change counts at once, not only for bots made after it
	Same    string // another spelling of the key of this last name beside it

	kind    kind
	loosens loosening // nil for a key that confines nothing
	parts   []string
}

// Confining reports whether a wrong value refuses new bots (◆ in sonny.md 20).
func (k *Key) Confining() bool { return k.loosens != nil }

// Find is the setting, or the family of settings, that a key names. usage, which says what
// was meant, for a name that is none.
func Find(name string) (*Key, error) {
	for _, k := range Keys {
		if k.Name == name {
			return k, nil // a family, by its capitals
		}
	}
	if k := find(ParseKey(name)); k != nil {
		return k, nil
	}
	return nil, Unknown(name)
}

// IsTable reports whether settings stand below a name, such as tui.
func IsTable(name string) bool {
	parts := ParseKey(name)
	return len(parts) > 0 && isTable(parts)
}

// Must says what a value must be.
func (k *Key) Must() string { return k.kind.must }

// Choices are the values that a setting of a few can have, as a person types them: words, or
// true and false. nil for any other setting. The slice is not the caller's.
func (k *Key) Choices() []string {
	if k.kind.truth {
		return []string{"true", "false"}
	}
	return k.kind.words
}

// Truth reports whether a setting is either true or false.
func (k *Key) Truth() bool { return k.kind.truth }

// Family reports whether the name has parts that stand for a name of the person's.
func (k *Key) Family() bool { return slices.ContainsFunc(k.parts, isPlaceholder) }

// Otherwise is what holds where the setting is not set, as TOML or in words.
func (k *Key) Otherwise() string {
	if k.Default == nil {
		return k.otherwise()
	}
	return literal(k.Default)
}

// Words are the values that a setting of a few words can have, in the order of the
// reference; nil for any other setting. The slice is not the caller's.
func Words(name string) []string {
	if k := find(ParseKey(name)); k != nil {
		return k.kind.words
	}
	return nil
}

// Keys are all settings in the order of the reference. It must not be changed.
var Keys = table()

func key(name string, k kind, preset any, means string) *Key {
	return &Key{Name: name, kind: k, Default: preset, Means: means, parts: strings.Split(name, ".")}
}

// without is a key that has no default; then what otherwise says holds.
func without(name string, k kind, otherwise, means string) *Key {
	made := key(name, k, nil, means)
	made.Else = otherwise
	return made
}

func (k *Key) confines(l loosening) *Key { k.loosens = l; return k }
func (k *Key) same(as string) *Key       { k.Same = as; return k }

func table() []*Key {
	var all []*Key
	for _, part := range [][]*Key{bots(), shells(), servers(), companions(), screen(), serving()} {
		all = append(all, part...)
	}
	return all
}

const unbounded = math.MaxInt64

// Words that more than one place needs.
var (
	rows      = []string{"look", "manual", "auto", "full"} // from the narrowest
	sandboxes = []string{"read-only", "workspace-write", "danger-full-access"}
	searches  = []string{"disabled", "cached", "live"}
)

func bots() []*Key {
	return []*Key{
		without("model", modelRef, "the suggestion", "the model of new leads"),
		without("effort", effort, "the provider's", "the reasoning effort of new leads"),
		without("judge_model", modelRef, "the small model of the judged bot's provider, else the bot's own", "the automatic approver's model"),
		without("judge_note", filePath, "none", "a file that the judge is always shown"),
		key("judge_deadline_ms", whole(1000, 90_000), int64(30_000), "how long a round of judging may take, in ms"),
		key("row", choice("auto", "manual", "look", "full"), "auto", "who is asked before a call leaves the sandbox").confines(rising(rows...)),
		without("sandbox_mode", choice(sandboxes...), `the row's, "workspace-write"`, "what commands of a bot may touch").confines(rising(sandboxes...)),
		key("sandbox_workspace_write.writable_roots", writableRoots, []any{}, "further folders that a bot may write").confines(whenGrown),
		key("sandbox_workspace_write.network_access", boolean, true, "whether a bot's commands have the network").confines(whenTrue),
		key("sandbox_workspace_write.git", boolean, true, "whether a bot may commit, and tasks get worktrees").confines(whenTrue),
		key("sandbox_workspace_write.exclude_tmpdir_env_var", boolean, false, "leave $TMPDIR unwritable").confines(whenFalse),
		key("sandbox_workspace_write.exclude_slash_tmp", boolean, false, "leave /tmp unwritable").confines(whenFalse),
		key("sandbox_workspace_write.unix_sockets", pathList, []any{}, "Unix sockets that a bot reaches with the network off").confines(whenGrown),
		key("approval_expiry.auto", span("1s", "24h"), "120s", "when a call that the judge does not answer is denied; never below the judge's deadline and 15 s").confines(never),
		key("approval_expiry.manual", span("1s", "24h", "never"), "never", "when a call that you do not answer is denied").confines(never),
		key("web_search", choice("live", "cached", "disabled"), "live", "live: the provider's search and web_fetch; cached: the provider's own index alone; disabled: neither").confines(rising(searches...)),
		key("tools.disabled", toolNames, []any{}, "tools that new bots do not get").confines(whenShrunk),
		key("trust_folders", choice("ask", "always"), "ask", "whether a folder's AGENTS.md and .agents are used without asking").confines(rising("ask", "always")),
		key("agents_md.fallbacks", fileNames, []any{}, "files that are read where a folder has no AGENTS.md"),
		key("compaction", pathOr(`"auto", "off", or the path of instructions`, "auto", "off"), "auto", "whether and how a full context is summarised"),
		key("task_updates", boolean, true, "whether a lead hears of its tasks' turns"),
		without("tasks.model", modelRef, "the lead's", "the model of tasks"),
		without("tasks.effort", effort, "the lead's", "the reasoning effort of tasks"),
		key("tasks.in", choice("worktree", "project"), "worktree", "where tasks work: a worktree of their own, or the lead's folder"),
		without("tasks.budget_tokens", whole(1, unbounded), "none", "tokens that a task may use"),
		key("tasks.setup_timeout", span("1s", "1h"), "10m", "how long a worktree's setup may take"),
	}
}

func shells() []*Key {
	const t = "shell_environment_policy."
	return []*Key{
		key(t+"inherit", choice("all", "core", "none"), "all", "what a bot's shell gets of the daemon's environment; the daemon reads this table at its start").confines(rising("none", "core", "all")),
		key(t+"ignore_default_excludes", boolean, true, "false withholds names that hold KEY, SECRET or TOKEN").confines(whenTrue),
		key(t+"exclude", lines, []any{}, "names that are withheld; * and ? are wild").confines(whenShrunk),
		key(t+"include_only", lines, []any{}, "the only names that are passed, when there are any").confines(onlyThese),
		without(t+"set.VARIABLE", freeText, "none", "a variable to set; no secrets").confines(changed),
	}
}

func servers() []*Key {
	const s = "mcp_servers.NAME."
	mode := choice("auto", "prompt", "approve")
	modes := rising("prompt", "auto", "approve")
	return []*Key{
		without(s+"command", line, "none", "the program of a server on standard input and output").confines(changed),
		key(s+"args", words, []any{}, "its arguments").confines(changed),
		without(s+"cwd", filePath, "the companion's", "the folder it starts in").confines(changed),
		without(s+"env.VARIABLE", freeText, "none", "a plain variable of its environment; secrets go into env_vars").confines(changed),
		key(s+"env_vars", variables, []any{}, "variables it must have from ~/.agent/env or the environment").confines(changed),
		without(s+"url", address, "none", "the address of a server over HTTP").confines(changed),
		without(s+"bearer_token_env_var", variable, "none", "the variable that holds its bearer token").confines(changed),
		without(s+"http_headers.HEADER", freeText, "none", "a plain header; secrets go into env_http_headers").confines(changed),
		without(s+"env_http_headers.HEADER", variable, "none", "the variable that holds a header's value").confines(changed),
		key(s+"allow_http", boolean, false, "whether http is taken for an address that is not loopback").confines(whenTrue),
		key(s+"enabled", boolean, true, "whether it is used").confines(whenTrue),
		key(s+"required", boolean, false, "whether every exec call fails while it does not start").confines(never),
		key(s+"startup_timeout", span("1s", "10m"), "10s", "how long it may take to start and list its tools").confines(never),
		without(s+"startup_timeout_sec", seconds(1, 600), "", "startup_timeout in seconds").confines(never).same("startup_timeout"),
		key(s+"tool_timeout", span("1s", "24h"), "60s", "how long one call may take").confines(never),
		without(s+"tool_timeout_sec", seconds(1, 86_400), "", "tool_timeout in seconds").confines(never).same("tool_timeout"),
		without(s+"enabled_tools", lines, "all", "the only tools of it that are offered").confines(changed),
		key(s+"disabled_tools", lines, []any{}, "tools of it that are not offered").confines(whenShrunk),
		key(s+"approval_mode", mode, "auto", "auto: a tool that its server marks destructive waits for a verdict; prompt: every call; approve: none").confines(modes),
		without(s+"default_tools_approval_mode", mode, "", "approval_mode").confines(modes).same("approval_mode"),
		without(s+"tools.TOOL.approval_mode", mode, "the server's", "the same for one tool").confines(changed),
		key(s+"roots", choice("workspace", "none"), "workspace", "what it is told of folders").confines(rising("none", "workspace")),
	}
}

func companions() []*Key {
	const l = "lookout.sources.NAME."
	return []*Key{
		key("lookout.enabled", boolean, true, "whether sources are watched"),
		without(l+"command", anyText, "required", "run by sh -c as you, outside any sandbox").confines(changed),
		key(l+"every", span("30s", "24h", "stream"), "5m", "how often it runs; stream: it runs on").confines(changed),
		key(l+"timeout", span("1s", "10m"), "60s", "how long one run may take").confines(changed),
		key(l+"max_bytes", whole(1, 262_144), int64(16_384), "how long one message may get").confines(changed),
		key(l+"to", line, "subscribers", `who hears of it: "subscribers", or a bot's name`).confines(changed),
		key(l+"enabled", boolean, true, "whether it is watched").confines(whenTrue),
		key(l+"env_vars", variables, []any{}, "variables it gets from ~/.agent/env or the environment").confines(changed),
		key(l+"cwd", filePath, "~", "the folder it runs in").confines(changed),
		key("memory.enabled", boolean, true, "whether bots have the memory tool"),
		key("memory.cleanup", boolean, true, "whether facts are tidied once a day"),
		key("memory.cleanup_at", clock, "03:30", "when"),
		without("memory.cleanup_model", modelRef, "judge_model", "by which model"),
		key("commons.enabled", boolean, true, "whether projects share notes"),
		key("commons.invite_budget_tokens", whole(1, unbounded), int64(200_000), "tokens that an invited bot may use"),
		key("commons.max_invites", whole(0, 64), int64(4), "bots that are invited to one question"),
		without("programs.agent_browser", absolute, "found on the login PATH", "the program its copy is taken from").confines(changed),
		without("programs.agent_desktop", absolute, "found on the login PATH", "the program its copy is taken from").confines(changed),
		key("browser.enabled", boolean, true, "whether bots have the browser").confines(whenTrue),
		key("browser.headless", boolean, true, "whether it shows no window").confines(never),
		key("browser.allowed_hosts", lines, []any{}, "the only hosts it opens, when there are any").confines(onlyThese),
		without("browser.executable", absolute, "found by agent-browser", "the browser it starts").confines(changed),
		key("desktop.enabled", boolean, false, "whether bots have the desktop (macOS)").confines(whenTrue),
		key("panes.enabled", boolean, true, "whether bots may open a pane").confines(whenTrue),
		key("panes.host", choice("auto", "tmux"), "auto", "in what").confines(changed),
		key("panes.split", choice("right", "below"), "right", "where").confines(never),
		key("goals.enabled", boolean, true, "whether bots may have goals"),
		key("goals.max_checks_per_day", whole(1, 2880), int64(96), "checks of one goal in 24 hours"),
		key("triggers.enabled", boolean, true, "whether triggers fire").confines(whenTrue),
		key("home_backup.enabled", boolean, false, "whether ~/.agents is pushed every 10 minutes").confines(whenTrue),
		key("home_backup.remote", remote, "", "to which git repository").confines(changed),
		key("snapshots.enabled", boolean, true, "whether files are kept before a turn changes them"),
		key("snapshots.keep", span("1h", "3650d"), "14d", "for how long"),
		key("snapshots.max_bytes", whole(0, unbounded), int64(2_147_483_648), "of how many bytes in all"),
		key("skills.shipped", boolean, true, "whether the skills that come with Sonny are kept up to date"),
		key("skills.disabled", lines, []any{}, "skills that bots do not get"),
	}
}

func screen() []*Key {
	list := []*Key{
		key("notifications.on", choices(events...), texts(events[:7]), "what is told"),
		key("notifications.when", choice("unfocused", "always", "never"), "unfocused", "when"),
		key("notifications.min_turn", span("0s", "24h"), "15s", "shorter turns are not told as done"),
		key("notifications.route", choice("auto", "osc9", "osc99", "osc777", "bell", "native", "command", "none"), "auto", "how"),
		key("notifications.command", words, []any{}, "a program that gets title and body as its last arguments"),
		key("notifications.sound", boolean, false, "ring the bell as well"),
		key("notifications.progress", boolean, true, "show progress where the terminal is known to"),
		key("notifications.content", boolean, false, "whether a command's text may stand in it"),
		without("pricing.MODEL.input", dollars, "the built-in table", "USD for a million tokens"),
		without("pricing.MODEL.cached", dollars, "the built-in table", "the same for cached input"),
		without("pricing.MODEL.cache_write", dollars, "the built-in table", "the same for what is written to the cache"),
		without("pricing.MODEL.output", dollars, "the built-in table", "the same for output"),
		key("usage.show_cost", boolean, true, "show what it costs"),
		without("usage.daily_warn_usd", dollars, "none", "a notice once a day past this"),
		key("tui.screen", choice("full", "inline", "plain"), "full", "how to draw"),
		key("tui.screen_reader", boolean, false, "lines alone, for a screen reader"),
		key("tui.theme", word, "auto", `"auto", "dark", "light", "ansi", "none", or a file of ~/.agents/themes`),
		key("tui.motion", boolean, true, "whether anything pulses"),
		key("tui.ascii", boolean, false, "draw with ASCII alone"),
		key("tui.ambiguous_wide", boolean, false, "characters of ambiguous width take two cells"),
		key("tui.mouse.wheel", boolean, true, "the wheel scrolls"),
		key("tui.mouse.click", boolean, true, "clicks choose"),
		key("tui.mouse.select", boolean, true, "dragging selects"),
		key("tui.copy_on_select", boolean, false, "what is selected is copied"),
		key("tui.wheel_rows", whole(1, 100), int64(3), "rows of one notch"),
		key("tui.enter", choice("send", "newline"), "send", "what Enter does"),
		key("tui.while_running", choice("steer", "queue"), "steer", "what Enter does while a turn runs"),
		key("tui.double_esc", boolean, true, "two Esc open the rewind picker"),
		key("tui.bang", boolean, true, "!COMMAND runs a command of yours"),
		key("tui.fold.output", whole(0, 10_000), int64(2), "lines of output that are shown"),
		key("tui.fold.diff", choice("preview", "line", "open"), "preview", "how much of a diff is shown"),
		key("tui.fold.thoughts", boolean, true, "fold thoughts"),
		key("tui.fold.reads", boolean, true, "fold what was read"),
		key("tui.diff", choice("auto", "unified", "split"), "auto", "how diffs are laid out"),
		key("tui.wrap_code", boolean, true, "wrap long lines of code"),
		key("tui.tool_color", boolean, true, "keep the colours of a command's output"),
		key("tui.title", boolean, true, "set the terminal's title"),
		key("tui.on_exit", choice("summary", "reply", "nothing"), "summary", "what is printed on leaving"),
		without("tui.editor", line, "$VISUAL, else $EDITOR", "the editor"),
		without("tui.keys.ACTION", lines, "the action's own keys", "the chords of an action, in place of its own"),
	}
	for _, k := range list {
		k.Live = !strings.HasPrefix(k.Name, "pricing.")
	}
	return list
}

var events = []string{"approval", "question", "done", "failed", "breaker", "paused", "trigger"}

func texts(of []string) []any {
	out := make([]any, len(of))
	for i, s := range of {
		out[i] = s
	}
	return out
}

func serving() []*Key {
	return []*Key{
		without("agent.store", filePath, "~/.agent/state.sqlite", "the daemon's store").confines(changed),
		without("agent.idle_exit", either(seconds(0, 31_536_000), span("1s", "365d")), "never", "when a daemon without work ends").confines(never),
		without("agent.max_active", whole(0, 1_000_000), "the daemon's own", "turns at a time; 0 is any number").confines(never),
		key("agent.wall", pathList, []any{}, "folders that no sandboxed command sees").confines(whenShrunk),
		key("agent.protect_path", pathList, []any{}, "paths that no sandboxed command writes").confines(whenShrunk),
	}
}

// placeholders are the parts of a key's name that stand for a name of the person's,
// and what such a name may be.
var placeholders = map[string]func(string) bool{
	"NAME":     matching(`[A-Za-z0-9_-]{1,64}`),
	"MODEL":    func(s string) bool { _, ok := modelRef.take(s); return ok },
	"ACTION":   matching(`[a-z][a-z0-9_]{0,63}`),
	"VARIABLE": variableName,
	"HEADER":   matching("[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}"),
	"TOOL":     matching(`[^\x00-\x1f\x7f]{1,128}`),
}

// matchesPart reports whether a part of a key is the table's part, or a name that may
// stand in its place.
func matchesPart(pattern, part string) bool {
	if fits, ok := placeholders[pattern]; ok {
		return fits(part)
	}
	return pattern == part
}

// find is the setting that a key names, or nil.
func find(parts []string) *Key {
	for _, k := range Keys {
		if len(k.parts) == len(parts) && k.begins(parts) {
			return k
		}
	}
	return nil
}

// begins reports whether parts are the first of the key's name.
func (k *Key) begins(parts []string) bool {
	if len(parts) > len(k.parts) {
		return false
	}
	for i, part := range parts {
		if !matchesPart(k.parts[i], part) {
			return false
		}
	}
	return true
}

// isTable reports whether settings may stand below parts.
func isTable(parts []string) bool {
	for _, k := range Keys {
		if len(k.parts) > len(parts) && k.begins(parts) {
			return true
		}
	}
	return false
}
