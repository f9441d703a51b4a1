package responses

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// storedItem is what the daemon reads of an item; the item itself stays bytes.
type storedItem struct {
	Type      string              `json:"type"`
	Role      string              `json:"role"`
	Name      model.Loose[string] `json:"name"`
	CallID    model.Loose[string] `json:"call_id"`
	Arguments jsontext.Value      `json:"arguments"`
	Content   jsontext.Value      `json:"content"`
	Output    jsontext.Value      `json:"output"`
	Status    model.Loose[string] `json:"status"`
	Action    model.Loose[action] `json:"action"`
}

type action struct {
	Query model.Loose[string] `json:"query"`
	URL   model.Loose[string] `json:"url"`
}

type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// arguments are a call's arguments and whether bytes were lost for being no
// UTF-8. A server that sends an object instead of its text is understood.
func (it *storedItem) arguments() (text []byte, mangled bool) {
	switch it.Arguments.Kind() {
	case '"':
		var s string
		if json.Unmarshal(it.Arguments, &s, wire.Lenient) != nil {
			return nil, true
		}
		return []byte(s), wire.Mangled(s, it.Arguments)
	case 'n', 0:
		return nil, false
	}
	return it.Arguments, false
}

// mended is a function_call with the id, the name and the arguments of call:
// every other byte stays as it came.
func mended(item []byte, call *model.Call) ([]byte, error) {
	names := []string{"call_id", "name", "arguments"}
	values := map[string][]byte{
		"call_id":   model.AppendString(nil, call.ID),
		"name":      model.AppendString(nil, call.Name),
		"arguments": model.AppendString(nil, call.Arguments),
	}
	var out []byte
	done := map[string]bool{}
	from := 0
	err := model.Members(item, func(name string, v model.Span) bool {
		if value, ok := values[name]; ok {
			out = append(out, item[from:v.Start]...)
			out = append(out, value...)
			from = v.End
			done[name] = true
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(item, '}')
	out = append(out, item[from:end]...)
	for _, name := range names {
		if !done[name] {
			out = append(out, `,"`+name+`":`...)
			out = append(out, values[name]...)
		}
	}
	return append(out, item[end:]...), nil
}

// onceNamed is an item whose members have each a name of their own: of those
// that share one the last stays, as which the item was read. It is item itself
// where no name is doubled.
func onceNamed(item []byte) ([]byte, error) {
	last := map[string]model.Span{}
	var names []string
	doubled := false
	err := model.Members(item, func(name string, v model.Span) bool {
		if _, ok := last[name]; ok {
			doubled = true
		} else {
			names = append(names, name)
		}
		last[name] = v
		return true
	})
	if err != nil || !doubled {
		return item, err
	}
	out := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(model.AppendString(out, name), ':')
		out = append(out, last[name].Of(item)...)
	}
	return append(out, '}'), nil
}
