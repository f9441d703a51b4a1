package rules

import "strings"

// wrapper is a program that runs the command in its arguments.
type wrapper struct {
	valued      string // one-letter options that take the next word
	duration    bool   // a duration of its own comes before the command
	assignments bool   // NAME=VALUE may come before the command
	mixed       bool   // options may follow assignments
}

var wrappers = map[string]wrapper{
	"command": {}, "builtin": {}, "nohup": {}, "setsid": {}, "busybox": {},
	"exec": {valued: "a"}, "nice": {valued: "n"}, "time": {valued: "fo"},
	"eval":    {assignments: true},
	"env":     {valued: "uCSaPLU", assignments: true},
	"timeout": {valued: "sk", duration: true}, "stdbuf": {valued: "ioe"},
	"sudo":  {valued: "ughpCTRDUrtca", assignments: true, mixed: true},
	"doas":  {valued: "uCa"},
	"xargs": {valued: "adEILnPsJRS"},
}

// expects is a set of what the next word of a wrapper may be.
type expects uint8

const (
	option   expects = 1 << iota // an option, or what follows the options
	value                        // the value of the option before
	duration                     // the wrapper's duration; options are over
	program                      // an assignment, or the command's program; options are over

	nothing expects = 0 // no further word is the wrapper's own
)

// places are where the wrapped command may begin, and where a word may be an
// option though its text does not say so. Where words can be read in several
// ways, since an option may or may not take the next word or an expansion may be
// anything, all of them are followed.
func (w wrapper) places(words []word) (commands, options []int) {
	next := option
	for i := 1; i < len(words) && next != nothing; i++ {
		after, begins := w.after(next, words[i])
		if begins {
			commands = append(commands, i)
		}
		if next&option != 0 && !words[i].whole && words[i].mayBeOption() {
			options = append(options, i)
		}
		if words[i].isGlob() {
			names, _ := w.after(next, words[i].asNames())
			after |= names
		}
		if words[i].many {
			after = w.afterMore(after)
		}
		if words[i].mayVanish() {
			after |= next
		}
		next = after
	}
	return commands, options
}

// afterMore is what may come when any words follow, or none.
func (w wrapper) afterMore(next expects) expects {
	for {
		after, _ := w.after(next, word{})
		if after|next == next {
			return next
		}
		next |= after
	}
}

// after is what may come after one word, and whether the wrapped command may
// begin with that word.
func (w wrapper) after(next expects, is word) (after expects, begins bool) {
	if next&option != 0 {
		after = w.afterOption(is)
		if !is.mustBeOption() {
			next |= w.behindOptions()
		}
	}
	if next&value != 0 {
		after |= option
	}
	if next&duration != 0 && is.mayBeDuration() {
		after |= program
	}
	if next&program != 0 {
		may, must := w.assigns(is)
		if may {
			after |= program
		}
		if may && w.mixed {
			after |= option
		}
		begins = !must
	}
	return after, begins
}

// behindOptions is what comes when the options are over.
func (w wrapper) behindOptions() expects {
	if w.duration {
		return duration
	}
	return program
}

// afterOption is what may come after a word that may be an option, nothing when
// it is none.
func (w wrapper) afterOption(is word) expects {
	switch {
	case !is.mayBeOption():
		return nothing
	case is.whole && is.text == "--":
		return w.behindOptions()
	case !is.whole && is.text == "":
		return option | value | w.behindOptions()
	case w.mustTakeNext(is):
		return value
	case w.mayTakeNext(is):
		return option | value
	}
	return option
}

// mustBeOption reports whether a word where options may come is one, whatever
// its expansions are.
func (w word) mustBeOption() bool {
	return strings.HasPrefix(w.text, "-") && (w.text != "-" || !w.whole)
}

func (w word) mayBeOption() bool { return w.mustBeOption() || !w.whole && w.text == "" }

// mayBeDuration reports whether a word may be a number of seconds; with any
// other, timeout ends and runs nothing. inf and nan are numbers to it, and a home
// folder may have any name.
func (w word) mayBeDuration() bool {
	return w.text == "" || strings.IndexByte("0123456789+. \t\niInN~", w.text[0]) >= 0 || w.isGlob()
}

func (w wrapper) mustTakeNext(is word) bool {
	return is.whole && len(is.text) == 2 && w.takes(is.text[1])
}

// mayTakeNext reports whether an option may take the next word: a long one
// without a value, letters of which the last does, and what is not wholly known.
func (w wrapper) mayTakeNext(is word) bool {
	if strings.HasPrefix(is.text, "--") {
		return !strings.Contains(is.text, "=")
	}
	return !is.whole || w.takes(is.text[len(is.text)-1])
}

func (w wrapper) takes(letter byte) bool { return strings.IndexByte(w.valued, letter) >= 0 }

// assigns reports whether a word before the command may be, and whether it must
// be, an assignment, or the lone dash that env takes.
func (w wrapper) assigns(is word) (may, must bool) {
	must = w.assignments && (strings.Contains(is.text, "=") || is.whole && is.text == "-")
	return must || w.assignments && !is.whole, must
}
