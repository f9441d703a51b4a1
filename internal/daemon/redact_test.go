package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// leak prints a secret of each kind in pieces, and what stands beside it; with
// slow set, 50 ms apart.
const leak = `
p() { for piece in "$@"; do printf %b "$piece"; [ -z "$slow" ] || sleep 0.05; done; }
p 'one key-of-' 'the-test-' 'provider two\n'
p '{"pass' 'word": "hun' 'ter2hunter2", "count": 3}\n'
p 'db:/' '/ann:q9q9' 'q9q9@mx.example/\n'
p '-----BEGIN PRIV' 'ATE KEY-----\nMIIEvQIB' 'ADANBgkq\nhkiG9w0B' '\n-----END PRIVATE KEY-----\nthree\n'
`

// leaked is what of leak nobody may see, and leakShown what everybody is
// to see.
var (
	leaked    = []string{"key-of", "the-test", "provider two", "hun", "ter2", "q9q9", "MIIE", "ADAN", "hkiG"}
	leakShown = "one [REDACTED] two\n{\"password\": \"[REDACTED]\", \"count\": 3}\ndb://ann:[REDACTED]@mx.example/\n" +
		"-----BEGIN PRIVATE KEY-----\n[REDACTED]\n[REDACTED]\n-----END PRIVATE KEY-----\nthree\n"
)

// clean fails where a text holds a part of a secret.
func clean(t *testing.T, where, text string) {
	t.Helper()
	for _, part := range leaked {
		if strings.Contains(text, part) {
			t.Errorf("%s holds %q: %.500q", where, part, text)
		}
	}
}

func TestSecretsOfEveryKind(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{Keep: 100, Bodies: true})
	p := h.start()
	k := p.dial()
	k.fbot("Ada", h.workspace, "shell wait write_stdin read web_fetch")
	// Not in a command: what a model wrote is not masked.
	for name, script := range map[string]string{
		"leak.sh":  "slow=1\n" + leak,
		"lots.sh":  leak + "seq 1 40000\n" + leak,
		"spill.sh": leak + "seq 1 400000\n" + leak,
		"live.sh":  "slow=1; read go\n" + leak + "read go\nprintf '>>> '\nread go\n",
	} {
		if err := os.WriteFile(filepath.Join(h.workspace, name), []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.workspace, "told"), []byte("password: hunter2hunter2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	type shown struct{ Stdout, Stderr string }
	t.Run("AP-71 AP-75 PO-84 a result, its event and what the model is shown hold marks in place of secrets", func(t *testing.T) {
		got := k.steps(s, "Ada", "r1", shellCall("sh leak.sh & sh leak.sh >&2; wait", ""), [2]string{"read", `{"path":"told"}`})
		var out shown
		json.Unmarshal([]byte(got[0]), &out)
		if out.Stdout != leakShown || out.Stderr != leakShown {
			t.Errorf("result %q", out)
		}
		if !strings.HasSuffix(got[1], "password: [REDACTED]\n") {
			t.Errorf("read gave %q", got[1])
		}
	})
	artifact := func(turn int64, call string) string {
		var all strings.Builder
		for at := int64(0); ; {
			var page protocol.ArtifactPage
			k.ask(&page, "artifact", fmt.Sprintf(`"bot":"Ada","turn":%d,"call_id":%q,"stream":"stdout","offset":%d,"limit":65536`, turn, call, at))
			all.WriteString(page.Text)
			if at = page.NextOffset; page.Done {
				return all.String()
			}
		}
	}
	// long runs a script whose output is kept, and gives its result and what is kept.
	long := func(request, script string) (result, kept string) {
		result = k.steps(s, "Ada", request, shellCall("sh "+script, ""))[0]
		var out struct{ Artifacts []string }
		if err := json.Unmarshal([]byte(result), &out); err != nil || len(out.Artifacts) != 1 {
			t.Fatalf("%v: %.300s", err, result)
		}
		var turn int64
		parts := strings.Split(out.Artifacts[0], "/")
		fmt.Sscan(parts[0], &turn)
		return result, artifact(turn, parts[1])
	}
	t.Run("AP-71 an artifact and the preview of it", func(t *testing.T) {
		result, kept := long("r2", "lots.sh")
		clean(t, "the result", result)
		clean(t, "the artifact", kept)
		if !strings.HasPrefix(kept, leakShown+"1\n2\n") || !strings.HasSuffix(kept, "40000\n"+leakShown) {
			t.Errorf("the artifact has %d bytes", len(kept))
		}
	})
	t.Run("AP-71 RT-28 a spill file", func(t *testing.T) {
		result, kept := long("r3", "spill.sh")
		clean(t, "the result", result)
		clean(t, "the artifact", kept)
		files, _ := filepath.Glob(filepath.Join(h.dir, "state.sqlite.files", "*", "*"))
		if len(files) != 1 {
			t.Fatalf("files %v", files)
		}
		if b, err := os.ReadFile(files[0]); err != nil || string(b) != kept || !strings.HasSuffix(kept, "400000\n"+leakShown) {
			t.Errorf("the file has %d bytes, %v", len(b), err)
		}
	})
	t.Run("AP-75 AP-76 what a running command shows", func(t *testing.T) {
		calls := [][2]string{shellCall("sh live.sh", `,"background":true,"stdin":true`), {"write_stdin", `{"handle":"proc:1","chars":"\n","yield_ms":60}`}}
		for range 12 {
			calls = append(calls, [2]string{"write_stdin", `{"handle":"proc:1","yield_ms":60}`})
		}
		calls = append(calls, [2]string{"write_stdin", `{"handle":"proc:1","yield_ms":3000}`},
			[2]string{"write_stdin", `{"handle":"proc:1","chars":"\n","yield_ms":10000}`},
			[2]string{"write_stdin", `{"handle":"proc:1","chars":"\n","yield_ms":10000}`}, [2]string{"wait", `{"handles":["proc:1"]}`})
		got := k.steps(s, "Ada", "r4", calls...)
		live := ""
		for i, result := range got[1 : len(got)-1] {
			clean(t, fmt.Sprint("piece ", i), result)
			var out struct {
				shown
				Running bool
			}
			json.Unmarshal([]byte(result), &out)
			live += out.Stdout
			if strings.HasSuffix(out.Stdout, ">>> ") && !out.Running {
				t.Error("the prompt came with the command's end")
			}
		}
		if live != leakShown+">>> " || !strings.Contains(got[len(got)-1], `\u003e\u003e\u003e `) && !strings.Contains(got[len(got)-1], ">>> ") {
			t.Errorf("shown live: %q\nin the end: %s", live, got[len(got)-1])
		}
		clean(t, "the wait", got[len(got)-1])
	})
	for _, r := range s.Requests() {
		clean(t, "what the model was sent", string(r.Body))
	}
	for _, n := range k.notes {
		clean(t, "an event", fmt.Sprint(n))
	}
	p.kill()
	for _, name := range []string{"state.sqlite", "state.sqlite-wal"} {
		b, err := os.ReadFile(filepath.Join(h.dir, name))
		if err == nil {
			for _, part := range leaked[:6] {
				if strings.Contains(string(b), part) {
					t.Errorf("%s holds %q", name, part)
				}
			}
		}
	}
	s.Verify(t)
}
