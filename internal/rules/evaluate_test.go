package rules

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	s, err := Parse([]File{
		{Name: "a.rules", Text: `
names = ["git", "hg"]
for n in names:
    prefix_rule([n, "status"], match=[n + " status", [n, "status", "-s"]], not_match=["x", n])
def deny(p):
    prefix_rule(pattern=p, decision="forbidden", justification="no")
if True:
    deny(["rm"])
[prefix_rule([w]) for w in ["ls", "cat"]]
network_rule("example.com", "https", "allow", justification="docs")
prefix_rule(["x"], reviewer="auto_review")
prefix_rule(["git", "log"], match=["/usr/bin/git log"])
`},
		{Name: "b.rules", Text: `
host_executable(name="git", paths=["/usr/bin/git"])
prefix_rule(["echo", ["a b", "c"]], match=["echo 'a b'", 'echo "c" d'])`},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Rules()); n != 8 {
		t.Errorf("%d rules", n)
	}
	if r := s.Rules()[2]; r.Line != 6 || r.Decision != Forbidden || r.Justification != "no" {
		t.Errorf("got %+v", r)
	}
	if s, err := Parse(nil); err != nil || s.Decide("rm -rf /").Decision != None {
		t.Errorf("an empty set: %v", err)
	}
}

func TestParseRefuses(t *testing.T) { // by itself: the limit of memory is measured on the whole process
	for text, want := range map[string]string{
		"x = ":                                                "test.rules:1: ",
		"\nunknown()":                                         "test.rules:2: undefined: unknown",
		"prefix_rule()":                                       "test.rules:1: prefix_rule: missing argument for pattern",
		"prefix_rule([])":                                     "test.rules:1: pattern is empty",
		"prefix_rule([[]])":                                   "test.rules:1: pattern element 1 has no alternative",
		"prefix_rule([''])":                                   "test.rules:1: pattern begins with an empty word",
		"prefix_rule([1])":                                    "test.rules:1: pattern element 1 is a int",
		"prefix_rule(['a', ['b', 1]])":                        "test.rules:1: pattern element 2: a int is not a string",
		"prefix_rule('a')":                                    "test.rules:1: prefix_rule: for parameter pattern: got string, want list",
		"prefix_rule(['a'], decision='deny')":                 `test.rules:1: decision "deny" is not`,
		"prefix_rule(['a'], why='x')":                         "test.rules:1: prefix_rule: unexpected keyword argument",
		"prefix_rule(['a'], justification=' ')":               "test.rules:1: justification is blank",
		"prefix_rule(['a'], justification=1)":                 "test.rules:1: justification is a int",
		"prefix_rule(['a'], reviewer='me')":                   "test.rules:1: reviewer",
		"prefix_rule(['a'], match=[''])":                      "test.rules:1: match example 1: it is empty",
		"prefix_rule(['a'], match=[\"a 'b\"])":                "test.rules:1: match example 1: a quote is not closed",
		"prefix_rule(['a'], match=['a \\\\'])":                "test.rules:1: match example 1: it ends in a backslash",
		"prefix_rule(['a'], not_match=[1])":                   "test.rules:1: not_match example 1: a int",
		"\n\nprefix_rule(['a'], match=['b'])":                 `test.rules:3: the rule does not match its example "b"`,
		"prefix_rule(['a'], not_match=['a b'])":               `test.rules:1: the rule matches "a b"`,
		"host_executable('a/b', [])":                          `test.rules:1: name "a/b"`,
		"host_executable('a', ['b/a'])":                       `test.rules:1: path "b/a"`,
		"host_executable('a', ['/x/b'])":                      `test.rules:1: path "/x/b"`,
		"network_rule('h')":                                   "test.rules:1: network_rule: missing argument",
		"load('x', 'y')":                                      "test.rules:1: ",
		"def f(): f()\nf()":                                   "test.rules:1: function f called recursively",
		"def f():\n  return g()\ndef g():\n  return f()\nf()": "called recursively",
		"while True: pass":                                    "test.rules:1: ",
		"x = 'a' * 1000000000":                                "test.rules:1: the operator * is not available",
		"x = 'a'\nx *= 9":                                     "test.rules:2: the operator * is not available",
		"list(range(1000000000))":                             "test.rules:1: range of 1000000000 elements",
		"x = 0\nfor i in range(100000):\n  for j in range(100000):\n    x = x + 1": "too many steps",
		"s = 'aaaaaaaaaaaaaaaa'\nfor i in range(40):\n  s = s + s":                 "MiB to evaluate",
		"fail('stop')": "test.rules:1: fail: stop",
	} {
		_, err := Parse([]File{{Name: "test.rules", Text: text}})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || e.Limit {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestParseLimits(t *testing.T) { // by itself: the limit of memory is measured on the whole process
	many := make([]File, MaxFiles+1)
	for i := range many {
		many[i].Name = fmt.Sprintf("%d.rules", i)
	}
	for name, files := range map[string][]File{
		"257 rule files of at most 256": many,
		"bytes of at most 262144":       {{Name: "a", Text: strings.Repeat("#", MaxBytes+1)}},
		"more than 1024 rules":          {{Name: "a", Text: "[prefix_rule([str(i)]) for i in range(1025)]"}},
	} {
		_, err := Parse(files)
		var e *Error
		if !errors.As(err, &e) || !e.Limit || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if s, err := Parse([]File{{Name: "a", Text: "[prefix_rule([str(i)]) for i in range(1024)]"}}); err != nil || len(s.Rules()) != MaxRules {
		t.Errorf("1,024 rules: %v", err)
	}
	t.Run("the steps are those of all files together", func(t *testing.T) {
		half := "def f():\n  for i in range(100000):\n    pass\n  for i in range(50000):\n    pass\nf()"
		if _, err := Parse([]File{{Name: "a", Text: half}}); err != nil {
			t.Errorf("one file: %v", err)
		}
		if _, err := Parse([]File{{Name: "a", Text: half}, {Name: "b", Text: half}, {Name: "c", Text: half}, {Name: "d", Text: half}}); err == nil {
			t.Error("four such files are evaluated")
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(`prefix_rule(["git", ["a", "b"]], decision="prompt", match=["git a"])`)
	f.Add("for i in range(10):\n  host_executable(str(i), [])")
	f.Add("x = [i for i in range(3)]\nprint(x)")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse([]File{{Name: "f", Text: text}})
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%T: %v", err, err)
		}
		if err == nil {
			s.Decide("git a; b")
		}
	})
}
