package approver

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestReply(t *testing.T) {
	t.Parallel()
	ids := []string{"c1", "c2"}
	both := `{"verdicts":[{"id":"c1","outcome":"allow"},{"id":"c2","outcome":"deny"}]}`
	rows := []struct {
		name, text string
		want       string // the outcomes of c1 and c2, or "" for unparsable
	}{
		{"as the schema says", both, "allow deny"},
		{"in the other order", `{"verdicts":[{"id":"c2","outcome":"unclear"},{"outcome":"allow","id":"c1"}]}`, "allow unclear"},
		{"between blanks", "\n\t " + both + " \n", "allow deny"},
		{"between words and a fence", "Here it is:\n```json\n" + both + "\n```\nDone.", "allow deny"},
		{"every member given", `{"verdicts":[{"id":"c1","risk_level":"low","user_authorization":"unknown","outcome":"allow","rationale":"r"},{"id":"c2","outcome":"deny"}]}`, "allow deny"},
		{"a brace in a rationale", `{"verdicts":[{"id":"c1","outcome":"allow","rationale":"} {"},{"id":"c2","outcome":"deny"}]}`, "allow deny"},

		{"nothing", "", ""},
		{"AP-48 prose", "I would allow both of them.", ""},
		{"braces the wrong way round", "} {", ""},
		{"two objects", both + both, ""},
		{"two objects, one before the other in prose", `You asked for {"verdicts":[]}. ` + both, ""},
		{"a word in braces before it", "In {this} case: " + both, ""},
		{"cut short", both[:len(both)-3], ""},
		{"cut within a verdict, and closed again", `{"verdicts":[{"id":"c1","outcome":"allow"}`, ""},
		{"another member beside", `{"verdicts":[{"id":"c1","outcome":"allow"},{"id":"c2","outcome":"deny"}],"note":"x"}`, ""},
		{"another name for it", strings.Replace(both, "verdicts", "Verdicts", 1), ""},
		{"no list", `{"verdicts":{"id":"c1","outcome":"allow"}}`, ""},
		{"null for the list", `{"verdicts":null}`, ""},
		{"the list alone", `[{"id":"c1","outcome":"allow"},{"id":"c2","outcome":"deny"}]`, ""},
		{"AP-49 an id is missing", `{"verdicts":[{"id":"c1","outcome":"allow"}]}`, ""},
		{"AP-49 an id stands twice", `{"verdicts":[{"id":"c1","outcome":"allow"},{"id":"c1","outcome":"allow"},{"id":"c2","outcome":"deny"}]}`, ""},
		{"AP-49 an id twice in the place of another", `{"verdicts":[{"id":"c1","outcome":"deny"},{"id":"c1","outcome":"allow"}]}`, ""},
		{"an id that nobody asked about", `{"verdicts":[{"id":"c1","outcome":"allow"},{"id":"c3","outcome":"deny"}]}`, ""},
		{"one that nobody asked about, besides", `{"verdicts":[{"id":"c1","outcome":"allow"},{"id":"c2","outcome":"deny"},{"id":"c3","outcome":"deny"}]}`, ""},
		{"an id in capitals", strings.Replace(both, "c1", "C1", 1), ""},
		{"a verdict without an id", `{"verdicts":[{"outcome":"allow"},{"id":"c2","outcome":"deny"}]}`, ""},
		{"a verdict without an outcome", `{"verdicts":[{"id":"c1"},{"id":"c2","outcome":"deny"}]}`, ""},
		{"an outcome that is no word of its", strings.Replace(both, "allow", "Allow", 1), ""},
		{"null for an outcome", strings.Replace(both, `"allow"`, "null", 1), ""},
		{"true for an outcome", strings.Replace(both, `"allow"`, "true", 1), ""},
		{"a risk that is no word of its", `{"verdicts":[{"id":"c1","outcome":"allow","risk_level":"none"},{"id":"c2","outcome":"deny"}]}`, ""},
		{"an empty risk", `{"verdicts":[{"id":"c1","outcome":"allow","risk_level":""},{"id":"c2","outcome":"deny"}]}`, ""},
		{"null for a risk", `{"verdicts":[{"id":"c1","outcome":"allow","risk_level":null},{"id":"c2","outcome":"deny"}]}`, ""},
		{"an authorization that is no word of its", `{"verdicts":[{"id":"c1","outcome":"allow","user_authorization":"critical"},{"id":"c2","outcome":"deny"}]}`, ""},
		{"another member in a verdict", `{"verdicts":[{"id":"c1","outcome":"allow","sure":"yes"},{"id":"c2","outcome":"deny"}]}`, ""},
		{"an outcome twice, the second an allow", `{"verdicts":[{"id":"c1","outcome":"deny","outcome":"allow"},{"id":"c2","outcome":"deny"}]}`, ""},
		{"an outcome twice, once escaped", `{"verdicts":[{"id":"c1","outcome":"deny","outc\u006fme":"allow"},{"id":"c2","outcome":"deny"}]}`, ""},
		{"the list twice", `{"verdicts":[{"id":"c1","outcome":"deny"},{"id":"c2","outcome":"deny"}],"verdicts":[{"id":"c1","outcome":"allow"},{"id":"c2","outcome":"allow"}]}`, ""},
		{"bytes that are no UTF-8", strings.Replace(both, `"c1"`, "\"c1\",\"rationale\":\"\xff\"", 1), ""},
		{"a comment", strings.Replace(both, `[`, `[/*c*/`, 1), ""},
		{"a comma too many", strings.Replace(both, `]`, `,]`, 1), ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			said, err := parseReply(row.text, ids)
			got := strings.TrimSpace(said["c1"].outcome + " " + said["c2"].outcome)
			if got != row.want || (err == nil) != (row.want != "") {
				t.Errorf("got %q, error %v", got, err)
			}
		})
	}
}

func TestMechanicalFloor(t *testing.T) {
	t.Parallel()
	allowed := map[string]bool{
		"low unknown": true, "low low": true, "low medium": true, "low high": true,
		"medium unknown": true, "medium low": true, "medium medium": true, "medium high": true,
		"high medium": true, "high high": true,
	}
	t.Run("AP-46 an allow holds only for a risk that its authorization bears", func(t *testing.T) {
		for _, outcome := range outcomes {
			for _, risk := range riskLevels {
				for _, authorization := range authorizations {
					o := opinion{outcome, risk, authorization, "because"}
					want := outcome == allow && allowed[risk+" "+authorization]
					v := judged(o, same)
					kind := "judged dangerous: because. Do not"
					if outcome == unclear {
						kind = "judged unclear: because. Do not"
					}
					if v.allow != want || !v.reviewed || want != (v.reason == "") || !want && !strings.HasPrefix(v.reason, kind) {
						t.Errorf("%+v: %+v", o, v)
					}
				}
			}
		}
	})
	t.Run("what is left out is filled in", func(t *testing.T) {
		said, err := parseReply(`{"verdicts":[{"id":"a","outcome":"allow"},{"id":"b","outcome":"deny"},{"id":"c","outcome":"unclear"}]}`, []string{"a", "b", "c"})
		if err != nil || said["a"] != (opinion{allow, low, unknown, ""}) || said["b"] != (opinion{deny, high, unknown, ""}) || said["c"] != (opinion{unclear, high, unknown, ""}) {
			t.Errorf("%+v %v", said, err)
		}
	})
	t.Run("an allow's authorization alone does not lift a risk that is left out of a denial", func(t *testing.T) {
		said, _ := parseReply(`{"verdicts":[{"id":"a","outcome":"deny","risk_level":"low","user_authorization":"high"}]}`, []string{"a"})
		if judged(said["a"], same).allow {
			t.Error("allowed")
		}
	})
}

func same(text string) string { return text }

func TestRationale(t *testing.T) {
	t.Parallel()
	redact := func(text string) string { return strings.ReplaceAll(text, "sk-secret", "[secret: key]") }
	rows := []struct{ name, text, want string }{
		{"one line of it", "a\nb\r\n\tc\u2028d", "a b c d"},
		{"controls and bidirectional controls go", "a\x1b[2Jb\u202ec\u0000\u200bd\U000e0041", "a[2Jbcd"},
		{"secrets are masked, also where something unseen splits them", "it sends sk-\u200bsecret away", "it sends [secret: key] away"},
		{"nothing", " \n ", "no reason given"},
		{"only what cannot be seen", "\u200b\u202e", "no reason given"},
		{"too long", strings.Repeat("é", 600), strings.Repeat("é", 500)},
		{"no UTF-8", "a\xffb", "a�b"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := rationale(row.text, redact); got != row.want {
				t.Errorf("got %q", got)
			}
		})
	}
	t.Run("the reason ends with what to do next", func(t *testing.T) {
		v := judged(opinion{outcome: deny, risk: high, rationale: "It deletes."}, same)
		if v.reason != "judged dangerous: It deletes. "+afterJudged {
			t.Errorf("%q", v.reason)
		}
		if v := notReviewed(checkTimedOut); v.reason != "not reviewed: the check timed out. "+afterCheck || v.allow || v.reviewed {
			t.Errorf("%+v", v)
		}
	})
}

func TestPolicyText(t *testing.T) {
	t.Parallel()
	if !strings.HasPrefix(instructions(), "You review actions an AI agent has planned, before they run.") || !strings.HasSuffix(instructions(), schemaText) || !json.Valid([]byte(schemaText)) {
		t.Error("the policy does not end with its schema")
	}
	for _, word := range slices.Concat(outcomes, riskLevels, authorizations) {
		if !strings.Contains(schemaText, `"`+word+`"`) {
			t.Errorf("the schema has no word %s", word)
		}
	}
}

// FuzzReply: whatever a judge says, it does not panic, and nothing is allowed but
// what a reader of another make finds allowed too.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		`{"verdicts":[{"id":"c1","outcome":"allow"},{"id":"c2","outcome":"deny"}]}`,
		`x {"verdicts":[{"id":"c1","outcome":"allow","risk_level":"high","user_authorization":"medium","rationale":"r"},{"id":"c2","outcome":"unclear"}]} y`,
		`{"verdicts":[{"id":"c1","outcome":"allow","risk_level":"critical"},{"id":"c2","outcome":"allow","risk_level":"high"}]}`,
		`{"verdicts":[{"id":"c1","outcome":"deny","outcome":"allow"},{"id":"c2","outcome":"allow"}]}`,
		`{"verdicts":[]}{"verdicts":[]}`, `{`, `}{`, "", "{\"verdicts\":\xff}",
	} {
		f.Add(seed)
	}
	ids := []string{"c1", "c2"}
	f.Fuzz(func(t *testing.T, text string) {
		said, err := parseReply(text, ids)
		if err != nil {
			if len(said) != 0 {
				t.Fatal("an unparsable reply says something")
			}
			return
		}
		if len(said) != len(ids) {
			t.Fatalf("%d verdicts", len(said))
		}
		var plainly struct {
			Verdicts []map[string]string `json:"verdicts"`
		}
		object := text[strings.IndexByte(text, '{') : strings.LastIndexByte(text, '}')+1]
		if err := json.Unmarshal([]byte(object), &plainly); err != nil || len(plainly.Verdicts) != len(ids) {
			t.Fatalf("another reader finds %d verdicts: %v", len(plainly.Verdicts), err)
		}
		for id, o := range said {
			v := judged(o, same)
			if v.allow == (v.reason != "") || len([]rune(v.reason)) > 1000 || strings.ContainsAny(v.reason, "\n\r\x1b\u202e") {
				t.Fatalf("%+v", v)
			}
			if !v.allow {
				continue
			}
			i := slices.IndexFunc(plainly.Verdicts, func(m map[string]string) bool { return m["id"] == id })
			if i < 0 {
				t.Fatalf("%s is allowed and not there", id)
			}
			m := plainly.Verdicts[i]
			risky := m["risk_level"] == "critical" || m["risk_level"] == "high" && m["user_authorization"] != "medium" && m["user_authorization"] != "high"
			if m["outcome"] != "allow" || risky {
				t.Fatalf("%s is allowed by %v", id, m)
			}
		}
	})
}
