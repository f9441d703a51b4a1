package notify

import (
	"context"
	"encoding/json"

	"agent/client"
	"agent/client/termsafe"
)

// WithContent adds to a note of a call what that would do, for a person who wants it told
// (notifications.content). Where that cannot be read the note stays as it is.
func WithContent(ctx context.Context, c *client.Client, n Note) Note {
	if n.Event != "approval" {
		return n
	}
	for call, err := range c.Approvals(ctx, client.ApprovalFilter{Bot: n.Bot}) {
		if err != nil {
			return n
		}
		if call.Request == n.Request {
			if does := subject(call.Arguments); does != "" {
				n.Body += ": " + does
			}
			return n
		}
	}
	return n
}

// subject is what a call's arguments are about; "" where they do not say it by a name
// that is known.
func subject(arguments json.RawMessage) string {
	var of struct{ Command, Path, URL string }
	if json.Unmarshal(arguments, &of) != nil {
		return ""
	}
	for _, does := range []string{of.Command, of.Path, of.URL} {
		if does != "" {
			return termsafe.OneLine(does)
		}
	}
	return ""
}
