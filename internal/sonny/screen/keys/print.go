package keys

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pelletier/go-toml/v2"
)

// WriteTable writes the map as a table, one action a line: its name, context, chords and
// what it does.
func (m *Map) WriteTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, b := range m.List() {
		context := string(b.Context)
		if b.Panel != "" {
			context += ":" + b.Panel
		}
		chords := strings.Join(b.Chords, ", ")
		if chords == "" {
			chords = "-"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", b.Action, context, chords, b.Does)
	}
	return tw.Flush()
}

// WriteTOML writes the map as the [tui.keys] of a config, which read back is the same map.
func (m *Map) WriteTOML(w io.Writer) error {
	if _, err := io.WriteString(w, "[tui.keys]\n"); err != nil {
		return err
	}
	for _, b := range m.List() {
		line, err := toml.Marshal(map[string][]string{b.Action: append([]string{}, b.Chords...)})
		if err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}
