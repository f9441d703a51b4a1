package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestParseSpec(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       Spec
	}{
		{
			"a preset alone", "anthropic",
			Spec{"anthropic", FamilyAnthropic, "http", "https://api.anthropic.com/v1", "key", "ANTHROPIC_API_KEY", ""},
		},
		{
			"only another transport", "openai=responses-ws",
			Spec{"openai", FamilyResponses, "websocket", "https://api.openai.com/v1", "key", "OPENAI_API_KEY", ""},
		},
		{
			"PV-4 another URL implies no key", "openai=responses,http://127.0.0.1:9/v1",
			Spec{"openai", FamilyResponses, "http", "http://127.0.0.1:9/v1", "none", "", ""},
		},
		{
			"the preset's own URL, stated, implies its key", "openai=responses,https://api.openai.com/v1/",
			Spec{"openai", FamilyResponses, "http", "https://api.openai.com/v1", "key", "OPENAI_API_KEY", ""},
		},
		{
			"an empty middle field keeps the preset's value", "openai=,,MY_KEY",
			Spec{"openai", FamilyResponses, "http", "https://api.openai.com/v1", "key", "MY_KEY", ""},
		},
		{
			"a name of one's own", "gw=anthropic,https://gw.test/a//,GW_KEY",
			Spec{"gw", FamilyAnthropic, "http", "https://gw.test/a", "key", "GW_KEY", ""},
		},
		{"a local server", "ollama", Spec{"ollama", FamilyChat, "http", "http://127.0.0.1:11434/v1", "none", "", ""}},
		{"the sign-in", "chatgpt", Spec{"chatgpt", FamilyResponses, "http", "https://chatgpt.com/backend-api/codex", "chatgpt", "", ""}},
		{
			"PV-47 another URL gets no sign-in", "chatgpt=,https://other.test/v1",
			Spec{"chatgpt", FamilyResponses, "http", "https://other.test/v1", "none", "", ""},
		},
		{
			"Bedrock's region is left open", "bedrock",
			Spec{"bedrock", FamilyAnthropic, "http", "https://bedrock-mantle.$REGION.api.aws/anthropic/v1", "sigv4", "", ""},
		},
		{
			"Bedrock with a key is not signed", "b=anthropic,https://bedrock-mantle.us-east-1.api.aws/anthropic/v1,K",
			Spec{"b", FamilyAnthropic, "http", "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1", "key", "K", ""},
		},
		{
			"PV-50 a look-alike of Bedrock is not signed for", "b=anthropic,https://bedrock-runtime.us-east-1.amazonaws.com.attacker.test/v1",
			Spec{"b", FamilyAnthropic, "http", "https://bedrock-runtime.us-east-1.amazonaws.com.attacker.test/v1", "none", "", ""},
		},
		{"the built-in script", "scripted", Spec{"scripted", FamilyScripted, "local", "builtin", "none", "", ""}},
		{"another script", "s=scripted,~/a.json", Spec{"s", FamilyScripted, "local", "~/a.json", "none", "", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseSpecs([]string{c.text})
			if err != nil || got[0] != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestParseSpecRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, code string }{
		{"an unknown bare name", "nobody", "invalid_provider_spec"},
		{"an empty name", "=chat", "invalid_provider_spec"},
		{"a name with a space", "a b=chat,http://x", "invalid_provider_spec"},
		{"a name of 65 bytes", strings.Repeat("a", 65) + "=chat,http://x", "invalid_provider_spec"},
		{"an unknown family", "a=gemini,http://x", "invalid_provider_spec"},
		{"a family without a URL", "a=chat", "invalid_provider_spec"},
		{"a URL without a family", "a=,http://x", "invalid_provider_spec"},
		{"a key that is no variable's name", "a=chat,http://x,sk-1", "invalid_provider_spec"},
		{"a further field", "a=chat,http://x,K,L", "invalid_provider_spec"},
		{"a relative script", "a=scripted,x.json", "invalid_provider_spec"},
		{"a script without a path", "a=scripted", "invalid_provider_spec"},
		{"a scripted preset made remote without a URL", "scripted=chat", "invalid_provider_spec"},
		{"a preset made scripted without a path", "openai=scripted", "invalid_provider_spec"},
		{"a key for a script", "a=scripted,/x.json,K", "invalid_provider_spec"},
		{"PV-6 another scheme", "a=chat,ftp://x", "invalid_provider_url"},
		{"PV-6 user information", "a=chat,https://u:p@x/v1", "invalid_provider_url"},
		{"PV-6 a query", "a=chat,https://x/v1?a=b", "invalid_provider_url"},
		{"a bare question mark", "a=chat,https://x/v1?", "invalid_provider_url"},
		{"a fragment", "a=chat,https://x/v1#", "invalid_provider_url"},
		{"no host", "a=chat,https:///v1", "invalid_provider_url"},
		{"no URL at all", "a=chat,https:x", "invalid_provider_url"},
		{"a URL that cannot be parsed", "a=chat,http://[::1", "invalid_provider_url"},
		{"a port past them all", "a=chat,http://h:99999/v1", "invalid_provider_url"},
		{"port 0", "a=chat,http://h:0/v1", "invalid_provider_url"},
		{"Bedrock in the clear", "a=anthropic,http://bedrock-mantle.us-east-1.api.aws/v1", "invalid_provider_url"},
		{"PV-33 Bedrock over a socket", "bedrock-openai=responses-ws", "invalid_provider_transport"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseSpecs([]string{c.text})
			if code(err) != c.code || strings.Contains(err.Error(), "u:p") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := ParseSpecs([]string{"openai", "openai=responses,http://x"}); code(err) != "duplicate_provider" {
		t.Errorf("two of one name: %v", err)
	}
}

func TestPlaintext(t *testing.T) {
	t.Parallel()
	t.Run("PV-6 a plain URL is accepted and said to be in the clear", func(t *testing.T) {
		t.Parallel()
		specs, err := ParseSpecs([]string{"a=chat,http://10.0.0.5:8000/v1", "b=chat,https://x/v1"})
		if err != nil || !specs[0].Info().Plaintext || specs[1].Info().Plaintext {
			t.Errorf("PV-6: got %+v, %v", specs, err)
		}
	})
}

func TestImpliedSpecs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		env      map[string]string
		signedIn bool
		want     string
		code     string
	}{
		{"PV-1 one key variable", map[string]string{"ANTHROPIC_API_KEY": "k"}, false, "anthropic", ""},
		{"an empty variable counts for nothing", map[string]string{"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "k"}, false, "openai", ""},
		{
			"all three and the sign-in",
			map[string]string{"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k"},
			true, "anthropic openai openrouter chatgpt", "",
		},
		{"PV-2 AGENT_PROVIDER replaces them", map[string]string{"AGENT_PROVIDER": " chatgpt\tbedrock\n", "OPENAI_API_KEY": "k"}, true, "chatgpt bedrock", ""},
		{"PV-67 none at all", map[string]string{"AWS_ACCESS_KEY_ID": "k"}, false, "", "no_providers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ImpliedSpecs(func(n string) string { return c.env[n] }, c.signedIn)
			if strings.Join(got, " ") != c.want || code(err) != c.code {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	_, err := ImpliedSpecs(func(string) string { return "" }, false)
	for _, word := range []string{
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY",
		"agent login chatgpt", "--provider ollama", "--provider scripted",
	} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the detail does not name %s: %v", word, err)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	resolve := func(text string, env map[string]string) (Spec, error) {
		specs, err := ParseSpecs([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		return specs[0].Resolve(func(n string) string { return env[n] })
	}
	t.Run("PV-5 a key variable that is unset fails and is named", func(t *testing.T) {
		_, err := resolve("gw=chat,http://127.0.0.1:1/v1,GW_KEY", map[string]string{"OTHER": "secret"})
		if code(err) != "provider_key_unavailable" || !strings.Contains(err.Error(), "GW_KEY") {
			t.Errorf("got %v", err)
		}
	})
	if s, err := resolve("bedrock", map[string]string{"AWS_DEFAULT_REGION": "eu-west-1"}); err != nil ||
		s.URL != "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1" || s.Region != "eu-west-1" {
		t.Errorf("region: got %+v, %v", s, err)
	}
	for _, region := range []string{"", "x.attacker.test/", "EU"} {
		if _, err := resolve("bedrock", map[string]string{"AWS_REGION": region}); code(err) != "provider_region_unavailable" || !strings.Contains(err.Error(), "bedrock") {
			t.Errorf("region %q: got %v", region, err)
		}
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	made := 0
	families := map[Family]Binding{FamilyResponses: {New: func(s Spec) (Provider, error) { made++; return nil, nil }}}
	env := func(string) string { return "key" }
	specs := func(texts ...string) []Spec {
		s, err := ParseSpecs(texts)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r, err := NewRegistry(specs("openrouter", "openai"), env, families)
	if err != nil || made != 2 || strings.Join(r.Names(), " ") != "openai openrouter" {
		t.Errorf("got %v, %v", r, err)
	}
	if _, ok := r.Provider("openai"); !ok {
		t.Error("openai is not registered")
	}
	if _, ok := r.CodecFor(FamilyChat); ok {
		t.Error("a family this build lacks has a codec")
	}
	for _, text := range []string{"ollama"} {
		if _, err := NewRegistry(specs(text), env, families); code(err) != "invalid_provider_spec" || !strings.Contains(err.Error(), "this build does not have") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestSafeArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, raw string
		mangled   bool
		args      string
		invalid   string // a part of it
	}{
		{"an object stays byte for byte", ` {"a": 1,"b":"<&>"} `, false, ` {"a": 1,"b":"<&>"} `, ""},
		{"a doubled name would be refused later, or read as another", `{"a":1,"a":2}`, false, `{}`, "name a member twice"},
		{"one deep inside, too", `{"a":[{"b":1,"\u0062":2}]}`, false, `{}`, "name a member twice"},
		{"a number past every float would be refused later", `{"a":1e999}`, false, `{}`, "out of range"},
		{"nesting that stricter parsers refuse", `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, false, `{}`, "nest deeper than 100 levels"},
		{"nesting that they take", `{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`, false, `{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`, ""},
		{"a NUL is a character", `{"a":"\u0000"}`, false, `{"a":"\u0000"}`, ""},
		{"PV-71 blank is an empty object", " \n", false, `{}`, ""},
		{"PV-71 null", "null", false, `{}`, "null, not a JSON object"},
		{"PV-71 an array", `[1]`, false, `{}`, "an array, not a JSON object; what came was: [1]"},
		{"a string", `"{}"`, false, `{}`, "a string"},
		{"a number", `12`, false, `{}`, "a number"},
		{"words", `run ls`, false, `{}`, "not a JSON object; what came was: run ls"},
		{"PV-71 truncated JSON", `{"a":"b`, false, `{}`, `not valid JSON`},
		{"two objects", `{}{}`, false, `{}`, "go on after the JSON object's end"},
		{"PV-71 invalid UTF-8", "{\"a\":\"\xff\"}", false, `{}`, "not valid UTF-8"},
		{"bytes that were lost", `{"a":"` + "\ufffd" + `"}`, true, `{}`, "not valid UTF-8"},
		{"half a surrogate pair would be refused later", `{"a":"\ud800"}`, false, `{}`, "not valid JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args, invalid := SafeArguments([]byte(c.raw), c.mangled)
			if string(args) != c.args || (invalid == "") != (c.invalid == "") || !strings.Contains(invalid, c.invalid) {
				t.Errorf("got %s and %q", args, invalid)
			}
		})
	}
	_, invalid := SafeArguments([]byte("["+strings.Repeat("é", 5000)), false)
	if len(invalid) > 1024+100 || !strings.HasSuffix(invalid, "é [...]") {
		t.Errorf("a long quote is %d bytes and ends %q", len(invalid), invalid[len(invalid)-10:])
	}
}

func FuzzSafeArguments(f *testing.F) {
	f.Add([]byte(`{"a":1}`))
	f.Add([]byte("\xff"))
	f.Add([]byte(`{"a":"\ud800"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, invalid := SafeArguments(raw, false)
		var object map[string]json.RawMessage
		if err := json.Unmarshal(args, &object); err != nil || object == nil {
			t.Fatalf("%q gave %q: %v", raw, args, err)
		}
		if invalid != "" && string(args) != "{}" {
			t.Fatalf("%q is invalid and kept", raw)
		}
	})
}

func TestSafeCalls(t *testing.T) {
	t.Parallel()
	req := &Request{
		IDTaken: func(id string) (bool, error) { return id == "used", nil },
		NewID:   func(i int) string { return "call_" + string(rune('a'+i)) },
	}
	s := NewSafe(req)
	for i, c := range []struct{ name, id, want, provider string }{
		{"a free id stays", "one", "one", ""},
		{"PV-70 twice within one response", "one", "call_b", "one"},
		{"PV-70 used earlier on the lineage", "used", "call_c", "used"},
		{"an empty id", "", "call_d", ""},
		{"another free id stays", "two", "two", ""},
	} {
		got, err := s.Call(c.id, "shell", []byte(`{}`), false)
		if err != nil || got.ID != c.want || got.ProviderID != c.provider {
			t.Errorf("%d, %s: got %+v, %v", i, c.name, got, err)
		}
	}
	broken := errors.New("store")
	req.IDTaken = func(string) (bool, error) { return false, broken }
	if _, err := NewSafe(req).Call("x", "shell", nil, false); err != broken {
		t.Errorf("got %v", err)
	}
}

func TestCallsOfOddNames(t *testing.T) {
	t.Parallel()
	req := &Request{
		IDTaken:   func(string) (bool, error) { return false, nil },
		NewID:     func(i int) string { return fmt.Sprintf("call_%012x", i) },
		ToolNames: []string{"shell", "shell_"},
	}
	long := strings.Repeat("é", 300)
	for _, c := range []struct {
		name, id, tool string
		wantID         string // "" for one of ours
		wantTool       string
		ownID, ownTool string // what is kept for display
	}{
		{"what every provider takes stays", "toolu_01-A", "my-Tool_2", "toolu_01-A", "my-Tool_2", "", ""},
		{"64 bytes stay", strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("a", 64), strings.Repeat("b", 64), "", ""},
		{"65 do not", strings.Repeat("a", 65), strings.Repeat("b", 65), "", strings.Repeat("b", 64), strings.Repeat("a", 65), strings.Repeat("b", 65)},
		{"blanks, quotes and line breaks", "a b/\"\n", "rm -rf / ü\n", "", "rm_-rf_____", "a b/\"\n", "rm -rf / ü\n"},
		{"dots and colons", "functions.shell:0", "functions.shell", "", "functions_shell", "functions.shell:0", "functions.shell"},
		{"very long ones are cut in whole characters", long, long, "", strings.Repeat("_", 32), long[:256], long[:256]},
		{"a name does not become that of a tool", "x1", "shell\n", "x1", "_shell_", "", "shell\n"},
		{"control characters", "\x01", "\x00", "", "_", "\x01", "\x00"},
		{"what is no UTF-8", "x2", "\xff", "x2", "_", "", "\xff"},
	} {
		got, err := NewSafe(req).Call(c.id, c.tool, []byte(`{}`), false)
		if err != nil || got.Name != c.wantTool || got.ProviderID != c.ownID || got.ProviderName != c.ownTool ||
			got.ID != c.wantID && (c.wantID != "" || got.ID != req.NewID(0)) {
			t.Errorf("%s: got %+q, %v", c.name, got, err)
		}
		if !isName(got.ID) || !isName(got.Name) || len(got.ProviderID) > 256 || len(got.ProviderName) > 256 {
			t.Errorf("%s: not safe: %+q", c.name, got)
		}
	}
}

func TestMendEscapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, raw, want string }{
		{"without an escape", `{"a":"é"}`, `{"a":"é"}`},
		{"a pair stays", `{"a":"\ud83d\ude00 \u00e9"}`, `{"a":"\ud83d\ude00 \u00e9"}`},
		{"a high half alone", `{"a":"\ud83d!"}`, `{"a":"\ufffd!"}`},
		{"a low half alone", `{"a":"\uDE00"}`, `{"a":"\ufffd"}`},
		{"halves in the wrong order", `{"a":"\ude00\ud83d"}`, `{"a":"\ufffd\ufffd"}`},
		{"a high half before a pair", `{"a":"\ud83d\ud83d\ude00"}`, `{"a":"\ufffd\ud83d\ude00"}`},
		{"an escaped backslash is no escape's beginning", `{"a":"\\ud83d"}`, `{"a":"\\ud83d"}`},
		{"what is cut off", `{"a":"\ud83d\u12`, `{"a":"\ufffd\u12`},
		{"a backslash at the end", `\`, `\`},
	} {
		raw := []byte(c.raw)
		if got := string(MendEscapes(raw)); got != c.want || string(raw) != c.raw {
			t.Errorf("%s: got %s", c.name, got)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	raw := []byte(` { "a" : [1, 2] , "b\n":{"c":null},"a":3 } `)
	var got []string
	err := Members(raw, func(name string, v Span) bool {
		got = append(got, name+"="+string(v.Of(raw)))
		return true
	})
	if want := `a=[1, 2]|b` + "\n" + `={"c":null}|a=3`; err != nil || strings.Join(got, "|") != want {
		t.Errorf("got %q, %v", got, err)
	}
	if err := Members([]byte(`[1]`), nil); err == nil {
		t.Error("an array has no members")
	}
}
