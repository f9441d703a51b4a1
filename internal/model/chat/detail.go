package chat

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// detail is an element of reasoning_details: as it came, or, once others were
// joined to it, by its fields.
type detail struct {
	key    string // its index and type; "" where nothing may be joined
	raw    []byte
	fields []member
	texts  map[string][]byte // the joined texts of text, data and summary
}

// joined are the fields of an element whose texts follow one another.
func joined(name string) bool { return name == "text" || name == "data" || name == "summary" }

// addDetails takes elements of reasoning_details. One that repeats the index and
// the type of an earlier one goes on with it.
func (d *decoder) addDetails(list jsontext.Value) error {
	if list.Kind() != '[' {
		return nil
	}
	var taken error
	err := model.Elements(list, func(v model.Span) bool {
		taken = d.addDetail(v.Of(list))
		return taken == nil
	})
	if err != nil {
		return unreadable(err)
	}
	return taken
}

func (d *decoder) addDetail(raw []byte) error {
	if err := d.grow(len(raw)); err != nil {
		return err
	}
	key, err := detailKey(raw)
	if err != nil {
		return err
	}
	if key != "" {
		for i := range d.details {
			if d.details[i].key == key {
				return d.details[i].join(raw)
			}
		}
	}
	if len(d.details) == detailLimit {
		return model.Errorf("provider_output_limit", "the response has more than %d reasoning details", detailLimit)
	}
	d.details = append(d.details, detail{key: key, raw: append([]byte(nil), raw...)})
	return nil
}

func detailKey(raw []byte) (key string, err error) {
	if jsontext.Value(raw).Kind() != '{' {
		return "", nil
	}
	var head struct {
		Index model.Count         `json:"index"`
		Type  model.Loose[string] `json:"type"`
	}
	if err := json.Unmarshal(raw, &head, wire.Lenient); err != nil {
		return "", unreadable(err)
	}
	if !head.Index.Known || !head.Type.Given {
		return "", nil
	}
	return jsontext.Int(head.Index.N).String() + " " + head.Type.Value, nil
}

// join adds what a later element brings: its texts behind those that are there,
// and fields that were missing.
func (t *detail) join(raw []byte) error {
	if t.raw != nil {
		first := t.raw
		t.raw, t.texts = nil, map[string][]byte{}
		if err := t.join(first); err != nil {
			return err
		}
	}
	var full error
	err := model.Members(raw, func(name string, v model.Span) bool {
		value := jsontext.Value(v.Of(raw))
		at := -1
		for i := range t.fields {
			if t.fields[i].name == name {
				at = i
			}
		}
		if joined(name) && value.Kind() == '"' {
			t.texts[name] = append(t.texts[name], looseText(value)...)
		} else if at >= 0 && string(t.fields[at].value) != "null" {
			return true
		}
		if at < 0 || !joined(name) || value.Kind() != '"' {
			t.fields, full = setMember(t.fields, member{name, value})
		}
		return full == nil
	})
	if err != nil {
		return unreadable(err)
	}
	return full
}

// appendDetails appends the elements as they are stored; one that a strict
// server would refuse is left out.
func (d *decoder) appendDetails(dst []byte) []byte {
	const name = `,"reasoning_details":[`
	n := 0
	for i := range d.details {
		value, ok := kept(d.details[i].value())
		if !ok {
			continue
		}
		if n++; n == 1 {
			dst = append(dst, name...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, value...)
	}
	if n > 0 {
		dst = append(dst, ']')
	}
	return dst
}

func (t *detail) value() []byte {
	if t.raw != nil {
		return t.raw
	}
	b := []byte{'{'}
	for i, m := range t.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(model.AppendString(b, m.name), ':')
		if text, ok := t.texts[m.name]; ok {
			b = model.AppendString(b, text)
		} else {
			b = append(b, m.value...)
		}
	}
	return append(b, '}')
}
