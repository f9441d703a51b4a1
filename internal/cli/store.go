package cli

import (
	"context"

	"agent/client"
	"agent/internal/store"
	"agent/protocol"
)

var storeVerb = verb{
	name: "store", operands: "check", most: 1, words: []string{"check"},
	short: "check: look through a store that no daemon has open",
	long: "Looks through a store whose daemon is stopped: its file, its references, its rows.\n" +
		"It repairs nothing. The status is 0 for a sound store.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c := a.common(t)
		return func(_ context.Context, operands []string) error {
			if len(operands) == 0 || operands[0] != "check" {
				return usagef("store knows one word: agent store check")
			}
			return a.checkStore(c)
		}
	},
}

func (a *app) checkStore(c *common) error {
	target, err := client.Resolve(c.store, c.socket)
	if err != nil {
		return err
	}
	found, err := store.Check(target.Store)
	if protocol.CodeOf(err) == protocol.StoreAlreadyOwned {
		return protocol.Fail(protocol.StoreAlreadyOwned, "a daemon has "+target.Store+" open; end it with agent shutdown, then check")
	}
	if err != nil {
		return err
	}
	report, err := protocol.Append(nil, found)
	if err != nil {
		return err
	}
	if err := a.printObject(report); err != nil {
		return err
	}
	if !found.OK {
		return exit(1)
	}
	return nil
}
