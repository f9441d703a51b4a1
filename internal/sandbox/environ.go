package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"agent/protocol"
)

// shmFolder is the private scratch of a command on Linux.
const shmFolder = "/dev/shm"

// Environ is a confined command's environment, made from that of the bot's
// commands (sandbox.md 2, 7). What it says of places is so that ordinary tools
// work though the home folder is read-only.
func (p *Plan) Environ(base []string, bot int64) []string {
	env := environment{list: slices.Clone(base)}
	env.set("AGENT_SANDBOX", p.Mode)
	if p.Class != Open {
		env.set("AGENT_SANDBOX_NETWORK_DISABLED", "1")
	}
	env.unset("AGENT_SOCKET")
	if p.BotSocket != "" {
		env.set("AGENT_SOCKET", p.BotSocket)
	}
	tmp := p.tmpdir()
	env.set("TMPDIR", tmp)
	env.set("TMPPREFIX", filepath.Join(tmp, "zsh"))
	if p.Mode != protocol.SandboxWorkspace {
		return env.list
	}
	if cache := p.World.makeCache(tmp, bot); cache != "" {
		if !p.writes(filepath.Join(p.World.Home, ".cache")) {
			env.set("XDG_CACHE_HOME", cache)
		}
		if !p.writes(filepath.Join(p.World.Home, ".npm")) {
			env.set("npm_config_cache", filepath.Join(cache, "npm"))
		}
	} else {
		env.unset("XDG_CACHE_HOME")
		env.unset("npm_config_cache")
	}
	if p.absentGit() {
		// Go takes an empty .git for a repository, and its build fails.
		env.append("GOFLAGS", "-buildvcs=false")
	}
	if slices.ContainsFunc(p.Roots, isGitFolder) {
		// Packing fails where the worktrees folder is read-only.
		env.set("GIT_CONFIG_COUNT", "1")
		env.set("GIT_CONFIG_KEY_0", "gc.auto")
		env.set("GIT_CONFIG_VALUE_0", "0")
	}
	return env.list
}

// tmpdir is where a command's temporary files go.
func (p *Plan) tmpdir() string {
	w := p.World
	switch {
	case p.Mode != protocol.SandboxWorkspace:
	case w.Tmpdir != "" && slices.Contains(p.Roots, w.Tmpdir):
		return w.Tmpdir
	case slices.Contains(p.Roots, w.Tmp):
		return w.Tmp
	}
	if runtime.GOOS == "linux" {
		return shmFolder
	}
	return p.Cwd
}

// writes reports whether a root holds path.
func (p *Plan) writes(path string) bool {
	return slices.ContainsFunc(p.Roots, func(r string) bool { return within(path, r) })
}

// absentGit reports whether a placeholder .git stands at the command's folder or
// above it.
func (p *Plan) absentGit() bool {
	return slices.ContainsFunc(p.Entries, func(e Entry) bool {
		return e.Kind == AbsentFolder && filepath.Base(e.Path) == ".git" && within(p.Cwd, filepath.Dir(e.Path))
	})
}

// CacheFolder is a bot's own cache below a folder for temporary files. The
// person's is never used: their next build would run what a bot put there. Bots
// of two stores may have the same id, so the store has a part in the name.
func (w *World) CacheFolder(tmp string, bot int64) string {
	return filepath.Join(tmp, fmt.Sprintf("agent-cache-%d-%.8s-%d", os.Geteuid(), w.Instance, bot))
}

// DropCache removes the cache of a bot that is gone. What is another user's, or is
// no folder, stays.
func (w *World) DropCache(bot int64) {
	for _, tmp := range []string{w.Tmp, w.Tmpdir} {
		if path := w.CacheFolder(tmp, bot); tmp != "" && ownFolder(path) {
			_ = os.RemoveAll(path)
		}
	}
}

// makeCache makes the bot's cache, 0700; "" where it cannot be had as a real
// folder of the user alone. In a command's private scratch the tools make it.
func (w *World) makeCache(tmp string, bot int64) string {
	path := w.CacheFolder(tmp, bot)
	if tmp == shmFolder {
		return path
	}
	if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
		return ""
	}
	if !ownFolder(path) {
		return ""
	}
	return path
}

// ownFolder reports whether a path is a real folder of the user alone.
func ownFolder(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Uid == uint32(os.Geteuid())
}

// environment is a list of NAME=VALUE with one entry a name.
type environment struct{ list []string }

func (e *environment) unset(name string) {
	e.list = slices.DeleteFunc(e.list, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

func (e *environment) set(name, value string) {
	e.unset(name)
	e.list = append(e.list, name+"="+value)
}

// append adds a word to a variable that holds words.
func (e *environment) append(name, word string) {
	for i, v := range e.list {
		if had, ok := strings.CutPrefix(v, name+"="); ok && strings.TrimSpace(had) != "" {
			e.list[i] = name + "=" + had + " " + word
			return
		}
	}
	e.set(name, word)
}
