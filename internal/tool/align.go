package tool

import "strings"

// maxAlign bounds the table of alignLines, in cells.
const maxAlign = 1 << 18

// alignLines gives for each new line the old line whose ending it takes: the
// one it equals, in a longest common subsequence; else the one it replaces;
// else the one it follows. New lines may carry a newline, old ones do not.
// There is at least one old line.
func alignLines(old, new []string) []int {
	bare := make([]string, len(new))
	for i, line := range new {
		bare[i] = strings.TrimSuffix(line, "\n")
	}
	same := commonLines(old, bare)
	from := make([]int, len(new))
	next := 0 // first old line that nothing new stands for yet
	for i := range from {
		limit := len(old) // where the next line that stays begins
		for j := i; j < len(same); j++ {
			if same[j] >= 0 {
				limit = same[j]
				break
			}
		}
		switch {
		case same[i] >= 0:
			from[i] = same[i]
			next = same[i] + 1
		case next < limit:
			from[i] = next
			next++
		case i > 0:
			from[i] = from[i-1]
		default:
			from[i] = min(next, len(old)-1)
		}
	}
	return from
}

// commonLines pairs equal lines: same[i] is the old line that new line i is, or
// -1. Past maxAlign only the lines at both ends are paired.
func commonLines(old, new []string) []int {
	same := make([]int, len(new))
	for i := range same {
		same[i] = -1
	}
	head := 0
	for head < len(old) && head < len(new) && old[head] == new[head] {
		same[head] = head
		head++
	}
	o, n := len(old), len(new)
	for o > head && n > head && old[o-1] == new[n-1] {
		o--
		n--
		same[n] = o
	}
	rows, cols := o-head, n-head
	if rows == 0 || cols == 0 || rows > maxAlign/cols {
		return same
	}
	// best[i*w+j] is the most lines that old from head+i and new from head+j
	// have in common.
	w := cols + 1
	best := make([]int32, (rows+1)*w)
	for i := rows - 1; i >= 0; i-- {
		for j := cols - 1; j >= 0; j-- {
			if old[head+i] == new[head+j] {
				best[i*w+j] = best[(i+1)*w+j+1] + 1
			} else {
				best[i*w+j] = max(best[(i+1)*w+j], best[i*w+j+1])
			}
		}
	}
	for i, j := 0, 0; i < rows && j < cols; {
		switch {
		case old[head+i] == new[head+j]:
			same[head+j] = head + i
			i++
			j++
		case best[(i+1)*w+j] >= best[i*w+j+1]:
			i++
		default:
			j++
		}
	}
	return same
}
