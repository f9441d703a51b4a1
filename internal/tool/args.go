package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/protocol"
)

// arg is one argument: whether it was given, and its value. An explicit null
// is no value of any type, and is refused.
type arg[T any] struct {
	given bool
	value T
}

// or is the value, or a default where none was given.
func (a arg[T]) or(def T) T {
	if a.given {
		return a.value
	}
	return def
}

// UnmarshalJSONFrom implements the decoder's interface.
func (a *arg[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == 'n' {
		return &jsonv2.SemanticError{
			JSONPointer: d.StackPointer(), JSONKind: 'n', GoType: reflect.TypeFor[T](),
		}
	}
	a.given = true
	return jsonv2.UnmarshalDecode(d, &a.value)
}

func invalidf(format string, args ...any) *Failure {
	return failuref(protocol.InvalidToolArguments, format, args...)
}

// decode reads arguments into the struct that into points to. Members that the
// struct does not have, members given twice and values of another type are
// refused.
func decode(args json.RawMessage, into any) *Failure {
	err := jsonv2.Unmarshal(args, into, jsonv2.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	var wrong *jsonv2.SemanticError
	var broken *jsontext.SyntacticError
	switch {
	case errors.As(err, &wrong):
		return mistyped(wrong, into)
	case errors.As(err, &broken) && errors.Is(broken.Err, jsontext.ErrDuplicateName):
		return invalidf("%s is given twice", shown(broken.JSONPointer.LastToken()))
	}
	return invalidf("the arguments are not a JSON object in UTF-8")
}

func mistyped(wrong *jsonv2.SemanticError, into any) *Failure {
	name := wrong.JSONPointer.LastToken()
	switch {
	case errors.Is(wrong.Err, jsonv2.ErrUnknownName):
		return invalidf("%s is not a parameter of this tool; it takes %s", shown(name), strings.Join(members(into), ", "))
	case name == "":
		return invalidf("the arguments must be a JSON object, not %s", kindName(wrong.JSONKind))
	case wrong.JSONKind == '0' && wrong.GoType.Kind() == reflect.Int64:
		return invalidf("%s must be a whole number within bounds", name)
	}
	return invalidf("%s must be %s, not %s", shown(name), typeName(wrong.GoType), kindName(wrong.JSONKind))
}

// members are the names that a struct of arguments takes, in its order.
func members(into any) []string {
	t := reflect.TypeOf(into).Elem()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	}
	return "a whole number"
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "a list"
	}
	return "an object"
}

// shown quotes a piece of what a model sent, cut to a length that a detail can
// hold.
func shown(text string) string {
	const most = 200
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q…", text[:charStart(text, most)])
}

// cut is text, or its first bytes and a sign that there is more.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:charStart(text, most)] + "…"
}

// charStart moves at, a place in text, back to where a character begins.
func charStart(text string, at int) int {
	for back := 0; back < utf8.UTFMax-1 && at > 0 && at < len(text) && !utf8.RuneStart(text[at]); back++ {
		at--
	}
	return at
}

// within refuses a number outside its bounds; an absent one is within.
func within(name string, a arg[int64], least, most int64) *Failure {
	if a.given && (a.value < least || a.value > most) {
		return invalidf("%s is %d; it must be %d to %d", name, a.value, least, most)
	}
	return nil
}

// required refuses an argument that was not given.
func required[T any](name string, a arg[T]) *Failure {
	if !a.given {
		return invalidf("%s is missing", name)
	}
	return nil
}

// first is the first of its arguments that is not nil.
func first(failures ...*Failure) *Failure {
	for _, f := range failures {
		if f != nil {
			return f
		}
	}
	return nil
}
