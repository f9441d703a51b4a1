package cli

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"agent/protocol"
)

func TestWaitingCall(t *testing.T) {
	for _, id := range []string{"c1", "--help", `it's "q" $(touch pwned) ` + "`id`", "a b;c\nd", "x\u202e\x1b[2J"} {
		t.Run("AP-43 a printed command carries the call id as it is and runs nothing else: "+id, func(t *testing.T) {
			c := protocol.Approval{
				Bot: "Bob", Turn: 7, CallID: id, Request: 2, Name: "shell", Gates: []string{"manual", "second"}, Escalated: true,
				Arguments: []byte(`{"command":"one\n\u001b[2Jtwo","timeout_ms":5}`), Justification: "needs\nthe network",
			}
			text := string(waitingCall(&c, true, " --store /a/b"))
			if strings.ContainsAny(text, "\x1b\u202e") || !strings.Contains(text, "    one\n    \\u{1b}[2Jtwo\n    timeout_ms: 5\n") || strings.Contains(text, "needs\nthe") {
				t.Errorf("shown %q", text)
			}
			lines := regexp.MustCompile(`(?m)^    agent answer .*$`).FindAllString(text, -1)
			if len(lines) != 4 {
				t.Fatalf("%d commands in %q", len(lines), text)
			}
			out, err := exec.Command("bash", "-c", `agent() { printf '%s\0' "$@"; }`+"\n"+lines[0]).Output()
			want := []string{"answer", "--store", "/a/b", "--bot", "Bob", "--turn", "7", "--call=" + id, "--request", "2", "--tag", "manual", "allow", ""}
			if got := strings.Split(string(out), "\x00"); err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("%q passes %q (%v)", lines[0], got, err)
			}
		})
	}
	t.Run("AP-43 a step is shown with its call, and its commands name both", func(t *testing.T) {
		for _, step := range []string{"host-1", "--help", `a b"$(touch pwned)`} {
			c := protocol.Approval{
				Bot: "Bob", Turn: 7, CallID: "c 1", Step: step, Request: 1, Name: "mcp/files/delete\x1b[2J", Gates: []string{"manual"},
				Cause: "step", Arguments: []byte(`{"command":"x"}`), Justification: "it is old",
			}
			text := string(waitingCall(&c, true, ""))
			if strings.Contains(text, "\x1b") || !strings.HasPrefix(text, `⏸ mcp/files/delete\u{1b}[2J: "it is old"`+"\n") || !strings.Contains(text, "  step "+step+" of call c 1\n    command: x\n") {
				t.Errorf("shown %q", text)
			}
			lines := regexp.MustCompile(`(?m)^    agent answer .*$`).FindAllString(text, -1)
			if len(lines) != 2 {
				t.Fatalf("%d commands in %q", len(lines), text)
			}
			out, err := exec.Command("bash", "-c", `agent() { printf '%s\0' "$@"; }`+"\n"+lines[1]).Output()
			want := []string{"answer", "--bot", "Bob", "--turn", "7", "--call=c 1", "--step=" + step, "--request", "1", "--tag", "manual", "deny", ""}
			if got := strings.Split(string(out), "\x00"); err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("%q passes %q (%v)", lines[1], got, err)
			}
		}
	})
	t.Run("an action that is named as the shell hides none of its arguments", func(t *testing.T) {
		c := protocol.Approval{Step: "s", Name: "shell", Arguments: []byte(`{"command":"true","justification":"rm -rf ~"}`), Gates: []string{"m"}}
		if text := string(waitingCall(&c, true, "")); !strings.Contains(text, "justification: rm -rf ~") {
			t.Errorf("shown %q", text)
		}
	})
	t.Run("no line of an argument looks like another argument", func(t *testing.T) {
		c := protocol.Approval{
			Step: "s", Name: "start_task.start", Gates: []string{"m"},
			Arguments: []byte(`{"brief":"fix typos\nsetup: none\n  base: HEAD","base":"4f2a","setup":"#!/bin/sh\nbase: HEAD"}`),
		}
		text := string(waitingCall(&c, true, ""))
		for _, want := range []string{"    base: 4f2a\n", "    brief: \n    │ fix typos\n    │ setup: none\n    │   base: HEAD\n", "    setup: \n    │ #!/bin/sh\n    │ base: HEAD\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %q", want, text)
			}
		}
	})
	t.Run("what is cut is said to be", func(t *testing.T) {
		c := protocol.Approval{Name: "write", Arguments: []byte(`{"path":"x"}`), ArgumentsCut: []string{"content"}, Node: 9, Gates: []string{"m"}}
		if text := string(waitingCall(&c, false, "")); !strings.Contains(text, "… cut: content") || !strings.Contains(text, "read node 9") {
			t.Errorf("shown %q", text)
		}
	})
}
