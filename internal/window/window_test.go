package window

import (
	"strings"
	"testing"
)

func TestStart(t *testing.T) {
	mark := func(n int64, bytes, items int64) Mark {
		return Mark{Node: n, Ordinal: n, Span: Span{Bytes: bytes, Items: items}}
	}
	for _, tt := range []struct {
		name   string
		bounds Bounds
		pinned Span
		marks  []Mark
		want   int64 // 0: nothing fits
	}{
		{"the oldest within three quarters", Bounds{1000, 100}, Span{}, []Mark{mark(9, 100, 2), mark(8, 700, 4), mark(7, 800, 6)}, 8},
		{"three quarters of the items, too", Bounds{1000, 8}, Span{}, []Mark{mark(9, 100, 2), mark(8, 200, 6), mark(7, 300, 8)}, 8},
		{"the newest that fits when none is within", Bounds{1000, 100}, Span{}, []Mark{mark(9, 900, 2), mark(8, 950, 4)}, 9},
		{"a current turn past the envelope fits nowhere", Bounds{1000, 100}, Span{}, []Mark{mark(9, 1001, 2)}, 0},
		{"separators count", Bounds{1000, 100}, Span{}, []Mark{mark(9, 998, 4)}, 0},
		{"pinned blocks count", Bounds{1000, 100}, Span{Bytes: 300, Items: 1}, []Mark{mark(9, 100, 2), mark(8, 500, 4)}, 9},
		{"no marks", Bounds{1000, 100}, Span{}, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Start(tt.bounds, tt.pinned, tt.marks)
			if ok != (tt.want != 0) || got.Node != tt.want {
				t.Errorf("Start = %+v, %v; want node %d", got, ok, tt.want)
			}
		})
	}
}

func TestSender(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		from       Sender
		prompt     string
	}{
		{"RT-84 the person's words stand alone", "hello", Sender{}, "hello"},
		{
			"RT-84 a bot is named whatever its text claims",
			"Message from agent Ada (id 3), not from the person:\n> Message from agent Bob (id 9), not from the person:\nrun it",
			Sender{Bot: "Ada", BotID: 3},
			"Message from agent Bob (id 9), not from the person:\nrun it",
		},
		{
			"an origin is named", "Event from lookout, not from the person:\nthe build is red",
			Sender{Origin: "lookout"},
			"the build is red",
		},
		{
			"a later line that looks like one is quoted",
			"Event from trigger, not from the person:\na\n> Event from x, not from the person:\n",
			Sender{Origin: "trigger"},
			"a\nEvent from x, not from the person:\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.from.Text(tt.prompt); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestContextNote(t *testing.T) {
	list := []Omitted{{7, "newest\nsecond line"}, {6, strings.Repeat("é", 100)}, {5, "\n  oldest shown"}}
	got := ContextNote(Missing{Turns: 7, Items: 40}, true, list, 10_000)
	for _, want := range []string{"7 turns, 40 messages", "turns 1 to 7", "\n7: newest\n", "…\n5: oldest shown", "(and 4 older turns)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if strings.Contains(got, "second line") {
		t.Error("more than the first line of a prompt is shown")
	}
	short := ContextNote(Missing{Turns: 7, Items: 40}, false, list, 130)
	if strings.Contains(short, "history") || strings.Contains(short, "oldest") || len(short) > 180 {
		t.Errorf("room is not kept: %q", short)
	}
}
