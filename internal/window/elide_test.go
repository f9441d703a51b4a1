package window

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPolicy(t *testing.T) {
	p := Policy{Bounds: Bounds{Bytes: 64 << 10, Items: 100}, At: 75, Keep: 25}
	capped := p
	capped.Output = 1000
	large := p
	large.Output = 1 << 20
	for _, tt := range []struct {
		name        string
		p           Policy
		view        Span
		bytes, full bool
	}{
		{"nothing is due below both shares", p, Span{Bytes: 49151, Items: 74}, false, false},
		{"three quarters of the bytes are full", p, Span{Bytes: 49152, Items: 1}, true, true},
		{"three quarters of the items make a summary due, not an elision", p, Span{Bytes: 1, Items: 75}, false, true},
		{"four bytes for a token of the cap come off the trigger", capped, Span{Bytes: 45152}, true, true},
		{"and not one byte more", capped, Span{Bytes: 45151}, false, false},
		{"at most a quarter of the envelope comes off", large, Span{Bytes: 32767}, false, false},
		{"so that half of it is always free of room making", large, Span{Bytes: 32768}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.FullBytes(tt.view); got != tt.bytes {
				t.Errorf("FullBytes = %v", got)
			}
			if got := tt.p.Full(tt.view); got != tt.full {
				t.Errorf("Full = %v", got)
			}
		})
	}
}

func TestFloor(t *testing.T) {
	items := []Item{{9, 300}, {8, 100}, {7, 500}, {6, 10}}
	for _, tt := range []struct {
		name         string
		keep, newest int64
		want         int64
	}{
		{"the first item past the tail is the floor", 450, 8, 7},
		{"an item that just fits stays whole", 900, 9, 6},
		{"never past the model's newest output", 100, 7, 7},
		{"a tail that takes all moves nothing", 910, 9, 0},
		{"no output yet: nothing is old", 10, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Floor(tt.keep, tt.newest, slices.Values(items)); got != tt.want {
				t.Errorf("Floor = %d, want %d", got, tt.want)
			}
		})
	}
}

func TestStub(t *testing.T) {
	long := "start" + strings.Repeat("é", 4000) + "end"
	got := Stub(long, 42)
	for _, want := range []string{"8008 bytes", "result/42", "\nstarté", "éend"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if !utf8.ValidString(got) || len(got) > 700 {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
	if got := Stub("short", 1); !strings.HasSuffix(got, "\nshort") {
		t.Errorf("a short output is not whole: %q", got)
	}
}

func TestMissing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		m       Missing
		history bool
		want    string
	}{
		{
			"whole turns",
			Missing{Turns: 2, Items: 9},
			true,
			"Earlier parts of this conversation are not shown here: 2 turns, 9 messages. The history tool returns them: turns 1 to 2.",
		},
		{
			"part of a turn is counted apart",
			Missing{Turns: 2, Items: 9, Turn: 3, TurnItems: 4},
			true,
			"Earlier parts of this conversation are not shown here: 2 turns, 9 messages. Of turn 3, 4 messages after its prompt. The history tool returns them: turns 1 to 3.",
		},
		{
			"part of the first turn",
			Missing{Turn: 1, TurnItems: 4},
			false,
			"Earlier parts of this conversation are not shown here: of turn 1, 4 messages after its prompt.",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ContextNote(tt.m, tt.history, nil, 0); got != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
