package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"agent/protocol"
)

var startVerb = verb{
	name:  "start",
	short: "start the daemon if none runs",
	long: "Prints the daemon's ready line with its socket and whether this command started it.\n" +
		"A daemon that runs is checked against the options given, and never changed.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), &startup{}
		t.startup(s)
		t.botDefaults(s)
		return func(ctx context.Context, _ []string) error {
			if _, err := s.limitsOf(); err != nil {
				return err
			}
			l, err := a.connect(ctx, c, s, startAny)
			if err == nil {
				defer l.Close()
				return a.printReady(l)
			}
			if errors.Is(err, protocol.DaemonProtocolMismatch) && l.ready != nil {
				if err := a.printReady(l); err != nil {
					return err
				}
			}
			return err
		}
	},
}

// printReady prints a ready line whole, with what the command adds to it.
func (a *app) printReady(l *link) error {
	object := bytes.TrimRight(l.ready.Line, " \t\r\n")
	object = bytes.Clone(bytes.TrimRight(bytes.TrimSuffix(object, []byte("}")), " \t"))
	object = appendText(append(object, `,"socket":`...), l.target.Socket)
	object = strconv.AppendBool(append(object, `,"started":`...), l.started)
	return a.printObject(json.RawMessage(append(object, '}')))
}
