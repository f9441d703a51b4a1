package beside

import (
	"slices"
	"testing"
)

func TestOneAfterAnother(t *testing.T) {
	t.Parallel()
	var l Line
	var got []string
	begins := func(name string) func() { return func() { got = append(got, name) } }
	l.Next(begins("one"))
	l.Next(begins("two"))
	l.First(begins("before two"))
	if !slices.Equal(got, []string{"one"}) || !l.Busy() {
		t.Fatalf("begun while the first is under way: %q", got)
	}
	l.Done()
	l.Done()
	if want := []string{"one", "before two", "two"}; !slices.Equal(got, want) {
		t.Errorf("begun in the order %q", got)
	}
	l.Done()
	if l.Busy() {
		t.Error("it is busy with nothing")
	}
	l.First(begins("three"))
	if got[len(got)-1] != "three" {
		t.Errorf("what comes first into an empty line waits: %q", got)
	}
}
