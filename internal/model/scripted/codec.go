package scripted

import (
	"errors"
	"fmt"

	"agent/internal/model"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Codec encodes the neutral items of providers.md 13. It is stateless.
type Codec struct{}

// Family is model.FamilyScripted.
func (Codec) Family() model.Family { return model.FamilyScripted }

// User encodes a user message; a picture's data is its placeholder.
func (Codec) User(text string, pictures []model.Picture) []byte {
	b := appendBeside([]byte(`{"role":"user","text":`), text, pictures)
	b = appendPictures(b, pictures)
	return append(b, '}')
}

// UserMarked is User: this family has no cache to mark.
func (c Codec) UserMarked(text, _ string) []byte { return c.User(text, nil) }

// Result encodes a tool result. The family has no mark for a failed one: the
// output says so.
func (Codec) Result(r model.Result) []byte {
	b := appendBeside([]byte(`{"role":"tool","id":`), r.CallID, r.Pictures)
	b = appendBeside(append(b, `,"output":`...), r.Output, r.Pictures)
	b = appendPictures(b, r.Pictures)
	return append(b, '}')
}

// Tools encodes the neutral descriptions.
func (Codec) Tools(defs []model.ToolDef) []byte {
	b := []byte{'['}
	for i, d := range defs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"name":`...), d.Name)
		b = appendText(append(b, `,"description":`...), d.Description)
		b = append(b, `,"parameters":`...)
		b = append(b, d.Parameters...)
		b = append(b, '}')
	}
	return append(b, ']')
}

// storedItem is what Describe reads of an item; other fields are let pass.
type storedItem struct {
	Role   string `json:"role"`
	Text   string `json:"text"`
	ID     string `json:"id"`
	Output string `json:"output"`
	Calls  []struct {
		ID        string         `json:"id"`
		Tool      string         `json:"tool"`
		Arguments jsontext.Value `json:"arguments"`
	} `json:"calls"`
}

// Describe reads a stored item. Arguments are the bytes of the item.
func (Codec) Describe(item []byte) (model.Described, error) {
	var s storedItem
	if err := json.Unmarshal(item, &s); err != nil {
		return model.Described{}, fmt.Errorf("a scripted item is broken: %w", err)
	}
	switch s.Role {
	case "user":
		return model.Described{Role: "user", Text: s.Text}, nil
	case "tool":
		return model.Described{Role: "tool", Text: s.Output, CallID: s.ID}, nil
	case "assistant":
		d := model.Described{Role: "assistant", Text: s.Text}
		for _, c := range s.Calls {
			d.Calls = append(d.Calls, model.Call{ID: c.ID, Name: c.Tool, Arguments: []byte(c.Arguments)})
		}
		return d, nil
	case "":
		return model.Described{}, errors.New("a scripted item has no role")
	}
	return model.Described{Role: "other"}, nil
}

// ThinkingBytes is 0: this family binds no thinking.
func (Codec) ThinkingBytes([]byte) int { return 0 }

// WithoutThinking appends item as it is.
func (Codec) WithoutThinking(dst, item []byte) []byte { return append(dst, item...) }

// appendText appends s as a JSON string without HTML escaping; what is not
// UTF-8 becomes U+FFFD.
func appendText(dst []byte, s string) []byte {
	// The error only reports the replacement.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// appendBeside is appendText of an item that may hold pictures.
func appendBeside(dst []byte, s string, pictures []model.Picture) []byte {
	if len(pictures) == 0 {
		return appendText(dst, s)
	}
	return model.AppendBeside(dst, s)
}

func appendPictures(dst []byte, pictures []model.Picture) []byte {
	if len(pictures) == 0 {
		return dst
	}
	dst = append(dst, `,"images":[`...)
	for i, p := range pictures {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, `{"media_type":`...), p.MediaType)
		dst = appendText(append(dst, `,"data":`...), p.Placeholder())
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// appendAssistant appends the item of an answer.
func appendAssistant(dst []byte, a *answer) []byte {
	dst = appendText(append(dst, `{"role":"assistant","text":`...), a.text)
	if a.thinking != "" {
		dst = appendText(append(dst, `,"thinking":`...), a.thinking)
	}
	for i, c := range a.calls {
		if i == 0 {
			dst = append(dst, `,"calls":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, `{"id":`...), c.ID)
		dst = appendText(append(dst, `,"tool":`...), c.Name)
		dst = append(dst, `,"arguments":`...)
		dst = append(dst, c.Arguments...)
		dst = append(dst, '}')
	}
	if len(a.calls) > 0 {
		dst = append(dst, ']')
	}
	if a.search != nil {
		dst = appendText(append(dst, `,"web_search":{"query":`...), a.search.Query)
		dst = append(dst, `,"sources":[`...)
		for i, s := range a.search.Sources {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendText(append(dst, `{"url":`...), s.URL)
			dst = appendText(append(dst, `,"title":`...), s.Title)
			dst = append(dst, '}')
		}
		dst = append(dst, `]}`...)
	}
	return append(dst, '}')
}
