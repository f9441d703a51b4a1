// Package items takes stored items apart. An item stays in the encoding of the
// provider family that made it, so this reads the shapes of all of them
// (Messages, Responses, Chat Completions and the scripted family) and takes no
// more from each than what a person, or a program that judges, looks at.
//
// What an item says is no proof of who said it: a user's text may have come from
// another bot or from a program. Authorship is in the records that prompts gives.
package items

import (
	"encoding/json"
	"strings"
)

// Kind says what a part is.
type Kind string

// The kinds of a part.
const (
	User      Kind = "user"
	Assistant Kind = "assistant"
	Thinking  Kind = "thinking"
	Call      Kind = "tool_call"
	Result    Kind = "tool_result"
	Other     Kind = "other" // what no family is known to write
)

// Part is a piece of a stored item.
type Part struct {
	Kind   Kind
	Name   string // the tool of a call
	CallID string // of a call and of a result
	Text   string // of a call: its arguments, as JSON text
}

// stored is the union of the families' items.
type stored struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Text      string          `json:"text"`     // scripted
	Thinking  string          `json:"thinking"` // scripted
	Output    json.RawMessage `json:"output"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	ToolCall  string          `json:"tool_call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Summary   json.RawMessage `json:"summary"` // of reasoning
	Calls     []storedCall    `json:"calls"`   // scripted
	ToolCalls []storedCall    `json:"tool_calls"`
}

type storedCall struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Function  struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// block is a part of a content list.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Refusal   string          `json:"refusal"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// Parts takes an item apart, in the order in which it holds its parts. An item
// of no known shape is one Other part; one without text or calls has none.
func Parts(item json.RawMessage) []Part {
	var it stored
	if json.Unmarshal(item, &it) != nil {
		return []Part{{Kind: Other}}
	}
	switch {
	case it.Type == "function_call":
		return []Part{{Kind: Call, Name: it.Name, CallID: it.CallID, Text: plain(it.Arguments)}}
	case it.Type == "function_call_output":
		return []Part{{Kind: Result, CallID: it.CallID, Text: contentText(it.Output)}}
	case it.Type == "reasoning":
		return []Part{{Kind: Thinking, Text: contentText(it.Summary)}}
	case it.Role == "tool":
		return []Part{{Kind: Result, CallID: it.ID + it.ToolCall, Text: contentText(it.Output) + contentText(it.Content)}}
	case it.Role == string(User) || it.Role == string(Assistant):
		return it.message()
	}
	return []Part{{Kind: Other}}
}

// message is the parts of a user's or an assistant's item.
func (it *stored) message() []Part {
	var list []Part
	if it.Thinking != "" {
		list = append(list, Part{Kind: Thinking, Text: it.Thinking})
	}
	if it.Text != "" {
		list = append(list, Part{Kind: Kind(it.Role), Text: it.Text})
	}
	list = append(list, it.blocks()...)
	for _, c := range it.Calls {
		list = append(list, Part{Kind: Call, Name: c.Tool, CallID: c.ID, Text: plain(c.Arguments)})
	}
	for _, c := range it.ToolCalls {
		list = append(list, Part{Kind: Call, Name: c.Function.Name, CallID: c.ID, Text: plain(c.Function.Arguments)})
	}
	return list
}

func (it *stored) blocks() []Part {
	var text string
	if json.Unmarshal(it.Content, &text) == nil && text != "" {
		return []Part{{Kind: Kind(it.Role), Text: text}}
	}
	var blocks []block
	if json.Unmarshal(it.Content, &blocks) != nil {
		return nil
	}
	var list []Part
	for _, b := range blocks {
		switch {
		case b.Type == "thinking":
			list = append(list, Part{Kind: Thinking, Text: b.Thinking})
		case b.Type == "tool_use" || b.Type == "server_tool_use":
			list = append(list, Part{Kind: Call, Name: b.Name, CallID: b.ID, Text: string(b.Input)})
		case b.Type == "tool_result":
			list = append(list, Part{Kind: Result, CallID: b.ToolUseID, Text: contentText(b.Content)})
		case b.Text+b.Refusal != "":
			list = append(list, Part{Kind: Kind(it.Role), Text: b.Text + b.Refusal})
		}
	}
	return list
}

// plain is the text of a JSON string, or any other value as it stands.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// contentText is the text of a content: a string, or a list of parts.
func contentText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var blocks []block
	if json.Unmarshal(value, &blocks) != nil {
		return ""
	}
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block.Text)
	}
	return b.String()
}
