package anthropic

import (
	"fmt"
	"strings"

	"agent/internal/model"
)

// finish makes the completion of a response that ended. Errors are
// *model.Error, or the store's from Request.IDTaken.
func (d *decoder) finish() (*model.Completion, error) {
	if err := d.stopError(); err != nil {
		return nil, err
	}
	c := &model.Completion{
		Usage: d.rep.Usage, Continue: d.stop == "pause_turn",
		ThinkingDropped: d.dropped, Fallbacks: d.switches,
	}
	item := []byte(`{"role":"assistant","content":[`)
	head := len(item)
	safe := model.NewSafe(d.req)
	for i, keep := range d.kept() {
		if !keep {
			continue
		}
		if len(item) > head {
			item = append(item, ',')
		}
		b := &d.blocks[i]
		var err error
		if item, err = appendBlock(item, b, safe, c); err != nil {
			return nil, err
		}
	}
	if len(item) == head {
		return nil, model.Errorf("empty_completion", "the response holds no content")
	}
	item = append(item, suffix...)
	if len(item) > outputLimit {
		return nil, tooLong()
	}
	c.Items = [][]byte{item}
	return c, nil
}

// stopError is what a stop reason that completes nothing means.
func (d *decoder) stopError() error {
	switch d.stop {
	case "end_turn", "stop_sequence", "tool_use", "pause_turn":
		return nil
	case "max_tokens":
		return model.Errorf("provider_incomplete", "max_tokens")
	case "model_context_window_exceeded":
		return model.Errorf("provider_context_exceeded", "the model's context window is full")
	case "refusal":
		return &model.Error{Code: "provider_refusal", Detail: d.refusalDetail()}
	case "":
		return model.Errorf("provider_incomplete", "the response names no stop reason")
	}
	return &model.Error{Code: "provider_incomplete", Detail: d.stop}
}

func (d *decoder) refusalDetail() string {
	var parts []string
	for _, s := range d.switches {
		parts = append(parts, fmt.Sprintf("switched from %s to %s", s.From, s.To))
	}
	if d.category != "" {
		parts = append(parts, "category "+d.category)
	}
	if d.recommended != "" {
		parts = append(parts, "retry on "+d.recommended)
	}
	return strings.Join(parts, "; ")
}

// kept says of each block whether it is stored. What the API would refuse in a
// later request is not, or no request of the conversation would ever succeed
// again: blank text, thinking without its signature, thinking at the end of an
// answer, and a search without its result, unless the answer is a pause and the
// result is to come. A NUL in a text stays: JSON has it, and nothing is known
// that refuses it. Of the attempt that a fallback declined only text and what a
// web search brought stay (providers.md 21).
func (d *decoder) kept() []bool {
	declined := 0
	for i := range d.blocks {
		if d.blocks[i].kind == "fallback" {
			declined = i
		}
	}
	kept := make([]bool, len(d.blocks))
	for i := range d.blocks {
		b := &d.blocks[i]
		switch b.kind {
		case "text":
			kept[i] = !model.Blank(b.text)
		case "thinking", "redacted_thinking":
			kept[i] = i >= declined && len(b.signature) > 0
		case "tool_use":
			kept[i] = i >= declined
		case "server_tool_use":
			kept[i] = d.hasResult(b.id) || d.stop == "pause_turn" && i >= declined
		default:
			kept[i] = true
		}
	}
	for i := len(kept) - 1; i >= 0; i-- {
		if b := &d.blocks[i]; b.kind == "thinking" || b.kind == "redacted_thinking" {
			kept[i] = false
		} else if kept[i] {
			break
		}
	}
	return kept
}

func (d *decoder) hasResult(id string) bool {
	for i := range d.blocks {
		if b := &d.blocks[i]; b.kind == "web_search_tool_result" && b.id == id {
			return true
		}
	}
	return false
}

// appendBlock appends a block as it is stored, and its call to c.
func appendBlock(dst []byte, b *block, safe *model.Safe, c *model.Completion) ([]byte, error) {
	switch b.kind {
	case "text":
		dst = append(dst, `{"type":"text","text":`...)
		dst = model.AppendString(dst, b.text)
		for i, citation := range b.citations {
			if i == 0 {
				dst = append(dst, `,"citations":[`...)
			} else {
				dst = append(dst, ',')
			}
			dst = append(dst, citation...)
		}
		if len(b.citations) > 0 {
			dst = append(dst, ']')
		}
		return append(dst, '}'), nil
	case "thinking":
		dst = append(dst, `{"type":"thinking","thinking":`...)
		dst = model.AppendString(dst, b.text)
		dst = append(dst, `,"signature":`...)
		dst = model.AppendString(dst, b.signature)
		return append(dst, '}'), nil
	case "tool_use":
		call, err := safe.Call(b.id, b.name, b.input, b.mangled)
		if err != nil {
			return nil, err
		}
		c.Calls = append(c.Calls, call)
		return appendUse(dst, b.kind, call.ID, call.Name, call.Arguments), nil
	case "server_tool_use":
		c.External = true
		input, fault := model.SafeArguments(b.input, b.mangled)
		if fault != "" {
			return nil, model.Errorf("invalid_content", "a server_tool_use block: %s", fault)
		}
		return appendUse(dst, b.kind, b.id, b.name, input), nil
	case "web_search_tool_result":
		c.External = true
	}
	return append(dst, b.raw...), nil
}

func appendUse(dst []byte, kind, id, name string, input []byte) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","id":`...)
	dst = model.AppendString(dst, id)
	dst = append(dst, `,"name":`...)
	dst = model.AppendString(dst, name)
	dst = append(dst, `,"input":`...)
	dst = append(dst, input...)
	return append(dst, '}')
}
