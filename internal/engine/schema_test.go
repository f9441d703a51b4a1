package engine

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	const person = `{"type":"object","properties":{"name":{"type":"string","minLength":2,"maxLength":4},"age":{"type":"integer","minimum":0,"exclusiveMaximum":150},
		"tags":{"type":"array","items":{"enum":["a","b"]},"maxItems":2},"mode":{"const":"x"},"at":{"type":["string","null"]}},
		"required":["name"],"additionalProperties":false}`
	const tree = `{"type":"object","$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"left":{"$ref":"#/$defs/node"},"v":{"type":"number"}},"required":["v"]}}}`
	const forms = `{"type":"object","properties":{"v":{"anyOf":[{"type":"string"},{"type":"number"}]},"w":{"oneOf":[{"minimum":1},{"maximum":5}]},
		"n":{"not":{"type":"null"}},"all":{"allOf":[{"type":"integer"},{"minimum":3}]},"no":false,"pair":{"prefixItems":[{"type":"string"}],"items":{"type":"number"}}},
		"additionalProperties":{"type":"boolean"},"maxProperties":2}`
	for _, row := range []struct {
		name, schema, args string
		want               string // part of the fault; "" for none
	}{
		{"what fits passes", person, `{"name":"Ada","age":36,"tags":["a"],"mode":"x","at":null}`, ""},
		{"a required member is missing", person, `{"age":1}`, "name is missing"},
		{"a member is not known", person, `{"name":"Ada","nam":1}`, "nam is not a parameter"},
		{"a wrong type", person, `{"name":7}`, "name must be of type string"},
		{"characters are counted, not bytes", person, `{"name":"éééé"}`, ""},
		{"a text too long", person, `{"name":"Hannah"}`, "more than 4"},
		{"a whole number may be written with a fraction of zero", person, `{"name":"Ada","age":3.0}`, ""},
		{"a fraction is no integer", person, `{"name":"Ada","age":3.5}`, "age must be of type integer"},
		{"a number below its bound", person, `{"name":"Ada","age":-1}`, "at least 0"},
		{"a bound that is excluded", person, `{"name":"Ada","age":150}`, "below 150"},
		{"an entry outside the enum", person, `{"name":"Ada","tags":["c"]}`, "tags[0] must be one of"},
		{"too many entries", person, `{"name":"Ada","tags":["a","b","a"]}`, "more than 2"},
		{"another value than the only one", person, `{"name":"Ada","mode":"y"}`, `mode must be "x"`},
		{"no object at all", person, `[]`, "type object"},
		{"a name given twice", person, `{"name":"Ada","name":"Bob"}`, "each name once"},
		{"a recursive schema", tree, `{"v":1,"left":{"v":2,"left":{"v":3}}}`, ""},
		{"a fault deep in a recursive schema", tree, `{"v":1,"left":{"v":2,"left":{}}}`, "left.left.v is missing"},
		{"a schema that only names itself ends", `{"type":"object","$ref":"#"}`, `{}`, "nested too deep"},
		{"one of several forms", forms, `{"v":1}`, ""},
		{"none of several forms", forms, `{"v":true}`, "none of its forms"},
		{"two forms where one is meant", forms, `{"w":3}`, "fits 2 of its forms"},
		{"an excluded form", forms, `{"n":null}`, "excluded"},
		{"all forms", forms, `{"all":2}`, "at least 3"},
		{"what may never be given", forms, `{"no":1}`, "may not be given"},
		{"places of a list", forms, `{"pair":["a",1,"b"]}`, "pair[2] must be of type number"},
		{"other members by their schema", forms, `{"x":1}`, "x must be of type boolean"},
		{"too many members", forms, `{"a":true,"b":true,"c":true}`, "more than 2"},
		{"unknown keywords are not checked", `{"type":"object","properties":{"v":{"format":"date","pattern":"^x$","x-own":1}}}`, `{"v":"y"}`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := parseSchema(json.RawMessage(row.schema))
			if err != nil {
				t.Fatal(err)
			}
			err = s.check(json.RawMessage(row.args))
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: %v, want %q", row.args, err, row.want)
			}
		})
	}
	for _, bad := range []string{
		`{}`, `{"type":"string"}`, `true`, `{"type":"object","properties":[]}`, `{"type":"object","properties":{"a":1}}`,
		`{"type":"object","required":"a"}`, `{"type":"object","required":[1]}`, `{"type":"object","properties":{"a":{"type":"text"}}}`,
		`{"type":"object","minProperties":-1}`, `{"type":"object","properties":{"a":{"enum":[]}}}`, `{"type":"object","anyOf":[]}`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, `{"type":"object","$ref":"https://x/y"}`, `{"type":"object","properties":{"a":{"minimum":"1"}}}`,
	} {
		t.Run("a schema is refused: "+bad, func(t *testing.T) {
			if _, err := parseSchema(json.RawMessage(bad)); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"type":"array","items":{"anyOf":[{"minimum":1},{"$ref":"#"}]}}}}`, `{"a":[1,{"b":[]}]}`)
	f.Add(`{"type":"object","allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{}`)
	f.Add(`{"type":"object","$ref":"#/~1/~0/"}`, `{"a":1e400}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		s, err := parseSchema(json.RawMessage(schema))
		if err == nil {
			s.check(json.RawMessage(args))
		}
	})
}
