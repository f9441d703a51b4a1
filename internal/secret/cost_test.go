package secret

import (
	"io"
	"strings"
	"testing"
	"time"
)

// adversarial are texts that make a careless redactor look at each byte over
// and over, as units that are repeated.
var adversarial = map[string]string{
	"one run of capitals":           "ABCDEFGH",
	"fields on one line":            "password=",
	"fields with blanks":            "x password = ",
	"fields in quotes":              `"password":`,
	"options":                       "--password ",
	"dashes":                        "-",
	"BEGIN markers":                 "-----BEGIN PRIVATE KEY-----",
	"halves of BEGIN markers":       "-----BEGIN ",
	"backslashes":                   `\`,
	"quotes behind backslashes":     `\\\"`,
	"an opened value, backslashes":  `password="\\\`,
	"addresses":                     "://a:",
	"addresses with users":          "://a:b@",
	"an address without an end":     "a:b@",
	"headers on one line":           "authorization: ",
	"numbers before names":          "a:1:password=x,",
	"numbers in names":              "a-1-",
	"blanks":                        "  ",
	"opened placeholders":           "password=<a ",
	"YAML blocks":                   "password: |\n ",
	"a known value that breaks off": known[:len(known)-1],
	"marks":                         Mark,
	"values that start with marks":  "password=" + Mark + ";",
	"separators":                    "=:",
	"quotes":                        `"'`,
}

func TestCostOfAnyTextIsLinear(t *testing.T) {
	r := redactor(t)
	// Processor time: on a busy machine the clock goes on while others run. No
	// other test does: those that are parallel wait for this one's end.
	best := func(last time.Duration, text []byte) time.Duration {
		start := cpuTime(t)
		r.Bytes(text)
		return min(last, cpuTime(t)-start)
	}
	for name, unit := range adversarial {
		t.Run(name, func(t *testing.T) {
			once := []byte(strings.Repeat(unit, (256<<10)/len(unit)))
			twice := append(once[:len(once):len(once)], once...)
			small, large := time.Hour, time.Hour
			for range 20 { // until neither was disturbed
				small, large = best(small, once), best(large, twice)
				if large <= 3*small {
					return
				}
			}
			t.Errorf("%d bytes take %v, twice as many %v", len(once), small, large)
		})
	}
}

func TestNoMoreIsHeldThanIsUndecided(t *testing.T) {
	t.Parallel()
	r := redactor(t)
	line := strings.Repeat("MHcC", 16) + "\n"
	for _, row := range []struct {
		name        string
		start, unit string
		limit       int
	}{
		{"ordinary text", "", "2024-05-01 INFO server.go:12: served a=b\n", 1 << 10},
		{"one long line", "", "abc =def: ", 8 << 10},
		{"a quoted value without an end", `password="`, `abc \" `, 8 << 10},
		{"a value to a line's end", "password: ", "abc ", 8 << 10},
		{"blanks behind a value", "password: abcdefgh", "    ", 8 << 10},
		{"a line of a YAML block", "password: |\n  ", "abc ", 8 << 10},
		{"blanks in a YAML block", "password: |\n  ", "    ", 8 << 10},
		{"an address", "://a:", "bcde", 8 << 10},
		{"a key without an end", begin + "\n", line, 68 << 10},
		{"a key in one line", begin + "\n", "MHcC", 68 << 10},
		{"a known value again and again", "", known, 2 << 10},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := r.Stream(io.Discard).(*chain)
			io.WriteString(w, row.start)
			chunk := strings.Repeat(row.unit, (10<<10)/len(row.unit))
			for range 400 {
				io.WriteString(w, chunk)
				held := 0
				for _, p := range w.passes {
					held += p.held()
				}
				if held > row.limit {
					t.Fatalf("%d bytes held", held)
				}
			}
		})
	}
}

func TestWhatIsNoSecretIsShownAtOnce(t *testing.T) {
	t.Parallel()
	for _, text := range []string{">>> ", "Password: ", "password=", "$ ", "Continue? [y/N] ", "a: b", "see http:", "x --password ", `{"password": `, "password", "\n  "} {
		t.Run("AP-76 "+text, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			io.WriteString(redactor(t).Stream(&out), text)
			if out.String() != text {
				t.Errorf("of %q %q is shown", text, out.String())
			}
		})
	}
}

// TestAP75NoPieceHoldsAPartOfASecret reads what is shown after each byte.
func TestAP75NoPieceHoldsAPartOfASecret(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a known value": "a " + known + " b",
		"a field":       `{"password": "hunter2", "a": 1}`,
		"a line":        "password: correct horse\nx",
		"an address":    "x://ann:q9q9@mx.example/ y",
		"a key":         begin + "\nMHcC\nABCD\n" + end + "\nx",
		"a YAML block":  "password: |\n  one\n  two\nx: y",
		"a header":      "Authorization: Bearer abcdefgh\nx",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redactor(t)
			want := string(r.Bytes([]byte(text)))
			var out strings.Builder
			w := r.Stream(&out)
			for i := range len(text) {
				io.WriteString(w, text[i:i+1])
				if !strings.HasPrefix(want, out.String()) {
					t.Fatalf("after %q %q is shown, in the end %q", text[:i+1], out.String(), want)
				}
			}
			w.Close()
			if out.String() != want || !strings.Contains(want, Mark) {
				t.Errorf("in the end %q, as a whole %q", out.String(), want)
			}
		})
	}
}
