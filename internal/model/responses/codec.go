// Package responses speaks the Responses family over HTTP: its items, its
// requests and its streams (providers.md 7).
package responses

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// Codec is the family's codec. It is stateless.
type Codec struct{}

var _ model.Codec = Codec{}

// Family is model.FamilyResponses.
func (Codec) Family() model.Family { return model.FamilyResponses }

// User encodes a user message.
func (Codec) User(text string, pictures []model.Picture) []byte {
	b := []byte(`{"role":"user","content":[`)
	b = appendParts(b, text, pictures)
	return append(b, `]}`...)
}

// UserMarked is User: the family caches by key and has no marks.
func (c Codec) UserMarked(text, _ string) []byte { return c.User(text, nil) }

// Result encodes a tool's answer. The family has no mark for a failure; the
// output says it.
func (Codec) Result(r model.Result) []byte {
	b := append([]byte(nil), `{"type":"function_call_output","call_id":`...)
	b = appendText(b, r.CallID, len(r.Pictures) > 0)
	b = append(b, `,"output":`...)
	if len(r.Pictures) == 0 {
		b = model.AppendString(b, r.Output)
	} else {
		b = append(b, '[')
		b = appendParts(b, r.Output, r.Pictures)
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendParts appends a text part, if there is text or nothing else, and a
// part for each picture.
func appendParts(b []byte, text string, pictures []model.Picture) []byte {
	if !model.Blank(text) || len(pictures) == 0 {
		b = append(b, `{"type":"input_text","text":`...)
		b = appendText(b, model.Said(text), len(pictures) > 0)
		b = append(b, '}')
	}
	for _, p := range pictures {
		if b[len(b)-1] == '}' {
			b = append(b, ',')
		}
		b = append(b, `{"type":"input_image","image_url":`...)
		b = model.AppendString(b, "data:"+p.MediaType+";base64,"+p.Placeholder())
		b = append(b, `,"detail":"auto"}`...)
	}
	return b
}

// appendText appends a string of an item, which pictures may stand beside.
func appendText(b []byte, text string, pictures bool) []byte {
	if pictures {
		return model.AppendBeside(b, text)
	}
	return model.AppendString(b, text)
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
		b = append(b, `{"type":"function","name":`...)
		b = model.AppendString(b, d.Name)
		b = append(b, `,"description":`...)
		b = model.AppendString(b, d.Description)
		b = append(b, `,"parameters":`...)
		b = append(b, d.Parameters...)
		b = append(b, `,"strict":false}`...)
	}
	return append(b, ']')
}

// Describe reads an item that this family wrote.
func (Codec) Describe(item []byte) (model.Described, error) {
	var it storedItem
	if err := json.Unmarshal(item, &it, wire.Lenient); err != nil {
		return model.Described{}, err
	}
	switch it.Type {
	case "", "message":
		text, err := partsText(it.Content)
		role := "other"
		if it.Role == "user" || it.Role == "assistant" {
			role = it.Role
		}
		return model.Described{Role: role, Text: text}, err
	case "function_call":
		args, _ := it.arguments()
		return model.Described{
			Role:  "assistant",
			Calls: []model.Call{{ID: it.CallID.Value, Name: it.Name.Value, Arguments: args}},
		}, nil
	case "function_call_output":
		text, err := partsText(it.Output)
		return model.Described{Role: "tool", CallID: it.CallID.Value, Text: text}, err
	case "reasoning":
		return model.Described{Role: "reasoning"}, nil
	}
	return model.Described{Role: "other"}, nil
}

// partsText is the text of a content, which is an array of parts or a plain
// string.
func partsText(content jsontext.Value) (text string, err error) {
	switch content.Kind() {
	case '"':
		err = json.Unmarshal(content, &text, wire.Lenient)
	case '[':
		var parts []part
		err = json.Unmarshal(content, &parts, wire.Lenient)
		for _, p := range parts {
			text += p.Text
		}
	}
	return text, err
}

// ThinkingBytes is 0: reasoning is replayed with its neighbours, never cut.
func (Codec) ThinkingBytes([]byte) int { return 0 }

// WithoutThinking appends item as it is.
func (Codec) WithoutThinking(dst, item []byte) []byte { return append(dst, item...) }
