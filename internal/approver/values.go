package approver

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

const (
	maxShownText = 16_000 * tokenBytes // one text of a planned call
	maxRawText   = 4 * maxShownText    // one that is looked at at all
	maxNesting   = protocolDepth
)

// protocolDepth is how deep a request may be nested.
const protocolDepth = 128

// errTooLong says that a call cannot be shown whole.
var errTooLong = errors.New("too long to show")

// value is a JSON value as it is shown: its texts redacted and visible, numbers
// and order as they were, members that stand twice twice. It is written by the
// encoder alone, so that no text of it can end the string that it stands in.
//
// A text that follows an option named like a secret, or stands in a member
// named like one, is judged by that name.
type shownValue struct {
	g     *gatherer
	d     *json.Decoder
	out   bytes.Buffer
	whole bool // a text over its limit is errTooLong

	texts []argument // as they came, for whoever looks for names in them
	key   string     // the member that is being read
	list  int        // the array that is being read, 0 outside of any
	lists int        // how many there were
}

// argument is a text of a call's arguments as it came: the member that holds it,
// and which of the call's lists.
type argument struct {
	key  string
	list int
	text string
}

// shown is raw as it is shown to the judge. What is no JSON is one text. A text
// that is longer than may be shown is errTooLong.
func (g *gatherer) shown(raw string) (out json.RawMessage, texts []argument, err error) {
	v := &shownValue{g: g, d: json.NewDecoder(strings.NewReader(raw)), whole: true}
	v.d.UseNumber()
	if !json.Valid([]byte(raw)) {
		err = v.text("", raw)
		return v.out.Bytes(), v.texts, err
	}
	err = v.value("", 0)
	return v.out.Bytes(), v.texts, err
}

// readable is a text in which secrets are to be masked whatever escapes hide
// them: one that is JSON is taken apart and put together again.
func (g *gatherer) readable(raw string) string {
	trimmed := strings.TrimSpace(raw)
	if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") || !json.Valid([]byte(trimmed)) {
		return g.text(raw)
	}
	v := &shownValue{g: g, d: json.NewDecoder(strings.NewReader(trimmed))}
	v.d.UseNumber()
	if v.value("", 0) != nil {
		return g.text(raw)
	}
	return g.text(v.out.String())
}

func (v *shownValue) value(name string, depth int) error {
	if depth > maxNesting {
		return errTooLong
	}
	t, err := v.d.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return v.object(depth)
		}
		return v.array(depth)
	case string:
		return v.text(name, t)
	case json.Number:
		return v.number(name, t.String())
	case bool:
		return v.write(t)
	}
	return v.write(nil)
}

func (v *shownValue) object(depth int) error {
	v.out.WriteByte('{')
	for first := true; v.d.More(); first = false {
		t, err := v.d.Token()
		if err != nil {
			return err
		}
		if !first {
			v.out.WriteByte(',')
		}
		name, _ := t.(string)
		if err := v.text("", name); err != nil {
			return err
		}
		v.out.WriteByte(':')
		v.key = name
		if err := v.value(name, depth+1); err != nil {
			return err
		}
	}
	v.out.WriteByte('}')
	_, err := v.d.Token()
	return err
}

func (v *shownValue) array(depth int) error {
	v.out.WriteByte('[')
	v.lists++
	key, list, option := v.key, v.list, ""
	defer func() { v.list = list }()
	for first := true; v.d.More(); first = false {
		if !first {
			v.out.WriteByte(',')
		}
		seen := len(v.texts)
		v.key, v.list = key, v.lists
		if err := v.value(option, depth+1); err != nil {
			return err
		}
		option = ""
		if len(v.texts) == seen+1 && strings.HasPrefix(v.texts[seen].text, "--") {
			option = v.texts[seen].text
		}
	}
	v.out.WriteByte(']')
	_, err := v.d.Token()
	return err
}

func (v *shownValue) text(name, s string) error {
	v.texts = append(v.texts, argument{v.key, v.list, s})
	if len(s) > maxRawText && v.whole {
		return errTooLong
	}
	shown := ""
	if name != "" {
		shown = visible(v.g.judge.Field(name, s))
	} else {
		shown = v.g.code(s)
	}
	if v.whole && len(shown) > maxShownText {
		return errTooLong
	}
	return v.write(shown)
}

// number is a number, or what is masked in its place.
func (v *shownValue) number(name, n string) error {
	if masked := v.g.judge.Field(name, n); name != "" && masked != n {
		return v.write(masked)
	}
	if masked := v.g.judge.Code(n); masked != n {
		return v.write(masked)
	}
	v.out.WriteString(n)
	return nil
}

func (v *shownValue) write(x any) error {
	b, err := encode(x)
	v.out.Write(b)
	return err
}

// encode is x as JSON, with the characters of HTML as they are.
func encode(x any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
