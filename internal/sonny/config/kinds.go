package config

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agent/internal/place"
	"agent/protocol"
)

// A kind is what the value of a key may be.
type kind struct {
	must string // what it must be, for errors and the reference: "true or false"
	// take gives a value of a TOML file (string, bool, int64, float64, []any) as
	// Config holds it.
	take  func(v any) (any, bool)
	words []string // of a choice; nil for any other kind
	truth bool     // true or false
	// free is a text of any form, under a name of the person's: what looks like chance
	// in it is taken for a secret.
	free bool
}

var boolean = kind{must: "true or false", truth: true, take: func(v any) (any, bool) { b, ok := v.(bool); return b, ok }}

func one(must string, fits func(string) bool) kind {
	return kind{must: must, take: func(v any) (any, bool) { s, ok := v.(string); return s, ok && fits(s) }}
}

// choice is one of a few words.
func choice(words ...string) kind {
	k := one(OrList(words), func(s string) bool { return slices.Contains(words, s) })
	k.words = words
	return k
}

// OrList is `"a", "b" or "c"` of words, of which there is one at least.
func OrList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

func plain(s string) bool {
	return s != "" && !strings.ContainsAny(s, "\x00\n\r") && utf8.ValidString(s)
}

func textual(s string) bool { return !strings.Contains(s, "\x00") && utf8.ValidString(s) }

var (
	line     = one("a text of one line", plain)
	anyText  = one("a text", textual)
	freeText = kind{must: "a text", take: func(v any) (any, bool) { s, ok := v.(string); return s, ok && textual(s) }, free: true}
	modelRef = one(`a model, "PROVIDER/MODEL"`, func(s string) bool { _, _, ok := protocol.ParseModelRef(s); return ok })
	effort   = choice("default", protocol.ReasoningLow, protocol.ReasoningMedium, protocol.ReasoningHigh, protocol.ReasoningXHigh, protocol.ReasoningMax)
	filePath = pathOr(`a path, absolute or beginning with ~/`)
	absolute = one("an absolute path", func(s string) bool { return plain(s) && filepath.IsAbs(s) })
	clock    = one(`a time of day, "HH:MM"`, matching(`([01][0-9]|2[0-3]):[0-5][0-9]`))
	word     = one("a name of letters, digits, - and _, 64 at most", matching(`[A-Za-z0-9_-]{1,64}`))
	variable = one("the name of a variable", variableName)
	address  = one("an address that begins with http:// or https://", matching(`https?://[^\s/][^\s]*`))
	remote   = kind{must: "the address of a git repository", take: func(v any) (any, bool) {
		s, ok := v.(string)
		return s, ok && (s == "" || plain(s))
	}}
)

func matching(pattern string) func(string) bool {
	whole := regexp.MustCompile(`\A(?:` + pattern + `)\z`)
	return whole.MatchString
}

var variableName = matching(`[A-Za-z_][A-Za-z0-9_]*`)

// pathOr is one path. words are texts that stand for themselves.
func pathOr(must string, words ...string) kind {
	return kind{must: must, take: func(v any) (any, bool) {
		s, ok := v.(string)
		if !ok || slices.Contains(words, s) {
			return s, ok
		}
		return expanded(s)
	}}
}

// expanded is a path as it is used: absolute, clean, without ~.
func expanded(s string) (any, bool) {
	if !plain(s) {
		return nil, false
	}
	if rest, ok := strings.CutPrefix(s, "~"); ok && (rest == "" || rest[0] == '/') {
		home, err := place.Home()
		if err != nil {
			return nil, false
		}
		s = home + rest
	}
	return filepath.Clean(s), filepath.IsAbs(s)
}

// listOf is a list whose every element is of a kind of text.
func listOf(must string, of kind) kind {
	return kind{must: must, take: func(v any) (any, bool) {
		items, ok := v.([]any)
		if !ok {
			return nil, false
		}
		out := make([]string, len(items))
		for i, item := range items {
			text, ok := of.take(item)
			if !ok {
				return nil, false
			}
			out[i] = text.(string)
		}
		return out, true
	}}
}

var (
	lines     = listOf("a list of texts", line)
	words     = listOf("a list of texts", anyText)
	pathList  = listOf("a list of paths, each absolute or beginning with ~/", filePath)
	variables = listOf("a list of names of variables", variable)
	toolNames = listOf("a list of tools' names", one("", protocol.ValidToolName))
	fileNames = listOf("a list of file names without /", one("", func(s string) bool {
		return plain(s) && !strings.Contains(s, "/") && s != "." && s != ".."
	}))
)

// writableRoots is a pathList of what the daemon takes as writable folders: one that it
// would refuse in every sandbox makes every create fail (sandbox.md 3.1).
var writableRoots = kind{
	must: pathList.must + ": folders, 64 at most, neither / nor a file nor anything in ~/.agent but its worktrees",
	take: func(v any) (any, bool) {
		taken, ok := pathList.take(v)
		list, _ := taken.([]string)
		return taken, ok && len(list) <= protocol.MaxWritableRoots && !slices.ContainsFunc(list, protected)
	},
}

// protected reports whether no sandbox lets a path be a writable folder.
func protected(path string) bool {
	real := place.Real(path)
	if info, err := os.Lstat(real); real == "/" || err == nil && !info.IsDir() {
		return true
	}
	agent, err := place.AgentDir()
	if err != nil {
		return true
	}
	in := func(dir string) bool { return strings.HasPrefix(real, dir+"/") }
	agent = place.Real(agent)
	return (real == agent || in(agent)) && !in(filepath.Join(agent, "worktrees"))
}

func choices(of ...string) kind { return listOf("a list of "+OrList(of), choice(of...)) }

// whole is an integer of a range.
func whole(least, most int64) kind {
	must := fmt.Sprintf("a whole number from %d to %d", least, most)
	if most == math.MaxInt64 {
		must = fmt.Sprintf("a whole number of %d or more", least)
	}
	return kind{must: must, take: func(v any) (any, bool) { n, ok := v.(int64); return n, ok && n >= least && n <= most }}
}

// dollars is an amount of money of 0 or more.
var dollars = kind{must: "a number of 0 or more", take: func(v any) (any, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), n >= 0
	case float64:
		return n, n >= 0 && !math.IsInf(n, 0) // NaN is not >= 0
	}
	return nil, false
}}

const day = 24 * time.Hour

// span is a time from least to most, "90s" in a file. Each word stands for 0.
func span(least, most string, word ...string) kind {
	low, _ := parseSpan(least)
	high, _ := parseSpan(most)
	must := fmt.Sprintf(`a time from %q to %q`, least, most)
	if len(word) > 0 {
		must += ", or " + OrList(word)
	}
	return kind{must: must, take: func(v any) (any, bool) {
		s, ok := v.(string)
		if ok && slices.Contains(word, s) {
			return time.Duration(0), true
		}
		d, valid := parseSpan(s)
		return d, ok && valid && d >= low && d <= high
	}}
}

var units = []struct {
	suffix string
	of     time.Duration
}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", day}}

// parseSpan reads a whole number and its unit: ms, s, m, h or d.
func parseSpan(s string) (time.Duration, bool) {
	for _, u := range units {
		number, ok := strings.CutSuffix(s, u.suffix)
		if n, err := strconv.ParseUint(number, 10, 32); ok && err == nil && n <= math.MaxInt64/uint64(u.of) {
			return time.Duration(n) * u.of, true
		}
	}
	return 0, false
}

// seconds is a time as another program's configuration writes it: a number.
func seconds(least, most int64) kind {
	return kind{must: fmt.Sprintf("a number of seconds from %d to %d", least, most), take: func(v any) (any, bool) {
		n, ok := v.(int64)
		if f, isFloat := v.(float64); isFloat {
			n, ok = int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<40
		}
		return time.Duration(n) * time.Second, ok && n >= least && n <= most
	}}
}

// either is a value of one of two kinds.
func either(a, b kind) kind {
	return kind{must: a.must + ", or " + b.must, take: func(v any) (any, bool) {
		if taken, ok := a.take(v); ok {
			return taken, true
		}
		return b.take(v)
	}}
}
