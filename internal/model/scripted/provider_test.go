package scripted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agent/internal/model"

	"github.com/google/go-cmp/cmp"
)

func TestScenarios(t *testing.T) {
	t.Parallel()

	t.Run("PV-53 the tour calls four tools with fixed arguments and ends in five lines", func(t *testing.T) {
		t.Parallel()
		p, err := New("")
		if err != nil {
			t.Fatal(err)
		}
		var called []string
		history := runTurn(t, p, request("tour", user(`$(rm -rf /) ${workspace}`)), [][]byte{user(`$(rm -rf /) ${workspace}`)}, func(c model.Call) string {
			called = append(called, c.Name+" "+string(c.Arguments))
			return "did " + c.Name + "\nmore"
		})
		want := []string{
			`shell {"command":"pwd && ls -la | head"}`,
			`write {"path":"agent-tour.txt","content":"Written by the tour.\nThis line is about to change.\nThis line stays.\n"}`,
			`edit {"path":"agent-tour.txt","old":"This line is about to change.","new":"This line was changed by edit."}`,
			`read {"path":"agent-tour.txt"}`,
		}
		if diff := cmp.Diff(want, spaceless(called)); diff != "" {
			t.Error(diff)
		}
		d, _ := codec.Describe(history[len(history)-1])
		if lines := strings.Split(d.Text, "\n"); len(lines) != 5 || !strings.Contains(d.Text, "did edit") || !strings.Contains(lines[4], "--model") {
			t.Errorf("the last answer is %q", d.Text)
		}
		for _, item := range history[1:] {
			if bytes.Contains(item, []byte("rm -rf")) {
				t.Errorf("the prompt reached an item: %s", item)
			}
		}
	})

	t.Run("PV-53 the tour ends with words where the bot lacks a tool", func(t *testing.T) {
		t.Parallel()
		p, _ := New("")
		for _, missing := range []string{"shell", "write", "edit", "read"} {
			req := request("tour")
			req.ToolNames = []string{}
			for _, name := range []string{"shell", "write", "edit", "read"} {
				if name != missing {
					req.ToolNames = append(req.ToolNames, name)
				}
			}
			history := runTurn(t, p, req, [][]byte{user("hello")}, func(c model.Call) string { return "did " + c.Name })
			d, _ := codec.Describe(history[len(history)-1])
			if !strings.Contains(d.Text, "no "+missing+" tool") {
				t.Errorf("without %s the tour says %q", missing, d.Text)
			}
		}
	})

	t.Run("PV-54 a new process goes on with the second step", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "s.json")
		writeFile(t, path, `{"version":1,"models":{"m":{"scripts":[{"match":{"equals":"go"},"steps":[
			{"text":"one","calls":[{"tool":"echo","arguments":{"text":"a"}}]},{"text":"two","calls":[{"tool":"echo"}]},{"text":"three"}]}]}}}`)
		before, err := New(path)
		if err != nil {
			t.Fatal(err)
		}
		first := play(before, request("m", user("go")))
		if got := first.text(t); got != "one" {
			t.Fatalf("first step is %q", got)
		}
		after, err := New(path)
		if err != nil {
			t.Fatal(err)
		}
		req := request("m", user("go"), first.Items[0], result(first.Calls[0].ID, "a"), user("you were restarted"))
		if got := play(after, req).text(t); got != "two" {
			t.Fatalf("after the restart it says %q", got)
		}
	})

	t.Run("PV-55 a captured handle is in the later wait call", func(t *testing.T) {
		t.Parallel()
		p := scriptFile(t, `{"scripts":[{"match":{"any":true},"steps":[
			{"calls":[{"tool":"shell","arguments":{"command":"x"}},{"tool":"shell","arguments":{"command":"y"}}],"capture":{"handle":"turn:[A-Za-z0-9._-]+/[0-9]+","n2":"code (\\d+)"}},
			{"calls":[{"tool":"wait","arguments":{"handles":["${handle}"], "x":{"${handle}":"$$${n2} ${n}"}}}]},
			{"text":"Done: ${last}"}]}]}`)
		one := play(p, request("m", user("go")))
		req := request("m", user("go"), one.Items[0], result("call-1-0", `{"stdout":"turn:docs/12\n"}`), result("call-1-1", "code 42"))
		two := play(p, req)
		if two.err != nil {
			t.Fatal(two.err)
		}
		if got, want := string(two.Calls[0].Arguments), `{"handles":["turn:docs/12"], "x":{"${handle}":"$42 1"}}`; got != want {
			t.Errorf("arguments %s, want %s", got, want)
		}
		if two.Calls[0].ID != "call-2-0" {
			t.Errorf("id %s", two.Calls[0].ID)
		}
	})

	t.Run("PV-56 a failure of two attempts lets the third through", func(t *testing.T) {
		t.Parallel()
		p := scriptFile(t, `{"scripts":[{"match":{"any":true},"steps":[{"text":"ok","error":{"status":500,"detail":"down","attempts":2}}]}]}`)
		for attempt := range 3 {
			req := request("m", user("go"))
			req.Attempt = attempt
			out := play(p, req)
			if attempt == 2 {
				if got := out.text(t); got != "ok" {
					t.Errorf("third attempt says %q", got)
				}
				continue
			}
			wantCode(t, out.err, "provider_http_500", "down")
			if !out.err.(*model.Error).Retryable() || !out.rep.Dispatched || out.rep.Usage != nil {
				t.Errorf("attempt %d: %+v", attempt, out.rep)
			}
		}
	})

	t.Run("PV-57 a step whose tool is not offered says so and calls nothing", func(t *testing.T) {
		t.Parallel()
		p := scriptFile(t, `{"scripts":[
			{"match":{"equals":"stated"},"steps":[{"text":"x","calls":[{"tool":"echo"},{"tool":"desktop"}],"without":"No desktop for ${bot}."}]},
			{"match":{"equals":"default"},"steps":[{"text":"x","calls":[{"tool":"desktop"}]}]},
			{"match":{"equals":"off"},"steps":[{"calls":[{"tool":"echo"}]}]}]}`)
		for prompt, want := range map[string]string{
			"stated": "No desktop for b.", "default": "Tool desktop is not available to this bot.", "off": "Tool echo is not available to this bot.",
		} {
			req := request("m", user(prompt))
			req.AllowTools = prompt != "off"
			out := play(p, req)
			if got := out.text(t); got != want || len(out.Calls) != 0 {
				t.Errorf("%s: %q with calls %v", prompt, got, out.Calls)
			}
		}
	})

	t.Run("PV-58 two runs of one script give the same items and usage", func(t *testing.T) {
		t.Parallel()
		run := func() ([][]byte, model.Usage) {
			p, _ := New("")
			history := runTurn(t, p, request("tour"), [][]byte{user("hello")}, func(c model.Call) string { return "did " + c.Name })
			return history, *play(p, request("tour", user("hello"))).rep.Usage
		}
		a, ua := run()
		b, ub := run()
		if diff := cmp.Diff(a, b); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(ua, ub); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("PV-70 a repeated call id is stored under one of ours", func(t *testing.T) {
		t.Parallel()
		p := scriptFile(t, `{"scripts":[{"match":{"any":true},"steps":[{"calls":[{"tool":"echo","id":"x"},{"tool":"echo","id":"x"},{"tool":"echo","id":"old"},{"tool":"echo"}]}]}]}`)
		req := request("m", user("go"))
		req.IDTaken = func(id string) (bool, error) { return id == "old", nil }
		out := play(p, req)
		if out.err != nil {
			t.Fatal(out.err)
		}
		d, _ := codec.Describe(out.Items[0])
		var got []string
		for i, c := range out.Calls {
			got = append(got, c.ID+"<"+c.ProviderID)
			if d.Calls[i].ID != c.ID {
				t.Errorf("stored id %s, call id %s", d.Calls[i].ID, c.ID)
			}
		}
		if diff := cmp.Diff([]string{"x<", "call_000000000001<x", "call_000000000002<old", "call-1-3<"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func spaceless(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = strings.NewReplacer("\": \"", `":"`, ", \"", `,"`).Replace(strings.Join(strings.Fields(s), " "))
		out[i] = strings.NewReplacer("{ ", "{", " }", "}").Replace(out[i])
	}
	return out
}

func TestStepFields(t *testing.T) {
	t.Parallel()
	step := func(s string) string { return `{"scripts":[{"match":{"any":true},"steps":[` + s + `]}]}` }

	t.Run("chunks split after each run of spaces", func(t *testing.T) {
		p := scriptFile(t, step(`{"text":"a  b\n c","thinking":" x y"}`))
		out := play(p, request("m", user("go")))
		var got []string
		for _, e := range out.events {
			got = append(got, e.Kind+":"+e.Text)
		}
		if diff := cmp.Diff([]string{"thinking: ", "thinking:x ", "thinking:y", "text:a  ", "text:b\n ", "text:c"}, got); diff != "" {
			t.Error(diff)
		}
		if want := `{"role":"assistant","text":"a  b\n c","thinking":" x y"}`; string(out.Items[0]) != want {
			t.Errorf("item %s", out.Items[0])
		}
	})

	t.Run("default usage is bytes by four", func(t *testing.T) {
		p := scriptFile(t, step(`{"text":"<done> & é"}`))
		req := request("m", user("go"))
		req.Instructions, req.Tools = strings.Repeat("i", 40), []byte(strings.Repeat("t", 80))
		out := play(p, req)
		want := model.Usage{Input: (req.Items.Bytes + 120) / 4, Output: int64(len(out.Items[0])) / 4}
		if diff := cmp.Diff(&want, out.rep.Usage); diff != "" {
			t.Error(diff)
		}
		if !bytes.Contains(out.Items[0], []byte(`"<done> & é"`)) {
			t.Errorf("escaped: %s", out.Items[0])
		}
	})

	t.Run("stated usage stands", func(t *testing.T) {
		p := scriptFile(t, step(`{"text":"x","usage":{"input_tokens":100,"output_tokens":20,"cached_input_tokens":50,"cache_write_tokens":30,"cache_write_1h_tokens":10,"reasoning_tokens":5}}`))
		out := play(p, request("m", user("go")))
		want := &model.Usage{Input: 100, Output: 20, Cached: 50, CacheWrite: 30, CacheWrite1h: 10, Reasoning: 5, HasCacheWrite: true, HasReasoning: true}
		if diff := cmp.Diff(want, out.Completion.Usage); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("a refusal for pace carries its delay", func(t *testing.T) {
		for _, status := range []int{429, 529} {
			p := scriptFile(t, step(fmt.Sprintf(`{"error":{"status":%d,"retry_after_ms":1500}}`, status)))
			out := play(p, request("m", user("go")))
			wantCode(t, out.err, fmt.Sprintf("provider_http_%d", status), "")
			if got := out.err.(*model.Error).Retry; got != 1500*time.Millisecond {
				t.Errorf("retry after %s", got)
			}
		}
	})

	t.Run("a cut lets half through and reports usage", func(t *testing.T) {
		for kind, code := range map[string]string{"eof": "missing_completion", "mid_frame": "truncated_sse_frame"} {
			p := scriptFile(t, step(`{"text":"one two three four","cut":{"kind":"`+kind+`","attempts":1}}`))
			out := play(p, request("m", user("go")))
			wantCode(t, out.err, code, "")
			if got := out.joined(model.EventText); got != "one two " || out.rep.Usage == nil || out.rep.Usage.Output != 2 {
				t.Errorf("%s: streamed %q, usage %+v", kind, got, out.rep.Usage)
			}
			req := request("m", user("go"))
			req.Attempt = 1
			if got := play(p, req).text(t); got != "one two three four" {
				t.Errorf("second attempt: %q", got)
			}
		}
	})

	t.Run("a stall lasts for the stall bound", func(t *testing.T) {
		p := scriptFile(t, step(`{"text":"one two","cut":"stall"}`))
		synctest.Test(t, func(t *testing.T) {
			req := request("m", user("go"))
			req.Stall = 7 * time.Second
			start := time.Now()
			out := play(p, req)
			wantCode(t, out.err, "provider_stream_stalled", "--stall-timeout")
			if got := time.Since(start); got != 7*time.Second {
				t.Errorf("stalled for %s", got)
			}
		})
	})

	t.Run("a web search is in the item, live and external", func(t *testing.T) {
		p := scriptFile(t, step(`{"text":"x","web_search":{"query":"go 1.26","sources":[{"url":"https://example.com/a","title":"A"}]},"fallback":{"from":"m","to":"n"}}`))
		out := play(p, request("m", user("go")))
		if out.err != nil {
			t.Fatal(out.err)
		}
		if want := `{"role":"assistant","text":"x","web_search":{"query":"go 1.26","sources":[{"url":"https://example.com/a","title":"A"}]}}`; string(out.Items[0]) != want {
			t.Errorf("item %s", out.Items[0])
		}
		if !out.External || out.events[0].Kind != model.EventWebSearch || out.events[0].Query != "go 1.26" || out.rep.Usage.WebSearches != 1 {
			t.Errorf("%+v %+v", out.Completion, out.events)
		}
		if diff := cmp.Diff([]model.Switch{{From: "m", To: "n"}}, out.Fallbacks); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("a substitution that grows past the output bound fails", func(t *testing.T) {
		p := scriptFile(t, step(`{"text":"`+strings.Repeat("${prompt}", 20)+`"}`))
		out := play(p, request("m", user(strings.Repeat("x", 64<<10))))
		wantCode(t, out.err, "provider_output_limit", "768 KiB")
	})

	t.Run("an unknown model names those there are", func(t *testing.T) {
		p, _ := New("")
		wantCode(t, play(p, request("gpt", user("x"))).err, "provider_http_404", "tour, echo, slow")
	})
}

func TestTime(t *testing.T) {
	t.Parallel()
	t.Run("slow streams 200 words at 50 ms", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, _ := New("")
			start := time.Now()
			out := play(p, request("slow", user("x")))
			if got := len(strings.Fields(out.text(t))); got != 200 {
				t.Errorf("%d words", got)
			}
			if got := time.Since(start); got != 199*50*time.Millisecond {
				t.Errorf("took %s", got)
			}
		})
	})
	t.Run("an interrupt ends a pause at once with its cause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, _ := New("")
			cause := errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(t.Context())
			start := time.Now()
			n := 0
			var rep model.Report
			_, err := p.Complete(ctx, request("slow", user("x")), func(model.Event) {
				if n++; n == 3 {
					cancel(cause)
				}
			}, &rep)
			if err != cause || n != 3 || rep.Usage != nil {
				t.Errorf("error %v after %d chunks, usage %v", err, n, rep.Usage)
			}
			if got := time.Since(start); got != 100*time.Millisecond {
				t.Errorf("took %s", got)
			}
		})
	})
	t.Run("a delay comes before the first chunk", func(t *testing.T) {
		p := scriptFile(t, `{"pace_ms":10,"scripts":[{"match":{"any":true},"steps":[{"text":"a b c","delay_ms":1000,"pace_ms":7}]}]}`)
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			play(p, request("m", user("x"))).text(t)
			if got := time.Since(start); got != 1014*time.Millisecond {
				t.Errorf("took %s", got)
			}
		})
	})
}

func TestExpect(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, expect, fault string }{
		{"all met", `{"tools":["read","shell"],"reasoning":"low","images":1,"instructions_contains":"brief","last_result_contains":"tail","items":4}`, ""},
		{"another tool", `{"tools":["shell"]}`, "tools: wanted shell; offered read, shell"},
		{"another level", `{"reasoning":"high"}`, "reasoning"},
		{"another count of pictures", `{"images":0}`, "images: wanted 0, the request has 1"},
		{"other instructions", `{"instructions_contains":"long"}`, "instructions_contains"},
		{"another result", `{"last_result_contains":"head"}`, "last_result_contains"},
		{"another count of items", `{"items":9,"reasoning":"low"}`, "items: wanted 9"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := scriptFile(t, `{"scripts":[{"match":{"prefix":"go"},"steps":[{"text":"a"},{"text":"b","expect":`+row.expect+`}]}]}`)
			req := request("m", user("go on"), said("a"), result("x", strings.Repeat("y", 5000)+"tail"),
				codec.User("look", []model.Picture{{MediaType: "image/png", Bytes: 9}}))
			req.Instructions, req.Reasoning, req.ToolNames = "Be brief.", "low", []string{"shell", "read"}
			out := play(p, req)
			if row.fault == "" {
				if got := out.text(t); got != "b" {
					t.Errorf("says %q", got)
				}
				return
			}
			wantCode(t, out.err, "script_expectation_failed", row.fault)
		})
	}
}

func TestReread(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.json")
	file := func(text string) string {
		return `{"version":1,"models":{"m":{"scripts":[{"match":{"any":true},"steps":[{"text":"` + text + `"}],"repeat_last":true}]}}}`
	}
	writeFile(t, path, file("one"))
	p, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	later := request("m", user("x"))
	later.Round = 1

	writeFile(t, path, file("three"))
	if got := play(p, later).text(t); got != "one" {
		t.Errorf("a later round of a turn read the new file: %q", got)
	}
	if got := play(p, request("m", user("x"))).text(t); got != "three" {
		t.Errorf("a first call says %q", got)
	}
	same := file("THREE")
	writeFile(t, path, same)
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := play(p, request("m", user("x"))).text(t); got != "THREE" {
		t.Errorf("with another mtime it says %q", got)
	}
	writeFile(t, path, `{"version":1,"models":{"m":{"scripts":[{"match":{"any":true},"steps":[{"text":7}]}]}}}`)
	for range 2 {
		wantCode(t, play(p, request("m", user("x"))).err, "invalid_script", "models.m.scripts[0].steps[0].text")
	}
	if got := play(p, later).text(t); got != "THREE" {
		t.Errorf("a turn under way says %q", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantCode(t, play(p, request("m", user("x"))).err, "invalid_script", "cannot be read")
}

func TestStoreFailure(t *testing.T) {
	t.Parallel()
	p, _ := New("")
	req := request("echo", user("x"))
	req.Items.Open = func() (io.ReadCloser, error) { return nil, errors.New("disk gone") }
	wantCode(t, play(p, req).err, "io_error", "disk gone")
	req = request("echo", user("x"), []byte(`{"role":`))
	wantCode(t, play(p, req).err, "io_error", "item 1")
}

func TestNew(t *testing.T) {
	t.Run("a relative path is refused", func(t *testing.T) {
		_, err := New("s.json")
		wantCode(t, err, "invalid_provider_spec", "absolute")
	})
	t.Run("a path under the home folder works", func(t *testing.T) {
		home := t.TempDir()
		t.Setenv("HOME", home)
		writeFile(t, filepath.Join(home, "s.json"), string(builtin))
		p, err := New("~/s.json")
		if err != nil {
			t.Fatal(err)
		}
		want := model.Info{Family: model.FamilyScripted, URL: filepath.Join(home, "s.json"), Transport: "local", Auth: "none"}
		if diff := cmp.Diff(want, p.Info()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a file over 4 MiB is refused", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s.json")
		writeFile(t, path, strings.Repeat(" ", MaxFile+1))
		_, err := New(path)
		wantCode(t, err, "invalid_provider_spec", "over 4 MiB")
	})
	t.Run("a folder is refused", func(t *testing.T) {
		_, err := New(t.TempDir())
		wantCode(t, err, "invalid_provider_spec", "regular file")
	})
	t.Run("a missing file is refused", func(t *testing.T) {
		_, err := New(filepath.Join(t.TempDir(), "none.json"))
		wantCode(t, err, "invalid_script", "cannot be read")
	})
	t.Run("the built-in script lists its models in order", func(t *testing.T) {
		p, err := New("")
		if err != nil {
			t.Fatal(err)
		}
		list, _ := p.Models(t.Context())
		var names []string
		for _, m := range list {
			names = append(names, m.ID)
		}
		if diff := cmp.Diff([]string{"tour", "echo", "slow"}, names); diff != "" || p.Info().URL != "builtin" {
			t.Error(diff, p.Info())
		}
	})
}
