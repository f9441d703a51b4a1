package cli

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"agent/protocol"

	"github.com/go-json-experiment/json"
)

// setting is one key of a bot's settings (protocol.md 7): how its value is
// read, and the flag of run that is a shorthand for it.
type setting struct {
	key, flag   string        // flag is "" where only --set names the key
	unit        time.Duration // of a duration; 0: a plain number
	least, most int64
	words       []string // its values, when they are words
	usage       string
}

var settings = []setting{
	{"context_bytes", "context-bytes", 0, 1024, mostInteger, nil, "bytes of its history a model is shown; default the daemon's"},
	{"context_items", "context-items", 0, 2, mostInteger, nil, "items of its history a model is shown; default the daemon's"},
	{"note_turns", "note-turns", 0, 0, mostInteger, nil, "turns that its note is shown for; default the daemon's"},
	{"compact_at", "compact-at", 0, 1, 100, nil, "percent of the context at which it is compacted; default the daemon's"},
	{"compact_keep", "compact-keep", 0, 1, 100, nil, "percent of the context that compaction keeps as it is; default the daemon's"},
	{"retain_turns", "retain-turns", 0, 1, mostInteger, nil, "finished turns whose records are kept; default the daemon's"},
	{"max_output_tokens", "max-output-tokens", 0, 1, 1<<32 - 1, nil, "output tokens of one model call; default the daemon's"},
	{"keep_warm_seconds", "keep-warm", time.Second, 0, 299, nil, "seconds between the calls that keep its prompt cache; 0 off, default the daemon's"},
	{"cache_ttl", "cache-ttl", 0, 0, 0, []string{"5m", "1h"}, "how long a provider keeps its prompt cache; default the daemon's"},
	{"approval_hold_ms", "approval-hold-ms", time.Millisecond, 0, 600_000, nil, "milliseconds a call waits for an answer before its turn is parked; default the daemon's"},
	{"stall_timeout_seconds", "", time.Second, 1, 86_400, nil, ""},
	{"web_search", "", 0, 0, 0, []string{"live", "cached"}, ""},
}

func settingOf(key string) (setting, bool) {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.key == key })
	if i < 0 {
		return setting{}, false
	}
	return settings[i], true
}

func settingKeys() string {
	keys := make([]string, len(settings))
	for i, s := range settings {
		keys[i] = s.key
	}
	return strings.Join(keys, ", ")
}

// read is a value of the setting as JSON. name is the flag it was given with.
func (s setting) read(name, value string) (text string, err error) {
	var n int64
	switch {
	case s.words != nil:
		if !slices.Contains(s.words, value) {
			return "", usagef("--%s %s: it is one of %s", name, value, strings.Join(s.words, ", "))
		}
		return strconv.Quote(value), nil
	case s.unit != 0:
		n, err = duration(name, value, s.unit, s.least, s.most)
	default:
		n, err = integer(name, value, s.least, s.most)
	}
	return strconv.FormatInt(n, 10), err
}

// botSettings are what a line sets for one bot.
type botSettings struct {
	values map[string]string // JSON by key; null: back to the daemon's
	from   map[string]string // which flag named the key
}

// name takes a key's value; no line gives two.
func (b *botSettings) name(flag, key, value string) error {
	if before, ok := b.from[key]; ok {
		return usagef("--%s and --%s both name the setting %s", before, flag, key)
	}
	if b.values == nil {
		b.values, b.from = map[string]string{}, map[string]string{}
	}
	b.values[key], b.from[key] = value, flag
	return nil
}

// shorthands declares the flags that stand for a setting: those named, or all.
func (b *botSettings) shorthands(t *table, g group, names ...string) {
	for _, s := range settings {
		if s.flag == "" || names != nil && !slices.Contains(names, s.flag) {
			continue
		}
		hint := "N"
		if s.words != nil {
			hint = strings.Join(s.words, "|")
		} else if s.unit != 0 {
			hint = "TIME"
		}
		f := t.add(&flag{name: s.flag, hint: hint, words: s.words, usage: s.usage, group: g, set: func(v string) error {
			value, err := s.read(s.flag, v)
			if err != nil {
				return err
			}
			return b.name(s.flag, s.key, value)
		}})
		switch s.flag {
		case "retain-turns":
			t.alias(f, "keep-turns", nil)
		case "approval-hold-ms":
			t.alias(f, "approval-hold", unitRequired("approval-hold", f.set))
		}
	}
}

// set declares --set.
func (b *botSettings) set(t *table, g group) {
	t.add(&flag{name: "set", hint: "KEY=VALUE", group: g, usage: "any setting, by its key on the wire; repeatable", set: func(v string) error {
		key, value, ok := strings.Cut(v, "=")
		if !ok {
			return usagef("--set %s: it is KEY=VALUE", v)
		}
		s, ok := settingOf(key)
		if !ok {
			return usagef("--set %s: a setting is one of %s", v, settingKeys())
		}
		text, err := s.read("set "+key, value)
		if err != nil {
			return err
		}
		return b.name("set "+key, key, text)
	}}).repeat()
}

// unset declares --unset.
func (b *botSettings) unset(t *table, g group) {
	t.add(&flag{name: "unset", hint: "KEY", group: g, usage: "a setting that goes back to the daemon's value; repeatable", set: func(key string) error {
		if _, ok := settingOf(key); !ok {
			return usagef("--unset %s: a setting is one of %s", key, settingKeys())
		}
		return b.name("unset "+key, key, "null")
	}}).repeat()
}

// check is what the settings of one line must keep between them. Those that the
// bot or the daemon has besides are the daemon's to compare.
func (b *botSettings) check() error {
	at, errAt := strconv.ParseInt(b.values["compact_at"], 10, 64)
	keep, errKeep := strconv.ParseInt(b.values["compact_keep"], 10, 64)
	if errAt == nil && errKeep == nil && keep >= at {
		return usagef("--%s %d: it is less than --%s, which is %d", b.from["compact_keep"], keep, b.from["compact_at"], at)
	}
	return nil
}

// wire is the request's settings, or nil when the line has none.
func (b *botSettings) wire() (*protocol.Settings, error) {
	if len(b.values) == 0 {
		return nil, nil
	}
	var object bytes.Buffer
	object.WriteByte('{')
	for i, key := range slices.Sorted(maps.Keys(b.values)) {
		if i > 0 {
			object.WriteByte(',')
		}
		fmt.Fprintf(&object, "%q:%s", key, b.values[key])
	}
	object.WriteByte('}')
	s := new(protocol.Settings)
	return s, json.Unmarshal(object.Bytes(), s)
}
