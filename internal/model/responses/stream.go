package responses

import (
	"bytes"
	"hash/maphash"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
	"agent/internal/model/wire"
)

const (
	outputLimit = 768 << 10
	itemLimit   = 64
)

// received is an item of the response and what was read of it.
type received struct {
	raw    []byte
	item   storedItem
	parts  []part // of a message
	called bool   // a function_call
}

// decoder reads one response. It is used by one goroutine.
type decoder struct {
	req *model.Request
	rep *model.Report

	items    []received
	size     int // bytes of the items
	streamed text
	id       string // the response's
	status   string // the terminal event's
	ended    bool
	altered  bool // by finish: what is stored is not all that came, as it came
}

// text stands for a text that is compared and not kept.
type text struct {
	length int
	hash   maphash.Hash
}

func (t *text) add(s string) {
	t.length += len(s)
	t.hash.WriteString(s)
}

func newDecoder(req *model.Request, rep *model.Report) *decoder {
	return &decoder{req: req, rep: rep}
}

// Ended reports whether response.completed came.
func (d *decoder) Ended() bool { return d.ended }

// Event takes one frame (providers.md 7, "Events").
func (d *decoder) Event(data []byte, sink func(model.Event)) (content bool, err error) {
	var head struct {
		Type  string         `json:"type"`
		Delta jsontext.Value `json:"delta"`
	}
	if err := json.Unmarshal(data, &head, wire.Lenient); err != nil {
		return false, unreadable(err)
	}
	if head.Type == "keepalive" {
		return false, nil
	}
	if d.ended {
		return false, model.Errorf("event_after_completion", "an event came after response.completed")
	}
	switch head.Type {
	case "response.output_text.delta":
		err = d.textDelta(head.Delta, sink)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		err = thinkingDelta(head.Delta, sink)
	case "response.output_item.done":
		err = d.itemDone(data, sink)
	case "response.web_search_call.in_progress", "response.web_search_call.searching",
		"response.web_search_call.completed":
		sink(model.Event{
			Kind:   model.EventWebSearch,
			Status: strings.TrimPrefix(head.Type, "response.web_search_call."),
		})
	case "response.completed":
		err = d.completed(data)
	case "response.incomplete", "response.failed", "error":
		err = d.failed(data)
	}
	return true, err
}

func unreadable(err error) *model.Error {
	return model.Errorf("invalid_provider_response", "a stream event cannot be read: %v", err)
}

func unquote(v jsontext.Value) (string, error) {
	var s string
	if err := json.Unmarshal(v, &s, wire.Lenient); err != nil {
		return "", unreadable(err)
	}
	return s, nil
}

func (d *decoder) textDelta(delta jsontext.Value, sink func(model.Event)) error {
	s, err := unquote(delta)
	if err != nil || s == "" {
		return err
	}
	if d.streamed.add(s); d.streamed.length > outputLimit {
		return tooLong()
	}
	sink(model.Event{Kind: model.EventText, Text: s})
	return nil
}

func thinkingDelta(delta jsontext.Value, sink func(model.Event)) error {
	s, err := unquote(delta)
	if err == nil && s != "" {
		sink(model.Event{Kind: model.EventThinking, Text: s})
	}
	return err
}

func tooLong() error {
	return model.Errorf("provider_output_limit", "the response's output is longer than 768 KiB")
}

func (d *decoder) itemDone(data []byte, sink func(model.Event)) error {
	var ev struct {
		Item jsontext.Value `json:"item"`
	}
	if err := json.Unmarshal(data, &ev, wire.Lenient); err != nil {
		return unreadable(err)
	}
	if err := d.take(ev.Item); err != nil {
		return err
	}
	it := &d.items[len(d.items)-1].item
	what := it.Action.Value
	if it.Type == "web_search_call" && (what.Query.Value != "" || what.URL.Value != "") {
		sink(model.Event{Kind: model.EventWebSearch, Status: it.Status.Value, Query: what.Query.Value, URL: what.URL.Value})
	}
	return nil
}

// take keeps one item, byte for byte.
func (d *decoder) take(raw []byte) error {
	if len(d.items) == itemLimit {
		return model.Errorf("provider_output_limit", "the response has more than %d items", itemLimit)
	}
	if d.size += len(raw); d.size > outputLimit {
		return tooLong()
	}
	r := received{raw: bytes.Clone(raw)}
	if err := json.Unmarshal(raw, &r.item, wire.Lenient); err != nil {
		return unreadable(err)
	}
	switch it := &r.item; it.Type {
	case "message":
		if it.Role != "assistant" {
			return unsupported("a message of role " + it.Role)
		}
		if it.Content.Kind() == 'n' || len(it.Content) == 0 {
			break // it says nothing
		}
		if err := json.Unmarshal(it.Content, &r.parts, wire.Lenient); err != nil {
			return unreadable(err)
		}
		for _, p := range r.parts {
			if p.Type != "output_text" && p.Type != "refusal" {
				return unsupported("a message part of type " + p.Type)
			}
		}
	case "function_call":
		if it.Name.Value == "" {
			return model.Errorf("invalid_provider_response", "a function call has no name")
		}
		r.called = true
	case "reasoning", "web_search_call":
	default:
		return unsupported("an item of type " + it.Type)
	}
	d.items = append(d.items, r)
	return nil
}

func unsupported(what string) error {
	return &model.Error{Code: "unsupported_output_item", Detail: what}
}

// terminal is a response object at its end.
type terminal struct {
	ID         model.Loose[string]     `json:"id"`
	Status     string                  `json:"status"`
	Output     jsontext.Value          `json:"output"`
	Usage      model.Loose[usage]      `json:"usage"`
	Error      model.Loose[failure]    `json:"error"`
	Incomplete model.Loose[incomplete] `json:"incomplete_details"`
}

type failure struct {
	Code    model.Loose[string] `json:"code"`
	Type    model.Loose[string] `json:"type"`
	Message model.Loose[string] `json:"message"`
}

type incomplete struct {
	Reason model.Loose[string] `json:"reason"`
}

func (d *decoder) completed(data []byte) error {
	var ev struct {
		Response terminal `json:"response"`
	}
	if err := json.Unmarshal(data, &ev, wire.Lenient); err != nil {
		return unreadable(err)
	}
	d.rep.Usage = usageOf(ev.Response.Usage)
	d.id, d.status, d.ended = ev.Response.ID.Value, ev.Response.Status, true
	if len(d.items) > 0 || ev.Response.Output.Kind() != '[' {
		return nil
	}
	var taken error
	err := model.Elements(ev.Response.Output, func(v model.Span) bool {
		taken = d.take(v.Of(ev.Response.Output))
		return taken == nil
	})
	if err != nil {
		return unreadable(err)
	}
	return taken
}
