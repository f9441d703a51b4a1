package responses

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// finish makes the completion of a response that ended. Text that no delta
// brought is given to sink, so that followers see what is stored.
func (d *decoder) finish(sink func(model.Event)) (*model.Completion, error) {
	if d.status != "completed" && d.status != "" {
		return nil, &model.Error{Code: "provider_incomplete", Detail: d.status}
	}
	if len(d.items) == 0 {
		return nil, model.Errorf("empty_completion", "the response holds no item")
	}
	if err := d.checkText(sink); err != nil {
		return nil, err
	}
	kept := d.kept()
	if len(kept) == 0 {
		return nil, model.Errorf("empty_completion", "the response holds nothing but reasoning")
	}
	c := &model.Completion{Usage: d.rep.Usage}
	d.altered = len(kept) < len(d.items)
	safe := model.NewSafe(d.req)
	size := 0
	for i := range kept {
		r := &kept[i]
		raw, err := onceNamed(r.raw)
		if err == nil && r.called {
			raw, err = r.makeSafe(raw, safe, c)
		}
		if err != nil {
			return nil, err
		}
		if !utf8.Valid(raw) {
			return nil, model.Errorf("invalid_provider_response", "a %s item is not valid UTF-8", r.item.Type)
		}
		c.External = c.External || r.item.Type == "web_search_call"
		raw = model.MendEscapes(raw)
		if fault := model.Fault(raw); fault != "" {
			return nil, model.Errorf("invalid_provider_response", "the fields of a %s item %s", r.item.Type, fault)
		}
		d.altered = d.altered || !bytes.Equal(raw, r.raw)
		c.Items = append(c.Items, raw)
		size += len(raw)
	}
	if size > outputLimit {
		return nil, tooLong()
	}
	return c, nil
}

// kept are the items that are stored. What would be refused in a later request
// is not, or no request of the conversation would ever succeed again: a message
// without a part, and a reasoning item that no other item follows. One without
// encrypted content stays: servers that encrypt send it always, and the others
// take back what they sent.
func (d *decoder) kept() []received {
	var kept []received
	for _, r := range d.items {
		if r.item.Type != "message" || len(r.parts) > 0 {
			kept = append(kept, r)
		}
	}
	for len(kept) > 0 && kept[len(kept)-1].item.Type == "reasoning" {
		kept = kept[:len(kept)-1]
	}
	return kept
}

// checkText holds the messages against what was streamed: what people saw
// must be what is stored.
func (d *decoder) checkText(sink func(model.Event)) error {
	var stored text
	stored.hash.SetSeed(d.streamed.hash.Seed())
	for i := range d.items {
		for _, p := range d.items[i].parts {
			if p.Type == "refusal" {
				return &model.Error{Code: "provider_refusal", Detail: p.Refusal}
			}
			stored.add(p.Text)
		}
	}
	if d.streamed.length == 0 && stored.length > 0 {
		for i := range d.items {
			for _, p := range d.items[i].parts {
				sink(model.Event{Kind: model.EventText, Text: p.Text})
			}
		}
		return nil
	}
	if stored.length != d.streamed.length || stored.hash.Sum64() != d.streamed.hash.Sum64() {
		return model.Errorf("stream_terminal_mismatch",
			"the messages hold %d bytes of text and %d were streamed, or they differ", stored.length, d.streamed.length)
	}
	return nil
}

// makeSafe adds the item's call to c and gives raw, the item, as it is stored.
func (r *received) makeSafe(raw []byte, safe *model.Safe, c *model.Completion) ([]byte, error) {
	args, mangled := r.item.arguments()
	id, name := r.item.CallID, r.item.Name.Value
	call, err := safe.Call(id.Value, name, args, mangled)
	if err != nil {
		return nil, err
	}
	c.Calls = append(c.Calls, call)
	asText := r.item.Arguments.Kind() == '"'
	if call.ID == id.Value && call.Name == name && asText && bytes.Equal(call.Arguments, args) {
		return raw, nil
	}
	return mended(raw, &call)
}

// failed is the error of response.failed, response.incomplete and error.
func (d *decoder) failed(data []byte) error {
	var ev struct {
		Response terminal `json:"response"`
	}
	if err := json.Unmarshal(data, &ev, wire.Lenient); err != nil {
		return unreadable(err)
	}
	if u := usageOf(ev.Response.Usage); u != nil {
		d.rep.Usage = u
	}
	outer := wire.ParseFailure(data, "application/json")
	said := ev.Response.Error.Value
	inner := wire.Failure{Code: said.Code.Value, Type: said.Type.Value}
	detail := first(outer.Message, said.Message.Value, ev.Response.Incomplete.Value.Reason.Value)
	e := &model.Error{Code: "provider_incomplete", Detail: detail}
	says := func(words ...string) bool { return outer.Says(words...) || inner.Says(words...) }
	switch {
	case says("rate_limit_exceeded"), strings.HasPrefix(detail, "Rate limit reached"):
		e.Code, e.Retry = "provider_rate_limited", wire.NamedDelay(detail)
	case says("insufficient_quota", "usage_limit_reached", "usage_not_included"):
		e.Code = "provider_quota_exhausted"
	case says("context_length_exceeded"):
		e.Code = "provider_context_exceeded"
	case says("server_error", "server_is_overloaded", "slow_down"):
		e.Code = "provider_http_503"
	}
	return e
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
