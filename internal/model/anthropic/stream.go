package anthropic

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
	"agent/internal/model/wire"
)

const (
	outputLimit = 768 << 10
	blockLimit  = 64
)

// event is every kind of stream event in one; what a kind lacks stays zero.
type event struct {
	Type    string             `json:"type"`
	Index   int                `json:"index"`
	Message model.Loose[begun] `json:"message"`
	Block   jsontext.Value     `json:"content_block"`
	Delta   struct {
		Type        string                   `json:"type"`
		Text        string                   `json:"text"`
		Thinking    string                   `json:"thinking"`
		Signature   string                   `json:"signature"`
		PartialJSON string                   `json:"partial_json"`
		Citation    jsontext.Value           `json:"citation"`
		StopReason  string                   `json:"stop_reason"`
		StopDetails model.Loose[stopDetails] `json:"stop_details"`
	} `json:"delta"`
	Usage model.Loose[usage] `json:"usage"`
}

// begun is message_start's message, of which nothing is needed.
type begun struct {
	Usage           model.Loose[usage]            `json:"usage"`
	Transformations model.Loose[[]transformation] `json:"input_transformations"`
}

type transformation struct {
	Type model.Loose[string] `json:"type"`
}

type stopDetails struct {
	Category         model.Loose[string] `json:"category"`
	RecommendedModel model.Loose[string] `json:"recommended_model"`
}

// block is one content block as it grows.
type block struct {
	kind      string
	id, name  string
	text      []byte // of text and thinking
	signature []byte // of thinking; the data of redacted thinking
	citations []jsontext.Value
	input     []byte
	mangled   bool   // input came with bytes that are no UTF-8
	raw       []byte // of the kinds kept as they came
	announced bool   // a live web search's query was told
}

// decoder reads one response. It is used by one goroutine.
type decoder struct {
	req    *model.Request
	rep    *model.Report
	ev     event
	blocks []block
	size   int // bytes of what was decoded; what is stored is never less
	usage  usage

	stop        string
	category    string
	recommended string
	dropped     int
	switches    []model.Switch
	ended       bool
}

func newDecoder(req *model.Request, rep *model.Report) *decoder {
	return &decoder{req: req, rep: rep}
}

// Ended reports whether message_stop came.
func (d *decoder) Ended() bool { return d.ended }

// Event takes one frame (providers.md 6, "Stream events").
func (d *decoder) Event(data []byte, sink func(model.Event)) (content bool, err error) {
	d.ev = event{Index: -1}
	if err := json.Unmarshal(data, &d.ev, wire.Lenient); err != nil {
		return false, model.Errorf("invalid_provider_response", "a stream event cannot be read: %v", err)
	}
	if d.ev.Type == "ping" {
		return false, nil
	}
	if d.ended {
		return false, model.Errorf("event_after_completion", "an event came after message_stop")
	}
	switch d.ev.Type {
	case "message_start":
		d.usage.start(d.ev.Message.Value.Usage)
		for _, t := range d.ev.Message.Value.Transformations.Value {
			if t.Type.Value == "thinking_dropped" {
				d.dropped++
			}
		}
		d.report()
	case "content_block_start":
		err = d.startBlock(sink)
	case "content_block_delta":
		err = d.delta(data, sink)
	case "content_block_stop":
		d.stopBlock(sink)
	case "message_delta":
		d.messageDelta()
	case "message_stop":
		d.ended = true
	case "error":
		err = streamFailure(data)
	}
	return true, err
}

func (d *decoder) report() { d.rep.Usage = d.usage.total(d.req) }

func streamFailure(data []byte) *model.Error {
	f := wire.ParseFailure(data, "application/json")
	e := &model.Error{Code: "provider_error", Detail: f.Message, Retry: wire.NamedDelay(f.Message)}
	switch f.Type {
	case "overloaded_error":
		e.Code = "provider_http_529"
	case "rate_limit_error":
		e.Code = "provider_rate_limited"
	case "api_error":
		e.Code = "provider_http_500"
	case "timeout_error":
		e.Code = "provider_http_504"
	}
	return e
}

func (d *decoder) messageDelta() {
	delta := &d.ev.Delta
	if delta.StopReason != "" {
		d.stop = delta.StopReason
	}
	if c := delta.StopDetails.Value.Category.Value; c != "" {
		d.category = c
	}
	if m := delta.StopDetails.Value.RecommendedModel.Value; m != "" {
		d.recommended = m
	}
	d.usage.delta(d.ev.Usage)
	d.report()
}

// startOf is what a content_block_start holds of each kind.
type startOf struct {
	Type      string                  `json:"type"`
	Text      string                  `json:"text"`
	Thinking  string                  `json:"thinking"`
	Signature string                  `json:"signature"`
	ID        model.Loose[string]     `json:"id"`
	Name      string                  `json:"name"`
	Input     jsontext.Value          `json:"input"`
	ToolUseID model.Loose[string]     `json:"tool_use_id"`
	Data      model.Loose[string]     `json:"data"`
	From      model.Loose[namedModel] `json:"from"`
	To        model.Loose[namedModel] `json:"to"`
}

type namedModel struct {
	Model model.Loose[string] `json:"model"`
}

func (d *decoder) startBlock(sink func(model.Event)) error {
	if d.ev.Index != len(d.blocks) {
		return model.Errorf("invalid_content_index",
			"block %d began where block %d was next", d.ev.Index, len(d.blocks))
	}
	if len(d.blocks) == blockLimit {
		return model.Errorf("provider_output_limit", "the response has more than %d content blocks", blockLimit)
	}
	var s startOf
	if err := json.Unmarshal(d.ev.Block, &s, wire.Lenient); err != nil {
		return model.Errorf("invalid_content", "a content block cannot be read: %v", err)
	}
	b := block{kind: s.Type, id: s.ID.Value, name: s.Name}
	switch s.Type {
	case "text":
		b.text = []byte(s.Text)
		emit(sink, model.EventText, s.Text)
	case "thinking":
		b.text, b.signature = []byte(s.Thinking), []byte(s.Signature)
		emit(sink, model.EventThinking, s.Thinking)
	case "tool_use", "server_tool_use":
		if s.Name == "" {
			return model.Errorf("invalid_content", "a %s block has no name", s.Type)
		}
		// Some servers give the whole input here and no delta.
		if input := bytes.TrimSpace(s.Input); len(input) > 2 && string(input) != "null" {
			b.input = bytes.Clone(s.Input)
		}
		if s.Type == "server_tool_use" && s.Name == "web_search" {
			sink(model.Event{Kind: model.EventWebSearch, Status: "in_progress"})
		}
	case "redacted_thinking", "fallback", "web_search_tool_result":
		var err error
		if b.raw, err = asItCame(d.ev.Block, s.Type+" block"); err != nil {
			return err
		}
		b.id, b.signature = s.ToolUseID.Value, []byte(s.Data.Value)
	default:
		return model.Errorf("unsupported_content", "a content block of type %q", s.Type)
	}
	d.blocks = append(d.blocks, b)
	switch s.Type {
	case "fallback":
		d.switches = append(d.switches, model.Switch{From: s.From.Value.Model.Value, To: s.To.Value.Model.Value})
	case "web_search_tool_result":
		sink(model.Event{Kind: model.EventWebSearch, Status: "completed", Query: d.queryOf(s.ToolUseID.Value)})
	}
	if b.raw != nil {
		return d.grow(len(b.raw))
	}
	return d.grow(len(b.text) + len(b.signature) + len(b.input))
}

// asItCame is a copy of a value that is stored as the server spelled it. One that
// a strict server would refuse cannot be: no later request would succeed.
func asItCame(value []byte, what string) ([]byte, error) {
	if len(value) == 0 || !utf8.Valid(value) {
		return nil, model.Errorf("invalid_content", "a %s is missing or not valid UTF-8", what)
	}
	value = model.MendEscapes(bytes.Clone(value))
	if fault := model.Fault(value); fault != "" {
		return nil, model.Errorf("invalid_content", "the fields of a %s %s", what, fault)
	}
	return value, nil
}

func emit(sink func(model.Event), kind, text string) {
	if text != "" {
		sink(model.Event{Kind: kind, Text: text})
	}
}

// grow bounds a response while it comes.
func (d *decoder) grow(n int) error {
	if d.size += n; d.size > outputLimit {
		return tooLong()
	}
	return nil
}

func tooLong() error {
	return model.Errorf("provider_output_limit", "the response's output is longer than 768 KiB")
}

func (d *decoder) delta(data []byte, sink func(model.Event)) error {
	delta := &d.ev.Delta
	kind := deltaBlock(delta.Type)
	if kind == "" {
		return nil
	}
	if d.ev.Index < 0 || d.ev.Index >= len(d.blocks) {
		return model.Errorf("invalid_content_index", "a delta for block %d of %d", d.ev.Index, len(d.blocks))
	}
	b := &d.blocks[d.ev.Index]
	if b.kind != kind && !(kind == "tool_use" && b.kind == "server_tool_use") {
		return model.Errorf("invalid_content", "a %s on a %s block", delta.Type, b.kind)
	}
	switch delta.Type {
	case "text_delta":
		b.text = append(b.text, delta.Text...)
		emit(sink, model.EventText, delta.Text)
	case "thinking_delta":
		b.text = append(b.text, delta.Thinking...)
		emit(sink, model.EventThinking, delta.Thinking)
	case "signature_delta":
		b.signature = append(b.signature, delta.Signature...)
	case "input_json_delta":
		b.input = append(b.input, delta.PartialJSON...)
		b.mangled = b.mangled || wire.Mangled(delta.PartialJSON, data)
	case "citations_delta":
		citation, err := asItCame(delta.Citation, "citation")
		if err != nil {
			return err
		}
		b.citations = append(b.citations, citation)
	}
	return d.grow(len(delta.Text) + len(delta.Thinking) + len(delta.Signature) +
		len(delta.PartialJSON) + len(delta.Citation))
}

// deltaBlock is the kind of block a delta belongs on; "" for an unknown delta.
func deltaBlock(delta string) string {
	switch delta {
	case "text_delta", "citations_delta":
		return "text"
	case "thinking_delta", "signature_delta":
		return "thinking"
	case "input_json_delta":
		return "tool_use"
	}
	return ""
}

// stopBlock tells a web search's query once it is whole.
func (d *decoder) stopBlock(sink func(model.Event)) {
	if d.ev.Index < 0 || d.ev.Index >= len(d.blocks) {
		return
	}
	b := &d.blocks[d.ev.Index]
	if b.kind == "server_tool_use" && b.name == "web_search" && !b.announced {
		b.announced = true
		sink(model.Event{Kind: model.EventWebSearch, Status: "searching", Query: query(b.input)})
	}
}

func (d *decoder) queryOf(id string) string {
	for i := range d.blocks {
		if b := &d.blocks[i]; b.kind == "server_tool_use" && b.id == id {
			return query(b.input)
		}
	}
	return ""
}

func query(input []byte) string {
	var in struct {
		Query string `json:"query"`
	}
	if json.Unmarshal(input, &in, wire.Lenient) != nil {
		return ""
	}
	return in.Query
}
