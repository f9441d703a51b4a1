package hours

import "testing"

func TestFormat(t *testing.T) {
	for minutes, want := range map[int]string{5: "0:05", 60: "1:00", 90: "1:30"} {
		if got := Format(minutes); got != want {
			t.Errorf("Format(%d) is %q, want %q", minutes, got, want)
		}
	}
}
