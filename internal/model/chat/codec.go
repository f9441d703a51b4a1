// Package chat speaks the Chat Completions family: its items, its requests and
// its streams (providers.md 9). Local servers and gateways that speak nothing
// else are reached by it.
package chat

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// Codec is the family's codec. It is stateless.
type Codec struct{}

var (
	_ model.Codec  = Codec{}
	_ model.Placed = Codec{}
)

// Family is model.FamilyChat.
func (Codec) Family() model.Family { return model.FamilyChat }

// Every item begins with its role; an answer goes on with its content.
const (
	userHead      = `{"role":"user","content":`
	toolHead      = `{"role":"tool","tool_call_id":`
	assistantHead = `{"role":"assistant","content":`
)

// User encodes a user message: a plain string, or parts where there are
// pictures.
func (Codec) User(text string, pictures []model.Picture) []byte {
	b := []byte(userHead)
	if len(pictures) == 0 {
		b = model.AppendString(b, model.Said(text))
		return append(b, '}')
	}
	b = append(b, '[')
	if !model.Blank(text) {
		b = append(b, `{"type":"text","text":`...)
		b = model.AppendBeside(b, text)
		b = append(b, '}')
	}
	for _, p := range pictures {
		if b[len(b)-1] == '}' {
			b = append(b, ',')
		}
		b = append(b, `{"type":"image_url","image_url":{"url":`...)
		b = model.AppendString(b, "data:"+p.MediaType+";base64,"+p.Placeholder())
		b = append(b, `}}`...)
	}
	return append(b, `]}`...)
}

// UserMarked is User: servers of the family cache by themselves.
func (c Codec) UserMarked(text, _ string) []byte { return c.User(text, nil) }

// Result encodes a tool's answer. It is text alone: its pictures follow in a
// user message (model.Placed). The family has no mark for a failure; the output
// says it.
func (Codec) Result(r model.Result) []byte {
	b := append([]byte(nil), toolHead...)
	b = model.AppendString(b, r.CallID)
	b = append(b, `,"content":`...)
	b = model.AppendString(b, r.Output)
	return append(b, '}')
}

// RoleOf is who wrote an item that begins so.
func (Codec) RoleOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte(userHead[:model.PlacedHead])):
		return "user"
	case bytes.HasPrefix(head, []byte(toolHead[:model.PlacedHead])):
		return "tool"
	}
	return "assistant"
}

// Tools encodes definitions; nil when there are none.
func (Codec) Tools(defs []model.ToolDef) []byte {
	if len(defs) == 0 {
		return nil
	}
	b := []byte{'['}
	for i, d := range defs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"function","function":{"name":`...)
		b = model.AppendString(b, d.Name)
		b = append(b, `,"description":`...)
		b = model.AppendString(b, d.Description)
		b = append(b, `,"parameters":`...)
		b = append(b, d.Parameters...)
		b = append(b, `}}`...)
	}
	return append(b, ']')
}

type storedItem struct {
	Role      string         `json:"role"`
	Content   jsontext.Value `json:"content"`
	CallID    string         `json:"tool_call_id"`
	ToolCalls []storedCall   `json:"tool_calls"`
}

type storedCall struct {
	ID       string         `json:"id"`
	Function storedFunction `json:"function"`
}

type storedFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Describe reads an item that this family wrote.
func (Codec) Describe(item []byte) (model.Described, error) {
	var it storedItem
	if err := json.Unmarshal(item, &it, wire.Lenient); err != nil {
		return model.Described{}, err
	}
	text, err := contentText(it.Content)
	if err != nil {
		return model.Described{}, err
	}
	d := model.Described{Role: "other", Text: text}
	switch it.Role {
	case "user", "assistant":
		d.Role = it.Role
	case "tool":
		d.Role, d.CallID = it.Role, it.CallID
	}
	for i := range it.ToolCalls {
		c := &it.ToolCalls[i]
		d.Calls = append(d.Calls, model.Call{ID: c.ID, Name: c.Function.Name, Arguments: []byte(c.Function.Arguments)})
	}
	return d, nil
}

// contentText is the text of a content, which is a plain string or an array of
// parts.
func contentText(content jsontext.Value) (text string, err error) {
	switch content.Kind() {
	case '"':
		err = json.Unmarshal(content, &text, wire.Lenient)
	case '[':
		var parts []struct {
			Text string `json:"text"`
		}
		err = json.Unmarshal(content, &parts, wire.Lenient)
		for _, p := range parts {
			text += p.Text
		}
	}
	return text, err
}

// ThinkingBytes is what WithoutThinking saves. An answer has its content
// besides, so nothing is ever left out whole.
func (Codec) ThinkingBytes(item []byte) (n int) {
	for _, s := range thinkingSpans(item) {
		n += s.End - s.Start
	}
	return n
}

// WithoutThinking appends item without reasoning_content and reasoning.
func (Codec) WithoutThinking(dst, item []byte) []byte {
	from := 0
	for _, s := range thinkingSpans(item) {
		dst = append(dst, item[from:s.Start]...)
		from = s.End
	}
	return append(dst, item[from:]...)
}

// thinkingNames are the members of an answer that hold what the model thought,
// as the servers in use spell it, in the order they are stored in.
var thinkingNames = [...]string{"reasoning_content", "reasoning"}

// thinkingSpans are the members of an answer to leave out, each with its comma
// and its name. An item that it cannot read has none, and is sent as it is.
func thinkingSpans(item []byte) (spans []model.Span) {
	if !bytes.HasPrefix(item, []byte(assistantHead)) || !bytes.Contains(item, []byte(`,"reasoning`)) {
		return nil
	}
	err := model.Members(item, func(name string, v model.Span) bool {
		if name == thinkingNames[0] || name == thinkingNames[1] {
			v.Start -= len(`,"":`) + len(name)
			spans = append(spans, v)
		}
		return name != "tool_calls" // nothing of the kind follows it
	})
	if err != nil {
		return nil
	}
	return spans
}
