package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agent/protocol"
)

func TestPreviewed(t *testing.T) {
	long := strings.Repeat("é", 3000)
	for _, c := range []struct{ name, args, want, cut string }{
		{"short ones stay as they came", `{"a": "x","b":{"c": [1.50]}}`, `{"a":"x","b":{"c": [1.50]}}`, "[] 0"},
		{"a text is cut to 2048 characters", `{"a":"` + long + `","b":1}`, `{"a":"` + long[:2*2048] + `","b":1}`, "[a] 0"},
		{"a text of 2048 characters is whole", `{"a":"` + long[:2*2048] + `"}`, `{"a":"` + long[:2*2048] + `"}`, "[] 0"},
		{"what there is no room for is counted", `{"a":[` + strings.Repeat("1,", 30_000) + `1],"b":"x"}`, `{}`, "[] 2"},
		{"a name given twice is shown twice", `{"a":1,"a":2}`, `{"a":1,"a":2}`, "[] 0"},
		{"no object", `[1]`, `{}`, "[] 1"},
		{"a broken one shows what can be read", `{"a":1,"b":`, `{"a":1}`, "[] 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shown, cut, omitted := previewed(json.RawMessage(c.args))
			if got := fmt.Sprint(cut, " ", omitted); string(shown) != c.want || strings.Join(strings.Fields(got), " ") != c.cut {
				t.Errorf("got %.80s %s, want %.80s %s", shown, got, c.want, c.cut)
			}
		})
	}
}

func FuzzPreviewed(f *testing.F) {
	for _, seed := range []string{`{"a":"x"}`, `{"a":"\ud83d\ude00","b":{"c":[]}}`, `[]`, `{"a":1,"a":2}`, `{"`, "{\"\xff\":1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		shown, cut, _ := previewed(args)
		if !json.Valid(shown) || shown[0] != '{' || len(shown) > shownMembers+8 || cut == nil {
			t.Errorf("%q is shown as %q", args, shown)
		}
	})
}

func TestCounts(t *testing.T) {
	t.Run("PR-59 an allow ends the row and the count of deadlines, and the window is of fifty verdicts", func(t *testing.T) {
		c := counts{Turn: 1, Tags: map[string]*tagCount{}}
		for range 3 {
			c.judged("t", protocol.Deny)
		}
		c.expired("t")
		c.tag("t").Expired++
		if d := c.of("t"); d.InRow != 4 || d.InTurn != 4 || d.Recent != 4 || d.Expired != 1 || d.Window != 50 {
			t.Errorf("got %+v", d)
		}
		for range 47 {
			c.judged("t", protocol.Allow)
		}
		if d := c.of("t"); d.InRow != 0 || d.InTurn != 4 || d.Recent != 3 || d.Expired != 0 {
			t.Errorf("got %+v", d)
		}
		if d := c.of("other"); d.InTurn != 0 || d.Window != 50 {
			t.Errorf("got %+v", d)
		}
	})
}

func TestStanding(t *testing.T) {
	for _, c := range []struct {
		decisions string
		want      standing
	}{
		{"", undecided},
		{"-", undecided},
		{"allow", allowedByAll},
		{"allow -", undecided},
		{"allow allow", allowedByAll},
		{"allow deny", deniedByOne},
		{"- deny", deniedByOne},
		{"expired allow", deniedByOne},
		{"Allow", deniedByOne},
		{"anything allow", deniedByOne},
	} {
		t.Run("R2 "+c.decisions, func(t *testing.T) {
			var r approvalRow
			for _, d := range strings.Fields(c.decisions) {
				r.Gates = append(r.Gates, gateVerdict{Tag: "t", Decision: strings.TrimPrefix(d, "-")})
			}
			if got := r.standing(); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
