package secret

import (
	"maps"
	"slices"
	"strings"
)

// ShellEnv is the environment of a bot's command before the daemon adds its
// own variables: base without the provider key variables and without any other
// variable that holds one of their values, and what policy leaves of the rest
// (approvals.md 19, steps 1 to 4). The result is sorted by name, each name
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
