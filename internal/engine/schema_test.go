package engine

import (
	"encoding/json"
	"fmt"
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
	const numbers = `{"type":"object","properties":{"n":{"multipleOf":0.1},"i":{"multipleOf":3},"big":{"multipleOf":1e-300}}}`
	const lists = `{"type":"object","properties":{"u":{"uniqueItems":true},"c":{"contains":{"type":"string"}},"none":{"contains":{"type":"string"},"minContains":0,"maxContains":1},
		"some":{"contains":{"minimum":5},"minContains":2,"maxContains":3}}}`
	const names = `{"type":"object","properties":{"known":{}},"patternProperties":{"^x-":{"type":"string"},"-n$":{"minLength":2}},"additionalProperties":false,"propertyNames":{"maxLength":5}}`
	const depends = `{"type":"object","dependentRequired":{"a":["b","c"]},"dependentSchemas":{"d":{"properties":{"e":{"type":"null"}},"required":["e"]}},
		"dependencies":{"f":["g"],"h":{"maxProperties":1}}}`
	const when = `{"type":"object","if":{"properties":{"k":{"const":1}},"required":["k"]},"then":{"required":["one"]},"else":{"required":["other"]}}`
	const ahead = `{"type":"object","properties":{"p":{"pattern":"^(?!x)"},"not":{"not":{"pattern":"^(?!x)"}},"one":{"oneOf":[{"pattern":"^(?=x)"},{"type":"string"}]},
		"if":{"if":{"pattern":"^(?!x)"},"then":false,"else":false},"c":{"contains":{"pattern":"^(?!x)"},"maxContains":1}},"patternProperties":{"^(?!z)z":{"type":"null"}},"additionalProperties":false}`
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
		{"unknown keywords are not checked", `{"type":"object","properties":{"v":{"format":"date","x-own":1}},"unevaluatedProperties":false}`, `{"v":"y","w":1}`, ""},
		{"a pattern that matches", pat(`^x$`), `{"a":"x"}`, ""},
		{"a pattern that does not", pat(`^x$`), `{"a":"evil"}`, `a must match the pattern "^x$"`},
		{"a pattern matches anywhere", pat(`x`), `{"a":"axb"}`, ""},
		{"a pattern is of texts alone", pat(`^x$`), `{"a":7}`, ""},
		{"the end is the end, and no line's", pat(`^x$`), `{"a":"x\ny"}`, "must match"},
		{"the end is not before a last newline", pat(`^x$`), `{"a":"x\n"}`, "must match"},
		{"digits are those of ASCII", pat(`^\\d+$`), `{"a":"٣"}`, "must match"},
		{"an escape of four digits", pat(`^[\\u4e00-\\u9fa5]+$`), `{"a":"中文"}`, ""},
		{"an escape of four digits, other letters", pat(`^[\\u4e00-\\u9fa5]+$`), `{"a":"x"}`, "must match"},
		{"an escape in braces", pat(`^\\u{1F600}$`), `{"a":"😀"}`, ""},
		{"any character", pat(`^[^]$`), `{"a":"\n"}`, ""},
		{"no character", pat(`^[]$`), `{"a":""}`, "must match"},
		{"a bracket in a class", pat(`^[[:alpha:]$`), `{"a":"["}`, ""},
		{"escaped slashes and dashes", pat(`^\\/[\\w\\-.]+$`), `{"a":"/a-b.c"}`, ""},
		{"a pattern in a list's entries", `{"type":"object","properties":{"l":{"items":{"pattern":"^[a-z]+$"}}}}`, `{"l":["a","B"]}`, "l[1] must match"},
		{"a pattern that looks ahead is not checked", ahead, `{"p":"x"}`, ""},
		{"nor does one exclude", ahead, `{"not":"x"}`, ""},
		{"nor is one a second form", ahead, `{"one":"x"}`, ""},
		{"nor does one decide", ahead, `{"if":"x"}`, ""},
		{"nor is one counted as too many", ahead, `{"c":["a","b"]}`, ""},
		{"nor does one name what is unknown", ahead, `{"other":1}`, ""},
		{"decimals are multiples as they are written", numbers, `{"n":0.3}`, ""},
		{"a number that is no multiple", numbers, `{"n":0.35}`, "n must be a multiple of 0.1"},
		{"whole multiples", numbers, `{"i":-9}`, ""},
		{"a whole number that is no multiple", numbers, `{"i":10}`, "multiple of 3"},
		{"a fraction that is no multiple of a whole one", numbers, `{"i":4.5}`, "multiple of 3"},
		{"numbers far apart", numbers, `{"big":1e300}`, ""},
		{"entries that differ", lists, `{"u":[1,"1",[1],{"a":1},{"a":2},null,false,0]}`, ""},
		{"entries that are the same in another spelling", lists, `{"u":[{"a":1,"b":[2]},3,{"b":[2.0],"a":1}]}`, "u[2] is the same as entry 0"},
		{"zero and minus zero are the same", lists, `{"u":[0,-0.0]}`, "the same"},
		{"true is not 1", lists, `{"u":[true,1]}`, ""},
		{"one entry of a form", lists, `{"c":[1,"x"]}`, ""},
		{"no entry of a form", lists, `{"c":[1]}`, "fewer than 1"},
		{"no entry of a form, where none is needed", lists, `{"none":[1]}`, ""},
		{"too many entries of a form", lists, `{"none":["a","b"]}`, "more than 1"},
		{"too few entries of a form", lists, `{"some":[1,6]}`, "fewer than 2"},
		{"enough entries of a form", lists, `{"some":[1,6,7,8]}`, ""},
		{"members by their names", names, `{"known":1,"x-a":"v"}`, ""},
		{"a member whose name matches, with a wrong value", names, `{"x-a":1}`, "x-a must be of type string"},
		{"a member whose name matches twice", names, `{"x-n":"v"}`, "fewer than 2"},
		{"a member whose name matches nothing", names, `{"y":1}`, "y is not a parameter"},
		{"a name that does not fit", names, `{"x-long":"v"}`, "more than 5"},
		{"properties and patterns are both held to", `{"type":"object","properties":{"x":{"type":"string"}},"patternProperties":{"x":{"minLength":2}}}`, `{"x":"a"}`, "fewer than 2"},
		{"a member that asks for others", depends, `{"a":1,"b":1}`, "c is missing"},
		{"a member that asks for others, all there", depends, `{"a":1,"b":1,"c":1}`, ""},
		{"members that ask for nothing when they are not there", depends, `{"b":1}`, ""},
		{"a member that brings a schema", depends, `{"d":1,"e":2}`, "e must be of type null"},
		{"the older way to ask for others", depends, `{"f":1}`, "g is missing"},
		{"the older way to bring a schema", depends, `{"h":1,"i":1}`, "more than 1"},
		{"if, then", when, `{"k":1}`, "one is missing"},
		{"if, then, fitting", when, `{"k":1,"one":1}`, ""},
		{"if not, else", when, `{"k":2}`, "other is missing"},
		{"if without then and else", `{"type":"object","if":false}`, `{}`, ""},
		{"a schema that a reference alone names", `{"type":"object","properties":{"a":{"$ref":"#/x/y"}},"x":{"y":{"pattern":"^b"}}}`, `{"a":"c"}`, "must match"},
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
		`{"type":"object","multipleOf":0}`, `{"type":"object","uniqueItems":1}`, `{"type":"object","minContains":0.5}`, `{"type":"object","dependentRequired":{"a":"b"}}`,
		`{"type":"object","dependencies":{"a":["b",1]}}`, `{"type":"object","dependencies":{"a":1}}`, `{"type":"object","if":1}`, `{"type":"object","propertyNames":{"pattern":1}}`,
		`{"type":"object","patternProperties":{"a":1}}`, `{"type":"object","patternProperties":{"(":{}}}`, `{"type":"object","contains":[]}`, `{"type":"object","dependentSchemas":[]}`,
		`{"type":"object","properties":{"a":{"$ref":"#/x"}},"x":{"type":[1]}}`, pat(`[`), pat(`a**`), pat(`(`), pat(strings.Repeat("x", patternBytes+1)),
		pat(strings.Repeat(`(?:[a-z][0-9]){1000}`, 40)),
	} {
		t.Run("a schema is refused: "+bad, func(t *testing.T) {
			if _, err := parseSchema(json.RawMessage(bad)); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

// pat is a schema whose member a has a pattern, written for JSON.
func pat(p string) string { return `{"type":"object","properties":{"a":{"pattern":"` + p + `"}}}` }

func TestSchemaSaysWhichPattern(t *testing.T) {
	t.Parallel()
	_, err := parseSchema(json.RawMessage(`{"type":"object","properties":{"a":{"anyOf":[{},{"pattern":"x["}]}}}`))
	if err == nil || !strings.Contains(err.Error(), `/properties/a/anyOf/1/pattern is no regular expression`) || !strings.Contains(err.Error(), `"x["`) || !strings.Contains(err.Error(), "missing closing ]") || strings.Contains(err.Error(), "u003c") {
		t.Errorf("got %v", err)
	}
	for _, beyond := range []string{`^(?=.*[A-Z])(?!.*x).+$`, `(?<=a)b`, `(?<!a)b`, `(a)\\1`, `^\\p{Letter}$`, `^.{1,5000}$`, `\\_`} {
		if _, err := parseSchema(json.RawMessage(pat(beyond))); err != nil {
			t.Errorf("%s is refused: %v", beyond, err)
		}
	}
}

// What would take long is refused, and says so.
func TestSchemaIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 900_000)
	list := "[" + strings.Repeat("1,", 200_000) + "1]"
	for _, row := range []struct{ name, schema, args, want string }{
		{"a great pattern and a long text", pat(`(?:a{1,10}){1,100}$`), `{"a":"` + long + `"}`, "too many"},
		{"a small pattern and a long text", pat(`^[a-z]+$`), `{"a":"` + long + `"}`, ""},
		{"a long list of the same", `{"type":"object","properties":{"l":{"uniqueItems":true}}}`, `{"l":` + list + `}`, "the same"},
		{
			"long lists compared again and again", `{"type":"object","properties":{"l":{"allOf":[` + strings.Repeat(`{"uniqueItems":true},`, 1000) + `{}]}}}`,
			`{"l":["` + long + `"]}`, "too many",
		},
		{"forms in forms", `{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}}}`, `{}`, "too many"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := parseSchema(json.RawMessage(row.schema))
			if err != nil {
				t.Fatal(err)
			}
			err = s.check(json.RawMessage(row.args))
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, want %q", err, row.want)
			}
		})
	}
}

func TestSchemasAreKeptUpToABound(t *testing.T) {
	t.Parallel()
	var kept schemas
	first, err := kept.of(json.RawMessage(pat("a")))
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := kept.of(json.RawMessage(pat("a"))); again != first {
		t.Error("a schema is parsed twice")
	}
	if _, err := kept.of(json.RawMessage(pat("["))); err == nil {
		t.Error("a schema that cannot be read is taken")
	}
	for i := range 100 {
		if _, err := kept.of(json.RawMessage(pat(fmt.Sprintf("(?:[a-z][0-9]%d){1000}", i)))); err != nil {
			t.Fatal(err)
		}
		if kept.cost > maxSchemasCost {
			t.Fatalf("they cost %d", kept.cost)
		}
	}
	if again, _ := kept.of(json.RawMessage(pat("a"))); again == first {
		t.Error("what is over the bound is kept")
	}
}

// A schema with a thousand alternatives, and a call that fits the last.
func BenchmarkSchemaForms(b *testing.B) {
	var forms []string
	for i := range 1000 {
		forms = append(forms, fmt.Sprintf(`{"properties":{"k":{"enum":["a%d","b%d"]},"v":{"$ref":"#/$defs/v"}},"required":["k"]}`, i, i))
	}
	schema := json.RawMessage(`{"type":"object","$defs":{"v":{"type":"string","pattern":"^[a-z]+$"}},"anyOf":[` + strings.Join(forms, ",") + `]}`)
	args := json.RawMessage(`{"k":"a999","v":"x"}`)
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := parseSchema(schema); err != nil {
				b.Fatal(err)
			}
		}
	})
	s, err := parseSchema(schema)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if err := s.check(args); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"type":"array","items":{"anyOf":[{"minimum":1},{"$ref":"#"}]}}}}`, `{"a":[1,{"b":[]}]}`)
	f.Add(`{"type":"object","allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{}`)
	f.Add(`{"type":"object","$ref":"#/~1/~0/"}`, `{"a":1e400}`)
	f.Add(`{"type":"object","patternProperties":{"^(?!x)":{"pattern":"[\\u0041[]"}},"propertyNames":{"pattern":"a|b*"},"dependencies":{"a":["b"],"c":{"uniqueItems":true}}}`, `{"a":"A","c":[0,-0.0,[{}]]}`)
	f.Add(`{"type":"object","if":{"contains":{"multipleOf":0.1}},"then":{"minContains":2,"contains":false},"else":{"dependentSchemas":{"a":{"not":{"$ref":"#/x"}}}},"x":{"type":"null"}}`, `{"a":[0.3,1e-320]}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		s, err := parseSchema(json.RawMessage(schema))
		if err == nil {
			s.check(json.RawMessage(args))
		}
	})
}
