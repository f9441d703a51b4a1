package cli

import (
	"context"
	"encoding/json"
)

// require refuses a line that lacks a flag the verb cannot do without.
func (t *table) require(names ...string) error {
	for _, name := range names {
		if !t.given(name) {
			return usagef("%s needs --%s %s", t.verb, name, t.flags[name].hint)
		}
	}
	return nil
}

// reading is a verb that looks at a store: it starts a daemon for one that
// exists, and never makes one.
func (a *app) reading(c *common, s *startup, t *table, ask func(context.Context, *link) error, required ...string) func(context.Context, []string) error {
	return func(ctx context.Context, _ []string) error {
		if err := t.require(required...); err != nil {
			return err
		}
		l, err := a.connect(ctx, c, s, startExisting)
		if err != nil {
			return err
		}
		defer l.Close()
		return ask(ctx, l)
	}
}

// list prints all pages of a list: as one JSON array, or with --pretty as a
// table. fetch gives the next page and whether another follows.
func (a *app) list(columns []string, row func(json.RawMessage) ([]string, error), fetch func() ([]json.RawMessage, bool, error)) error {
	array, table := &array{a: a}, newGrid(a, columns)
	for {
		page, more, err := fetch()
		if err != nil {
			return err
		}
		for _, entry := range page {
			if !a.pretty {
				array.add(entry)
				continue
			}
			cells, err := row(entry)
			if err != nil {
				return err
			}
			table.add(cells)
		}
		if a.pretty {
			err = table.flush()
		} else if more {
			err = array.flush()
		} else {
			return array.end()
		}
		if err != nil || !more {
			return err
		}
	}
}
