package rules

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func mustParse(t testing.TB, text string) *Set {
	t.Helper()
	s, err := Parse([]File{{Name: "test.rules", Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDecide(t *testing.T) {
	t.Parallel()
	type row struct {
		script string
		want   Decision
	}
	for _, group := range []struct {
		name, rules string
		rows        []row
	}{
		{"an allow rule", `prefix_rule(["git"])`, []row{
			{"git status", Allow}, {"git status && git log", Allow}, {"bash -c 'git status'", Allow}, {"/usr/bin/git x", None}, {"gitk", None}, {"", None},
		}},
		{"SB-73 a script with a command that no rule allows", `prefix_rule(["git"])`, []row{{"git status && curl x", None}, {"cd x && git y", None}}},
		{"SB-74 a script that is not plain", `prefix_rule(["git"])`, []row{{"git status > ~/x", None}, {"git $(x)", None}, {"A=1 git x", None}}},
		{"SB-75 look-alikes are not allowed", `prefix_rule(["git"])`, []row{{"./git x", None}, {"/tmp/git x", None}}},
		{"SB-109 shells that read start files", `prefix_rule(["git"])`, []row{{"bash -lc 'git x'", None}, {"zsh -c 'git x'", None}}},
		{"SB-76 a forbidden program in every form", `prefix_rule(["rm"], decision="forbidden")`, []row{
			{"ls; (r\\m -rf x)", Forbidden},
			{"env A=1 rm x", Forbidden},
			{"bash -c 'rm x'", Forbidden},
			{"/bin/rm x", Forbidden},
			{"./rm x", Forbidden},
			{"rmdir x", None},
			{"echo rm", None},
		}},
		{"SB-79 a script that does not parse", `prefix_rule(["rm"], decision="forbidden")`, []row{{"rm -rf x\n((", Forbidden}, {"ls 'unclosed", Prompt}}},
		{"SB-79 the same without a rule that restricts", `prefix_rule(["rm"])`, []row{{"rm -rf x\n((", None}}},
		{"the strictest wins", `
prefix_rule(["git"])
prefix_rule(["git", "push"], decision="prompt")
prefix_rule(["git", "push", ["-f", "--force"]], decision="forbidden")`, []row{
			{"git pull", Allow},
			{"git push", Prompt},
			{"git push -f", Forbidden},
			{"git push --force x", Forbidden},
			{"git pull && git push", Prompt},
			{"git -C . push", Allow},
			{"git push; git push -f", Forbidden},
		}},
		{"a program's paths", `
prefix_rule(["git", "status"])
prefix_rule(["/opt/x/tool"])
prefix_rule(["/bin/rm"], decision="prompt")
host_executable("git", ["/usr/bin/git"])`, []row{
			{"/usr/bin/git status", Allow}, {"/opt/git status", None}, {"/opt/x/tool a", Allow}, {"tool a", None}, {"rm x", Prompt}, {"/usr/bin/rm x", Prompt},
		}},
		{"alternatives of the first word make a rule each", `prefix_rule([["ls", "cat"], ["-l", "x"]])`, []row{{"ls -l", Allow}, {"cat x", Allow}, {"cat y", None}, {"ls", None}}},
	} {
		t.Run(group.name, func(t *testing.T) {
			s := mustParse(t, group.rules)
			for _, r := range group.rows {
				if v := s.Decide(r.script); v.Decision != r.want {
					t.Errorf("%q: got %v, want %v", r.script, v.Decision, r.want)
				}
			}
		})
	}
}

func TestVerdictNamesItsRules(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `
prefix_rule(["a"], decision="prompt", justification="why a")
prefix_rule(["b"], decision="forbidden", justification="why b")
prefix_rule(["c"])`)
	v := s.Decide("a; b; b 1; c")
	if v.Decision != Forbidden || len(v.Matches) != 1 || v.Matches[0].Justification != "why b" || v.Matches[0].Line != 3 || v.Matches[0].String() != "b" {
		t.Errorf("got %+v", v)
	}
	if v = s.Decide("c && c"); v.Decision != Allow || len(v.Matches) != 1 || v.Matches[0].File != "test.rules" {
		t.Errorf("got %+v", v)
	}
	if v = s.Decide("c ("); v.Decision != Prompt || !v.Unreadable || len(v.Matches) != 0 {
		t.Errorf("got %+v", v)
	}
}

func TestNamesFoldWhereTheFileSystemDoes(t *testing.T) {
	t.Parallel()
	want := None
	if runtime.GOOS == "darwin" {
		want = Forbidden
	}
	s := mustParse(t, `prefix_rule(["rm"], decision="forbidden")`)
	if v := s.Decide("RM x"); v.Decision != want {
		t.Errorf("got %v", v.Decision)
	}
}

// A script of the greatest size is decided in a time that a turn can wait for.
func BenchmarkDecide(b *testing.B) {
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "prefix_rule([\"tool%d\", \"x\"], decision=%q)\n", i, []string{"allow", "prompt", "forbidden"}[i%3])
	}
	s := mustParse(b, text.String())
	script := strings.Repeat("git status && ls -l | grep x; env A=1 make all\n", 1000)
	for b.Loop() {
		s.Decide(script)
	}
}
