package scripted

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"agent/internal/model"
)

func TestScriptFaults(t *testing.T) {
	t.Parallel()
	step := func(s string) string {
		return `{"version":1,"models":{"m":{"scripts":[{"match":{"regex":"(a)"},"steps":[` + s + `]}]}}}`
	}
	matching := func(s string) string {
		return `{"version":1,"models":{"m":{"scripts":[{"match":` + s + `,"steps":[{"text":"x"}]}]}}}`
	}
	at := "models.m.scripts[0]."
	rows := []struct{ name, file, want string }{
		{"an empty file", ``, "$"},
		{"no JSON", "{\"version\":1,\n \"models\" x}", "line 2, column 11"},
		{"a name twice", `{"version":1,"version":1}`, "version (line 1, column 14): not valid JSON: this name stands here twice"},
		{"text after the end", `{"version":1,"models":{}} x`, "not valid JSON"},
		{"not UTF-8", "{\"version\":1,\"models\":{\"\xff\":{}}}", "not valid JSON"},
		{"another version", `{"version":2,"models":{}}`, "version: must be 1, is 2"},
		{"no models", `{"version":1}`, "models: at least one"},
		{"models of another type", `{"version":1,"models":[]}`, "models (line 1, column 23): an object is wanted here, this is an array"},
		{"a model without scripts", `{"version":1,"models":{"m":{}}}`, "models.m.scripts: at least one"},
		{"a model without a name", `{"version":1,"models":{"":{}}}`, "is no model name"},
		{"an unknown field", step(`{"txt":"x"}`), at + "steps[0].txt (line 1, column"},
		{"an unknown field of the file", `{"version":1,"model":{}}`, "model (line 1, column"},
		{"a number for a text", step(`{"text":1}`), at + "steps[0].text (line 1"},
		{"a string for a number", step(`{"text":"x","delay_ms":"5"}`), "an integer is wanted here, this is a string"},
		{"a fraction for a number", step(`{"text":"x","delay_ms":1.5}`), "steps[0].delay_ms"},
		{"no match", `{"version":1,"models":{"m":{"scripts":[{"steps":[{"text":"x"}]}]}}}`, at + "match: exactly one"},
		{"two matches", matching(`{"prefix":"a","any":true}`), at + "match: exactly one of prefix, equals, contains, regex, any is needed; given: prefix, any"},
		{"any false", matching(`{"any":false}`), at + "match.any: can only be true"},
		{"an empty prefix", matching(`{"prefix":""}`), at + "match.prefix: an empty string matches everything"},
		{"a broken regex", matching(`{"regex":"("}`), at + "match.regex: error parsing regexp: missing closing )"},
		{"a group with a reserved name", matching(`{"regex":"(?P<bot>x)"}`), at + "match.regex: a group cannot be called bot"},
		{"two scripts any", `{"version":1,"models":{"m":{"scripts":[{"match":{"any":true},"steps":[{"text":"x"}]},{"match":{"any":true},"steps":[{"text":"x"}]}]}}}`, "models.m.scripts[1].match.any"},
		{"no steps", `{"version":1,"models":{"m":{"scripts":[{"match":{"any":true}}]}}}`, at + "steps: at least one"},
		{"a step that does nothing", step(`{"delay_ms":5}`), at + "steps[0]: a step needs"},
		{"an unknown substitution", step(`{"text":"x ${HOME}"}`), at + "steps[0].text: ${HOME} is not known here (known: 0, 1, bot,"},
		{"a group the regex lacks", step(`{"text":"${2}"}`), "${2} is not known"},
		{"a capture used in its own step", step(`{"text":"${h}","calls":[{"tool":"t"}],"capture":{"h":"x"}}`), "${h} is not known"},
		{"a capture with a broken regex", step(`{"calls":[{"tool":"t"}],"capture":{"h":"("}}`), at + "steps[0].capture.h: error parsing"},
		{"a capture with a reserved name", step(`{"calls":[{"tool":"t"}],"capture":{"last":"x"}}`), at + "steps[0].capture.last"},
		{"a capture with a bad name", step(`{"calls":[{"tool":"t"}],"capture":{"a b":"x"}}`), `"a b" is no name`},
		{"a substitution deep in arguments", step(`{"calls":[{"tool":"t","arguments":{"a":[{"b":"${c}"}]}}]}`), at + "steps[0].calls[0].arguments: ${c}"},
		{"arguments that are no object", step(`{"calls":[{"tool":"t","arguments":["a"]}]}`), at + "steps[0].calls[0].arguments: an object is wanted here, this is an array"},
		{"a call without a tool", step(`{"calls":[{"arguments":{}}]}`), at + "steps[0].calls[0].tool"},
		{"no calls in calls", step(`{"calls":[]}`), "calls: is empty"},
		{"too many calls", step(`{"calls":[` + strings.Repeat(`{"tool":"t"},`, 64) + `{"tool":"t"}]}`), "65 calls; a response holds at most 64"},
		{"without for nothing", step(`{"text":"x","without":"y"}`), at + "steps[0].without"},
		{"a negative delay", step(`{"text":"x","delay_ms":-1}`), at + "steps[0].delay_ms: must be 0 to 3600000"},
		{"a pace over an hour", step(`{"text":"x","pace_ms":3600001}`), at + "steps[0].pace_ms"},
		{"an error without code and status", step(`{"error":{"detail":"x"}}`), at + "steps[0].error: a code or a status"},
		{"an error with a bad code", step(`{"error":{"code":"Bad Code"}}`), at + "steps[0].error.code"},
		{"a status that closes the pool with another code", step(`{"error":{"code":"provider_quota_exhausted","status":429}}`), at + "steps[0].error: status 429"},
		{"an error of no attempt", step(`{"error":{"status":500,"attempts":0}}`), at + "steps[0].error.attempts"},
		{"an unknown cut", step(`{"text":"x","cut":"eol"}`), at + `steps[0].cut: must be stall, eof or mid_frame, is "eol"`},
		{"a cut with an unknown field", step(`{"text":"x","cut":{"kind":"eof","attempt":1}}`), at + "steps[0].cut.attempt"},
		{"half a fallback", step(`{"text":"x","fallback":{"from":"a"}}`), at + "steps[0].fallback"},
		{"more cached than input", step(`{"text":"x","usage":{"input_tokens":10,"cached_input_tokens":11}}`), at + "steps[0].usage: input_tokens counts"},
		{"cached without input", step(`{"text":"x","usage":{"cached_input_tokens":11}}`), at + "steps[0].usage"},
		{"negative usage", step(`{"text":"x","usage":{"output_tokens":-1}}`), at + "steps[0].usage.output_tokens"},
		{"an empty expectation", step(`{"text":"x","expect":{}}`), at + "steps[0].expect: nothing"},
		{"an unknown level expected", step(`{"text":"x","expect":{"reasoning":"huge"}}`), at + "steps[0].expect.reasoning"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse([]byte(row.file))
			wantCode(t, err, "invalid_script", row.want)
		})
	}
}

func TestScriptAccepted(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, file string }{
		{"the example of the specification", `{"version":1,
 "models":{
  "demo":{
   "context_tokens":200000,
   "pace_ms":0,
   "scripts":[
    {"match":{"prefix":"Fix the failing test"},
     "steps":[
      {"thinking":"Run the tests first.","text":"Running the tests.","calls":[{"tool":"shell","arguments":{"command":"go test ./... 2>&1 | tail -5"}}]},
      {"calls":[{"tool":"shell","arguments":{"command":"agent run --detach --new --bot docs -- Check the README"}}],"capture":{"handle":"turn:[A-Za-z0-9._-]+/[0-9]+"}},
      {"calls":[{"tool":"wait","arguments":{"handles":["${handle}"]}}]},
      {"text":"Done. The helper said: ${last}","usage":{"input_tokens":100,"output_tokens":20,"cached_input_tokens":50}}]},
    {"match":{"regex":"^say (.+)$"},"steps":[{"text":"${1}"}]},
    {"match":{"any":true},"steps":[{"text":"No script for: ${prompt}"}]}]}}}`},
		{"dollars that substitute nothing", `{"version":1,"models":{"m":{"scripts":[{"match":{"any":true},"steps":[{"text":"$ $x $$ $${HOME} ${} ${ $"}]}]}}}`},
		{"a repeated last step may use its own capture", `{"version":1,"models":{"m":{"scripts":[{"match":{"any":true},"repeat_last":true,"steps":[{"calls":[{"tool":"t","arguments":{"a":"${h}"}}],"capture":{"h":"x"}}]}]}}}`},
		{"an empty prompt and a bare rate limit", `{"version":1,"models":{"m":{"scripts":[{"match":{"equals":""},"steps":[{"error":{"code":"provider_rate_limited","status":429}}]}]}}}`},
		{"the built-in script", string(builtin)},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if _, err := parse([]byte(row.file)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	ex := expander{room: 1 << 20, value: func(name string) string { return "<" + name + `"\` + ">" }}
	for in, want := range map[string]string{
		"": "", "plain": "plain", "$": "$", "a$": "a$", "$$": "$", "$$$$": "$$", "$x": "$x", "${": "${", "${}": "${}",
		"${a}": `<a"\>`, "$${a}": "${a}", "$$${a}": `$<a"\>`, "${a}${b}": `<a"\><b"\>`, "x ${a} y": `x <a"\> y`,
	} {
		got, err := ex.text(in)
		if err != nil || got != want {
			t.Errorf("%q gives %q, %v; want %q", in, got, err, want)
		}
	}
	args, err := ex.arguments([]byte(`{ "${a}" : "${a}", "n":1.50, "l":["x","${b}" , {"k":"$$"}] }`))
	if want := `{ "${a}" : "<a\"\\>", "n":1.50, "l":["x","<b\"\\>" , {"k":"$"}] }`; err != nil || string(args) != want {
		t.Errorf("arguments %s, %v\nwant %s", args, err, want)
	}
}

func FuzzScriptFile(f *testing.F) {
	f.Add(builtin)
	f.Add([]byte(`{"version":1,"models":{"m":` + selectionScript + `}}`))
	f.Add([]byte(`{"version":1,"models":{"m":{"scripts":[{"match":{"regex":"(a)"},"steps":[{"text":"${1}","cut":{"kind":"eof"},"error":{"status":429}}]}]}}}`))
	f.Add([]byte("{\"version\":1,\n \"models\" x}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parse(data)
		if err != nil {
			var e *model.Error
			if !errors.As(err, &e) || e.Code != "invalid_script" || e.Detail == "" || utf8.RuneCountInString(e.Detail) > 512 {
				t.Fatalf("error %v", err)
			}
			return
		}
		// A file that was accepted can be played without a panic.
		p := &Provider{script: s}
		for _, e := range s.Models {
			for i := range e.Scripts {
				d := &e.Scripts[i]
				for j := range d.Steps {
					st := &d.Steps[j]
					sel := &selection{model: e, named: &anchor{script: d, values: map[string]string{}, n: j}}
					if _, err := compose(request(e.name), sel, st); err != nil && !errors.As(err, new(*model.Error)) {
						t.Fatal(err)
					}
				}
			}
		}
		if _, err := p.Models(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
