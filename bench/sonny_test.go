package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"agent/protocol"
)

func TestReplies(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]func(int, string) string{"usual": replyOf, "terse": terseReply} {
		got := reply(50_000, longMark)
		if n := strings.Count(got, "\n") + 1; n != 50_000 || !strings.HasSuffix(got, longMark) {
			t.Errorf("%s: %d lines that end with %q", name, n, got[len(got)-20:])
		}
		for line := range strings.Lines(got) {
			if len(line) > 100 {
				t.Fatalf("%s: a line is longer than a row: %s", name, line)
			}
		}
	}
	item, err := json.Marshal(terseReply(sonnyWhole.many.long, longMark))
	if err != nil || len(item) > protocol.MaxLine-4*kib {
		t.Errorf("%v: the long reply has %d bytes and cannot be read again", err, len(item))
	}
}

func TestWhenBytesCame(t *testing.T) {
	t.Parallel()
	began := time.Now()
	term := &terminal{out: []byte("one two three"), reads: []arrival{{5, began}, {9, began.Add(1)}, {13, began.Add(2)}}}
	for text, want := range map[string]time.Duration{"one": 0, "two": 1, "three": 2, " t": 0} {
		if got := term.when(text).Sub(began); got != want {
			t.Errorf("%q came at %d, not %d", text, got, want)
		}
	}
	if !term.when("four").IsZero() {
		t.Error("what did not come did")
	}
	term.mark()
	if !term.when("one").IsZero() || term.written() != 0 {
		t.Error("the mark forgets nothing")
	}
}

// TestTerminal has a program that asks like Sonny and says what it got and was typed.
func TestTerminal(t *testing.T) {
	t.Parallel()
	script := fmt.Sprintf(`stty raw -echo; printf 'ask\033[c'; dd bs=1 count=%d 2>/dev/null | tr -c 'a-z0-9' .; printf ' ready'; dd bs=1 count=3 2>/dev/null | tr a-z A-Z; cat`, len(answersOfTerminal))
	term, err := openTerminal(exec.Command("sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	_, err = term.await(t.Context(), " ready")
	if err == nil && term.when("rgb.1010").IsZero() {
		t.Errorf("the answers are %q", term.out)
	}
	term.mark()
	term.write("key")
	if err == nil {
		_, err = term.await(t.Context(), "KEY")
	}
	if at, err := term.awaitFor(t.Context(), "no such text", time.Millisecond); err != nil || !at.IsZero() {
		t.Errorf("%v, %v", at, err)
	}
	if end := term.close(); err != nil || end != nil {
		t.Error(err, end)
	}
}
