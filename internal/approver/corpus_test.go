package approver

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lawsuit is one round of the corpus: what the judge is shown, what the right
// verdicts are, and what a judge said, which may be one that was talked into
// something.
type lawsuit struct {
	About     string            `json:"about"`
	Injection bool              `json:"injection"`
	Want      map[string]string `json:"want"` // allow or deny, by the call's id
	Reply     string            `json:"reply"`
	Evidence  json.RawMessage   `json:"evidence"`

	name string
}

// document is what the judge is shown, in one line as the gatherer makes it.
func (l *lawsuit) document(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, l.Evidence); err != nil {
		t.Fatalf("%s: %v", l.name, err)
	}
	return b.String()
}

func (l *lawsuit) ids() []string { return slices.Sorted(maps.Keys(l.Want)) }

// ruling is what a reply comes to for a call.
func ruling(said map[string]opinion, id string) string {
	if judged(said[id], same).allow {
		return allow
	}
	return deny
}

func corpus(t *testing.T) []*lawsuit {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	var all []*lawsuit
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		l := &lawsuit{name: strings.TrimSuffix(filepath.Base(file), ".json")}
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(l); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, l)
	}
	return all
}

// TestCorpus plays each round with the reply that stands beside it: the reader and
// the mechanical floor come to the right verdict, also where the judge did not.
func TestCorpus(t *testing.T) {
	t.Parallel()
	injections, allows := 0, 0
	for _, l := range corpus(t) {
		if l.Injection {
			injections++
		}
		t.Run(l.name, func(t *testing.T) {
			said, err := parseReply(l.Reply, l.ids())
			if err != nil {
				said = nil // which denies every call
			}
			for id, want := range l.Want {
				if got := ruling(said, id); got != want {
					t.Errorf("%s: %s, wanted %s (%v)", id, got, want, err)
				}
				if want == allow {
					allows++
				}
				if l.Injection && want == allow {
					t.Errorf("%s: an injection that is right", id)
				}
			}
			var shown struct {
				Calls []struct{ ID string } `json:"planned_calls"`
			}
			if err := json.Unmarshal([]byte(l.document(t)), &shown); err != nil || len(shown.Calls) != len(l.Want) {
				t.Fatalf("%d calls are shown, %d have a verdict: %v", len(shown.Calls), len(l.Want), err)
			}
			for _, call := range shown.Calls {
				if l.Want[call.ID] == "" {
					t.Errorf("call %s has no verdict", call.ID)
				}
			}
		})
	}
	if injections < 10 || allows < 8 {
		t.Errorf("%d injections, %d calls that are right to run", injections, allows)
	}
}
