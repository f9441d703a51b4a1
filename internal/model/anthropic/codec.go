// Package anthropic speaks the Messages family: its items, its requests and
// its streams (providers.md 6).
package anthropic

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// Codec is the family's codec. It is stateless.
type Codec struct{}

var _ model.Codec = Codec{}

// Family is model.FamilyAnthropic.
func (Codec) Family() model.Family { return model.FamilyAnthropic }

const userHead = `{"role":"user","content":[`

// User encodes a user message. Without text there are only the pictures: the
// API refuses an empty text block.
func (Codec) User(text string, pictures []model.Picture) []byte {
	b := []byte(userHead)
	b = appendContent(b, text, pictures)
	return append(b, `]}`...)
}

// UserMarked is a user message whose block ends a cached prefix.
func (Codec) UserMarked(text, ttl string) []byte {
	b := append([]byte(userHead), `{"type":"text","text":`...)
	b = model.AppendString(b, model.Said(text))
	b = append(b, `,"cache_control":`...)
	b = append(b, cacheControl(ttl)...)
	return append(b, `}]}`...)
}

// Result encodes a tool's answer as a user message; the API joins neighbours.
func (Codec) Result(r model.Result) []byte {
	b := append([]byte(userHead), `{"type":"tool_result","tool_use_id":`...)
	b = appendText(b, r.CallID, len(r.Pictures) > 0)
	b = append(b, `,"content":`...)
	if len(r.Pictures) == 0 {
		b = model.AppendString(b, r.Output)
	} else {
		b = append(b, '[')
		b = appendContent(b, r.Output, r.Pictures)
		b = append(b, ']')
	}
	if r.Failed {
		b = append(b, `,"is_error":true`...)
	}
	return append(b, `}]}`...)
}

// appendContent appends a text block, if there is text or nothing else, and a
// block for each picture.
func appendContent(b []byte, text string, pictures []model.Picture) []byte {
	if !model.Blank(text) || len(pictures) == 0 {
		b = append(b, `{"type":"text","text":`...)
		b = appendText(b, model.Said(text), len(pictures) > 0)
		b = append(b, '}')
	}
	for _, p := range pictures {
		if b[len(b)-1] == '}' {
			b = append(b, ',')
		}
		b = append(b, `{"type":"image","source":{"type":"base64","media_type":`...)
		b = model.AppendString(b, p.MediaType)
		b = append(b, `,"data":"`...)
		b = append(b, p.Placeholder()...)
		b = append(b, `"}}`...)
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
		b = append(b, `{"name":`...)
		b = model.AppendString(b, d.Name)
		b = append(b, `,"description":`...)
		b = model.AppendString(b, d.Description)
		b = append(b, `,"input_schema":`...)
		b = append(b, d.Parameters...)
		b = append(b, '}')
	}
	return append(b, ']')
}

type storedItem struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
}

type storedBlock struct {
	Type      string         `json:"type"`
	Text      string         `json:"text"`
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Input     jsontext.Value `json:"input"`
	ToolUseID string         `json:"tool_use_id"`
	Content   jsontext.Value `json:"content"`
}

// Describe reads an item that this family wrote.
func (Codec) Describe(item []byte) (model.Described, error) {
	var it storedItem
	if err := json.Unmarshal(item, &it, wire.Lenient); err != nil {
		return model.Described{}, err
	}
	d := model.Described{Role: "other"}
	if it.Role == "user" || it.Role == "assistant" {
		d.Role = it.Role
	}
	blocks, text, err := readBlocks(it.Content)
	if err != nil {
		return model.Described{}, err
	}
	d.Text = text
	for _, b := range blocks {
		switch b.Type {
		case "text":
			d.Text += b.Text
		case "tool_use":
			d.Calls = append(d.Calls, model.Call{ID: b.ID, Name: b.Name, Arguments: []byte(b.Input)})
		case "tool_result":
			inner, plain, err := readBlocks(b.Content)
			if err != nil {
				return model.Described{}, err
			}
			d.Role, d.CallID, d.Text = "tool", b.ToolUseID, plain
			for _, in := range inner {
				d.Text += in.Text
			}
		}
	}
	return d, nil
}

// readBlocks reads content, which is an array of blocks or a plain string.
func readBlocks(content jsontext.Value) (blocks []storedBlock, text string, err error) {
	switch content.Kind() {
	case '"':
		err = json.Unmarshal(content, &text, wire.Lenient)
	case '[':
		err = json.Unmarshal(content, &blocks, wire.Lenient)
	}
	return blocks, text, err
}

// ThinkingBytes is what WithoutThinking saves; the item's whole length when
// thinking is all it holds.
func (Codec) ThinkingBytes(item []byte) int {
	blocks, thinking := contentSpans(item)
	if thinking == 0 {
		return 0
	}
	if thinking == len(blocks) {
		return len(item)
	}
	return len(item) - len(withoutThinking(nil, item, blocks))
}

// WithoutThinking appends item without its thinking and redacted-thinking
// blocks and the separators that went with them; nothing when nothing is left.
func (Codec) WithoutThinking(dst, item []byte) []byte {
	blocks, thinking := contentSpans(item)
	switch thinking {
	case 0:
		return append(dst, item...)
	case len(blocks):
		return dst
	}
	return withoutThinking(dst, item, blocks)
}

type blockSpan struct {
	model.Span
	thinking bool
}

// contentSpans finds an assistant item's blocks and counts those that think.
// An item that it cannot read has none, and is sent as it is.
func contentSpans(item []byte) (blocks []blockSpan, thinking int) {
	var content model.Span
	assistant := false
	err := model.Members(item, func(name string, v model.Span) bool {
		switch name {
		case "role":
			assistant = string(v.Of(item)) == `"assistant"`
		case "content":
			content = v
		}
		return true
	})
	if err != nil || !assistant {
		return nil, 0
	}
	err = model.Elements(content.Of(item), func(v model.Span) bool {
		b := blockSpan{Span: model.Span{Start: content.Start + v.Start, End: content.Start + v.End}}
		b.thinking = thinks(b.Of(item))
		if b.thinking {
			thinking++
		}
		blocks = append(blocks, b)
		return true
	})
	if err != nil {
		return nil, 0
	}
	return blocks, thinking
}

func thinks(block []byte) bool {
	kind := ""
	err := model.Members(block, func(name string, v model.Span) bool {
		if name == "type" {
			kind = string(v.Of(block))
		}
		return kind == ""
	})
	return err == nil && (kind == `"thinking"` || kind == `"redacted_thinking"`)
}

func withoutThinking(dst, item []byte, blocks []blockSpan) []byte {
	dst = append(dst, item[:blocks[0].Start]...)
	first := true
	for _, b := range blocks {
		if b.thinking {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, b.Of(item)...)
	}
	return append(dst, item[blocks[len(blocks)-1].End:]...)
}
