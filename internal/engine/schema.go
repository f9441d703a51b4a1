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
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
)

// schema is a JSON Schema as far as a call's arguments are checked by it
// (protocol.md 11). Checked are type, enum, const, properties, required,
// additionalProperties, minProperties, maxProperties, items, prefixItems,
// minItems, maxItems, minLength, maxLength, minimum, maximum,
// exclusiveMinimum, exclusiveMaximum, allOf, anyOf, oneOf, not and $ref to a
// place of the same schema. Every other keyword, pattern and format among them,
// is the server's own to check. A schema is safe for concurrent use.
type schema struct {
	root any
}

const (
	schemaDepth = 1_000   // schemas one inside the other, as written and as applied
	schemaSteps = 200_000 // schemas applied in one check
)

// parseSchema reads a schema and refuses one whose checked keywords do not have
// the form that JSON Schema gives them.
func parseSchema(raw json.RawMessage) (*schema, error) {
	s := &schema{}
	if err := jsonv2.Unmarshal(raw, &s.root); err != nil {
		return nil, errors.New("it is not JSON")
	}
	top, ok := s.root.(map[string]any)
	if !ok || top["type"] != "object" {
		return nil, errors.New(`it is an object whose type is "object"`)
	}
	return s, s.wellFormed(s.root, "", 0)
}

// The keywords by the form of their value.
var (
	schemaCounts  = []string{"minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength"}
	schemaBounds  = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
	schemaNested  = []string{"additionalProperties", "items", "not"}
	schemaLists   = []string{"prefixItems", "allOf", "anyOf", "oneOf"}
	schemaMembers = []string{"properties", "$defs", "definitions"}
	schemaTypes   = []string{"object", "array", "string", "number", "integer", "boolean", "null"}
)

// wellFormed checks a schema and those inside it. at is its place.
func (s *schema) wellFormed(v any, at string, depth int) error {
	if depth > schemaDepth {
		return fmt.Errorf("%s is nested too deep", at)
	}
	if _, ok := v.(bool); ok {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is neither an object nor a boolean", at+"/")
	}
	if err := s.formOf(m, at); err != nil {
		return err
	}
	for _, k := range schemaNested {
		if sub, has := m[k]; has {
			if err := s.wellFormed(sub, at+"/"+k, depth+1); err != nil {
				return err
			}
		}
	}
	for _, k := range schemaLists {
		list, has := m[k].([]any)
		if !has && m[k] != nil || has && k != "prefixItems" && len(list) == 0 {
			return fmt.Errorf("%s/%s is no list of schemas", at, k)
		}
		for i, sub := range list {
			if err := s.wellFormed(sub, fmt.Sprintf("%s/%s/%d", at, k, i), depth+1); err != nil {
				return err
			}
		}
	}
	for _, k := range schemaMembers {
		members, has := m[k].(map[string]any)
		if !has && m[k] != nil {
			return fmt.Errorf("%s/%s is no object of schemas", at, k)
		}
		for _, name := range sortedKeys(members) {
			if err := s.wellFormed(members[name], at+"/"+k+"/"+name, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// formOf checks the keywords whose values hold no schema.
func (s *schema) formOf(m map[string]any, at string) error {
	bad := func(k, form string) error { return fmt.Errorf("%s/%s is no %s", at, k, form) }
	if t, has := m["type"]; has {
		names, ok := t.([]any)
		if name, one := t.(string); one {
			names, ok = []any{name}, true
		}
		if !ok || len(names) == 0 {
			return bad("type", "type or list of types")
		}
		for _, n := range names {
			if name, ok := n.(string); !ok || !slices.Contains(schemaTypes, name) {
				return bad("type", "type of JSON Schema")
			}
		}
	}
	if list, has := m["enum"]; has {
		if values, ok := list.([]any); !ok || len(values) == 0 {
			return bad("enum", "list of values")
		}
	}
	if list, has := m["required"]; has {
		names, ok := list.([]any)
		for _, n := range names {
			_, text := n.(string)
			ok = ok && text
		}
		if !ok {
			return bad("required", "list of names")
		}
	}
	for _, k := range schemaCounts {
		if n, has := m[k]; has && !isCount(n) {
			return bad(k, "count")
		}
	}
	for _, k := range schemaBounds {
		if _, number := m[k].(float64); m[k] != nil && !number {
			return bad(k, "number")
		}
	}
	if ref, has := m["$ref"]; has {
		text, ok := ref.(string)
		if _, found := s.at(text); !ok || !found {
			return bad("$ref", "place in this schema; it is # or #/…")
		}
	}
	return nil
}

func isCount(v any) bool {
	n, ok := v.(float64)
	return ok && n >= 0 && n == math.Trunc(n)
}

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
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
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

// check says what of a call's arguments the schema does not take, nil when
// nothing.
func (s *schema) check(args json.RawMessage) error {
	var v any
	if err := jsonv2.Unmarshal(args, &v); err != nil {
		return errors.New("the arguments are not a JSON object in UTF-8, each name once")
	}
	c := schemaCheck{s: s}
	err := c.apply(s.root, v, "the arguments", 0)
	if c.spent {
		return errors.New("the arguments are nested too deep, or too many, to be checked by the tool's schema")
	}
	return err
}

// schemaCheck is one check under way.
type schemaCheck struct {
	s     *schema
	steps int
	spent bool // a bound was met: no verdict counts
}

// apply checks a value, named by at, by one schema.
func (c *schemaCheck) apply(by, v any, at string, depth int) error {
	if c.steps++; c.steps > schemaSteps || depth > schemaDepth {
		c.spent = true
		return errors.New("out of bounds")
	}
	m, ok := by.(map[string]any)
	if !ok {
		if by == false {
			return fmt.Errorf("%s may not be given", at)
		}
		return nil
	}
	if ref, has := m["$ref"].(string); has {
		to, _ := c.s.at(ref)
		if err := c.apply(to, v, at, depth+1); err != nil {
			return err
		}
	}
	if err := valueFits(m, v, at); err != nil {
		return err
	}
	if err := c.combined(m, v, at, depth); err != nil {
		return err
	}
	switch v := v.(type) {
	case map[string]any:
		return c.object(m, v, at, depth)
	case []any:
		return c.array(m, v, at, depth)
	case string:
		return sizeFits(m, "Length", "characters", float64(utf8.RuneCountInString(v)), at)
	case float64:
		return numberFits(m, v, at)
	}
	return nil
}

// valueFits checks type, enum and const.
func valueFits(m map[string]any, v any, at string) error {
	switch t := m["type"].(type) {
	case string:
		if !isType(t, v) {
			return fmt.Errorf("%s must be of type %s", at, t)
		}
	case []any:
		if !slices.ContainsFunc(t, func(name any) bool { return isType(name.(string), v) }) {
			return fmt.Errorf("%s must be of one of the types %v", at, t)
		}
	}
	if list, has := m["enum"].([]any); has && !slices.ContainsFunc(list, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		return fmt.Errorf("%s must be one of %s", at, shortJSON(list))
	}
	if only, has := m["const"]; has && !reflect.DeepEqual(only, v) {
		return fmt.Errorf("%s must be %s", at, shortJSON(only))
	}
	return nil
}

func isType(name string, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	}
	return name == "object"
}

// shortJSON is a value of a schema as a detail shows it.
func shortJSON(v any) string {
	text, _ := json.Marshal(v)
	shown, cut := cutCharacters(string(text), 200)
	if cut {
		return shown + "…"
	}
	return shown
}

// sizeFits checks a size by the keywords min… and max….
func sizeFits(m map[string]any, what, unit string, n float64, at string) error {
	if least, has := m["min"+what].(float64); has && n < least {
		return fmt.Errorf("%s has %v %s, fewer than %v", at, n, unit, least)
	}
	if most, has := m["max"+what].(float64); has && n > most {
		return fmt.Errorf("%s has %v %s, more than %v", at, n, unit, most)
	}
	return nil
}

func numberFits(m map[string]any, n float64, at string) error {
	for _, b := range []struct {
		key  string
		over func(n, b float64) bool
		says string
	}{
		{"minimum", func(n, b float64) bool { return n < b }, "at least"},
		{"maximum", func(n, b float64) bool { return n > b }, "at most"},
		{"exclusiveMinimum", func(n, b float64) bool { return n <= b }, "above"},
		{"exclusiveMaximum", func(n, b float64) bool { return n >= b }, "below"},
	} {
		if bound, has := m[b.key].(float64); has && b.over(n, bound) {
			return fmt.Errorf("%s must be %s %v", at, b.says, bound)
		}
	}
	return nil
}

// combined checks allOf, anyOf, oneOf and not.
func (c *schemaCheck) combined(m map[string]any, v any, at string, depth int) error {
	all, _ := m["allOf"].([]any)
	for _, sub := range all {
		if err := c.apply(sub, v, at, depth+1); err != nil {
			return err
		}
	}
	fitting := func(list []any) (n int, first error) {
		for _, sub := range list {
			if err := c.apply(sub, v, at, depth+1); err == nil {
				n++
			} else if first == nil {
				first = err
			}
		}
		return n, first
	}
	if list, has := m["anyOf"].([]any); has {
		if n, err := fitting(list); n == 0 {
			return fmt.Errorf("%s fits none of its forms; of the first: %w", at, err)
		}
	}
	if list, has := m["oneOf"].([]any); has {
		if n, err := fitting(list); n == 0 {
			return fmt.Errorf("%s fits none of its forms; of the first: %w", at, err)
		} else if n > 1 {
			return fmt.Errorf("%s fits %d of its forms, and must fit one", at, n)
		}
	}
	if not, has := m["not"]; has && c.apply(not, v, at, depth+1) == nil {
		return fmt.Errorf("%s has a form that is excluded", at)
	}
	return nil
}

func (c *schemaCheck) object(m, v map[string]any, at string, depth int) error {
	required, _ := m["required"].([]any)
	for _, name := range required {
		if _, has := v[name.(string)]; !has {
			return fmt.Errorf("%s is missing", inside(at, name.(string)))
		}
	}
	if err := sizeFits(m, "Properties", "members", float64(len(v)), at); err != nil {
		return err
	}
	known, _ := m["properties"].(map[string]any)
	others, bound := m["additionalProperties"]
	for _, name := range sortedKeys(v) {
		by, has := known[name]
		if !has && bound && m["patternProperties"] == nil {
			if by, has = others, true; others == false {
				return fmt.Errorf("%s is not a parameter of this tool", inside(at, name))
			}
		}
		if has {
			if err := c.apply(by, v[name], inside(at, name), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *schemaCheck) array(m map[string]any, v []any, at string, depth int) error {
	if err := sizeFits(m, "Items", "entries", float64(len(v)), at); err != nil {
		return err
	}
	first, _ := m["prefixItems"].([]any)
	rest, has := m["items"]
	for i := range v {
		by := rest
		if i < len(first) {
			by = first[i]
		} else if !has {
			break
		}
		if err := c.apply(by, v[i], fmt.Sprintf("%s[%d]", at, i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// inside names a member, cut where a model sent a long name.
func inside(at, name string) string {
	if name, cut := cutCharacters(name, 100); cut {
		return at + "." + name + "…"
	}
	if at == "the arguments" {
		return name
	}
	return at + "." + name
}
