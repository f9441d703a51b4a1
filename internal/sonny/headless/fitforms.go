package headless

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A schema is looked through before anything runs: the library goes through it by
// recursion and takes forms that no reply can fit.
const (
	maxNested = 100 // schemas one inside the other, and those that one value is held to in turn
	maxValue  = 200 // values one inside the other, in a reply
)

var (
	typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}
	dialects  = []string{
		"", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#",
		"https://json-schema.org/draft/2020-12/schema",
	}
	// sameValue are the keywords whose schemas are for the very value that theirs is for.
	sameValue = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)

// subschema is a schema in its place.
type subschema struct {
	*jsonschema.Schema
	at   string     // a JSON pointer
	base *subschema // where its references begin
	same []*subschema
	// chain is how many schemas a value goes through here without going deeper; 0: not
	// known yet, -1: being found out.
	chain int
}

// forms is a schema, taken apart.
type forms struct{ all []*subschema }

// checkForms refuses a schema that cannot be checked, or that no value is ever checked by.
func checkForms(s *jsonschema.Schema) error {
	if !slices.Contains(dialects, s.Schema) {
		return fmt.Errorf("its $schema is %s; draft 7 and draft 2020-12 are taken", s.Schema)
	}
	f := &forms{}
	if _, err := f.add(s, "", nil, 0); err != nil {
		return err
	}
	for _, sub := range f.all {
		if err := sub.formed(); err != nil {
			return err
		}
	}
	for _, sub := range f.all {
		if _, err := f.follow(sub); err != nil {
			return err
		}
	}
	return nil
}

// add takes a schema and those inside it.
func (f *forms) add(s *jsonschema.Schema, at string, base *subschema, depth int) (*subschema, error) {
	if depth > maxNested {
		return nil, fmt.Errorf("it is nested deeper than %d schemas", maxNested)
	}
	sub := &subschema{Schema: s, at: at, base: base}
	if base == nil || s.ID != "" && !strings.HasPrefix(s.ID, "#") {
		sub.base = sub
	}
	f.all = append(f.all, sub)
	for _, child := range children(s) {
		in, err := f.add(child.schema, at+child.at, sub.base, depth+1)
		if err != nil {
			return nil, err
		}
		if slices.Contains(sameValue, child.keyword) {
			sub.same = append(sub.same, in)
		}
	}
	return sub, nil
}

// child is a schema that stands directly in another.
type child struct {
	keyword, at string
	schema      *jsonschema.Schema
}

// untagged are the fields that the library reads by hand.
var untagged = map[string]string{"Items": "items", "ItemsArray": "items", "DependencySchemas": "dependencies"}

func children(s *jsonschema.Schema) (out []child) {
	put := func(keyword, at string, in *jsonschema.Schema) {
		if in != nil {
			out = append(out, child{keyword, at, in})
		}
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		keyword, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if hand, is := untagged[field.Name]; is {
			keyword = hand
		}
		if !field.IsExported() {
			continue
		}
		switch in := v.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			put(keyword, "/"+keyword, in)
		case []*jsonschema.Schema:
			for i, one := range in {
				put(keyword, "/"+keyword+"/"+strconv.Itoa(i), one)
			}
		case map[string]*jsonschema.Schema:
			for name, one := range in {
				put(keyword, "/"+keyword+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), one)
			}
		}
	}
	return out
}

// place is how a schema is named to a person.
func (s *subschema) place() string { return "#" + s.at }

// formed checks what the library does not.
func (s *subschema) formed() error {
	types := s.Types
	if s.Type != "" {
		types = append(types[:len(types):len(types)], s.Type)
	}
	for _, name := range types {
		if !slices.Contains(typeNames, name) {
			return fmt.Errorf("%q at %s is no type; the types are %s", name, s.place(), strings.Join(typeNames, ", "))
		}
	}
	if s.MultipleOf != nil && *s.MultipleOf <= 0 {
		return fmt.Errorf("multipleOf at %s is not above 0", s.place())
	}
	if s.DynamicRef != "" {
		return fmt.Errorf("$dynamicRef at %s is not taken; write $ref", s.place())
	}
	return nil
}

// follow finds how many schemas a value goes through from one on, itself among them. A
// way that comes back to where it began has no end.
func (f *forms) follow(s *subschema) (int, error) {
	switch {
	case s.chain < 0:
		return 0, fmt.Errorf("the schema at %s leads to itself: a value that it is for is never checked", s.place())
	case s.chain > 0:
		return s.chain, nil
	}
	s.chain = -1
	next := s.same
	if s.Ref != "" {
		to, err := f.find(s)
		if err != nil {
			return 0, err
		}
		next = append(next[:len(next):len(next)], to)
	}
	longest := 0
	for _, n := range next {
		chain, err := f.follow(n)
		if err != nil {
			return 0, err
		}
		longest = max(longest, chain)
	}
	if longest >= maxNested {
		return 0, fmt.Errorf("at %s a value goes through more than %d schemas", s.place(), maxNested)
	}
	s.chain = longest + 1
	return s.chain, nil
}

// find is the schema that a reference names: a place or an anchor of this one.
func (f *forms) find(s *subschema) (*subschema, error) {
	none := fmt.Errorf("$ref %q at %s names no schema in this one; #, #/… and #ANCHOR do", s.Ref, s.place())
	whose, fragment, _ := strings.Cut(s.Ref, "#")
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, none
	}
	base := s.base
	if whose != "" {
		i := slices.IndexFunc(f.all, func(o *subschema) bool { return o.base == o && strings.TrimSuffix(o.ID, "#") == whose })
		if i < 0 {
			return nil, none
		}
		base = f.all[i]
	}
	i := slices.IndexFunc(f.all, func(o *subschema) bool {
		if fragment == "" || fragment[0] == '/' {
			return o.at == base.at+fragment
		}
		return o.base == base && (o.Anchor == fragment || o.DynamicAnchor == fragment || o.ID == "#"+fragment)
	})
	if i < 0 {
		return nil, none
	}
	return f.all[i], nil
}

// shallow refuses a text of JSON that is nested too deep to be checked.
func shallow(raw json.RawMessage) error {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxValue {
				return errors.New("it is nested deeper than " + strconv.Itoa(maxValue) + " values")
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
