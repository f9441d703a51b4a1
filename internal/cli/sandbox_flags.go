package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"agent/client"
	"agent/client/termsafe"
	"agent/protocol"
)

// sandboxFlags are those that say how a bot is confined (sections 8 and 9).
type sandboxFlags struct {
	mode                      string // "" where the line is silent, as in all
	roots, sockets            []string
	slashTmp, tmpdir, network string // on or off
}

// sandboxWords are how the help of a verb differs from another's.
type sandboxWords struct{ mode, other string }

var (
	sandboxOfNew  = sandboxWords{"default danger-full-access, which confines nothing", "default off under a sandbox"}
	sandboxOfFork = sandboxWords{"default the source's; narrower at most", "default the source's"}
	sandboxOfBot  = sandboxWords{"danger-full-access confines nothing", "default as it is"}
)

func (f *sandboxFlags) declare(t *table, g group, w sandboxWords) {
	t.choice(&f.mode, "sandbox", "what its commands and file changes may touch; "+w.mode,
		protocol.SandboxReadOnly, protocol.SandboxWorkspace, protocol.SandboxFull).in(g)
	t.pathsOf(&f.roots, "writable", "DIR", "with workspace-write: a further folder that it may write; a git folder among them is one it may commit to; repeatable").in(g)
	t.onOff(&f.slashTmp, "slash-tmp", "with workspace-write: off keeps it from writing /tmp").in(g)
	t.onOff(&f.tmpdir, "tmpdir", "with workspace-write: off keeps it from writing the daemon's $TMPDIR").in(g)
	t.onOff(&f.network, "network", "whether its commands reach the network; "+w.other).in(g)
	t.pathsOf(&f.sockets, "unix-socket", "PATH", "a Unix socket that they reach with the network off; on Linux naming one opens all but the daemon's, other bots' and hidden ones; repeatable").in(g)
}

// rulesFlag declares --rules.
func (t *table) rulesFlag(to *string, g group) {
	t.path(to, "rules", "PATH", "its command rules: a file, or a folder of *.rules").in(g)
}

// onOff is a flag that is on or off.
func (t *table) onOff(to *string, name, usage string) *flag {
	return t.choice(to, name, usage, "on", "off")
}

// sandboxFlagNames are the flags of which one is a change for configure.
var sandboxFlagNames = []string{"sandbox", "writable", "slash-tmp", "tmpdir", "network", "unix-socket"}

// check refuses flags that do nothing in the line's mode. A line without a mode
// means the one that the bot has, or its source, which stated says there is.
func (f *sandboxFlags) check(t *table, stated bool) error {
	if f.mode == protocol.SandboxWorkspace || f.mode == "" && stated {
		return nil
	}
	for _, name := range []string{"writable", "slash-tmp", "tmpdir"} {
		if t.given(name) {
			return usagef("--%s goes with --sandbox workspace-write", name)
		}
	}
	return nil
}

// isOn is a switch as the wire has it.
func isOn(v string) protocol.Opt[bool] {
	if v == "" {
		return protocol.Opt[bool]{}
	}
	return protocol.Set(v == "on")
}

// isOff is one that the wire has the other way around.
func isOff(v string) protocol.Opt[bool] {
	if v == "" {
		return protocol.Opt[bool]{}
	}
	return protocol.Set(v == "off")
}

func (f *sandboxFlags) create(c *protocol.Create) {
	c.Sandbox, c.WritableRoots, c.UnixSockets, c.Network = f.mode, f.roots, f.sockets, isOn(f.network)
	c.ExcludeSlashTmp, c.ExcludeTmpdirEnvVar = isOff(f.slashTmp), isOff(f.tmpdir)
}

func (f *sandboxFlags) fork(r *protocol.Fork) {
	r.Sandbox, r.WritableRoots, r.UnixSockets, r.Network = f.mode, f.roots, f.sockets, isOn(f.network)
	r.ExcludeSlashTmp, r.ExcludeTmpdirEnvVar = isOff(f.slashTmp), isOff(f.tmpdir)
}

func (f *sandboxFlags) configure(r *protocol.Configure) {
	r.Sandbox, r.Network = change(f.mode, false), isOn(f.network)
	if f.roots != nil {
		r.WritableRoots = protocol.Set(f.roots)
	}
	if f.sockets != nil {
		r.UnixSockets = protocol.Set(f.sockets)
	}
	r.ExcludeSlashTmp, r.ExcludeTmpdirEnvVar = isOff(f.slashTmp), isOff(f.tmpdir)
}

// noteSandbox tells a person what they may not expect of the flags: a folder that
// is not there yet is taken, and on Linux one socket opens more than itself, since
// its filter cannot see paths.
func (a *app) noteSandbox(f *sandboxFlags) {
	if !a.pretty {
		return
	}
	for _, dir := range f.roots {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(a.stderr, "agent: %s does not exist; it is writable once it does\n", termsafe.OneLine(dir))
		}
	}
	if runtime.GOOS == "linux" && f.sockets != nil && f.network != "on" {
		fmt.Fprintln(a.stderr, "agent: on Linux this bot now reaches every Unix socket but the daemon's, other bots' and those in hidden folders")
	}
}

// rulesAt reads the command rules that a line names. Unlike a folder that a
// program watches, what a person types is there: a misspelt path must not come
// out as no rules.
func rulesAt(path string) (*protocol.Rules, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, protocol.Fail(protocol.RulesUnreadable, "--rules "+path+": there is no such file or folder")
	}
	return client.ReadRules(path)
}
