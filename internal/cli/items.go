package cli

import (
	"encoding/json"
	"strings"
)

// The kinds of a part of a stored item.
const (
	partUser      = "user"
	partAssistant = "assistant"
	partThinking  = "thinking"
	partCall      = "tool_call"
	partResult    = "tool_result"
	partOther     = "other"
)

// part is a piece of a stored item as a person sees it. An item stays in its
// provider family's encoding, so this reads the shapes of all of them
// (providers.md 6, 7, 9, 13) and takes no more from each than what is shown.
type part struct {
	kind   string
	name   string // the tool of a call
	callID string
	text   string // of a call: its arguments
}

// storedItem is the union of the families' items.
type storedItem struct {
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

// storedBlock is a part of a content list.
type storedBlock struct {
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

// parts takes an item apart. What it does not know is one other part.
func parts(item json.RawMessage) []part {
	var it storedItem
	if json.Unmarshal(item, &it) != nil {
		return []part{{kind: partOther}}
	}
	switch {
	case it.Type == "function_call":
		return []part{{kind: partCall, name: it.Name, callID: it.CallID, text: plain(it.Arguments)}}
	case it.Type == "function_call_output":
		return []part{{kind: partResult, callID: it.CallID, text: contentText(it.Output)}}
	case it.Type == "reasoning":
		return []part{{kind: partThinking, text: contentText(it.Summary)}}
	case it.Role == "tool":
		return []part{{kind: partResult, callID: it.ID + it.ToolCall, text: contentText(it.Output) + contentText(it.Content)}}
	case it.Role == partUser || it.Role == partAssistant:
		return it.message()
	}
	return []part{{kind: partOther}}
}

// message is the parts of a user's or an assistant's item.
func (it *storedItem) message() []part {
	var list []part
	if it.Thinking != "" {
		list = append(list, part{kind: partThinking, text: it.Thinking})
	}
	if it.Text != "" {
		list = append(list, part{kind: it.Role, text: it.Text})
	}
	list = append(list, it.blocks()...)
	for _, c := range it.Calls {
		list = append(list, part{kind: partCall, name: c.Tool, callID: c.ID, text: plain(c.Arguments)})
	}
	for _, c := range it.ToolCalls {
		list = append(list, part{kind: partCall, name: c.Function.Name, callID: c.ID, text: plain(c.Function.Arguments)})
	}
	return list
}

func (it *storedItem) blocks() []part {
	var text string
	if json.Unmarshal(it.Content, &text) == nil && text != "" {
		return []part{{kind: it.Role, text: text}}
	}
	var blocks []storedBlock
	if json.Unmarshal(it.Content, &blocks) != nil {
		return nil
	}
	var list []part
	for _, b := range blocks {
		switch {
		case b.Type == "thinking":
			list = append(list, part{kind: partThinking, text: b.Thinking})
		case b.Type == "tool_use" || b.Type == "server_tool_use":
			list = append(list, part{kind: partCall, name: b.Name, callID: b.ID, text: string(b.Input)})
		case b.Type == "tool_result":
			list = append(list, part{kind: partResult, callID: b.ToolUseID, text: contentText(b.Content)})
		case b.Text+b.Refusal != "":
			list = append(list, part{kind: it.Role, text: b.Text + b.Refusal})
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
	var blocks []storedBlock
	if json.Unmarshal(value, &blocks) != nil {
		return ""
	}
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block.Text)
	}
	return b.String()
}
