// Package setup connects a provider at the first run and later (sonny.md 19.1): whose a
// key is, whether the provider takes it, and where it is kept.
package setup

import (
	"slices"
	"strings"

	"agent/protocol"
)

// Provider is one that takes a key.
type Provider struct {
	Name     string // as models are named by it
	Label    string // as people call it
	Variable string // the key's
	prefix   string // of its keys
}

// providers are in the order in which their prefixes are looked at: the longer first.
var providers = []Provider{
	{"anthropic", "Anthropic", "ANTHROPIC_API_KEY", "sk-ant-"},
	{"openrouter", "OpenRouter", "OPENROUTER_API_KEY", "sk-or-"},
	{"openai", "OpenAI", "OPENAI_API_KEY", "sk-"},
}

// Providers are those that take a key, in the order of the screen.
func Providers() []Provider { return []Provider{providers[0], providers[2], providers[1]} }

// ByName is a provider by its name.
func ByName(name string) (Provider, bool) {
	for _, p := range providers {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// maxKey bounds a key, in bytes.
const maxKey = 4096

// Clean is a key as it was typed or pasted, without the blanks around it. One that is
// empty, longer than a line, or holds what no key does is refused, without a word of it.
func Clean(typed string) (string, error) {
	key := strings.TrimSpace(typed)
	switch {
	case key == "":
		return "", protocol.Fail(protocol.UsageError, "the key is empty")
	case len(key) > maxKey:
		return "", protocol.Fail(protocol.UsageError, "that is too long for a key")
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", protocol.Fail(protocol.UsageError, "a key is one line of printable ASCII without blanks; what was pasted is not")
	}
	return key, nil
}

// Digits reports whether what was typed is a number, which no key is.
func Digits(typed string) bool {
	return typed != "" && !strings.ContainsFunc(typed, func(r rune) bool { return r < '0' || r > '9' })
}

// leastKey is how long a key is at least, in bytes.
const leastKey = 8

// Short reports whether what was typed is too short for a key.
func Short(typed string) bool { return len(typed) < leastKey }

// tail is as much of a line's end as has the beginning of a key in it, once that is typed.
const tail = 16

// BeginsKey reports whether the last word of a line that is being typed begins as a key does.
func BeginsKey(line string) bool {
	line = line[max(0, len(line)-tail):]
	_, is := Whose(line[strings.LastIndexAny(line, " ,=\"'\n")+1:])
	return is
}

// HoldsKey reports whether a word of a line begins as a key does.
func HoldsKey(line string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,=\"'\n", r) }), func(word string) bool {
		_, is := Whose(word)
		return is
	})
}

// Whose is the provider that a key's prefix names; false for a key that could be
// anybody's, whose provider the person is asked for.
func Whose(key string) (Provider, bool) {
	for _, p := range providers {
		if strings.HasPrefix(key, p.prefix) {
			return p, true
		}
	}
	return Provider{}, false
}
