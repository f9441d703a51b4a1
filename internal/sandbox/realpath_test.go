package sandbox

import "testing"

func TestRealPathOfNothing(t *testing.T) {
	t.Parallel()
	if path, err := RealPath(""); err == nil {
		t.Errorf("no path is %q", path)
	}
}
