package fakemodel

import (
	"bytes"
	"encoding/base64"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decoders are kept, because each owns a buffer of the largest item it met.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

var (
	// What both families' strictest servers take.
	idForm   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	toolForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	// ourForm is an id made by the client (providers.md 5).
	ourForm = regexp.MustCompile(`^call_[0-9a-f]{12}$`)
)

// member is a field of an object; its value is a part of the object's bytes.
type member struct {
	name  string
	value jsontext.Value
}

type object []member

// parseObject splits an object into its fields, each name once.
func parseObject(raw []byte, where string) (object, error) {
	if jsontext.Value(raw).Kind() != '{' {
		return nil, fault("wrong_type", where, "an object is wanted")
	}
	var o object
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	dec.ReadToken()
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if _, twice := o.get(key); twice {
			return nil, fault("duplicate_field", where+"."+key, "")
		}
		end := int(dec.InputOffset())
		o = append(o, member{key, raw[end-len(v) : end]})
	}
	return o, nil
}

// each calls f for every element of an array.
func each(raw []byte, where string, f func(i int, v jsontext.Value) error) error {
	if jsontext.Value(raw).Kind() != '[' {
		return fault("wrong_type", where, "an array is wanted")
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	dec.ReadToken()
	for i := 0; dec.PeekKind() != ']'; i++ {
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		end := int(dec.InputOffset())
		if err := f(i, raw[end-len(v):end]); err != nil {
			return err
		}
	}
	return nil
}

func (o object) get(name string) (jsontext.Value, bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// shape checks which fields stand in an object: each of names, those ending in
// "?" at will, no other.
func (o object) shape(where string, names ...string) error {
	known := func(name string) bool {
		return slices.Contains(names, name) || slices.Contains(names, name+"?")
	}
	for _, m := range o {
		if !known(m.name) {
			return fault("unknown_field", join(where, m.name), "")
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, "?") {
			continue
		}
		if _, ok := o.get(name); !ok {
			return fault("missing_field", join(where, name), "")
		}
	}
	return nil
}

func join(where, name string) string {
	if where == "" {
		return name
	}
	return where + "." + name
}

// text is a string field, "" when it is absent.
func (o object) text(name, where string) (string, error) {
	v, ok := o.get(name)
	if !ok {
		return "", nil
	}
	return text(v, join(where, name))
}

func text(v jsontext.Value, where string) (string, error) {
	if v.Kind() != '"' {
		return "", fault("wrong_type", where, "a string is wanted")
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err
}

// kind is the "type" field.
func (o object) kind(where string) (string, error) {
	if _, ok := o.get("type"); !ok {
		return "", fault("missing_field", join(where, "type"), "")
	}
	return o.text("type", where)
}

// is reports whether a field has exactly this JSON text.
func (o object) is(name, want string) bool {
	v, ok := o.get(name)
	return ok && string(v) == want
}

func (o object) has(name string) bool {
	_, ok := o.get(name)
	return ok
}

// isStrict reports whether raw is JSON that no parser refuses: names once in
// each object, no half of a surrogate pair, no number past every float.
func isStrict(raw []byte) bool {
	var v any
	return jsontext.Value(raw).IsValid() && json.Unmarshal(raw, &v) == nil
}

// blank reports whether a text is only white space.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// isObject reports whether s is one JSON object.
func isObject(s string) bool {
	v := jsontext.Value(s)
	return v.Kind() == '{' && v.IsValid(jsontext.AllowDuplicateNames(true))
}

var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// checkPicture checks base64 without keeping what it holds.
func checkPicture(mediaType, data, where string) error {
	if !slices.Contains(pictureTypes, mediaType) {
		return fault("invalid_picture", where, "media type %q", mediaType)
	}
	if strings.ContainsAny(data, "\r\n") {
		return fault("invalid_picture", where, "the base64 has line breaks")
	}
	n, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding.Strict(), strings.NewReader(data)))
	if err != nil || n == 0 {
		return fault("invalid_picture", where, "not base64: %s", clip([]byte(data)[:min(len(data), 200)]))
	}
	return nil
}
