package client

import (
	"slices"
	"testing"
)

func TestKeyVariables(t *testing.T) {
	t.Parallel()
	got := KeyVariables([]string{"anthropic", "a=chat,http://127.0.0.1:1/v1", "b=chat,http://127.0.0.1:1/v1,MY_KEY", "c=responses,,OTHER_KEY", "d=chat,,"})
	if want := []string{"MY_KEY", "OTHER_KEY"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
