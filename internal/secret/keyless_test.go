package secret

import (
	"slices"
	"testing"
)

func TestWithoutKeys(t *testing.T) {
	t.Parallel()
	env := []string{
		"PATH=/bin", "OPENAI_API_KEY=one-long-value", "COPY=one-long-value", "MINE=two-long-value", "ALIAS= two-long-value ",
		"OTHER=three-long-value", "SHORT=abc", "AWS_REGION=here", "AWS_SECRET_ACCESS_KEY=", "EMPTY=", "PATH=/usr/bin",
	}
	before := slices.Clone(env)
	got := WithoutKeys(env, []string{"MINE", "ABSENT"}, []string{"three-long-value", "", "abc"})
	if want := []string{"PATH=/bin", "SHORT=abc", "AWS_REGION=here", "EMPTY=", "PATH=/usr/bin"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Equal(env, before) {
		t.Errorf("the environment was changed: %q", env)
	}
}
