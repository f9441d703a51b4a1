package config

import (
	"reflect"
	"slices"
)

// loosening reports whether a confining key's new value lets a bot, or what runs for
// it, do more than the old one. Both are as Config holds them; old is nil where
// nothing was set and there is no default. What is not known to be narrower counts as
// wider.
type loosening func(old, now any) bool

// rising is for words that are listed from the narrowest to the widest.
func rising(words ...string) loosening {
	return func(old, now any) bool { return rank(words, now) > rank(words, old) }
}

func rank(words []string, v any) int {
	s, _ := v.(string)
	return slices.Index(words, s)
}

// whenTrue and whenFalse are for switches.
func whenTrue(old, now any) bool  { return now == true && old != true }
func whenFalse(old, now any) bool { return now == false && old != false }

// whenGrown is for lists of what is allowed, whenShrunk for lists of what is not.
func whenGrown(old, now any) bool  { return !holdsAll(old, now) }
func whenShrunk(old, now any) bool { return !holdsAll(now, old) }

func holdsAll(list, of any) bool {
	all, _ := list.([]string)
	some, _ := of.([]string)
	for _, s := range some {
		if !slices.Contains(all, s) {
			return false
		}
	}
	return true
}

// onlyThese is for lists of what alone is allowed, of which an empty one allows
// everything.
func onlyThese(old, now any) bool {
	before, _ := old.([]string)
	after, _ := now.([]string)
	return len(before) > 0 && len(after) == 0 || len(before) > 0 && whenGrown(old, now)
}

// changed is for what cannot be compared: another command, another program.
func changed(old, now any) bool { return !reflect.DeepEqual(old, now) }

// never is for what confines nothing more or less: a gate that nobody answers in time
// denies.
func never(_, _ any) bool { return false }
