package scripted

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"agent/internal/model"
)

const selectionScript = `{"scripts":[
	{"match":{"prefix":"fix"},"steps":[{"text":"fix0"},{"text":"fix1"},{"text":"fix2 ${prompt}"}]},
	{"match":{"equals":"fix it"},"steps":[{"text":"never"}]},
	{"match":{"contains":"needle"},"steps":[{"text":"needle ${n}"},{"text":"needle ${n}"}]},
	{"match":{"regex":"^say (?P<what>.+?) to (\\w+)$"},"steps":[{"text":"${1}/${2}/${what}/${0}"}]},
	{"match":{"any":true},"steps":[{"text":"any ${prompt}"},{"text":"any1"}]},
	{"match":{"equals":"loop"},"repeat_last":true,"steps":[{"text":"a"},{"text":"b${n}"}]}]}`

func TestSelection(t *testing.T) {
	t.Parallel()
	from := func(line, text string) []byte { return user(line + "\n" + text) }
	rows := []struct {
		name  string
		items [][]byte
		want  string // text, or !code
	}{
		{"the first script in file order wins", [][]byte{user("fix it")}, "fix0"},
		{"the step is the number of answers after the anchor", [][]byte{user("fix it"), said("fix0"), result("c", "r")}, "fix1"},
		{"a newer matching prompt is the anchor", [][]byte{user("fix it"), said("x"), user("a needle")}, "needle 0"},
		{"an older match wins over any on a newer prompt", [][]byte{user("fix it"), said("x"), user("hurry")}, "fix1"},
		{"a steer that matches nothing does not move the anchor", [][]byte{user("fix it"), said("x"), result("c", "r"), user("hurry"), said("y")}, "fix2 fix it"},
		{"any answers where nothing else matches", [][]byte{user("one"), said("x"), user("two")}, "any two"},
		{"any counts from the newest prompt", [][]byte{user("one"), user("two"), said("x")}, "any1"},
		{"past the last step is an error", [][]byte{user("a needle"), said("1"), said("2")}, "!script_exhausted"},
		{"repeat_last goes on with the last step", [][]byte{user("loop"), said("1"), said("2"), said("3")}, "b3"},
		{"groups by number and name", [][]byte{user("say hi <you> to bob")}, "hi <you>/bob/hi <you>/say hi <you> to bob"},
		{"a regex is case-sensitive and anchored as written", [][]byte{user("Say hi to bob")}, "any Say hi to bob"},
		{"the line naming a sending bot is no part of the text", [][]byte{from("Message from agent w (id 3), not from the person:", "fix it")}, "fix0"},
		{"the line naming an event is no part of the text", [][]byte{from("Event from trigger, not from the person:", "loop")}, "a"},
		{"a line that only looks like one stays", [][]byte{from("Message from my aunt:", "fix it")}, "any Message from my aunt:\nfix it"},
		{"assistants before the anchor do not count", [][]byte{said("x"), said("y"), user("loop")}, "a"},
		{"an item's fields may stand in any order", [][]byte{[]byte(`{"text":"loop","x":[{}],"role":"user"}`), []byte(` {"calls":[],"text":"loop","role":"assistant"} `)}, "b1"},
		{"no user item at all", [][]byte{said("x")}, "!script_exhausted"},
		{"no items", nil, "!script_exhausted"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			out := play(scriptFile(t, selectionScript), request("m", row.items...))
			if code, failed := strings.CutPrefix(row.want, "!"); failed {
				wantCode(t, out.err, code, "")
				return
			}
			if got := out.text(t); got != row.want {
				t.Errorf("says %q, want %q", got, row.want)
			}
		})
	}
}

func TestCaptures(t *testing.T) {
	t.Parallel()
	p := scriptFile(t, `{"scripts":[{"match":{"any":true},"steps":[
		{"calls":[{"tool":"echo"},{"tool":"echo"}],"capture":{"a":"A(\\d)","whole":"B\\d","both":"(?s)A1(.*)B2"}},
		{"text":"mid","calls":[{"tool":"echo"}]},
		{"text":"[${a}][${whole}][${both}][${last}]"}]}]}`)
	rows := []struct {
		name  string
		items [][]byte
		want  string
	}{
		{"results of its own step only", [][]byte{user("x"), said("0"), result("1", "A1"), result("2", "B2"), said("1"), result("3", "A9 B9")}, "[1][B2][\n][A9 B9]"},
		{"no match is empty", [][]byte{user("x"), said("0"), result("1", "none"), said("1"), result("3", "A9 B9")}, "[][][][A9 B9]"},
		{"no results at all", [][]byte{user("x"), said("0"), said("1")}, "[][][][]"},
		{"last is cut at 4 KiB between characters", [][]byte{user("x"), said("0"), said("1"), result("3", "x"+strings.Repeat("é", 3000))}, "[][][][x" + strings.Repeat("é", 2047) + "]"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := play(p, request("m", row.items...)).text(t); got != row.want {
				t.Errorf("says %q, want %q", got, row.want)
			}
		})
	}
}

func TestRoundNumber(t *testing.T) {
	t.Parallel()
	p := scriptFile(t, `{"scripts":[{"match":{"equals":"go"},"steps":[{"calls":[{"tool":"echo"},{"tool":"echo"}]}]}]}`)
	req := request("m", said("old"), said("old"), user("go"))
	req.Skipped = 40
	out := play(p, req)
	if out.err != nil {
		t.Fatal(out.err)
	}
	if out.Calls[0].ID != "call-43-0" || out.Calls[1].ID != "call-43-1" {
		t.Errorf("ids %s and %s", out.Calls[0].ID, out.Calls[1].ID)
	}
}

// repeat is a reader of n copies of an item, made as they are read.
type repeat struct {
	head, item []byte
	n          int
	rest       []byte
}

func (r *repeat) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.n == 0 {
			return 0, io.EOF
		}
		if r.rest = r.item; r.head != nil {
			r.rest, r.head = r.head, nil
		}
		r.n--
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestLongRequestIsNotCollected(t *testing.T) {
	p := scriptFile(t, `{"scripts":[{"match":{"equals":"go"},"steps":[{"text":"x"}],"repeat_last":true}]}`)
	item := append([]byte(","), result("c", strings.Repeat("r", 4000))...)
	const n = 10_000
	req := request("m")
	req.Items = model.Items{Bytes: 1, Count: n, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(&repeat{head: user("go"), item: item, n: n}), nil
	}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	play(p, req).text(t)
	runtime.ReadMemStats(&after)
	// 40 MB pass by; what is allocated in all is far less.
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d bytes allocated", got)
	}
}

func TestCodec(t *testing.T) {
	t.Parallel()
	pic := model.Picture{Hash: [32]byte{1}, MediaType: "image/png", Bytes: 3}
	rows := []struct {
		name string
		item []byte
		want string
		desc model.Described
	}{
		{"a user message", codec.User("a <b> & é", nil), `{"role":"user","text":"a <b> & é"}`, model.Described{Role: "user", Text: "a <b> & é"}},
		{"a picture", codec.User("p", []model.Picture{pic, pic}), fmt.Sprintf(`{"role":"user","text":"p","images":[{"media_type":"image/png","data":"%[1]s"},{"media_type":"image/png","data":"%[1]s"}]}`, pic.Placeholder()), model.Described{Role: "user", Text: "p"}},
		{"a marked message", codec.UserMarked("m", "1h"), `{"role":"user","text":"m"}`, model.Described{Role: "user", Text: "m"}},
		{"a result", codec.Result(model.Result{CallID: "c", Output: "o\n", Pictures: []model.Picture{pic}}), fmt.Sprintf(`{"role":"tool","id":"c","output":"o\n","images":[{"media_type":"image/png","data":"%s"}]}`, pic.Placeholder()), model.Described{Role: "tool", Text: "o\n", CallID: "c"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if string(row.item) != row.want {
				t.Errorf("item %s\nwant %s", row.item, row.want)
			}
			d, err := codec.Describe(row.item)
			if err != nil || fmt.Sprint(d) != fmt.Sprint(row.desc) {
				t.Errorf("described %+v, %v", d, err)
			}
			if codec.ThinkingBytes(row.item) != 0 || !bytes.Equal(codec.WithoutThinking(nil, row.item), row.item) {
				t.Error("an item lost thinking it does not have")
			}
		})
	}
	for _, broken := range []string{``, `{`, `[]`, `{}`, `{"role":7}`, `{"role":"user","role":"user"}`} {
		if _, err := codec.Describe([]byte(broken)); err == nil {
			t.Errorf("%s was described", broken)
		}
	}
	tools := codec.Tools([]model.ToolDef{{Name: "a", Description: "x <y>", Parameters: []byte(`{"type": "object"}`)}, {Name: "b", Parameters: []byte(`{}`)}})
	if want := `[{"name":"a","description":"x <y>","parameters":{"type": "object"}},{"name":"b","description":"","parameters":{}}]`; string(tools) != want {
		t.Errorf("tools %s", tools)
	}
}
