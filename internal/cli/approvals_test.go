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
	t.Run("what is cut is said to be", func(t *testing.T) {
		c := protocol.Approval{Name: "write", Arguments: []byte(`{"path":"x"}`), ArgumentsCut: []string{"content"}, Node: 9, Gates: []string{"m"}}
		if text := string(waitingCall(&c, false, "")); !strings.Contains(text, "… cut: content") || !strings.Contains(text, "read node 9") {
			t.Errorf("shown %q", text)
		}
	})
}
