package window

import (
	"fmt"
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	p := Policy{Bounds: Bounds{Bytes: 64 << 10, Items: 100}, At: 75, Keep: 25}
	for _, tt := range []struct {
		name         string
		tail, pinned Span
		holds, worth bool
	}{
		{"a quarter of the bytes is enough", Span{Bytes: 16 << 10, Items: 2}, Span{}, true, true},
		{"less is not", Span{Bytes: 16<<10 - 1, Items: 2}, Span{}, false, true},
		{"a quarter of the items is enough", Span{Bytes: 10, Items: 25}, Span{}, true, true},
		{"what is pinned need not be kept as well", Span{Bytes: 10 << 10, Items: 2}, Span{Bytes: 6 << 10, Items: 1}, true, true},
		{"pinned items count too", Span{Bytes: 10, Items: 24}, Span{Items: 1}, true, true},
		{"a few bytes are no reason for a summary", Span{Bytes: 4<<10 - 1, Items: 5}, Span{}, false, false},
		{"a few items are", Span{Bytes: 1, Items: 6}, Span{}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := p.Holds(tt.tail, tt.pinned); got != tt.holds {
				t.Errorf("Holds = %v", got)
			}
			if got := p.Worth(tt.tail); got != tt.worth {
				t.Errorf("Worth = %v", got)
			}
		})
	}
	for _, tt := range []struct{ bytes, want int64 }{{9 << 10, 3 << 10}, {8 << 20, 64 << 10}} {
		if got := (Policy{Bounds: Bounds{Bytes: tt.bytes}}).MaxSummary(); got != tt.want {
			t.Errorf("a summary in %d bytes may take %d, want %d", tt.bytes, got, tt.want)
		}
	}
}

func TestKeepPrompts(t *testing.T) {
	list := func(n, size int) (out []Prompt) {
		for i := range n {
			out = append(out, Prompt{Turn: int64(i + 1), Text: strings.Repeat("p", size)})
		}
		return out
	}
	for _, tt := range []struct {
		name string
		list []Prompt
		room int64
		want string
	}{
		{"all that fit stay in order", list(4, 10), 1000, "1 2 3 4"},
		{"the middle is dropped, the newest first kept", list(7, 68), 300, "1 6 7"},
		{"an entry counts 32 bytes besides its text", list(3, 68), 299, "1 3"},
		{"never more than 16 KiB", list(20, 2016), 1 << 20, "1 2 3 4 17 18 19 20"},
		{"no room keeps none", list(3, 10), 0, ""},
		{"negative room keeps none", list(3, 10), -5, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range KeepPrompts(tt.list, tt.room) {
				got = append(got, fmt.Sprint(p.Turn))
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("kept %q, want %q", s, tt.want)
			}
		})
	}
	if got := CutPrompt(strings.Repeat("é", 2000)); len(got) > 2<<10 || !strings.HasSuffix(got, "é…") {
		t.Errorf("a long prompt is cut to %d bytes", len(got))
	}
}

func TestSummaryText(t *testing.T) {
	for _, tt := range []struct {
		name    string
		covered int64
		inside  bool
		want    string
	}{
		{"whole turns", 3, false, "Summary of this conversation, turns 1 to 3:\nS\n\nPrompts of these turns, word for word:\n[turn 1] hello"},
		{"part of a turn", 3, true, "Summary of this conversation, turns 1 to 2 and the first part of turn 3:\nS\n\nPrompts of these turns, word for word:\n[turn 1] hello"},
		{"part of the first turn", 1, true, "Summary of the first part of turn 1:\nS\n\nPrompts of these turns, word for word:\n[turn 1] hello"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := SummaryText("S", []Prompt{{1, "hello"}}, tt.covered, tt.inside); got != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
