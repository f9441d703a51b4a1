package screen_test

import (
	"strings"
	"testing"
)

// A branch is named by whoever may write the git folder; its name is drawn as nothing that
// a terminal acts on (sonny.md 8.4).
func TestABranchThatIsNamedToDeceive(t *testing.T) {
	t.Parallel()
	h, dir := demo(t)
	h.Git(dir, "checkout", "-q", "-b", "br\u202eRTL\U000e0041x")
	for _, how := range []string{"full", "inline", "plain"} {
		s := open(h, dir, "--screen", how)
		s.WaitFor("demo.lead")
		send(s, "say: hello from "+how)
		s.WaitRaw(0, "hello from "+how)
		h.Until("the end of the turn", func() bool { return strings.Contains(h.Sonny("status").Stdout, ": 0 working") })
		if how != "plain" {
			s.WaitFor("RTL")
		}
		if raw := string(s.Raw()); strings.ContainsAny(raw, "\u202e\U000e0041") {
			t.Errorf("%s draws the name as it is", how)
		}
		s.Kill()
	}
}
