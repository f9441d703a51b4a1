package edit

import (
	"testing"

	"agent/internal/sonny/screen/keys"
)

func TestAField(t *testing.T) {
	t.Parallel()
	m := keys.Default()
	var f Field
	if !f.Empty() || f.Text() != "" {
		t.Fatalf("the zero value holds %q", f.Text())
	}
	for _, r := range "make it" {
		if !f.Key(m, string(r), string(r)) {
			t.Fatalf("%q was not typed", r)
		}
	}
	if !f.Key(m, "backspace", "") || f.Text() != "make i" {
		t.Errorf("%q", f.Text())
	}
	if f.Key(m, "f5", "") || f.Key(m, "shift+enter", "") || f.Text() != "make i" {
		t.Errorf("a key that is not a field's was taken: %q", f.Text())
	}
	if line, x := f.Line("/ ", 40); line.String() != "/ make i" || x != 8 {
		t.Errorf("%q with the caret at %d", line, x)
	}
	f.Clear()
	if !f.Empty() {
		t.Errorf("%q is left", f.Text())
	}
}
