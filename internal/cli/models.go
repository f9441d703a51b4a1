package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"agent/client/modelsfile"
	"agent/protocol"
)

var modelsVerb = verb{
	name: "models", short: "the models list",
	long: "Prints what ~/.agent/models lists: one PROVIDER/MODEL a line there, # and a note\n" +
		"after it. Clients offer those; the daemon runs any model. No daemon is needed.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		a.common(t)
		return func(context.Context, []string) error { return a.models() }
	},
}

var modelsColumns = []string{"ID", "NOTE"}

func modelsRow(entry json.RawMessage) ([]string, error) {
	var m modelsfile.Model
	if err := json.Unmarshal(entry, &m); err != nil {
		return nil, err
	}
	return []string{m.ID, m.Note}, nil
}

func (a *app) models() error {
	path, err := modelsfile.DefaultPath()
	if err != nil {
		return err
	}
	list, there, err := modelsfile.Read(path)
	if err != nil {
		return err
	}
	if !there && a.pretty {
		fmt.Fprintf(a.stderr, "agent: there is no %s; write one PROVIDER/MODEL a line into it\n", oneLine(path))
	}
	return a.list(modelsColumns, modelsRow, func() ([]json.RawMessage, bool, error) {
		page := make([]json.RawMessage, len(list))
		for i := range list {
			if page[i], err = protocol.Append(nil, &list[i]); err != nil {
				return nil, false, err
			}
		}
		return page, false, nil
	})
}
