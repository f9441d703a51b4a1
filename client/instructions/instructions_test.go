package instructions

import (
	"strings"
	"testing"
	"unicode/utf8"

	"agent/protocol"
)

func TestTextsSayWhatTheyMust(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       []string
	}{
		{"the preamble", Preamble(), []string{
			`"$AGENT_BIN" run --detach --new --bot NAME`, `"$AGENT_BIN" fork --source`, `"$AGENT_BIN" models`, "--delivery queue",
			"`wait`", "AGENT_BOT_ID", "AGENT_TURN", "AGENT_PARENT_ID", "only to ask",
		}},
		{"the compaction text", Compaction(), []string{"Goal", "word for word", "Done", "blocked", "Decisions", "Files", "Next steps", "exactly", "summary alone"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if len(row.text) == 0 || len(row.text) > protocol.MaxText || !utf8.ValidString(row.text) {
				t.Errorf("%d bytes", len(row.text))
			}
			for _, want := range row.want {
				if !strings.Contains(row.text, want) {
					t.Errorf("it does not say %q", want)
				}
			}
		})
	}
}
