// Package tools declares what Sonny's tool host serves (companions.md 3): names,
// descriptions, schemas. Whoever makes a bot sends these; the host answers their calls.
package tools

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agent/protocol"
)

// Tag is the tag under which the host serves all of them.
const Tag = "sonny"

//go:embed *.md *.json
var files embed.FS

// Kind says for whom a bot is made, and so which tools it gets.
type Kind int

// The kinds of bots.
const (
	Lead Kind = iota
	Home      // everything but start_task
	Task      // everything but start_task and ask_person: questions and splitting are the lead's
)

// declared are the tools in the order in which a model sees them, and how long a call
// may take beside the time that its steps wait.
var declared = []struct {
	name   string
	expire time.Duration // 0: setup's limit and five minutes
}{
	{"start_task", 0},
	{"memory", time.Minute},
	{"show_agent", time.Minute},
	{"ask_person", 24 * time.Hour},
	{"plan", time.Minute},
	{"pause", time.Minute},
	{"run_in_pane", 15 * time.Minute},
}

// startMargin is how much longer than the setup a start may take.
const startMargin = 5 * time.Minute

// For are the declarations for a bot. setup is how long a task's setup may take.
func For(kind Kind, setup time.Duration) []protocol.ClientTool {
	var out []protocol.ClientTool
	for _, d := range declared {
		if kind != Lead && d.name == "start_task" || kind == Task && d.name == "ask_person" {
			continue
		}
		expire := d.expire
		if expire == 0 {
			expire = setup + startMargin
		}
		ms, gated := expire.Milliseconds(), false
		out = append(out, protocol.ClientTool{
			Name: d.name, Description: strings.TrimSpace(text(d.name + ".md")), Parameters: schema(d.name),
			Tag: Tag, Gated: &gated, ExpireMS: &ms,
		})
	}
	return out
}

// Names are those of all tools.
func Names() []string {
	var out []string
	for _, d := range declared {
		out = append(out, d.name)
	}
	slices.Sort(out)
	return out
}

// CallKey tells calls apart, over restarts of the daemon too, in a form that a file can
// be named by. A call's id is the model's and may hold anything.
func CallKey(c *protocol.ToolCall) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", c.Request, c.CallID))
	return fmt.Sprintf("%d-%d-%s", c.BotID, c.Turn, hex.EncodeToString(sum[:12]))
}

// TurnOfKey is the turn of a call by its key, or by a file's name that begins with it; 0
// where that is none.
func TurnOfKey(key string) int64 {
	parts := strings.SplitN(key, "-", 3)
	if len(parts) < 3 {
		return 0
	}
	turn, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return 0
	}
	return turn
}

func text(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(data)
}

// schema is a tool's, from schemas.json.
func schema(name string) json.RawMessage {
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text("schemas.json")), &all); err != nil {
		panic(err)
	}
	return all[name]
}
