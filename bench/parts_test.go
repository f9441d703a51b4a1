package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"agent/internal/fakemodel"
)

func TestPartOfAPrompt(t *testing.T) {
	t.Parallel()
	prompt := shell("printf 'a b'").prompt(3, 1, 4*kib)
	if len(prompt) != 4*kib {
		t.Errorf("a prompt of 4 KiB has %d bytes", len(prompt))
	}
	line, _, _ := strings.Cut(prompt, "\n")
	var p part
	if err := json.Unmarshal([]byte(line), &p); err != nil || p.Tool != "shell" || p.Rounds != 1 {
		t.Errorf("%v: the part is %+v", err, p)
	}
}

// TestPlayer follows one bot's requests through its parts.
func TestPlayer(t *testing.T) {
	t.Parallel()
	p := &player{bots: map[string]*playing{}, gates: map[string]*fakemodel.Gate{}}
	first := part{Tool: "echo", Arguments: json.RawMessage(`{}`), Rounds: 2, FailEvery: 4}
	for _, c := range []struct {
		name         string
		request      fakemodel.Request
		calls, fails bool
	}{
		{"a part begins with its first call", fakemodel.Request{Prompt: first.prompt(0, 0, 0)}, true, false},
		{"its second call", fakemodel.Request{Prompt: first.prompt(0, 0, 0), Rounds: 1, AfterResult: true}, true, false},
		{"then it answers", fakemodel.Request{Prompt: first.prompt(0, 0, 0), Rounds: 2, AfterResult: true}, false, false},
		{"every fourth request fails", fakemodel.Request{Prompt: first.prompt(0, 1, 0)}, false, true},
		{"the same part again begins anew", fakemodel.Request{Prompt: first.prompt(0, 1, 0)}, true, false},
		{"a text that is no part leaves it in force", fakemodel.Request{Prompt: "What was said before."}, true, false},
		{"what asks for a summary gets no call", fakemodel.Request{Prompt: summaryMark + " Now."}, false, false},
	} {
		c.request.Identity = "bot"
		if _, calls, fails := p.next(&c.request); calls != c.calls || fails != c.fails {
			t.Errorf("%s: calls %v, fails %v", c.name, calls, fails)
		}
	}
	wait := fakemodel.Request{AfterResult: true, Result: `{"handle":"proc:7","background":true}`}
	if got := p.handle(part{Await: true}, &wait); got != "proc:7" {
		t.Errorf("the command to wait for is %q", got)
	}
	wait.Result = `{"results":{"proc:7":{}},"pending":[]}`
	if got := p.handle(part{Await: true}, &wait); got != "" {
		t.Errorf("it waits for %q after the wait", got)
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	times := []pointTime{{"a", 10}, {"b", 15}, {"b", 20}, {"a", 30}, {"a", 40}, {"c", 50}, {"b", 60}}
	got := spans(times, "a", []string{"b", "c"})
	if len(got) != 2 || got[0] != 5*time.Nanosecond || got[1] != 10*time.Nanosecond {
		t.Errorf("the spans are %v", got)
	}
}

func TestDrift(t *testing.T) {
	t.Parallel()
	s := &sampler{}
	for n := range 100 {
		size := int64(10 * mib)
		if n < 10 || n >= 70 {
			size = 12 * mib
		}
		s.all = append(s.all, size)
	}
	if ratio, first, last := s.drift(); ratio != 1.2 || first != 10 || last != 12 {
		t.Errorf("%v of %v and %v", ratio, first, last)
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	parents := map[int]int{2: 1, 3: 2, 4: 1, 5: 6, 6: 5}
	for pid, want := range map[int]bool{2: true, 3: true, 4: false, 5: false, 1: false} {
		if got := below(parents, pid, 2); got != want {
			t.Errorf("process %d below 2: %v", pid, got)
		}
	}
}

func TestNoise(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"true", "false"} {
		var one, two bytes.Buffer
		if noise([]string{"65536", "1", raw}, &one) != 0 || noise([]string{"65536", "2", raw}, &two) != 0 {
			t.Fatal("it failed")
		}
		if one.Len() != 64*kib || two.Len() != 64*kib || bytes.Equal(one.Bytes(), two.Bytes()) {
			t.Errorf("raw %s: %d and %d bytes", raw, one.Len(), two.Len())
		}
	}
	if noise([]string{"1"}, &bytes.Buffer{}) == 0 {
		t.Error("a wrong line was taken")
	}
}
