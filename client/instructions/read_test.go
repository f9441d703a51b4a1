package instructions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

func TestHeadsAreShort(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       int
		code       protocol.Code
	}{
		{"a short file", "abc", 3, ""},
		{"a long one", strings.Repeat("x", 1<<20), maxHead, ""},
		{"a character that the cut goes through", strings.Repeat("x", maxHead-1) + "ü", maxHead - 1, ""},
		{"a long character that the cut goes through", strings.Repeat("x", maxHead-3) + "😀", maxHead - 3, ""},
		{"bytes that are none, before the cut", strings.Repeat("x", maxHead-9) + "\xff" + strings.Repeat("x", 100), 0, protocol.InstructionsUnreadable},
		{"bytes that are none, behind the cut", strings.Repeat("x", maxHead) + "\xff", maxHead, ""},
		{"half a character at the end", "ab\xc3", 0, protocol.InstructionsUnreadable},
		{"a byte order mark", "\uFEFFabc", 3, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "x")
			if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := readHead(path)
			if protocol.CodeOf(err) != row.code || err == nil && len(f.text) != row.want {
				t.Errorf("got %v, %v", f, err)
			}
		})
	}
}
