package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Lines are appended by hand and not by a JSON package, since each of those
// rewrites nested raw values: it drops their blanks or changes their escapes,
// and section 1 has them leave byte for byte as they came. This file walks a
// Go value along a plan made once per struct type.

// Appender is a value that writes its own JSON.
type Appender interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// Append appends v as JSON: struct fields in order under their json tags
// (omitzero and embed are known), nil slices as [], nil maps as {}, maps by
// sorted name, raw values byte for byte, text without HTML escaping. The error
// tells of text that is no UTF-8, which was written with U+FFFD, or of a value
// that JSON cannot hold.
func Append(dst []byte, v any) ([]byte, error) {
	if v == nil {
		return append(dst, "null"...), nil
	}
	a := appender{dst: dst}
	a.value(reflect.ValueOf(v))
	return a.dst, a.err
}

type appender struct {
	dst []byte
	err error // the first one
}

func (a *appender) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

var (
	rawType      = reflect.TypeFor[json.RawMessage]()
	textRawType  = reflect.TypeFor[jsontext.Value]()
	appenderType = reflect.TypeFor[Appender]()
	optType      = reflect.TypeFor[interface{ inner() (any, bool) }]()
	zeroerType   = reflect.TypeFor[interface{ IsZero() bool }]()
)

func (a *appender) value(v reflect.Value) {
	t := v.Type()
	switch {
	case t == rawType || t == textRawType:
		a.raw(v.Bytes())
		return
	case t.Kind() == reflect.Pointer && v.IsNil():
		a.dst = append(a.dst, "null"...)
		return
	case t.Implements(appenderType):
		a.own(v.Interface().(Appender))
		return
	case reflect.PointerTo(t).Implements(appenderType):
		p := reflect.New(t)
		p.Elem().Set(v)
		a.own(p.Interface().(Appender))
		return
	case t.Implements(optType):
		if inner, ok := v.Interface().(interface{ inner() (any, bool) }).inner(); ok {
			a.value(reflect.ValueOf(inner))
		} else {
			a.dst = append(a.dst, "null"...)
		}
		return
	}
	a.plain(v)
}

func (a *appender) plain(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		a.dst = strconv.AppendBool(a.dst, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		a.dst = strconv.AppendInt(a.dst, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		a.dst = strconv.AppendUint(a.dst, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		a.float(v.Float())
	case reflect.String:
		a.text(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			a.dst = append(a.dst, "null"...)
			return
		}
		a.value(v.Elem())
	case reflect.Slice, reflect.Array:
		a.list(v)
	case reflect.Map:
		a.dst = append(a.dst, '{')
		a.members(v, true)
		a.dst = append(a.dst, '}')
	case reflect.Struct:
		a.dst = append(a.dst, '{')
		a.fields(v, nil)
		a.dst = append(a.dst, '}')
	default:
		a.fail(fmt.Errorf("protocol: %s has no JSON form", v.Type()))
		a.dst = append(a.dst, "null"...)
	}
}

func (a *appender) own(v Appender) {
	dst, err := v.AppendJSON(a.dst)
	a.dst = dst
	if err != nil {
		a.fail(err)
	}
}

func (a *appender) text(s string) {
	dst, err := jsontext.AppendQuote(a.dst, s)
	a.dst = dst
	if err != nil {
		a.fail(errNotUTF8)
	}
}

var errNotUTF8 = Fail(InvalidJSON, "a text is not UTF-8")

func (a *appender) float(f float64) {
	if f != f || f-f != 0 { // NaN, ±Inf
		a.fail(fmt.Errorf("protocol: %v has no JSON form", f))
		f = 0
	}
	a.dst = strconv.AppendFloat(a.dst, f, 'f', -1, 64)
}

// raw splices a value as it is. Only a line break is replaced: in JSON it can
// stand between tokens alone, and in a line it would end it. One that came
// over the wire has none.
func (a *appender) raw(b []byte) {
	if len(b) == 0 {
		a.dst = append(a.dst, "null"...)
		return
	}
	at := len(a.dst)
	a.dst = append(a.dst, b...)
	for i := at; i < len(a.dst); i++ {
		if a.dst[i] == '\n' {
			a.dst[i] = ' '
		}
	}
}

func (a *appender) list(v reflect.Value) {
	a.dst = append(a.dst, '[')
	for i := range v.Len() {
		if i > 0 {
			a.dst = append(a.dst, ',')
		}
		a.value(v.Index(i))
	}
	a.dst = append(a.dst, ']')
}

// members appends a map's members, sorted; first says that none precedes them.
func (a *appender) members(v reflect.Value, first bool) {
	names := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		names = append(names, k.String())
	}
	slices.Sort(names)
	for _, name := range names {
		if !first {
			a.dst = append(a.dst, ',')
		}
		first = false
		a.text(name)
		a.dst = append(a.dst, ':')
		a.value(v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key())))
	}
}

// fields appends a struct's members but those in omit.
func (a *appender) fields(v reflect.Value, omit []string) {
	plan := planOf(v.Type())
	first := true
	for i := range plan.fields {
		f := &plan.fields[i]
		fv := v.FieldByIndex(f.index)
		if f.omitZero && isZero(fv) || slices.Contains(omit, f.name) {
			continue
		}
		if !first {
			a.dst = append(a.dst, ',')
		}
		first = false
		a.dst = append(a.dst, f.prefix...)
		a.value(fv)
	}
	if plan.extra != nil {
		a.members(v.FieldByIndex(plan.extra), first)
	}
}

func isZero(v reflect.Value) bool {
	if v.Type().Implements(zeroerType) {
		return v.Interface().(interface{ IsZero() bool }).IsZero()
	}
	return v.IsZero()
}

// plan is how a struct type is written.
type plan struct {
	fields []planField
	extra  []int // the map tagged embed
}

type planField struct {
	name     string
	prefix   string // "name":
	index    []int
	omitZero bool
}

var plans sync.Map // reflect.Type → *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{}
	p.add(t, nil)
	plans.Store(t, p)
	return p
}

func (p *plan) add(t reflect.Type, at []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(at), i)
		tag, tagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
		case options == "embed" && f.Type.Kind() == reflect.Map:
			p.extra = index
		case f.Anonymous && !tagged || options == "embed":
			p.add(f.Type, index)
		default:
			if name == "" {
				name = f.Name
			}
			p.fields = append(p.fields, planField{name, `"` + name + `":`, index, options == "omitzero"})
		}
	}
}
