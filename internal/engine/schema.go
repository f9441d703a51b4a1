package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
)

// schema is a JSON Schema as far as a call's arguments are checked by it
// (protocol.md 11). Checked are
//
//   - for every value type, enum, const, allOf, anyOf, oneOf, not, if, then, else
//     and $ref to a place of the same schema;
//   - for objects properties, patternProperties, additionalProperties,
//     propertyNames, required, minProperties, maxProperties, dependentRequired,
//     dependentSchemas and the older dependencies;
//   - for lists items, prefixItems, minItems, maxItems, uniqueItems, contains,
//     minContains and maxContains;
//   - for texts minLength, maxLength and pattern;
//   - for numbers minimum, maximum, exclusiveMinimum, exclusiveMaximum and
//     multipleOf.
//
// Every other keyword, format, unevaluatedProperties, unevaluatedItems and
// $dynamicRef among them, is the server's own to check. So is a pattern with what
// RE2 has not: looking ahead and behind, references to groups, more than 1,000
// repetitions. \d, \w, \s and \b are those of ASCII. A schema is safe for
// concurrent use.
type schema struct {
	root     any
	refs     map[string]any      // by the text of $ref
	patterns map[string]*pattern // by their text
	size     int                 // of all patterns together

	// While it is parsed:
	walked  map[uintptr]bool // objects that have been looked at
	pending []target
}

const (
	schemaDepth = 1_000   // schemas one inside the other, as written and as applied
	schemaSteps = 200_000 // schemas applied in one check
)

// parseSchema reads a schema and refuses one whose checked keywords do not have
// the form that JSON Schema gives them.
func parseSchema(raw json.RawMessage) (*schema, error) {
	s := &schema{refs: map[string]any{}, patterns: map[string]*pattern{}, walked: map[uintptr]bool{}}
	if err := jsonv2.Unmarshal(raw, &s.root); err != nil {
		return nil, errors.New("it is not JSON")
	}
	top, ok := s.root.(map[string]any)
	if !ok || top["type"] != "object" {
		return nil, errors.New(`it is an object whose type is "object"`)
	}
	err := s.wellFormed(s.root, nil, 0)
	for err == nil && len(s.pending) > 0 {
		next := s.pending[0]
		s.pending = s.pending[1:]
		err = s.wellFormed(next.schema, next.at, 0)
	}
	s.walked = nil
	return s, err
}

// target is what a $ref names, and where that stands.
type target struct {
	schema any
	at     *spot
}

// The keywords by the form of their value.
var (
	schemaCounts  = []string{"minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength", "minContains", "maxContains"}
	schemaBounds  = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
	schemaNested  = []string{"additionalProperties", "items", "not", "propertyNames", "contains", "if", "then", "else"}
	schemaLists   = []string{"prefixItems", "allOf", "anyOf", "oneOf"}
	schemaMembers = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
	schemaTypes   = []string{"object", "array", "string", "number", "integer", "boolean", "null"}
)

// spot is a place in a schema or in arguments. It is written out for an error
// alone. nil is the whole.
type spot struct {
	in   *spot
	name string // of a member
	i    int    // of an entry; -1 for a member
}

func (p *spot) member(name string) *spot { return &spot{in: p, name: name, i: -1} }
func (p *spot) entry(i int) *spot        { return &spot{in: p, i: i} }

// pointer is a place in a schema.
func (p *spot) pointer() string {
	var parts []string
	for ; p != nil; p = p.in {
		if p.i >= 0 {
			parts = append(parts, "/"+strconv.Itoa(p.i))
		} else {
			parts = append(parts, "/"+p.name)
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

func malformed(at *spot, key, form string) error {
	return fmt.Errorf("%s is no %s", at.member(key).pointer(), form)
}

// wellFormed checks a schema and those inside it.
func (s *schema) wellFormed(v any, at *spot, depth int) error {
	if depth > schemaDepth {
		return fmt.Errorf("%s is nested too deep", at.pointer())
	}
	if _, ok := v.(bool); ok {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is neither an object nor a boolean", at.pointer()+"/")
	}
	if is := reflect.ValueOf(m).Pointer(); s.walked[is] {
		return nil
	} else {
		s.walked[is] = true
	}
	if err := s.formOf(m, at); err != nil {
		return err
	}
	if err := s.patternsOf(m, at); err != nil {
		return err
	}
	if err := s.parts(m, at, depth); err != nil {
		return err
	}
	return s.reference(m, at)
}

// parts checks the schemas inside one.
func (s *schema) parts(m map[string]any, at *spot, depth int) error {
	for _, k := range schemaNested {
		if sub, has := m[k]; has {
			if err := s.wellFormed(sub, at.member(k), depth+1); err != nil {
				return err
			}
		}
	}
	for _, k := range schemaLists {
		list, has := m[k].([]any)
		if !has && m[k] != nil || has && k != "prefixItems" && len(list) == 0 {
			return malformed(at, k, "list of schemas")
		}
		in := at.member(k)
		for i, sub := range list {
			if err := s.wellFormed(sub, in.entry(i), depth+1); err != nil {
				return err
			}
		}
	}
	for _, k := range schemaMembers {
		if err := s.members(m, k, at, depth); err != nil {
			return err
		}
	}
	return s.dependencies(m, at, depth)
}

func (s *schema) members(m map[string]any, key string, at *spot, depth int) error {
	members, has := m[key].(map[string]any)
	if !has && m[key] != nil {
		return malformed(at, key, "object of schemas")
	}
	in := at.member(key)
	for _, name := range sortedKeys(members) {
		if err := s.wellFormed(members[name], in.member(name), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// dependencies checks dependentRequired and dependencies.
func (s *schema) dependencies(m map[string]any, at *spot, depth int) error {
	for _, k := range []string{"dependentRequired", "dependencies"} {
		members, has := m[k].(map[string]any)
		if !has && m[k] != nil {
			return malformed(at, k, "object")
		}
		in := at.member(k)
		for _, name := range sortedKeys(members) {
			if isNames(members[name]) {
				continue
			}
			if k == "dependentRequired" {
				return malformed(in, name, "list of names")
			}
			if err := s.wellFormed(members[name], in.member(name), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// reference resolves $ref. What it names is checked later: it may be any place.
func (s *schema) reference(m map[string]any, at *spot) error {
	ref, has := m["$ref"]
	if !has {
		return nil
	}
	text, ok := ref.(string)
	if _, known := s.refs[text]; ok && known {
		return nil
	}
	to, found := s.at(text)
	if !ok || !found {
		return malformed(at, "$ref", "place in this schema; it is # or #/…")
	}
	s.refs[text] = to
	s.pending = append(s.pending, target{to, at.member("$ref")})
	return nil
}

// formOf checks the keywords whose values hold no schema.
func (s *schema) formOf(m map[string]any, at *spot) error {
	if t, has := m["type"]; has {
		if err := typesOf(t, at); err != nil {
			return err
		}
	}
	if list, has := m["enum"]; has {
		if values, ok := list.([]any); !ok || len(values) == 0 {
			return malformed(at, "enum", "list of values")
		}
	}
	if list, has := m["required"]; has && !isNames(list) {
		return malformed(at, "required", "list of names")
	}
	for _, k := range schemaCounts {
		if n, has := m[k]; has && !isCount(n) {
			return malformed(at, k, "count")
		}
	}
	for _, k := range schemaBounds {
		if _, number := m[k].(float64); m[k] != nil && !number {
			return malformed(at, k, "number")
		}
	}
	if n, has := m["multipleOf"]; has {
		if f, ok := n.(float64); !ok || f <= 0 {
			return malformed(at, "multipleOf", "number above 0")
		}
	}
	if u, has := m["uniqueItems"]; has {
		if _, ok := u.(bool); !ok {
			return malformed(at, "uniqueItems", "boolean")
		}
	}
	return nil
}

func typesOf(t any, at *spot) error {
	names, ok := t.([]any)
	if name, one := t.(string); one {
		names, ok = []any{name}, true
	}
	if !ok || len(names) == 0 {
		return malformed(at, "type", "type or list of types")
	}
	for _, n := range names {
		if name, ok := n.(string); !ok || !slices.Contains(schemaTypes, name) {
			return malformed(at, "type", "type of JSON Schema")
		}
	}
	return nil
}

func isNames(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(n any) bool { _, text := n.(string); return !text })
}

func isCount(v any) bool {
	n, ok := v.(float64)
	return ok && n >= 0 && n == math.Trunc(n)
}

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// at is the schema that a reference names.
func (s *schema) at(ref string) (any, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || path != "" && path[0] != '/' {
		return nil, false
	}
	v := s.root
	if path == "" {
		return v, true
	}
	for _, name := range strings.Split(path[1:], "/") {
		name = pointerEscapes.Replace(name)
		switch in := v.(type) {
		case map[string]any:
			if v, ok = in[name]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	switch v.(type) {
	case bool, map[string]any:
		return v, true
	}
	return nil, false
}
