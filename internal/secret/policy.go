package secret

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Policy is [shell_environment_policy] of config.toml: what of the daemon's
// environment a bot's shell gets (approvals.md 19). A nil *Policy is none.
type Policy struct {
	Inherit               string // "all", "core", "none"
	IgnoreDefaultExcludes bool
	Exclude               []string
	Set                   map[string]Value
	IncludeOnly           []string
}

// policyTable is the name of the table in config.toml.
const policyTable = "shell_environment_policy"

// LoadPolicy reads the policy from a config.toml. A missing file is no policy.
// Errors are those of ReadConfig and a table that does not check.
func LoadPolicy(path string) (*Policy, error) {
	file, err := ReadConfig(path)
	if err != nil {
		return nil, err
	}
	policy, err := policyOf(file)
	if err != nil {
		return nil, invalid("%s: %v", path, err)
	}
	return policy, nil
}

// ParsePolicy reads the policy from the text of a config.toml; nil when it has
// no such table. Everything else in the text only has to be TOML.
func ParsePolicy(data []byte) (*Policy, error) {
	file, err := ParseConfig(data)
	if err != nil {
		return nil, err
	}
	return policyOf(file)
}

func policyOf(file map[string]any) (*Policy, error) {
	value, ok := file[policyTable]
	if !ok {
		return nil, nil
	}
	table, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New(policyTable + " must be a table")
	}
	p := &Policy{Inherit: "all", IgnoreDefaultExcludes: true}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if err := p.take(key, table[key]); err != nil {
			return nil, fmt.Errorf("%s.%s %w", policyTable, key, err)
		}
	}
	return p, nil
}

func (p *Policy) take(key string, value any) (err error) {
	var ok bool
	switch key {
	case "inherit":
		p.Inherit, ok = value.(string)
		if !ok || !slices.Contains([]string{"all", "core", "none"}, p.Inherit) {
			return errors.New(`must be "all", "core" or "none"`)
		}
	case "ignore_default_excludes":
		if p.IgnoreDefaultExcludes, ok = value.(bool); !ok {
			return errors.New("must be true or false")
		}
	case "exclude":
		p.Exclude, err = stringList(value)
	case "include_only":
		p.IncludeOnly, err = stringList(value)
	case "set":
		p.Set, err = variables(value)
	default:
		return errors.New("is not a setting: use inherit, ignore_default_excludes, exclude, set or include_only")
	}
	return err
}

func stringList(value any) ([]string, error) {
	items, ok := value.([]any)
	if !ok {
		return nil, errors.New("must be a list of strings")
	}
	out := make([]string, 0, len(items))
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			return nil, errors.New("must be a list of strings")
		}
		out = append(out, text)
	}
	return out, nil
}

func variables(value any) (map[string]Value, error) {
	table, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("must be a table of strings")
	}
	out := make(map[string]Value, len(table))
	for name, v := range table {
		text, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("must be a table of strings: %q is none", name)
		}
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(text, "\x00") {
			return nil, fmt.Errorf("has %q, which cannot be a variable", name)
		}
		out[name] = NewValue(text)
	}
	return out, nil
}

// coreNames is what inherit = "core" keeps, compared without case.
var coreNames = []string{
	"PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER",
}

var defaultExcludes = []string{"*KEY*", "*SECRET*", "*TOKEN*"}

// apply carries out the policy's steps on env, in their order.
func (p *Policy) apply(env map[string]string) {
	switch p.Inherit {
	case "core":
		maps.DeleteFunc(env, func(name, _ string) bool {
			return !slices.ContainsFunc(coreNames, func(core string) bool { return strings.EqualFold(core, name) })
		})
	case "none":
		clear(env)
	}
	if !p.IgnoreDefaultExcludes {
		maps.DeleteFunc(env, func(name, _ string) bool { return matchesAny(defaultExcludes, name) })
	}
	maps.DeleteFunc(env, func(name, _ string) bool { return matchesAny(p.Exclude, name) })
	for name, value := range p.Set {
		env[name] = value.Reveal()
	}
	if len(p.IncludeOnly) > 0 {
		maps.DeleteFunc(env, func(name, _ string) bool { return !matchesAny(p.IncludeOnly, name) })
	}
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) })
}

// matches compares a whole name with a pattern, without regard to case: * is
// any run, also an empty one, ? exactly one character, nothing else special.
func matches(pattern, name string) bool {
	p, n := folded(pattern), folded(name)
	star, retry := -1, 0 // the last * seen, and where its run ends so far
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, retry = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			retry++
			i, j = star+1, retry
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// folded is text as characters, each as the least of those that differ from it
// in case alone.
func folded(text string) []rune {
	out := []rune(text)
	for i, r := range out {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		out[i] = least
	}
	return out
}
