package keys

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agent/protocol"
)

// KeymapConflict is a chord that is bound twice in one context.
const KeymapConflict protocol.Code = "keymap_conflict"

// State is what bindings depend on beside the context.
type State struct {
	Empty bool   // the composer holds nothing
	Start bool   // the start screen is shown
	Panel string // the panel that is open, "" for none
}

func (s State) when() when {
	switch {
	case s.Start && s.Empty:
		return startEmpty
	case s.Start:
		return startText
	case s.Empty:
		return restEmpty
	}
	return restText
}

// Map is the bindings in force. It is a value for reading, safe for concurrent use.
type Map struct {
	rows []row
	own  map[string]bool // actions whose bindings are the person's
}

// Default is the map without the person's own bindings.
func Default() *Map {
	m := &Map{own: map[string]bool{}}
	for _, r := range table {
		if r.when == 0 {
			r.when = always
		}
		m.rows = append(m.rows, r)
	}
	return m
}

// New is the defaults with the person's own bindings, by action: each list replaces the
// action's chords, an empty one unbinds it. What is wrong with them is returned beside a
// map that can be used: an action or chord that is not known is left out, and for a
// chord bound twice in one context (keymap_conflict) the defaults hold, all of them.
func New(own map[string][]string) (*Map, []*protocol.Error) {
	m, faults := Default(), []*protocol.Error(nil)
	for _, action := range slices.Sorted(maps.Keys(own)) {
		chords, fault := parseAll(action, own[action])
		if fault == nil && !m.has(action) {
			fault = invalid(action, "is the name of no action; sonny keys lists them")
		}
		if fault == nil && len(chords) == 0 && m.bound(action) {
			fault = invalid(action, "cannot be unbound; it may have other keys beside its own")
		}
		if fault != nil {
			faults = append(faults, fault)
			continue
		}
		m.bind(action, chords)
	}
	if conflicts := m.conflicts(); len(conflicts) > 0 {
		return Default(), append(faults, conflicts...)
	}
	return m, faults
}

func invalid(action, what string) *protocol.Error {
	return protocol.Fail("config_invalid", fmt.Sprintf("tui.keys: %q %s", action, what))
}

func parseAll(action string, written []string) ([]string, *protocol.Error) {
	var chords []string
	for _, w := range written {
		c, err := Parse(w)
		if err != nil {
			return nil, invalid(action, "keeps its keys: "+err.Error())
		}
		if !slices.Contains(chords, c) {
			chords = append(chords, c)
		}
	}
	return chords, nil
}

func (m *Map) has(action string) bool {
	return slices.ContainsFunc(m.rows, func(r row) bool { return r.action == action })
}

// bound reports whether all keys of an action cannot be unbound.
func (m *Map) bound(action string) bool {
	return !slices.ContainsFunc(m.rows, func(r row) bool { return r.action == action && !r.fixed })
}

// bind replaces the chords of an action. One that it has by default stays where it
// stands, and one that cannot be unbound stays; others hold where the action's first do.
func (m *Map) bind(action string, chords []string) {
	m.own[action] = true
	left := slices.Clone(chords)
	first := -1
	for i := range m.rows {
		r := &m.rows[i]
		if r.action != action {
			continue
		}
		if first < 0 {
			first = i
		}
		if r.fixed {
			left = slices.DeleteFunc(left, func(c string) bool { return slices.Contains(r.keys, c) })
			continue
		}
		var kept []string
		for _, c := range chords {
			if slices.Contains(r.keys, c) && slices.Contains(left, c) {
				kept = append(kept, c)
				left = slices.DeleteFunc(left, func(l string) bool { return l == c })
			}
		}
		r.keys = kept
	}
	m.rows[first].keys = append(slices.Clone(m.rows[first].keys), left...)
	slices.SortStableFunc(m.rows[first].keys, func(a, b string) int {
		return cmp.Compare(order(chords, a), order(chords, b))
	})
}

// order is where a chord was written, before all others where it was not.
func order(chords []string, c string) int { return slices.Index(chords, c) }

// conflicts are the chords that two actions have at once. The keys that cannot be
// unbound are taken in every context.
func (m *Map) conflicts() []*protocol.Error {
	var found []*protocol.Error
	for i, a := range m.rows {
		for _, b := range m.rows[i+1:] {
			for _, c := range a.keys {
				if slices.Contains(b.keys, c) && m.meet(a, b) {
					found = append(found, conflict(c, a, b))
				}
			}
		}
	}
	return found
}

func (m *Map) meet(a, b row) bool {
	if a.action == b.action {
		return false
	}
	if a.context != b.context {
		return a.fixed && a.context == Global && m.own[b.action] && !b.fixed
	}
	return a.when&b.when != 0 && (a.in == b.in || a.in == "" || b.in == "")
}

func conflict(chord string, a, b row) *protocol.Error {
	where := string(a.context)
	if a.context != b.context {
		where = "every context"
	}
	return protocol.Fail(KeymapConflict, fmt.Sprintf(
		"%s is bound to %s and to %s in %s; the default keys hold until one of them gets another in [tui.keys]",
		chord, a.action, b.action, where))
}

// Find are the actions of a chord, the first context's first. Whoever asks takes the
// first that can be done now. Within a context an action for the state at hand comes
// before one whose states are others, which counts only where nothing else has the chord.
func (m *Map) Find(chord string, s State, contexts ...Context) []string {
	var found []string
	for _, c := range contexts {
		found = append(found, m.in(c, chord, s)...)
	}
	return found
}

func (m *Map) in(c Context, chord string, s State) []string {
	var now, other []string
	for _, r := range m.rows {
		if r.context != c || !slices.Contains(r.keys, chord) || r.in != "" && r.in != s.Panel {
			continue
		}
		if r.when&s.when() != 0 {
			now = append(now, r.action)
		} else if !r.hard && !types(chord) {
			other = append(other, r.action)
		}
	}
	if len(now) == 0 && !m.shared(c, chord) {
		return other
	}
	return now
}

// shared reports whether a chord means something else in other states of its context.
func (m *Map) shared(c Context, chord string) bool {
	n := 0
	for _, r := range m.rows {
		if r.context == c && slices.Contains(r.keys, chord) {
			n++
		}
	}
	return n > 1
}

// Chords are the keys of an action, in the order they are named. The slice is the
// caller's.
func (m *Map) Chords(action string) []string {
	var out []string
	for _, r := range m.rows {
		if r.action == action {
			out = append(out, r.keys...)
		}
	}
	return out
}

// Hint is the binding of an action to name on screen, labelled, "" for none.
func (m *Map) Hint(action string, s Sender) string {
	h := s.Hint(m.Chords(action))
	if h == "" {
		return ""
	}
	return Label(h)
}

// Choice is what a second key after the leader does.
type Choice struct{ Key, Action, Does string }

// Choices are the keys that mean something after the leader, in the order of the keys.
func (m *Map) Choices(s State, contexts ...Context) []Choice {
	var out []Choice
	for _, r := range m.rows {
		for _, c := range r.keys {
			key, ok := strings.CutPrefix(c, LeaderChord+" ")
			if ok && slices.Contains(contexts, r.context) && (r.in == "" || r.in == s.Panel) &&
				!slices.ContainsFunc(out, func(o Choice) bool { return o.Key == key }) {
				out = append(out, Choice{Key: key, Action: r.action, Does: r.does})
			}
		}
	}
	slices.SortFunc(out, func(a, b Choice) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// Binding is a row of the list of keys.
type Binding struct {
	Action  string
	Context Context
	Panel   string // the one panel it holds in, "" for any
	Chords  []string
	Does    string
	Own     bool // the person's own keys
}

// List is every action, each once, in the order of the list.
func (m *Map) List() []Binding {
	var out []Binding
	at := map[string]int{}
	for _, r := range m.rows {
		i, seen := at[r.action]
		if !seen {
			i = len(out)
			at[r.action] = i
			out = append(out, Binding{Action: r.action, Context: r.context, Panel: r.in, Does: r.does, Own: m.own[r.action]})
		}
		out[i].Chords = append(out[i].Chords, r.keys...)
	}
	return out
}
