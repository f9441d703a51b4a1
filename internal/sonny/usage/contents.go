package usage

import (
	"bytes"
	"encoding/json"
	"strings"

	"agent/client/instructions"
	"agent/client/items"
	"agent/protocol"
)

// bytesPerToken is what the daemon, too, takes where no provider counted.
const bytesPerToken = 4

// A request carries at most so many pictures, and each counts as so many bytes.
const (
	mostPictures = 16
	pictureBytes = 8 << 10
)

// picture is what stands in an item for a picture.
var picture = []byte(`"@picture:`)

// Contents are what fills a bot's context, in bytes, as far as the daemon tells. The zero
// value is empty.
type Contents struct {
	Told, Memory, Skills int64 // of the instructions
	Tools                int64 // those that a client declared
	Messages, Replies    int64
	Thoughts, Calls      int64 // calls with their results
	Pictures             int64 // how many
}

// Share is a part of a context, in tokens as far as can be told from its bytes.
type Share struct {
	Name   string
	Tokens int64
}

// Instructions adds the text that a bot was made with.
func (c *Contents) Instructions(text string) {
	end := strings.LastIndex(text, "\n"+instructions.EndLine+"\n")
	into := &c.Told
	if end >= 0 {
		c.Told += int64(end)
		text = text[end:]
	}
	for line := range strings.SplitAfterSeq(text, "\n") {
		if end >= 0 {
			into = c.section(strings.TrimSuffix(line, "\n"), into)
		}
		*into += int64(len(line))
	}
}

// section is what a line of composed instructions counts for: a heading begins another
// part.
func (c *Contents) section(line string, now *int64) *int64 {
	switch {
	case line == "# Skills":
		return &c.Skills
	case line == "# Memory":
		return &c.Memory
	case line == "# Roles", line == "# Commons", strings.HasPrefix(line, "# Role: "):
		return &c.Told
	}
	return now
}

// Declared adds tools that a client declared.
func (c *Contents) Declared(tools []protocol.ClientTool) {
	for _, t := range tools {
		c.Tools += int64(len(t.Name) + len(t.Description) + len(t.Parameters))
	}
}

// Item adds an item of the history.
func (c *Contents) Item(item json.RawMessage) {
	c.Pictures += int64(bytes.Count(item, picture))
	for _, p := range items.Parts(item) {
		n := int64(len(p.Text) + len(p.Name))
		switch p.Kind {
		case items.Assistant:
			c.Replies += n
		case items.Thinking:
			c.Thoughts += n
		case items.Call, items.Result:
			c.Calls += n
		default:
			c.Messages += n
		}
	}
}

// Items are the bytes of the history.
func (c *Contents) Items() int64 { return c.Messages + c.Replies + c.Thoughts + c.Calls }

// Shares are the parts. measured is what the newest call took, 0 where none was made:
// what of it the parts do not explain is the daemon's own tools and what cannot be seen.
func (c *Contents) Shares(measured int64) []Share {
	pictures := min(c.Pictures, mostPictures) * pictureBytes
	out := []Share{
		{"instructions", c.Told / bytesPerToken},
		{"memory", c.Memory / bytesPerToken},
		{"skills index", c.Skills / bytesPerToken},
		{"tools of Sonny", c.Tools / bytesPerToken},
		{"messages", c.Messages / bytesPerToken},
		{"replies", c.Replies / bytesPerToken},
		{"thoughts", c.Thoughts / bytesPerToken},
		{"tool calls and results", c.Calls / bytesPerToken},
		{"pictures", pictures / bytesPerToken},
	}
	seen := int64(0)
	for _, s := range out {
		seen += s.Tokens
	}
	if measured > seen {
		out = append(out, Share{"other tools, and what is not told", measured - seen})
	}
	return out
}

// CompactsAt is about how many tokens a context has when it is summarized: so many percent
// of an envelope in bytes, less the room for a reply where its cap in tokens is known (0:
// it is not).
func CompactsAt(envelope, percent, replyCap int64) int64 {
	headroom := min(replyCap*bytesPerToken, envelope/4)
	return max(0, envelope*percent/100-headroom) / bytesPerToken
}

// CompactionOf is at how many tokens a bot's context is summarized; 0 for never.
func CompactionOf(record *protocol.Bot, limits *protocol.Limits) int64 {
	if record.CompactionInstructions == nil {
		return 0
	}
	reply := int64(0)
	if limits.OutputTokens != nil {
		reply = *limits.OutputTokens
	}
	set := &record.Settings
	return CompactsAt(set.ContextBytes.Or(limits.ContextBytes), set.CompactAt.Or(limits.CompactAt), set.MaxOutputTokens.Or(reply))
}
