package cli

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agent/protocol"

	"github.com/spf13/cobra"
)

// group says under which heading help lists a flag.
type group int

const (
	ofVerb group = iota
	ofNewBot
	ofDaemon
)

// flag is one flag of a verb. It is the pflag.Value that cobra fills in.
type flag struct {
	name       string
	hint       string             // what its value is called; "" for a toggle
	set        func(string) error // reads one value
	toggle     *bool              // what a flag without a value sets
	words      []string           // its values, when they are few: for completion
	paths      bool               // its value is a path: for completion
	repeatable bool
	aliases    []string
	usage      string
	group      group
	given      bool
}

func (f *flag) String() string { return "" }
func (f *flag) Type() string   { return f.hint }

// Set reads a value; pflag calls it. Its error becomes the whole usage error
// (see flagError).
func (f *flag) Set(value string) error {
	f.given = true
	if f.toggle != nil {
		*f.toggle = true
		return nil
	}
	return f.set(value)
}

func (f *flag) in(g group) *flag { f.group = g; return f }
func (f *flag) repeat() *flag    { f.repeatable = true; return f }

// table is the flags of one verb.
type table struct {
	verb    string
	flags   map[string]*flag // aliases too
	inOrder []*flag
}

func newTable(verb string) *table { return &table{verb: verb, flags: map[string]*flag{}} }

func (t *table) add(f *flag) *flag {
	t.flags[f.name] = f
	t.inOrder = append(t.inOrder, f)
	return f
}

// alias is another name for f. It reads its value in its own way where read is
// not nil.
func (t *table) alias(f *flag, name string, read func(string) error) {
	if read == nil {
		read = f.set
	}
	f.aliases = append(f.aliases, name)
	slices.Sort(f.aliases)
	t.flags[name] = &flag{name: f.name, hint: f.hint, words: f.words, set: func(v string) error {
		f.given = true
		return read(v)
	}}
}

func (t *table) given(name string) bool { return t.flags[name].given }

// givenIn is the first flag of a group that was given, or nil.
func (t *table) givenIn(g group) *flag {
	i := slices.IndexFunc(t.inOrder, func(f *flag) bool { return f.group == g && f.given })
	if i < 0 {
		return nil
	}
	return t.inOrder[i]
}

// bind gives cobra the table.
func (t *table) bind(cmd *cobra.Command) {
	for name, f := range t.flags {
		pf := cmd.Flags().VarPF(f, name, "", f.usage)
		pf.Hidden = name != f.name
		if f.toggle != nil {
			pf.NoOptDefVal = "true"
		}
		complete := cobra.NoFileCompletions
		if f.words != nil {
			complete = cobra.FixedCompletions(f.words, cobra.ShellCompDirectiveNoFileComp)
		} else if f.paths {
			complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveDefault
			}
		}
		cmd.RegisterFlagCompletionFunc(name, complete)
	}
}

// toggle is a flag without a value.
func (t *table) toggle(to *bool, name, usage string) *flag {
	return t.add(&flag{name: name, toggle: to, usage: usage})
}

// text is a flag with any text.
func (t *table) text(to *string, name, hint, usage string) *flag {
	return t.add(&flag{name: name, hint: hint, usage: usage, set: func(v string) error {
		if !utf8.ValidString(v) {
			return usagef("--%s is not UTF-8", name)
		}
		*to = v
		return nil
	}})
}

// filled is a flag whose text is not empty: a name, a tag, an id.
func (t *table) filled(to *string, name, hint, usage string) *flag {
	f := t.text(to, name, hint, usage)
	read := f.set
	f.set = func(v string) error {
		if v == "" {
			return usagef("--%s is empty; it needs %s", name, hint)
		}
		return read(v)
	}
	return f
}

// choice is a flag with one of a few words.
func (t *table) choice(to *string, name, usage string, words ...string) *flag {
	return t.add(&flag{name: name, hint: strings.Join(words, "|"), words: words, usage: usage, set: func(v string) error {
		if !slices.Contains(words, v) {
			return usagef("--%s %s: it is one of %s", name, v, strings.Join(words, ", "))
		}
		*to = v
		return nil
	}})
}

// list is comma separated; empty parts are ignored.
func (t *table) list(to *[]string, name, hint, usage string) *flag {
	return t.add(&flag{name: name, hint: hint, usage: usage, set: func(v string) error {
		*to = []string{}
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*to = append(*to, part)
			}
		}
		return nil
	}})
}

// texts is a repeatable flag.
func (t *table) texts(to *[]string, name, hint, usage string) *flag {
	return t.add(&flag{name: name, hint: hint, usage: usage, set: func(v string) error {
		if v == "" {
			return usagef("--%s is empty; it needs %s", name, hint)
		}
		*to = append(*to, v)
		return nil
	}}).repeat()
}

// path is a path, made absolute against the caller's folder: the daemon's own
// is another one.
func (t *table) path(to *string, name, hint, usage string) *flag {
	f := t.add(&flag{name: name, hint: hint, usage: usage, paths: true, set: func(v string) (err error) {
		*to, err = absolute(name, v)
		return err
	}})
	return f
}

// pathsOf is a repeatable path.
func (t *table) pathsOf(to *[]string, name, hint, usage string) *flag {
	f := t.add(&flag{name: name, hint: hint, usage: usage, paths: true, set: func(v string) error {
		abs, err := absolute(name, v)
		*to = append(*to, abs)
		return err
	}})
	return f.repeat()
}

func absolute(name, path string) (string, error) {
	if path == "" {
		return "", usagef("--%s is empty; it needs a path", name)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", usagef("--%s %s cannot be made absolute: %v", name, path, err)
	}
	return abs, nil
}

// number is an integer within bounds, both included.
func (t *table) number(to *int64, name string, least, most int64, usage string) *flag {
	return t.add(&flag{name: name, hint: "N", usage: usage, set: func(v string) (err error) {
		*to, err = integer(name, v, least, most)
		return err
	}})
}

// stated is a number that is known to have been given.
func (t *table) stated(to **int64, name string, least, most int64, usage string) *flag {
	return t.add(&flag{name: name, hint: "N", usage: usage, set: func(v string) error {
		n, err := integer(name, v, least, most)
		*to = &n
		return err
	}})
}

// statedTime is a duration that is known to have been given, counted in unit.
func (t *table) statedTime(to **int64, name string, unit time.Duration, least, most int64, usage string) *flag {
	return t.add(&flag{name: name, hint: "TIME", usage: usage, set: func(v string) error {
		n, err := duration(name, v, unit, least, most)
		*to = &n
		return err
	}})
}

// mostInteger is the greatest integer of the wire.
const mostInteger = protocol.MaxInteger

// integer reads a plain decimal.
func integer(name, text string, least, most int64) (int64, error) {
	n, ok := digits(strings.TrimPrefix(text, "-"))
	if strings.HasPrefix(text, "-") {
		n = -n
	}
	if !ok || n < least || n > most {
		return 0, usagef("--%s %s: it is an integer from %d to %d", name, text, least, most)
	}
	return n, nil
}

// digits reads decimal digits and nothing else. What does not fit reads as the
// greatest number, which no range holds.
func digits(text string) (int64, bool) {
	if text == "" {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return math.MaxInt64, true
	}
	return n, true
}

var units = []struct {
	suffix string
	of     time.Duration
}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}}

// duration reads a bare integer counted in unit, or a whole number with a unit
// that comes out whole in it (section 1).
func duration(name, text string, unit time.Duration, least, most int64) (int64, error) {
	if n, ok := digits(text); ok && n >= least && n <= most {
		return n, nil
	}
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.suffix)
		n, plain := digits(number)
		if !ok || !plain || n > math.MaxInt64/int64(u.of) {
			continue
		}
		d := time.Duration(n) * u.of
		if d%unit == 0 && int64(d/unit) >= least && int64(d/unit) <= most {
			return int64(d / unit), nil
		}
		break
	}
	counted := "seconds"
	if unit == time.Millisecond {
		counted = "milliseconds"
	}
	return 0, usagef("--%s %s: it is whole %s from %d to %d, or a whole number with ms, s, m or h that comes to that",
		name, text, counted, least, most)
}
