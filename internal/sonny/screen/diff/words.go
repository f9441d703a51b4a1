package diff

import (
	"unicode"
	"unicode/utf8"

	"agent/internal/sonny/screen/text"
)

// Bounds of the search for changed words in a pair of lines.
const (
	maxWordLine = 4 << 10 // bytes
	maxWords    = 160     // that differ, a side
)

// stretch is a part of a line, up to a byte, and whether it changed.
type stretch struct {
	end     int
	changed bool
}

// changedWords compares a line that went with the one that came in its place. It
// gives nil for lines that have too little in common for marks to help.
func changedWords(old, new string) (was, is []stretch) {
	if len(old) > maxWordLine || len(new) > maxWordLine {
		return nil, nil
	}
	a, b := words(old), words(new)
	kept := common(a, b)
	was, is = stretches(a, kept.old), stretches(b, kept.new)
	if kept.size*3 < max(text.Width(old), text.Width(new)) {
		return nil, nil
	}
	return was, is
}

// words splits a line into words, runs of blanks, and single marks.
func words(s string) []string {
	var out []string
	from, at, last := 0, 0, 0
	for cluster := range text.Clusters(s) {
		kind := kindOf(cluster)
		if at > from && (kind != last || kind == mark) {
			out = append(out, s[from:at])
			from = at
		}
		last = kind
		at += len(cluster)
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}

// The kinds of what a terminal draws as one.
const (
	mark = iota // stands alone
	letter
	blank
)

func kindOf(cluster string) int {
	r, _ := utf8.DecodeRuneInString(cluster)
	switch {
	case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
		return letter
	case unicode.IsSpace(r):
		return blank
	}
	return mark
}

// keptWords are the words of two lines that stayed.
type keptWords struct {
	old, new []bool
	size     int // cells of them, blanks left out
}

// common finds what stayed: the beginning, the end, and between them the longest
// common sequence where that is cheap.
func common(a, b []string) keptWords {
	k := keptWords{old: make([]bool, len(a)), new: make([]bool, len(b))}
	keep := func(i, j int) {
		k.old[i], k.new[j] = true, true
		if kindOf(a[i]) != blank {
			k.size += text.Width(a[i])
		}
	}
	lo := 0
	for lo < len(a) && lo < len(b) && a[lo] == b[lo] {
		keep(lo, lo)
		lo++
	}
	hiA, hiB := len(a), len(b)
	for hiA > lo && hiB > lo && a[hiA-1] == b[hiB-1] {
		hiA--
		hiB--
		keep(hiA, hiB)
	}
	if hiA-lo <= maxWords && hiB-lo <= maxWords {
		sequence(a[lo:hiA], b[lo:hiB], func(i, j int) { keep(lo+i, lo+j) })
	}
	return k
}

// sequence yields the pairs of the longest common sequence.
func sequence(a, b []string, keep func(i, j int)) {
	best := make([][]int, len(a)+1)
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				best[i][j] = best[i+1][j+1] + 1
			} else {
				best[i][j] = max(best[i+1][j], best[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			keep(i, j)
			i++
			j++
		case best[i+1][j] >= best[i][j+1]:
			i++
		default:
			j++
		}
	}
}

// stretches joins words that share their fate. Blanks between two changed words
// count as changed, so that a phrase is one mark.
func stretches(words []string, kept []bool) []stretch {
	var out []stretch
	at := 0
	for i, w := range words {
		changed := !kept[i]
		if kept[i] && kindOf(w) == blank && i > 0 && i+1 < len(words) {
			changed = !kept[i-1] && !kept[i+1]
		}
		at += len(w)
		if n := len(out); n > 0 && out[n-1].changed == changed {
			out[n-1].end = at
			continue
		}
		out = append(out, stretch{at, changed})
	}
	return out
}
