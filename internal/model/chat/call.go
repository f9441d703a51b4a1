package chat

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// call is a tool call as far as it came.
type call struct {
	index   model.Count
	id      string
	name    string
	args    []byte
	mangled bool
	extra   []member // what a server wants back, such as extra_content
}

// member is a field whose value is kept as JSON.
type member struct {
	name  string
	value []byte
}

// toolDelta is a piece of a call.
type toolDelta struct {
	index     model.Count
	id        string
	name      string
	arguments jsontext.Value
	extra     []member
}

func (d *decoder) addCalls(list jsontext.Value, frame []byte) error {
	if list.Kind() != '[' {
		return nil
	}
	var taken error
	err := model.Elements(list, func(v model.Span) bool {
		taken = d.addCall(v.Of(list), frame)
		return taken == nil
	})
	if err != nil {
		return unreadable(err)
	}
	return taken
}

func (d *decoder) addCall(raw, frame []byte) error {
	piece, err := readToolDelta(raw)
	if err != nil {
		return err
	}
	c, err := d.callOf(&piece)
	if err != nil {
		return err
	}
	if c.id == "" {
		c.id = piece.id
	}
	if c.name == "" {
		c.name = piece.name
	}
	if err := c.addArguments(piece.arguments, frame); err != nil {
		return err
	}
	for _, m := range piece.extra {
		if c.extra, err = setMember(c.extra, m); err != nil {
			return err
		}
	}
	// The whole piece counts, so that members without end are bounded, too.
	return d.grow(len(raw))
}

// callOf finds the call that a piece belongs to, or begins it. By its index,
// except that some servers give all calls of a message the same: another id
// with another name is another call. Without an index an id or a name begins
// one.
func (d *decoder) callOf(piece *toolDelta) (*call, error) {
	for i := len(d.calls) - 1; i >= 0; i-- {
		c := &d.calls[i]
		if !piece.index.Known {
			if piece.id == "" && piece.name == "" {
				return c, nil
			}
			break
		}
		if c.index == piece.index {
			another := piece.id != "" && piece.name != "" && c.id != "" && c.name != "" && piece.id != c.id
			if another {
				break
			}
			return c, nil
		}
	}
	if len(d.calls) == callLimit {
		return nil, model.Errorf("provider_output_limit", "the response has more than %d calls", callLimit)
	}
	d.calls = append(d.calls, call{index: piece.index})
	return &d.calls[len(d.calls)-1], nil
}

func readToolDelta(raw []byte) (t toolDelta, err error) {
	var bad error
	err = model.Members(raw, func(name string, v model.Span) bool {
		value := jsontext.Value(v.Of(raw))
		switch name {
		case "index":
			bad = readable(json.Unmarshal(value, &t.index))
		case "id":
			t.id = looseText(value)
		case "type":
		case "function":
			if value.Kind() == '{' {
				bad = readable(t.readFunction(value))
			}
		default:
			t.extra, bad = setMember(t.extra, member{name, value})
		}
		return bad == nil
	})
	if err != nil {
		return t, unreadable(err)
	}
	return t, bad
}

func (t *toolDelta) readFunction(raw []byte) error {
	return model.Members(raw, func(name string, v model.Span) bool {
		switch name {
		case "name":
			t.name = looseText(v.Of(raw))
		case "arguments":
			t.arguments = v.Of(raw)
		}
		return true
	})
}

// looseText is a JSON string's text; "" for any other value.
func looseText(v jsontext.Value) string {
	var s model.Loose[string]
	if json.Unmarshal(v, &s, wire.Lenient) != nil {
		return ""
	}
	return s.Value
}

// addArguments appends a piece of the arguments' text. A server that sends an
// object instead of its text is understood.
func (c *call) addArguments(v jsontext.Value, frame []byte) error {
	switch v.Kind() {
	case 'n', 0:
		return nil
	case '"':
		var s string
		if err := json.Unmarshal(v, &s, wire.Lenient); err != nil {
			return unreadable(err)
		}
		c.mangled = c.mangled || wire.Mangled(s, frame)
		c.args = append(c.args, s...)
	default:
		c.args = append(c.args, v...)
	}
	return nil
}

// memberLimit bounds the fields that are kept of one object.
const memberLimit = 64

// setMember puts a field in place of one of the same name, or behind all.
func setMember(list []member, m member) ([]member, error) {
	m.value = bytes.Clone(m.value)
	for i := range list {
		if list[i].name == m.name {
			list[i] = m
			return list, nil
		}
	}
	if len(list) == memberLimit {
		return nil, model.Errorf("provider_output_limit", "an object of the response has more than %d fields", memberLimit)
	}
	return append(list, m), nil
}

// kept is a value as it may be sent again; false for one that a strict server
// would refuse: then no later request of the conversation would succeed.
func kept(value []byte) ([]byte, bool) {
	value = model.MendEscapes(value)
	return value, model.Fault(value) == ""
}

// appendCalls appends the calls as they are stored, and adds them to c.
func (d *decoder) appendCalls(dst []byte, c *model.Completion) ([]byte, error) {
	if len(d.calls) == 0 {
		return dst, nil
	}
	safe := model.NewSafe(d.req)
	dst = append(dst, `,"tool_calls":[`...)
	for i := range d.calls {
		if i > 0 {
			dst = append(dst, ',')
		}
		from := &d.calls[i]
		made, err := safe.Call(from.id, from.name, from.args, from.mangled)
		if err != nil {
			return nil, err
		}
		c.Calls = append(c.Calls, made)
		dst = append(dst, `{"id":`...)
		dst = model.AppendString(dst, made.ID)
		dst = append(dst, `,"type":"function","function":{"name":`...)
		dst = model.AppendString(dst, made.Name)
		dst = append(dst, `,"arguments":`...)
		dst = model.AppendString(dst, made.Arguments)
		dst = append(dst, '}')
		for _, m := range from.extra {
			dst = appendMember(dst, m)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), nil
}

// appendMember appends a field behind others, unless it cannot be kept.
func appendMember(dst []byte, m member) []byte {
	value, ok := kept(m.value)
	if !ok {
		return dst
	}
	dst = append(dst, ',')
	dst = model.AppendString(dst, strings.ToValidUTF8(m.name, "?"))
	dst = append(dst, ':')
	return append(dst, value...)
}
