package cli

import (
	"fmt"
	"slices"

	"agent/internal/sonny/config"
)

// wordFlag is a flag that takes one of a few words. Any other, and an empty one, such as
// a script's variable that is not set, is a usage error whatever the verb: a flag that
// confines is never taken for one that was not given.
type wordFlag struct {
	value *string
	words []string
}

// oneOf is the flag that keeps its word in value, which is "" while it is not given.
func oneOf(value *string, words ...string) *wordFlag { return &wordFlag{value, words} }

func (f *wordFlag) String() string { return *f.value }

// Type is what the flag is called in help.
func (f *wordFlag) Type() string { return "string" }

func (f *wordFlag) Set(word string) error {
	if !slices.Contains(f.words, word) {
		return fmt.Errorf("it must be %s", config.OrList(f.words))
	}
	*f.value = word
	return nil
}
