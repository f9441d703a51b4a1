package modeltest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/model"
)

// oracleFiles is where requests, streams and what we made of them lie for the
// module in oracle/, which reads the same with the vendors' own libraries. Seen
// from a family's folder.
const oracleFiles = "../../../oracle/testdata"

// updateVar, when set, writes the files anew instead of comparing them.
const updateVar = "UPDATE_ORACLE"

// Heard is what a family's decoder made of a stream.
type Heard struct {
	Text     string      `json:"text"`
	Thinking string      `json:"thinking"`
	Calls    []HeardCall `json:"calls"`
	Input    int64       `json:"input_tokens"`
	Output   int64       `json:"output_tokens"`
	Cached   int64       `json:"cached_input_tokens"`
}

// HeardCall is one call of it. Arguments are the bytes that came.
type HeardCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// OracleRequest holds a request's body, as it is sent, against
// FAMILY/NAME.req.json.
func OracleRequest(t testing.TB, family, name string, body []byte) {
	t.Helper()
	oracleFile(t, filepath.Join(family, name+".req.json"), body)
}

// OracleStream holds a stream and what became of it against FAMILY/NAME.sse and
// FAMILY/NAME.want.json.
func OracleStream(t testing.TB, family, name string, stream []byte, o Outcome) {
	t.Helper()
	if o.Err != nil {
		t.Fatalf("%s: %v", name, o.Err)
	}
	heard := Heard{Text: Text(o.Events, model.EventText), Thinking: Text(o.Events, model.EventThinking), Calls: []HeardCall{}}
	for _, c := range o.Completion.Calls {
		heard.Calls = append(heard.Calls, HeardCall{c.ID, c.Name, string(c.Arguments)})
	}
	if u := o.Usage; u != nil {
		heard.Input, heard.Output, heard.Cached = u.Input, u.Output, u.Cached
	}
	text, err := json.MarshalIndent(heard, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	oracleFile(t, filepath.Join(family, name+".sse"), stream)
	oracleFile(t, filepath.Join(family, name+".want.json"), append(text, '\n'))
}

// OracleHas fails the test for a file of a family that no test keeps true.
func OracleHas(t testing.TB, family string, names ...string) {
	t.Helper()
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	files, err := os.ReadDir(filepath.Join(oracleFiles, family))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, _, _ := bytes.Cut([]byte(f.Name()), []byte("."))
		if !known[string(name)] {
			t.Errorf("oracle/testdata/%s/%s belongs to no test: remove it, or write the test", family, f.Name())
		}
	}
}

func oracleFile(t testing.TB, name string, text []byte) {
	t.Helper()
	path := filepath.Join(oracleFiles, name)
	if os.Getenv(updateVar) != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, text) {
		t.Errorf("oracle/testdata/%s is not what is sent or heard now (%v); run %s=1 go test ./internal/model/... and then make oracle", name, err, updateVar)
	}
}

// Named writes events as an event stream whose frames carry the events' names,
// as a vendor's server sends them; our decoders look at the data alone.
func Named(t testing.TB, stream string) []byte {
	t.Helper()
	var b bytes.Buffer
	for frame := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		var event struct{ Type string }
		if err := json.Unmarshal([]byte(strings.TrimPrefix(frame, "data: ")), &event); err != nil {
			t.Fatalf("%s: %v", frame, err)
		}
		b.WriteString("event: " + event.Type + "\n" + frame + "\n\n")
	}
	return b.Bytes()
}
