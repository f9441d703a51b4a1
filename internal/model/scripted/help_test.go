package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agent/internal/model"
)

var codec Codec

// items is an envelope of stored items; opened counts its readings.
func items(list ...[]byte) model.Items {
	joined := bytes.Join(list, []byte(","))
	return model.Items{
		Bytes: int64(len(joined)),
		Count: len(list),
		Open:  func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(joined)), nil },
	}
}

func user(text string) []byte { return codec.User(text, nil) }

func result(id, out string) []byte { return codec.Result(model.Result{CallID: id, Output: out}) }

func said(text string) []byte { return appendAssistant(nil, &answer{text: text}) }

// request is a call of a bot that has every tool the tests call.
func request(name string, list ...[]byte) *model.Request {
	return &model.Request{
		Bot: "b", BotID: 7, Turn: 1, Model: name, Workspace: "/ws",
		ToolNames:  []string{"shell", "write", "edit", "read", "wait", "echo"},
		AllowTools: true,
		Items:      items(list...),
		IDTaken:    func(string) (bool, error) { return false, nil },
		NewID:      func(i int) string { return fmt.Sprintf("call_%012x", i) },
	}
}

// scriptFile writes a file with the one model m and loads it.
func scriptFile(t *testing.T, m string) *Provider {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	writeFile(t, path, `{"version":1,"models":{"m":`+m+`}}`)
	p, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// played is what one call came to.
type played struct {
	*model.Completion
	rep    model.Report
	events []model.Event
	err    error
}

func (p played) joined(kind string) string {
	var b strings.Builder
	for _, e := range p.events {
		if e.Kind == kind {
			b.WriteString(e.Text)
		}
	}
	return b.String()
}

func (p played) text(t *testing.T) string {
	t.Helper()
	if p.err != nil {
		t.Fatalf("the call failed: %v", p.err)
	}
	d, err := codec.Describe(p.Items[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := p.joined(model.EventText); got != d.Text {
		t.Fatalf("streamed %q, stored %q", got, d.Text)
	}
	return d.Text
}

func play(p *Provider, req *model.Request) played {
	var out played
	out.Completion, out.err = p.Complete(context.Background(), req, func(e model.Event) { out.events = append(out.events, e) }, &out.rep)
	return out
}

func wantCode(t *testing.T, err error, code, detail string) {
	t.Helper()
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want code %s", err, code)
	}
	if e.Code != code || !strings.Contains(e.Detail, detail) {
		t.Fatalf("error is %q, want code %s with %q in its detail", e, code, detail)
	}
}

// runTurn plays a turn to its end with tool results made by run, and returns
// every item of the conversation.
func runTurn(t *testing.T, p *Provider, req *model.Request, history [][]byte, run func(model.Call) string) [][]byte {
	t.Helper()
	for round := range 20 {
		r := *req
		r.Round = int64(round)
		r.Items = items(history...)
		out := play(p, &r)
		if out.err != nil {
			t.Fatalf("round %d: %v", round, out.err)
		}
		history = slices.Concat(history, out.Items)
		if len(out.Calls) == 0 {
			return history
		}
		for _, c := range out.Calls {
			if !json.Valid(c.Arguments) {
				t.Fatalf("call %s has arguments %s", c.ID, c.Arguments)
			}
			history = append(history, result(c.ID, run(c)))
		}
	}
	t.Fatal("the turn does not end")
	return nil
}
