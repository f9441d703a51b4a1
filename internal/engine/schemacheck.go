package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
)

// schemaWork bounds what one check does besides applying schemas: bytes compared
// for uniqueItems, and bytes matched times the size of their pattern.
const schemaWork = 32 << 20

// check says what of a call's arguments the schema does not take, nil when
// nothing.
func (s *schema) check(args json.RawMessage) error {
	var v any
	if err := jsonv2.Unmarshal(args, &v); err != nil {
		return errors.New("the arguments are not a JSON object in UTF-8, each name once")
	}
	c := schemaCheck{s: s}
	err := c.apply(s.root, v, nil, 0)
	if c.spent {
		return errors.New("the arguments are nested too deep, or too many, to be checked by the tool's schema")
	}
	return err
}

// schemaCheck is one check under way.
type schemaCheck struct {
	s     *schema
	steps int
	work  int
	// unsure counts the patterns met that are not checked: a schema that took a
	// value is not known to fit it when this has grown meanwhile.
	unsure int
	spent  bool // a bound was met: no verdict counts
}

// misfit is why a value does not fit. It is put into words only when it is shown:
// of many forms, most do not fit.
type misfit struct {
	at   *spot
	says string
	args []any
	of   error // the misfit of a form, where there are several; or nil
}

func (m *misfit) Error() string {
	text := argument(m.at) + " " + fmt.Sprintf(m.says, m.args...)
	if m.of != nil {
		text += m.of.Error()
	}
	return text
}

func misfits(at *spot, says string, args ...any) error {
	return &misfit{at: at, says: says, args: args}
}

// argument is a place in the arguments as a model reads it; names are cut where a
// model sent long ones.
func argument(at *spot) string {
	if at == nil {
		return "the arguments"
	}
	var parts []string
	for ; at != nil; at = at.in {
		if at.i >= 0 {
			parts = append(parts, "["+strconv.Itoa(at.i)+"]")
			continue
		}
		name, cut := cutCharacters(at.name, 100)
		if cut {
			name += "…"
		}
		if at.in != nil {
			name = "." + name
		}
		parts = append(parts, name)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// errOutOfBounds ends a check whose verdict does not count.
var errOutOfBounds = errors.New("out of bounds")

// spend counts work and reports whether it is over its bound.
func (c *schemaCheck) spend(work int) (over bool) {
	c.work += work
	c.spent = c.spent || c.work > schemaWork
	return c.spent
}

// apply checks a value by one schema.
func (c *schemaCheck) apply(by, v any, at *spot, depth int) error {
	if c.steps++; c.spent || c.steps > schemaSteps || depth > schemaDepth {
		c.spent = true
		return errOutOfBounds
	}
	m, ok := by.(map[string]any)
	if !ok {
		if by == false {
			return misfits(at, "may not be given")
		}
		return nil
	}
	if ref, has := m["$ref"].(string); has {
		if err := c.apply(c.s.refs[ref], v, at, depth+1); err != nil {
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
		return c.text(m, v, at)
	case float64:
		return c.number(m, v, at)
	}
	return nil
}

// fits reports whether a schema takes a value, and whether that is sure. err says
// why it does not.
func (c *schemaCheck) fits(by, v any, at *spot, depth int) (sure bool, err error) {
	before := c.unsure
	err = c.apply(by, v, at, depth+1)
	return err != nil || c.unsure == before, err
}

// valueFits checks type, enum and const.
func valueFits(m map[string]any, v any, at *spot) error {
	switch t := m["type"].(type) {
	case string:
		if !isType(t, v) {
			return misfits(at, "must be of type %s", t)
		}
	case []any:
		if !slices.ContainsFunc(t, func(name any) bool { return isType(name.(string), v) }) {
			return misfits(at, "must be of one of the types %v", t)
		}
	}
	if list, has := m["enum"].([]any); has && !slices.ContainsFunc(list, func(e any) bool { return sameJSON(e, v) }) {
		return misfits(at, "must be one of %s", asJSON{list})
	}
	if only, has := m["const"]; has && !sameJSON(only, v) {
		return misfits(at, "must be %s", asJSON{only})
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

func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case string:
		text, ok := b.(string)
		return ok && a == text
	case float64:
		n, ok := b.(float64)
		return ok && a == n
	}
	return reflect.DeepEqual(a, b)
}

// asJSON is a value of a schema as a detail shows it.
type asJSON struct{ v any }

func (s asJSON) String() string { return shortJSON(s.v) }

func shortJSON(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(v) // what was read from JSON can be written
	short, cut := cutCharacters(strings.TrimSuffix(b.String(), "\n"), 200)
	if cut {
		return short + "…"
	}
	return short
}

// sizeFits checks a size by the keywords min… and max….
func sizeFits(m map[string]any, what, unit string, n float64, at *spot) error {
	if least, has := m["min"+what].(float64); has && n < least {
		return misfits(at, "has %v %s, fewer than %v", n, unit, least)
	}
	if most, has := m["max"+what].(float64); has && n > most {
		return misfits(at, "has %v %s, more than %v", n, unit, most)
	}
	return nil
}

func (c *schemaCheck) text(m map[string]any, v string, at *spot) error {
	if err := sizeFits(m, "Length", "characters", float64(utf8.RuneCountInString(v)), at); err != nil {
		return err
	}
	text, has := m["pattern"].(string)
	if !has {
		return nil
	}
	matches, err := c.matches(text, v)
	if err == nil && !matches {
		return misfits(at, "must match the pattern %s", asJSON{text})
	}
	return err
}

// matches reports whether a text may match a pattern.
func (c *schemaCheck) matches(text, v string) (bool, error) {
	p := c.s.patterns[text]
	if p.re == nil {
		c.unsure++
		return true, nil
	}
	if c.spend((len(v) + 16) * p.size) {
		return false, errOutOfBounds
	}
	return p.re.MatchString(v), nil
}

func (c *schemaCheck) number(m map[string]any, n float64, at *spot) error {
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
			return misfits(at, "must be %s %v", b.says, bound)
		}
	}
	if of, has := m["multipleOf"].(float64); has && !c.isMultiple(n, of) {
		return misfits(at, "must be a multiple of %v", of)
	}
	return nil
}

// isMultiple takes both numbers as the decimals that they were written as: 0.3 is
// a multiple of 0.1.
func (c *schemaCheck) isMultiple(n, of float64) bool {
	const exact = 1 << 53
	if n == math.Trunc(n) && of == math.Trunc(of) && math.Abs(n) <= exact && of <= exact {
		return math.Mod(n, of) == 0
	}
	if c.spend(1_000) {
		return false
	}
	decimal := func(f float64) *big.Rat {
		r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
		return r
	}
	return new(big.Rat).Quo(decimal(n), decimal(of)).IsInt()
}

// combined checks allOf, anyOf, oneOf, not and if.
func (c *schemaCheck) combined(m map[string]any, v any, at *spot, depth int) error {
	all, _ := m["allOf"].([]any)
	for _, sub := range all {
		if err := c.apply(sub, v, at, depth+1); err != nil {
			return err
		}
	}
	if list, has := m["anyOf"].([]any); has {
		if err := c.any(list, v, at, depth); err != nil {
			return err
		}
	}
	if list, has := m["oneOf"].([]any); has {
		if err := c.one(list, v, at, depth); err != nil {
			return err
		}
	}
	if not, has := m["not"]; has {
		if sure, err := c.fits(not, v, at, depth); err == nil && sure {
			return misfits(at, "has a form that is excluded")
		}
	}
	return c.condition(m, v, at, depth)
}

func (c *schemaCheck) any(list []any, v any, at *spot, depth int) (first error) {
	for _, sub := range list {
		err := c.apply(sub, v, at, depth+1)
		if err == nil || c.spent {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return &misfit{at: at, says: "fits none of its forms; of the first: ", of: first}
}

func (c *schemaCheck) one(list []any, v any, at *spot, depth int) (first error) {
	fit, surely := 0, 0
	for _, sub := range list {
		sure, err := c.fits(sub, v, at, depth)
		switch {
		case c.spent:
			return errOutOfBounds
		case err == nil:
			fit++
			if sure {
				surely++
			}
		case first == nil:
			first = err
		}
	}
	if fit == 0 {
		return &misfit{at: at, says: "fits none of its forms; of the first: ", of: first}
	}
	if surely > 1 {
		return misfits(at, "fits %d of its forms, and must fit one", surely)
	}
	return nil
}

// condition checks if, then and else.
func (c *schemaCheck) condition(m map[string]any, v any, at *spot, depth int) error {
	when, has := m["if"]
	if !has || m["then"] == nil && m["else"] == nil {
		return nil
	}
	branch := "then"
	sure, err := c.fits(when, v, at, depth)
	switch {
	case c.spent:
		return errOutOfBounds
	case !sure:
		return nil
	case err != nil:
		branch = "else"
	}
	if by, has := m[branch]; has {
		return c.apply(by, v, at, depth+1)
	}
	return nil
}

func (c *schemaCheck) object(m, v map[string]any, at *spot, depth int) error {
	if err := requires(m["required"], v, at); err != nil {
		return err
	}
	if err := sizeFits(m, "Properties", "members", float64(len(v)), at); err != nil {
		return err
	}
	names := sortedKeys(v)
	patterned, _ := m["patternProperties"].(map[string]any)
	patterns := sortedKeys(patterned)
	for _, name := range names {
		if err := c.member(m, patterns, name, v[name], at.member(name), depth); err != nil {
			return err
		}
	}
	if by, has := m["propertyNames"]; has {
		for _, name := range names {
			if err := c.apply(by, name, at.member(name), depth+1); err != nil {
				return &misfit{at: at.member(name), says: "has no name that may be given: ", of: err}
			}
		}
	}
	return c.dependent(m, v, at, depth)
}

func requires(list any, v map[string]any, at *spot) error {
	names, _ := list.([]any)
	for _, name := range names {
		if _, has := v[name.(string)]; !has {
			return misfits(at.member(name.(string)), "is missing")
		}
	}
	return nil
}

// member checks one member by properties, patternProperties and
// additionalProperties. patterns are the names of patternProperties.
func (c *schemaCheck) member(m map[string]any, patterns []string, name string, v any, at *spot, depth int) error {
	known, _ := m["properties"].(map[string]any)
	by, has := known[name]
	if has {
		if err := c.apply(by, v, at, depth+1); err != nil {
			return err
		}
	}
	patterned, _ := m["patternProperties"].(map[string]any)
	for _, text := range patterns {
		before := c.unsure
		matches, err := c.matches(text, name)
		if err != nil {
			return err
		}
		has = has || matches
		if !matches || c.unsure != before {
			continue
		}
		if err := c.apply(patterned[text], v, at, depth+1); err != nil {
			return err
		}
	}
	others, bound := m["additionalProperties"]
	switch {
	case has || !bound:
		return nil
	case others == false:
		return misfits(at, "is not a parameter of this tool")
	}
	return c.apply(others, v, at, depth+1)
}

// dependent checks what the presence of some members asks of the object.
func (c *schemaCheck) dependent(m, v map[string]any, at *spot, depth int) error {
	for _, key := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		members, _ := m[key].(map[string]any)
		for _, name := range sortedKeys(members) {
			if _, given := v[name]; !given {
				continue
			}
			if list, ok := members[name].([]any); ok {
				if err := requires(list, v, at); err != nil {
					return &misfit{at: at.member(name), says: "asks for another: ", of: err}
				}
			} else if err := c.apply(members[name], v, at, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *schemaCheck) array(m map[string]any, v []any, at *spot, depth int) error {
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
		if err := c.apply(by, v[i], at.entry(i), depth+1); err != nil {
			return err
		}
	}
	if m["uniqueItems"] == true {
		if err := c.unique(v, at); err != nil {
			return err
		}
	}
	return c.contains(m, v, at, depth)
}

// unique checks that no two entries are the same: each is written in the one form
// that its value has, and looked up.
func (c *schemaCheck) unique(v []any, at *spot) error {
	places := make(map[string]int, len(v))
	for i, e := range v {
		text, _ := json.Marshal(plainZeros(e))
		if c.spend(len(text) + 16) {
			return errOutOfBounds
		}
		if j, has := places[string(text)]; has {
			return misfits(at.entry(i), "is the same as entry %d, and each may be given once", j)
		}
		places[string(text)] = i
	}
	return nil
}

// plainZeros is a value in which no zero has a sign: -0 is 0.
func plainZeros(v any) any {
	switch v := v.(type) {
	case float64:
		return v + 0
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plainZeros(v[i])
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for k := range v {
			object[k] = plainZeros(v[k])
		}
		return object
	}
	return v
}

// contains checks contains, minContains and maxContains.
func (c *schemaCheck) contains(m map[string]any, v []any, at *spot, depth int) error {
	by, has := m["contains"]
	if !has {
		return nil
	}
	fit, surely := 0.0, 0.0
	for i := range v {
		sure, err := c.fits(by, v[i], at.entry(i), depth)
		if c.spent {
			return errOutOfBounds
		}
		if err == nil {
			fit++
			if sure {
				surely++
			}
		}
	}
	least := 1.0
	if n, has := m["minContains"].(float64); has {
		least = n
	}
	if fit < least {
		return misfits(at, "has %v entries of the form asked for, fewer than %v", fit, least)
	}
	if most, has := m["maxContains"].(float64); has && surely > most {
		return misfits(at, "has %v entries of the form asked for, more than %v", surely, most)
	}
	return nil
}
