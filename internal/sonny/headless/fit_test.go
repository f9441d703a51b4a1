package headless

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

func TestFit(t *testing.T) {
	t.Parallel()
	fit, err := NewFit("s.json", []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, reply, data, fault string }{
		{"a value that fits", ` {"n":1} `, `{"n":1}`, ""},
		{"one in a fence", "```json\n{\"n\":1}\n```", `{"n":1}`, ""},
		{"prose", "one", "", "no JSON value"},
		{"prose after the value", `{"n":1} there`, "", "something follows"},
		{"prose before a fence", "here:\n```json\n{\"n\":1}\n```", "", "no JSON value"},
		{"two fences", "```\n{\"n\":1}\n```\n```\n{\"n\":1}\n```", "", "no JSON value"},
		{"a wrong member", `{"n":"x"}`, "", "integer"},
		{"a missing member", `{}`, "", "n"},
		{"nothing", "", "", "no JSON value"},
	} {
		data, err := fit.Check(c.reply)
		if string(data) != c.data || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %s, %v", c.name, data, err)
		}
	}
	for name, text := range map[string]string{
		"no JSON": "{", "no schema": `{"pattern":"("}`, "a reference elsewhere": `{"$ref":"https://example.com/s.json"}`,
		"too long": `{"description":"` + strings.Repeat("x", MaxSchema) + `"}`,
	} {
		if _, err := NewFit("s.json", []byte(text)); protocol.CodeOf(err) != protocol.UsageError {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// deep is a text n times in another.
func deep(before, in, after string, n int) string {
	return strings.Repeat(before, n) + in + strings.Repeat(after, n)
}

func TestASchemaThatCannotBeCheckedIsRefusedBeforeATurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, fault string }{
		"itself":                     {`{"$ref":"#"}`, "leads to itself"},
		"itself by its pointer":      {`{"$defs":{"a b":{"$ref":"#/$defs/a%20b"}},"$ref":"#/$defs/a%20b"}`, "leads to itself"},
		"itself in a circle":         {`{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "leads to itself"},
		"itself by a condition":      {`{"if":true,"then":{"$ref":"#"}}`, "leads to itself"},
		"itself by an anchor":        {`{"properties":{"x":{"$anchor":"a","anyOf":[{"$ref":"#a"}]}}}`, "leads to itself"},
		"itself by an id":            {`{"$id":"https://x.test/s","anyOf":[{"$ref":"https://x.test/s"}]}`, "leads to itself"},
		"itself in an id of its own": {`{"properties":{"x":{"$id":"https://x.test/in","oneOf":[{"$ref":"#"}]}}}`, "leads to itself"},
		"itself by dependents":       {`{"dependentSchemas":{"x":{"$ref":"#"}}}`, "leads to itself"},
		"in draft 7":                 {`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"x":{"$ref":"#"}}}`, "leads to itself"},
		"a dynamic reference":        {`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`, "$dynamicRef"},
		"a place that is not there":  {`{"$ref":"#/$defs/a"}`, "names no schema"},
		"a type that is none":        {`{"type":"objekt"}`, `"objekt"`},
		"one of several":             {`{"items":{"type":["string","text"]}}`, `"text"`},
		"a dialect that is unknown":  {`{"$schema":"http://json-schema.org/draft-04/schema#"}`, "draft-04"},
		"nothing is a multiple":      {`{"multipleOf":0}`, "multipleOf"},
		"nested too deep":            {deep(`{"not":`, `true`, `}`, 150), "nested deeper"},
		"nested far too deep":        {deep(`{"items":`, `true`, `}`, 1500), "nested deeper"},
	} {
		_, err := NewFit("s.json", []byte(c.text))
		if protocol.CodeOf(err) != protocol.UsageError || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var chain strings.Builder
	for i := range 200 {
		fmt.Fprintf(&chain, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	if _, err := NewFit("s.json", []byte(`{"$defs":{`+chain.String()+`"d200":true}}`)); err == nil || !strings.Contains(err.Error(), "goes through") {
		t.Errorf("a long chain: %v", err)
	}
}

func TestASchemaThatDescendsIntoItself(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"items":        `{"type":"array","items":{"$ref":"#"}}`,
		"a definition": `{"anyOf":[{"type":"null"},{"$ref":"#/$defs/n"}],"$defs":{"n":{"type":"array","items":{"$ref":"#"}}}}`,
		"an anchor":    `{"$anchor":"top","type":"array","prefixItems":[{"$ref":"#top"}]}`,
		"its own id":   `{"$id":"https://x.test/s","type":"array","items":{"$ref":"https://x.test/s"}}`,
		"one inside":   `{"type":"array","items":{"$id":"https://x.test/in","type":"array","items":{"$ref":"#"}}}`,
		"in draft 7":   `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a/b":{"type":"array","items":{"$ref":"#/definitions/a~1b"}}},"$ref":"#/definitions/a~1b"}`,
	} {
		fit, err := NewFit("s.json", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for reply, fault := range map[string]string{
			deep("[", "", "]", 50): "", `[[["\"[["]]]`: "type", deep("[", "", "]", 5000): "nested deeper",
			`[` + deep(`{"a":`, `1`, `}`, 5000) + `]`: "nested deeper",
		} {
			if _, err := fit.Check(reply); (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: %.20s: %v", name, reply, err)
			}
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add(`{"type":"object"}`, "```json\n{}\n```")
	f.Add(`true`, `"x"`)
	f.Add(`{"$ref":"#"}`, `{}`)
	f.Add(`{"$defs":{"a":{"$id":"b","$anchor":"c","allOf":[{"$ref":"b#c"}]}},"$ref":"#/$defs/a"}`, `{}`)
	f.Add(`{"items":{"$ref":"#"}}`, `[[[]]]`)
	f.Fuzz(func(t *testing.T, schema, reply string) {
		fit, err := NewFit("s", []byte(schema))
		if err != nil {
			return
		}
		if data, err := fit.Check(reply); err == nil && !json.Valid(data) {
			t.Errorf("%q was taken for a value", data)
		}
	})
}

func TestWriteWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "reply")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := writeWhole(link, "new"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	text, _ := os.ReadFile(path)
	if err != nil || info.Mode() != 0o640 || string(text) != "new" {
		t.Errorf("%v, %v, %q", err, info.Mode(), text)
	}
	if err := writeWhole(filepath.Join(dir, "none", "reply"), "x"); err == nil {
		t.Error("a folder that is not there was written")
	}
	if all, _ := os.ReadDir(dir); len(all) != 2 {
		t.Errorf("something is left: %v", all)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, want string
		n          int
		short      bool
	}{{"abc", "abc", 3, false}, {"abcd", "abc", 3, true}, {"aé", "a", 2, true}, {"é", "", 1, true}} {
		if got, short := cut(c.text, c.n); got != c.want || short != c.short {
			t.Errorf("%q at %d: %q, %v", c.text, c.n, got, short)
		}
	}
}
