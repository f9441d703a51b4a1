package cells

import (
	"strings"
	"testing"

	"agent/internal/sonny/screen/md"
)

func TestUsed(t *testing.T) {
	t.Parallel()
	tr := New(md.Options{})
	for node, it := range []struct {
		turn    int64
		item    string
		steered bool
	}{
		{1, `{"role":"user","text":"first"}`, false},
		{1, `{"role":"assistant","text":"one"}`, false},
		{2, `{"role":"user","text":"second"}`, false},
		{2, `{"role":"user","text":"a steer"}`, true},
		{2, `{"role":"assistant","text":"two"}`, false},
	} {
		tr.Item(int64(node+1), it.turn, []byte(it.item), About{}, it.steered)
	}
	lines := func(l Look) string {
		var out []string
		for _, r := range tr.Rows(l, 0, tr.Height(l)) {
			out = append(out, strings.TrimSpace(r.Line.String()))
		}
		return strings.Join(out, "|")
	}
	all := Look{Width: 60, All: true, Fold: DefaultFold()}
	before := lines(all)
	tr.Used(1, "of the first")
	tr.Used(2, "of the second")
	tr.Used(3, "of none")
	if got, want := lines(all), "› first|of the first|one||› second|of the second||steered in  a steer|two"; strings.ReplaceAll(got, "› steered", "steered") != want {
		t.Errorf("%q, wanted %q; it was %q", got, want, before)
	}
	if got := lines(Look{Width: 60, Fold: DefaultFold()}); strings.Contains(got, "of the") {
		t.Errorf("where not all is shown: %q", got)
	}
}
