package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"agent/protocol"
)

func TestLongCallIsShownByItsPath(t *testing.T) {
	t.Parallel()
	whole := `{"content":"` + strings.Repeat("x", 3000) + `","path":"notes.txt"}`
	var out bytes.Buffer
	p := (&app{stdout: &out}).prettyView(nil, false)
	p.calls(1).planned["c1"] = callLine("write", whole)
	data, err := json.Marshal(protocol.ToolStarted{CallID: "c1", Name: "write", Arguments: whole[:2048], ArgumentsTruncated: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.toolStarted(&protocol.Event{Kind: protocol.KindToolStarted, Turn: 1, Data: data}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "▸ write notes.txt\n" {
		t.Errorf("showed %q", out.String())
	}
}

func TestFullDiskIsSaid(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{stderr: &out}
	a.say(protocol.Fail(protocol.StorageError, "sqlite_primary=13 sqlite_extended=13"))
	a.say(protocol.Fail(protocol.StorageError, "sqlite_primary=10 sqlite_extended=10"))
	full, other, _ := strings.Cut(out.String(), "\n")
	if !strings.Contains(full, "is full; make room") || strings.Contains(other, "full") {
		t.Errorf("said %s", out.String())
	}
}

func TestPrettyRunComesBackPretty(t *testing.T) {
	t.Parallel()
	w := &watch{app: &app{pretty: true}, link: &link{}, bot: "Bob"}
	if again := w.spot().again; !strings.HasSuffix(again, " --bot Bob --pretty") {
		t.Errorf("go on with %q", again)
	}
}
