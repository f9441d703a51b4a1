package secret

import (
	"maps"
	"slices"
	"strings"
)

// ownPrefix begins the names that the daemon gives to its commands.
const ownPrefix = "AGENT_"

// ShellEnv is the environment of a bot's command before the daemon adds its
// own variables: base without the provider key variables and without any other
// variable that holds one of their values, and what policy leaves of the rest
// (approvals.md 19, steps 1 to 4). No name that begins AGENT_ is in it, not
// even one that policy sets: those are the daemon's to give, and what its own
// starter had of them, which may have been another bot's command, would tell a
// command a wrong parent, turn or sandbox. The result is sorted by name, each name
// once; of a name that base holds twice the last counts.
func ShellEnv(base []string, keyVars []string, policy *Policy) []string {
	env := make(map[string]string, len(base))
	keys := keyring{names: slices.Clone(keyVars)}
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		env[name] = value
		if slices.Contains(keyVars, name) {
			keys.hold(value)
		}
	}
	for name, value := range env {
		if keys.holds(value) {
			keys.names = append(keys.names, name)
		}
	}
	keys.strip(env)
	if policy != nil {
		policy.apply(env)
		keys.strip(env) // set may have brought one back
	}
	maps.DeleteFunc(env, func(name, _ string) bool { return strings.HasPrefix(name, ownPrefix) })
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// keyring is what no policy gives to a shell.
type keyring struct {
	names  []string
	values []string
}

func (k *keyring) hold(value string) {
	if value = strings.TrimSpace(value); len(value) >= MinValue {
		k.values = append(k.values, value)
	}
}

func (k *keyring) holds(value string) bool {
	return slices.Contains(k.values, strings.TrimSpace(value))
}

func (k *keyring) strip(env map[string]string) {
	maps.DeleteFunc(env, func(name, value string) bool {
		return slices.Contains(k.names, name) || k.holds(value)
	})
}
