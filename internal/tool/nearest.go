package tool

import (
	"bytes"
	"fmt"
	"strings"
)

// ways are the differences that an edit's text most often has from the file's,
// each with what makes texts equal that differ in it alone.
var ways = []struct {
	name string
	fold func(string) string
}{
	{"blanks", foldBlanks},
	{"quotes", foldQuotes},
	{"letter case", strings.ToLower},
}

func foldBlanks(s string) string { return strings.Join(strings.Fields(s), " ") }

var quotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "'", `"`, "‘", `"`, "’", `"`, "`", `"`)

func foldQuotes(s string) string { return quotes.Replace(s) }

// fold makes two lines equal that differ in any of the ways.
func fold(s string) string {
	for _, w := range ways {
		s = w.fold(s)
	}
	return s
}

// maxNear is how many lines of the text that was not found are compared.
const maxNear = 50

// nearest says why old is not in text: the line that nearly is what old has
// there, and how it differs. The text is masked, since a secret that is cut to
// be shown is not found any more.
func nearest(text []byte, old string) string {
	want := strings.Split(strings.Trim(old, "\n"), "\n")
	if len(want) > maxNear {
		want = want[:maxNear]
	}
	folded := make([]string, len(want))
	for i, line := range want {
		folded[i] = fold(line)
	}
	at, length := bestRun(text, folded)
	if length == 0 {
		return fmt.Sprintf("old is not in the file, and no line is like its first, %s", shown(want[0]))
	}
	lines := bytes.Split(text, []byte("\n"))
	for i := range length {
		have := string(lines[at+i])
		if how := differs(have, want[i], i == 0, i == len(want)-1); how != "" {
			return fmt.Sprintf("old is not in the file; line %d is near and differs in %s: the file has %s, old has %s",
				at+i+1, how, shown(have), shown(want[i]))
		}
	}
	if length < len(want) {
		have := "its end"
		if at+length < len(lines) {
			have = shown(string(lines[at+length]))
		}
		return fmt.Sprintf("old is not in the file; it agrees with it from line %d on, but at line %d the file has %s, old has %s",
			at+1, at+length+1, have, shown(want[length]))
	}
	return fmt.Sprintf("old is not in the file; line %d is near and differs in blanks", at+1)
}

// bestRun finds where the most lines in a row are like the wanted ones; the
// first place of several.
func bestRun(text []byte, want []string) (at, length int) {
	if strings.Join(want, "") == "" {
		return 0, 0
	}
	// runs[i] is how many wanted lines, up to the i-th, end at the line before.
	runs := make([]int, len(want)+1)
	number := 0
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		have := fold(string(line))
		for i := len(want); i > 0; i-- {
			switch {
			case !like(have, want[i-1], i == 1, i == len(want)):
				runs[i] = 0
			case i == 1:
				runs[i] = 1
			case runs[i-1] == i-1:
				runs[i] = i
			default:
				runs[i] = 0
			}
			if runs[i] > length {
				at, length = number-runs[i]+1, runs[i]
			}
		}
		number++
	}
	return at, length
}

// like compares a line with a wanted one, which is only a part of a line
// at the text's first and last.
func like(have, want string, first, last bool) bool {
	switch {
	case first && last:
		return want != "" && strings.Contains(have, want)
	case first:
		return want != "" && strings.HasSuffix(have, want)
	case last:
		return strings.HasPrefix(have, want)
	}
	return have == want
}

// differs names the fewest ways in which two lines that are like differ; "" for
// none.
func differs(have, want string, first, last bool) string {
	if like(have, want, first, last) {
		return ""
	}
	best := ""
	fewest := len(ways) + 1
	for set := 1; set < 1<<len(ways); set++ {
		a, b := have, want
		var names []string
		for i, w := range ways {
			if set&(1<<i) != 0 {
				a, b = w.fold(a), w.fold(b)
				names = append(names, w.name)
			}
		}
		if len(names) < fewest && like(a, b, first, last) {
			best, fewest = strings.Join(names, " and "), len(names)
		}
	}
	return best
}
