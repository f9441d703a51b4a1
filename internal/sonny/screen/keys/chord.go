// Package keys is the map from keys to actions (sonny.md 15): how chords are spelled, the
// names of actions with their contexts and defaults, the person's own bindings, and what
// waits for the second key after the leader. It holds no clock and reads no file.
package keys

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LeaderChord begins the chords of two keys.
const LeaderChord = "ctrl+x"

// doubleEsc is the one sequence that does not begin with the leader.
const doubleEsc = "esc esc"

var modifiers = []string{"ctrl", "alt", "shift", "meta", "hyper", "super"} // in the order of a name

var keyNames = []string{
	"enter", "tab", "space", "backspace", "delete", "insert", "esc",
	"up", "down", "left", "right", "home", "end", "pgup", "pgdown",
}

var aliases = map[string]string{
	"return": "enter", "escape": "esc", "del": "delete", "ins": "insert", "bs": "backspace",
	"pageup": "pgup", "pagedown": "pgdown", "pgdn": "pgdown", " ": "space",
}

// Parse is a chord, or two keys with a space between, as the terminal names them. The
// error says what is wrong with it.
func Parse(s string) (string, error) {
	if s == " " {
		return "space", nil
	}
	parts := strings.Fields(s)
	if len(parts) == 0 || len(parts) > 2 {
		return "", fmt.Errorf("%q is no chord: write one like \"ctrl+k\", or two keys like %q", s, LeaderChord+" d")
	}
	for i, p := range parts {
		one, err := parseKey(p)
		if err != nil {
			return "", err
		}
		parts[i] = one
	}
	seq := strings.Join(parts, " ")
	if len(parts) == 2 && parts[0] != LeaderChord && seq != doubleEsc {
		return "", fmt.Errorf("%q: two keys begin with %s", s, LeaderChord)
	}
	if seq == LeaderChord {
		return "", fmt.Errorf("%q is the leader and cannot be bound alone", s)
	}
	return seq, nil
}

func parseKey(s string) (string, error) {
	mods, key := split(s)
	for _, m := range mods {
		if !slices.Contains(modifiers, m) {
			return "", fmt.Errorf("%q is no modifier of %q: they are %s", m, s, strings.Join(modifiers, " "))
		}
	}
	if utf8.RuneCountInString(key) == 1 {
		return typing(mods, key), nil
	}
	key = strings.ToLower(key)
	if a, ok := aliases[key]; ok {
		key = a
	}
	if !slices.Contains(keyNames, key) && !functionKey(key) {
		return "", fmt.Errorf("%q of %q is no key: write a character, f1 to f35, or %s", key, s, strings.Join(keyNames, " "))
	}
	return name(mods, key), nil
}

// split takes the modifiers from a key, which may be a plus itself.
func split(s string) (mods []string, key string) {
	for {
		i := strings.IndexByte(s, '+')
		if i <= 0 || i == len(s)-1 {
			return mods, s
		}
		mods, s = append(mods, strings.ToLower(s[:i])), s[i+1:]
	}
}

// typing names a chord on a key that types: Shift makes a letter a capital, and with Alt
// or Control is spelled out.
func typing(mods []string, key string) string {
	r, _ := utf8.DecodeRuneInString(key)
	only := !slices.ContainsFunc(mods, func(m string) bool { return m != "shift" })
	switch {
	case only && len(mods) > 0:
		return string(unicode.ToUpper(r))
	case len(mods) == 0:
		return key
	case unicode.IsUpper(r):
		if !slices.Contains(mods, "ctrl") {
			mods = append(mods, "shift")
		}
		key = string(unicode.ToLower(r))
	}
	return name(mods, key)
}

func name(mods []string, key string) string {
	var b strings.Builder
	for _, m := range modifiers {
		if slices.Contains(mods, m) {
			b.WriteString(m + "+")
		}
	}
	return b.String() + key
}

func functionKey(key string) bool {
	var n int
	_, err := fmt.Sscanf(key, "f%d", &n)
	return err == nil && n >= 1 && n <= 35 && key == fmt.Sprintf("f%d", n)
}

// types reports whether a chord types a character where text is taken.
func types(chord string) bool {
	return chord == "space" || utf8.RuneCountInString(chord) == 1
}

// Label is a chord as it stands on screen: "Ctrl+X d", "Alt+↑".
func Label(chord string) string {
	parts := strings.Split(chord, " ")
	for i, p := range parts {
		mods, key := split(p)
		for j, m := range mods {
			mods[j] = capital(m)
		}
		if arrow, ok := arrows[key]; ok {
			key = arrow
		} else if len(mods) > 0 || len(key) > 1 {
			key = capital(key)
		}
		parts[i] = strings.Join(append(mods, key), "+")
	}
	return strings.Join(parts, " ")
}

var arrows = map[string]string{"up": "↑", "down": "↓", "left": "←", "right": "→", "pgup": "PgUp", "pgdown": "PgDn"}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Sender is what the terminal can send.
type Sender struct {
	Protocol bool // the extended keyboard protocol
	Mac      bool // Option types characters by default
	Tmux     bool // Ctrl+B is tmux's own
}

// Can reports whether a chord arrives.
func (s Sender) Can(chord string) bool {
	for part := range strings.SplitSeq(chord, " ") {
		if s.Tmux && part == "ctrl+b" || !s.Protocol && !vt100(part) {
			return false
		}
	}
	return true
}

// vt100 reports whether a terminal without the protocol can send a key.
func vt100(chord string) bool {
	mods, key := split(chord)
	shift, ctrl, alt := slices.Contains(mods, "shift"), slices.Contains(mods, "ctrl"), slices.Contains(mods, "alt")
	switch {
	case slices.ContainsFunc(mods, func(m string) bool { return m == "meta" || m == "hyper" || m == "super" }):
		return false
	case key == "enter" || key == "esc" || key == "backspace" || key == "space":
		return !shift && (!ctrl || key == "space")
	case key == "tab":
		return !ctrl && !alt
	case len(key) > 1:
		return true // arrows and their like carry modifiers in every terminal
	case ctrl:
		return !shift && strings.Contains("abcdefghjklnopqrstuvwxyz_\\]^", key)
	case alt:
		return !strings.Contains("_[]^\\", key) && (!shift || !strings.Contains("opx", key))
	}
	return true
}

// Hint is the binding to name on screen: the first that arrives, a leader's form before
// one with Alt where Alt may not. "" for none.
func (s Sender) Hint(chords []string) string {
	var best string
	for _, c := range chords {
		if !s.Can(c) {
			continue
		}
		if best == "" || s.shy(best) && strings.HasPrefix(c, LeaderChord+" ") {
			best = c
		}
	}
	return best
}

func (s Sender) shy(chord string) bool {
	return (!s.Protocol || s.Mac) && strings.Contains(chord, "alt+")
}
