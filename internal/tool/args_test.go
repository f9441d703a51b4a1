package tool

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestRegistry(t *testing.T) {
	t.Parallel()
	var names []string
	for _, tool := range All() {
		def := tool.Def()
		names = append(names, def.Name)
		if len(def.Description) < 40 {
			t.Errorf("%s has no description", def.Name)
		}
		var schema struct {
			Type                 string
			Properties           map[string]struct{ Type, Description string }
			Required             []string
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(def.Parameters, &schema); err != nil {
			t.Errorf("%s: %v", def.Name, err)
		}
		if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
			t.Errorf("%s takes more than it says", def.Name)
		}
		for name, p := range schema.Properties {
			if p.Type == "" || p.Description == "" {
				t.Errorf("%s.%s has no type or description", def.Name, name)
			}
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %v", names)
	}
	if _, ok := Lookup("nothing"); ok {
		t.Error("found a tool that is none")
	}
}

func TestSchemasNameTheArguments(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		schema string
		args   any
	}{
		{echoParameters, &echoArgs{}},
		{noteParameters, &noteArgs{}},
		{historyParameters, &historyArgs{}},
		{shellParameters, &shellArgs{}},
		{readParameters, &readArgs{}},
		{writeParameters, &writeArgs{}},
		{editParameters, &editArgs{}},
		{patchParameters, &patchArgs{}},
		{fetchParameters, &fetchArgs{}},
	} {
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal([]byte(row.schema), &schema); err != nil {
			t.Fatal(err)
		}
		var got []string
		for name := range schema.Properties {
			got = append(got, name)
		}
		want := members(row.args)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%v: the schema has %v, the arguments %v", reflect.TypeOf(row.args), got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("a", n) }
	for _, row := range []struct{ name, tool, args, code, says string }{
		{"RT-22 an unknown argument", "shell", `{"command":"true","cmd":1}`, "invalid_tool_arguments", `"cmd" is not a parameter of this tool; it takes command, timeout_ms`},
		{"detach beside background", "shell", `{"command":"true","background":true,"detach":true}`, "invalid_tool_arguments", "detach excludes"},
		{"detach with a time", "shell", `{"command":"true","detach":true,"timeout_ms":5}`, "invalid_tool_arguments", "detach excludes"},
		{"stdin in the foreground", "shell", `{"command":"true","stdin":true}`, "invalid_tool_arguments", "stdin needs background"},
		{"a wait for nothing", "wait", `{"handles":[]}`, "invalid_tool_arguments", "1 to 64"},
		{"a wait of more than a day", "wait", `{"handles":["proc:1"],"timeout_ms":86400001}`, "invalid_tool_arguments", "86400000"},
		{"a signal of another name", "write_stdin", `{"handle":"proc:1","signal":"HUP"}`, "invalid_tool_arguments", "INT, TERM or KILL"},
		{"an argument in other case", "shell", `{"Command":"true"}`, "invalid_tool_arguments", `"Command"`},
		{"an argument given twice", "shell", `{"command":"a","command":"b"}`, "invalid_tool_arguments", "twice"},
		{"a number for a string", "shell", `{"command":1}`, "invalid_tool_arguments", `"command" must be a string, not a number`},
		{"null for a string", "shell", `{"command":null}`, "invalid_tool_arguments", `"command" must be a string, not null`},
		{"a string for a number", "shell", `{"command":"a","timeout_ms":"5"}`, "invalid_tool_arguments", `"timeout_ms" must be a whole number, not a string`},
		{"a fraction", "shell", `{"command":"a","timeout_ms":1.5}`, "invalid_tool_arguments", "timeout_ms must be a whole number"},
		{"a number past all bounds", "shell", `{"command":"a","timeout_ms":1e99}`, "invalid_tool_arguments", "timeout_ms"},
		{"a list instead of an object", "shell", `["a"]`, "invalid_tool_arguments", "must be a JSON object, not a list"},
		{"no JSON", "shell", `{"command":`, "invalid_tool_arguments", "not a JSON object"},
		{"nothing at all", "shell", ``, "invalid_tool_arguments", "not a JSON object"},
		{"no command", "shell", `{}`, "invalid_tool_arguments", "command is missing"},
		{"an empty command", "shell", `{"command":""}`, "invalid_tool_arguments", "empty"},
		{"a command of 16 KiB is taken", "shell", `{"command":"` + long(16384) + `"}`, "", ""},
		{"a longer command", "shell", `{"command":"` + long(16385) + `"}`, "invalid_tool_arguments", "16385 bytes"},
		{"a NUL in a command", "shell", `{"command":"a\u0000b"}`, "invalid_tool_arguments", "NUL"},
		{"no running time", "shell", `{"command":"a","timeout_ms":0}`, "invalid_tool_arguments", "1 to 600000"},
		{"too long a running time", "shell", `{"command":"a","timeout_ms":600001}`, "invalid_tool_arguments", "1 to 600000"},
		{"another sandbox permission", "shell", `{"command":"a","sandbox_permissions":"all"}`, "invalid_tool_arguments", `"all"`},
		{"escalation without justification", "shell", `{"command":"a","sandbox_permissions":"require_escalated"}`, "invalid_tool_arguments", "justification"},
		{"too long a justification", "shell", `{"command":"a","justification":"` + long(1025) + `"}`, "invalid_tool_arguments", "1025 bytes"},
		{"echo of 64 KiB is taken", "echo", `{"text":"` + long(65536) + `"}`, "", ""},
		{"a longer echo", "echo", `{"text":"` + long(65537) + `"}`, "tool_output_limit", "65537"},
		{"a note of 8 KiB is taken", "note", `{"text":"` + long(8192) + `"}`, "", ""},
		{"a longer note", "note", `{"text":"` + long(8193) + `"}`, "tool_input_limit", "8193"},
		{"history of turn 0", "history", `{"turn":0}`, "invalid_tool_arguments", "turn is 0"},
		{"history before the start", "history", `{"turn":1,"offset":-1}`, "invalid_tool_arguments", "offset"},
		{"too short a page of history", "history", `{"turn":1,"limit":3}`, "invalid_tool_arguments", "4 to 65536"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			tool, _ := Lookup(row.tool)
			err := tool.Check(json.RawMessage(row.args))
			if row.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var f *Failure
			if !errors.As(err, &f) || f.Code != row.code || !strings.Contains(f.Detail, row.says) {
				t.Errorf("got %.300v; want %s saying %q", err, row.code, row.says)
			}
			env, _ := newEnv(t)
			failed(t, tool.Run(t.Context(), env, json.RawMessage(row.args)), row.code, row.says)
		})
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"command":"a","timeout_ms":5}`, `{"path":"a","offset":1}`, `{"path":"a","content":"b"}`, `{"text":null}`,
		`{"path":"a","old":"b","new":"c","replace_all":true}`, `{"turn":1,"limit":4}`, `[]`, `{"a":{"b":[1,2]}}`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		for _, tool := range All() {
			err := tool.Check(args)
			if err == nil && !json.Valid(args) {
				t.Errorf("%s takes %q", tool.Def().Name, args)
			}
			var f *Failure
			if err != nil && (!errors.As(err, &f) || f.Code == "" || len(f.Detail) > 8<<10) {
				t.Errorf("%s: %v", tool.Def().Name, err)
			}
		}
	})
}

func TestFailureText(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, detail, want string }{
		{"no detail is null", "", `{"error":"x","detail":null}`},
		{"nothing is escaped for HTML", "a <b> & \"c\"\u2028", `{"error":"x","detail":"a <b> & \"c\"` + "\u2028" + `"}`},
		{"a line break is escaped", "a\nb", `{"error":"x","detail":"a\nb"}`},
		{"a bad byte is replaced", "a\xffb", "{\"error\":\"x\",\"detail\":\"a\uFFFDb\"}"},
	} {
		if got := FailureText("x", row.detail); got != row.want {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}
