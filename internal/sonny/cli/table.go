package cli

import (
	"fmt"
	"strings"
	"time"

	"agent/client/termsafe"

	"github.com/clipperhouse/displaywidth"
)

// table prints records, one a line, under a line of headings: nothing is cut, and the
// last column is not padded. Cells are text from anywhere.
func (a *app) table(headings []string, rows [][]string) {
	all := append([][]string{headings}, rows...)
	widths := make([]int, len(headings))
	for i, row := range all {
		all[i] = make([]string, len(row))
		for k, cell := range row {
			all[i][k] = termsafe.OneLine(cell)
			widths[k] = max(widths[k], displaywidth.String(all[i][k]))
		}
	}
	for _, row := range all {
		var line strings.Builder
		for k, cell := range row {
			line.WriteString(cell)
			if k < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[k]-displaywidth.String(cell)+2))
			}
		}
		fmt.Fprintln(a.stdout, strings.TrimRight(line.String(), " "))
	}
}

// when is a time in a table; "-" for none.
func when(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).Local().Format("2006-01-02 15:04")
}
