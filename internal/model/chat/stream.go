package chat

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
	"agent/internal/model/wire"
)

const (
	outputLimit = 768 << 10
	callLimit   = 64
	detailLimit = 1024 // elements of reasoning_details, which are pieces of few
)

// decoder reads one response. It is used by one goroutine.
type decoder struct {
	req *model.Request
	rep *model.Report

	text     []byte
	thinking [len(thinkingNames)][]byte
	details  []detail
	calls    []call
	refusal  []byte
	size     int // bytes of all that
	reason   string
	done     bool // [DONE] came, or all of a message at once
}

var (
	_ wire.Decoder = (*decoder)(nil)
	_ wire.Ender   = (*decoder)(nil)
	_ wire.Whole   = (*decoder)(nil)
)

func newDecoder(req *model.Request, rep *model.Report) *decoder {
	return &decoder{req: req, rep: rep}
}

// chunk is a frame of the stream, or a whole chat.completion.
type chunk struct {
	Object  model.Loose[string] `json:"object"`
	Choices jsontext.Value      `json:"choices"`
	Usage   model.Loose[usage]  `json:"usage"`
	Error   jsontext.Value      `json:"error"`
}

type choice struct {
	Index   model.Count         `json:"index"`
	Delta   delta               `json:"delta"`
	Message delta               `json:"message"`
	Reason  model.Loose[string] `json:"finish_reason"`
	Error   jsontext.Value      `json:"error"`
}

// delta is a piece of the message, or the whole of it.
type delta struct {
	Content          jsontext.Value      `json:"content"`
	ReasoningContent model.Loose[string] `json:"reasoning_content"`
	Reasoning        model.Loose[string] `json:"reasoning"`
	Details          jsontext.Value      `json:"reasoning_details"`
	ToolCalls        jsontext.Value      `json:"tool_calls"`
	Refusal          model.Loose[string] `json:"refusal"`
}

// Ended reports whether all of the response is here but perhaps its usage. A
// server that names no finish reason has to send [DONE].
func (d *decoder) Ended() bool {
	return d.reason != "" || d.done && (len(d.text) > 0 || len(d.calls) > 0)
}

// Done notes that [DONE] came.
func (d *decoder) Done() { d.done = true }

// Event takes one frame (providers.md 9, "Chunks"). A chunk that brings nothing
// is a keep-alive.
func (d *decoder) Event(data []byte, sink func(model.Event)) (content bool, err error) {
	var c chunk
	if err := json.Unmarshal(data, &c, wire.Lenient); err != nil {
		return false, unreadable(err)
	}
	return d.take(&c, data, sink)
}

// Whole takes an answer that came at once. ok is false where it is no
// chat.completion.
func (d *decoder) Whole(data []byte, sink func(model.Event)) (ok bool, err error) {
	var c chunk
	if json.Unmarshal(data, &c, wire.Lenient) != nil || c.Object.Value != "chat.completion" {
		return false, nil
	}
	if _, err := d.take(&c, data, sink); err != nil {
		return true, err
	}
	d.done = true
	if !d.Ended() {
		return true, model.Errorf("empty_completion", "the answer holds no text and no call")
	}
	return true, nil
}

func (d *decoder) take(c *chunk, frame []byte, sink func(model.Event)) (content bool, err error) {
	if u := usageOf(c.Usage); u != nil {
		d.rep.Usage, content = u, true
	}
	if isGiven(c.Error) || c.Object.Value == "error" {
		return false, streamFailure(frame)
	}
	if c.Choices.Kind() != '[' {
		return content, nil
	}
	var taken error
	err = model.Elements(c.Choices, func(v model.Span) bool {
		var more bool
		more, taken = d.choice(v.Of(c.Choices), sink)
		content = content || more
		return taken == nil
	})
	if err != nil {
		return false, unreadable(err)
	}
	return content, taken
}

// isGiven reports whether a member stands there and is not null.
func isGiven(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != 'n' }

// holds reports whether a member is a list that is not empty.
func holds(list jsontext.Value) bool { return list.Kind() == '[' && string(list) != "[]" }

func unreadable(err error) *model.Error {
	return model.Errorf("invalid_provider_response", "a stream event cannot be read: %v", err)
}

// readable is unreadable of an error, nil of none.
func readable(err error) error {
	if err == nil {
		return nil
	}
	return unreadable(err)
}

// choice takes an element of choices. Only the first choice counts.
func (d *decoder) choice(raw []byte, sink func(model.Event)) (content bool, err error) {
	var c choice
	if err := json.Unmarshal(raw, &c, wire.Lenient); err != nil {
		return false, unreadable(err)
	}
	if c.Index.N != 0 {
		return false, nil
	}
	if isGiven(c.Error) {
		return false, streamFailure(append(append([]byte(`{"error":`), c.Error...), '}'))
	}
	for _, m := range []*delta{&c.Delta, &c.Message} {
		more, err := d.message(m, raw, sink)
		if err != nil {
			return false, err
		}
		content = content || more
	}
	if c.Reason.Value != "" {
		d.reason, content = c.Reason.Value, true
	}
	return content, nil
}

// message takes a piece of the message.
func (d *decoder) message(m *delta, frame []byte, sink func(model.Event)) (content bool, err error) {
	content = isGiven(m.Content) || holds(m.Details) || holds(m.ToolCalls) ||
		m.ReasoningContent.Given || m.Reasoning.Given || m.Refusal.Given
	if err := d.grow(len(m.ReasoningContent.Value) + len(m.Reasoning.Value) + len(m.Refusal.Value)); err != nil {
		return false, err
	}
	for i, s := range [...]string{m.ReasoningContent.Value, m.Reasoning.Value} {
		d.thinking[i] = append(d.thinking[i], s...)
	}
	// A server that fills both says the same in them.
	if s := either(m.ReasoningContent.Value, m.Reasoning.Value); s != "" {
		sink(model.Event{Kind: model.EventThinking, Text: s})
	}
	d.refusal = append(d.refusal, m.Refusal.Value...)
	if err := d.addDetails(m.Details); err != nil {
		return false, err
	}
	if err := d.addText(m.Content, sink); err != nil {
		return false, err
	}
	return content, d.addCalls(m.ToolCalls, frame)
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// grow counts bytes that are kept.
func (d *decoder) grow(n int) error {
	if d.size += n; d.size > outputLimit {
		return tooLong()
	}
	return nil
}

func tooLong() error {
	return model.Errorf("provider_output_limit", "the response's output is longer than 768 KiB")
}

func (d *decoder) addText(content jsontext.Value, sink func(model.Event)) error {
	switch content.Kind() {
	case 'n', 0:
		return nil
	case '"':
	default:
		return model.Errorf("unsupported_content", "the message's content is no text")
	}
	var s string
	if err := json.Unmarshal(content, &s, wire.Lenient); err != nil {
		return unreadable(err)
	}
	if s == "" {
		return nil // progress alone
	}
	if err := d.grow(len(s)); err != nil {
		return err
	}
	d.text = append(d.text, s...)
	sink(model.Event{Kind: model.EventText, Text: s})
	return nil
}

// finish makes the completion of a response that ended. Errors are
// *model.Error, or the store's from Request.IDTaken.
func (d *decoder) finish() (*model.Completion, error) {
	if err := d.stopError(); err != nil {
		return nil, err
	}
	if model.Blank(d.text) && len(d.calls) == 0 {
		return nil, model.Errorf("empty_completion", "the response holds no text and no call")
	}
	c := &model.Completion{Usage: d.rep.Usage}
	item := append([]byte(nil), assistantHead...)
	// Never null, which some servers refuse; every one takes an empty text.
	item = model.AppendString(item, d.text)
	for i, name := range thinkingNames {
		if len(d.thinking[i]) > 0 {
			item = append(append(append(item, `,"`...), name...), `":`...)
			item = model.AppendString(item, d.thinking[i])
		}
	}
	item = d.appendDetails(item)
	item, err := d.appendCalls(item, c)
	if err != nil {
		return nil, err
	}
	if item = append(item, '}'); len(item) > outputLimit {
		return nil, tooLong()
	}
	c.Items = [][]byte{item}
	return c, nil
}

// stopError is what a finish reason that completes nothing means.
func (d *decoder) stopError() error {
	if len(d.refusal) > 0 {
		return &model.Error{Code: "provider_refusal", Detail: strings.ToValidUTF8(string(d.refusal), "?")}
	}
	switch d.reason {
	case "stop", "tool_calls", "function_call", "": // "": [DONE] came
		return nil
	case "content_filter":
		return model.Errorf("provider_refusal", "content_filter")
	}
	return &model.Error{Code: "provider_incomplete", Detail: d.reason}
}
