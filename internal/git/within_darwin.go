package git

import (
	"context"
	"strings"
)

// seatbelt is macOS's launcher of confined commands.
const seatbelt = "/usr/bin/sandbox-exec"

// launch is how a command is begun that writes below w alone.
func (w *Within) launch(_ context.Context, _ string, argv []string) ([]string, error) {
	kept, err := w.kept()
	if err != nil {
		return nil, err
	}
	below := func(paths []string) string {
		var b strings.Builder
		for _, path := range paths {
			b.WriteString(" (subpath " + quoted(path) + ")")
		}
		return b.String()
	}
	profile := "(version 1)(allow default)(deny file-write*)(allow file-write* (subpath \"/dev\")" + below(w.Writable) + ")"
	if len(kept) > 0 {
		profile += "(deny file-write*" + below(kept) + ")"
	}
	return append([]string{seatbelt, "-p", profile, "--"}, argv...), nil
}

// quoted is a path as a string of a profile.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
