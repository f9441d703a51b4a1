package live

import (
	"cmp"
	"encoding/json"
	"strings"
)

// planTool changes a bot's plan.
const planTool = "plan"

// maxActivity bounds what is kept of a call, in bytes.
const maxActivity = 200

// uses notes a call that began.
func (b *Bot) uses(call, tool, arguments string) {
	b.Activity = activity(tool, arguments)
	if tool == planTool {
		b.planning = call
	}
}

// activity is a call in a few words: its tool, and what that is used on where an argument
// of a known name says so.
func activity(tool, arguments string) string {
	var of struct{ Command, Path, URL, Name, Query string }
	_ = json.Unmarshal([]byte(arguments), &of) // those of other tools, and cut ones, say nothing
	subject, _, _ := strings.Cut(cmp.Or(of.Command, of.Path, of.URL, of.Name, of.Query), "\n")
	words := tool
	if subject != "" {
		words += "  " + subject
	}
	return strings.ToValidUTF8(words[:min(len(words), maxActivity)], "")
}
