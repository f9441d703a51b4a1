package headless

import (
	"encoding/json"
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

func FuzzFit(f *testing.F) {
	f.Add(`{"type":"object"}`, "```json\n{}\n```")
	f.Add(`true`, `"x"`)
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
