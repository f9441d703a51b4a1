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
	Type      string         `json:"type"`
	Role      string         `json:"role"`
	Name      string         `json:"name"`
	CallID    string         `json:"call_id"`
	Arguments jsontext.Value `json:"arguments"`
	Content   jsontext.Value `json:"content"`
	Output    jsontext.Value `json:"output"`
	Status    string         `json:"status"`
	Action    struct {
		Query string `json:"query"`
		URL   string `json:"url"`
	} `json:"action"`
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

// mended is a function_call with another id and other arguments: every other
// byte stays as it came.
func mended(item []byte, callID string, arguments []byte) ([]byte, error) {
	values := map[string][]byte{
		"call_id":   model.AppendString(nil, callID),
		"arguments": model.AppendString(nil, arguments),
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
	for _, name := range []string{"call_id", "arguments"} {
		if !done[name] {
			out = append(out, `,"`+name+`":`...)
			out = append(out, values[name]...)
		}
	}
	return append(out, item[end:]...), nil
}
