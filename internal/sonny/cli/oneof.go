package cli

import (
	"errors"
	"fmt"
	"slices"

	"agent/internal/sonny/config"

	"github.com/spf13/pflag"
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

// flagWants are the values that flags take, by the type of the flag.
var flagWants = map[string]string{
	"duration": "a time such as 90s or 10m", "int": "a whole number", "int64": "a whole number", "bool": "true or false",
	"stringSlice": "a list with commas",
}

// flagWords are what is wrong with a flag. What it takes stands in the place of what the
// reading of its value failed of.
func flagWords(err error) string {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err.Error()
	}
	wants := flagWants[bad.GetFlag().Value.Type()]
	if wants == "" {
		return err.Error()
	}
	return fmt.Sprintf("--%s %q is not %s", bad.GetFlag().Name, bad.GetValue(), wants)
}
