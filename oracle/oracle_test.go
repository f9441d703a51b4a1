package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	anthropic "github.com/anthropics/anthropic-sdk-go/v2"
	anthropicstream "github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/openai/openai-go/v3"
	openaistream "github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
)

// heard is what a stream comes to, as modeltest.Heard writes it.
type heard struct {
	Text     string `json:"text"`
	Thinking string `json:"thinking"`
	Calls    []call `json:"calls"`
	Input    int64  `json:"input_tokens"`
	Output   int64  `json:"output_tokens"`
	Cached   int64  `json:"cached_input_tokens"`
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// families are what is compared: how a stream is heard by the vendor's library,
// and what its type of a request does not give back as it was sent.
var families = []struct {
	name    string
	hear    func(*http.Response) (heard, error)
	request func(text []byte) ([]string, error)
}{
	{"anthropic", hearMessages, func(text []byte) ([]string, error) {
		return through(text, "", new(anthropic.BetaMessageNewParams))
	}},
	{"responses", hearResponses, throughResponses},
	{"chat", hearChat, func(text []byte) ([]string, error) {
		return through(text, "", new(openai.ChatCompletionNewParams))
	}},
}

func TestStreams(t *testing.T) {
	for _, f := range families {
		files := testFiles(t, f.name, "*.sse")
		for _, file := range files {
			t.Run(f.name+" "+filepath.Base(file), func(t *testing.T) {
				var want heard
				text, err := os.ReadFile(strings.TrimSuffix(file, ".sse") + ".want.json")
				if err == nil {
					err = json.Unmarshal(text, &want)
				}
				if err != nil {
					t.Fatal(err)
				}
				stream, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				got, err := f.hear(response(stream))
				// A library may write an object in another way; the bytes are ours to keep.
				for _, calls := range [][]call{want.Calls, got.Calls} {
					for i := range calls {
						calls[i].Arguments = packed(t, calls[i].Arguments)
					}
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("the vendor's library hears\n%+v\nand we\n%+v\n%v", got, want, err)
				}
			})
		}
	}
}

// packed is an object as the standard encoder writes it.
func packed(t *testing.T, object string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(object), &v); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func response(stream []byte) *http.Response {
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(bytes.NewReader(stream)), Request: &http.Request{},
	}
}

func hearMessages(resp *http.Response) (heard, error) {
	events := anthropicstream.NewStream[anthropic.BetaRawMessageStreamEventUnion](anthropicstream.NewDecoder(resp), nil)
	var message anthropic.BetaMessage
	h := heard{Calls: []call{}}
	for events.Next() {
		event := events.Current()
		if err := message.Accumulate(event); err != nil {
			return h, err
		}
		h.Text += event.Delta.Text
		h.Thinking += event.Delta.Thinking
	}
	for _, block := range message.Content {
		if use, ok := block.AsAny().(anthropic.BetaToolUseBlock); ok {
			arguments, err := json.Marshal(use.Input)
			if err != nil {
				return h, err
			}
			if raw, ok := any(use.Input).(json.RawMessage); ok {
				arguments = raw
			}
			h.Calls = append(h.Calls, call{use.ID, use.Name, string(arguments)})
		}
	}
	u := message.Usage
	h.Input = u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens
	h.Output, h.Cached = u.OutputTokens, u.CacheReadInputTokens
	return h, events.Err()
}

func hearResponses(resp *http.Response) (heard, error) {
	events := openaistream.NewStream[responses.ResponseStreamEventUnion](openaistream.NewDecoder(resp), nil)
	h := heard{Calls: []call{}}
	for events.Next() {
		switch event := events.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			h.Text += event.Delta
		case responses.ResponseReasoningSummaryTextDeltaEvent:
			h.Thinking += event.Delta
		case responses.ResponseOutputItemDoneEvent:
			if item, ok := event.Item.AsAny().(responses.ResponseFunctionToolCall); ok {
				h.Calls = append(h.Calls, call{item.CallID, item.Name, item.Arguments})
			}
		case responses.ResponseCompletedEvent:
			u := event.Response.Usage
			h.Input, h.Output, h.Cached = u.InputTokens, u.OutputTokens, u.InputTokensDetails.CachedTokens
		}
	}
	return h, events.Err()
}

func hearChat(resp *http.Response) (heard, error) {
	events := openaistream.NewStream[openai.ChatCompletionChunk](openaistream.NewDecoder(resp), nil)
	var whole openai.ChatCompletionAccumulator
	h := heard{Calls: []call{}}
	for events.Next() {
		chunk := events.Current()
		if !whole.AddChunk(chunk) {
			return h, fmt.Errorf("a chunk does not go with those before: %s", chunk.RawJSON())
		}
		for _, choice := range chunk.Choices {
			// No field of the library's: gateways and local servers send it.
			if field, ok := choice.Delta.JSON.ExtraFields["reasoning_content"]; ok {
				var thinking string
				if err := json.Unmarshal([]byte(field.Raw()), &thinking); err != nil {
					return h, err
				}
				h.Thinking += thinking
			}
		}
	}
	if len(whole.Choices) == 1 {
		h.Text = whole.Choices[0].Message.Content
		for _, c := range whole.Choices[0].Message.ToolCalls {
			h.Calls = append(h.Calls, call{c.ID, c.Function.Name, c.Function.Arguments})
		}
	}
	h.Input, h.Output, h.Cached = whole.Usage.PromptTokens, whole.Usage.CompletionTokens, whole.Usage.PromptTokensDetails.CachedTokens
	return h, events.Err()
}

// exceptions are the places that differ on purpose, by family, each with its
// reason; a star stands for any entry of a list. One that is listed and not met
// fails, so that the list stays true.
var exceptions = map[string]map[string]string{
	"anthropic": {
		"/stream":                       "the library adds it by the method that is called",
		"/messages/*/content/*/content": "a tool's result is a text, which is short for a list of one text block; the library writes the list",
	},
	"responses": {
		"/stream":       "the library adds it by the method that is called",
		"/input/*/type": "a message's type may be left out, and the library adds it",
	},
	"chat": {
		"/stream": "the library adds it by the method that is called",
	},
}

func TestRequests(t *testing.T) {
	for _, f := range families {
		met := map[string]bool{}
		for _, file := range testFiles(t, f.name, "*.req.json") {
			t.Run(f.name+" "+filepath.Base(file), func(t *testing.T) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				differ, err := f.request(text)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range differ {
					place := placeOf(d)
					if _, ok := exceptions[f.name][place]; !ok {
						t.Error(d)
					}
					met[place] = true
				}
			})
		}
		for place, why := range exceptions[f.name] {
			if !met[place] {
				t.Errorf("%s: %s is no exception any more (%s)", f.name, place, why)
			}
		}
	}
}

var entry = regexp.MustCompile(`/[0-9]+(/|$)`)

// placeOf is where a difference is, with stars for the entries of lists.
func placeOf(difference string) string {
	place, _, _ := strings.Cut(difference, ": ")
	for next := ""; next != place; {
		next, place = place, entry.ReplaceAllString(place, "/*$1")
	}
	return place
}

// TestUnknownFieldsAreSeen holds the comparison to what it is for: a field that
// the library does not know is found, wherever it stands.
func TestUnknownFieldsAreSeen(t *testing.T) {
	for _, f := range families {
		for _, file := range testFiles(t, f.name, "*.req.json") {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var whole any
			if err := json.Unmarshal(text, &whole); err != nil {
				t.Fatal(err)
			}
			for place, object := range objects("", whole) {
				if free(f.name, place) {
					continue
				}
				object["no_such_field"] = "x"
				planted, _ := json.Marshal(whole)
				delete(object, "no_such_field")
				differ, err := f.request(planted)
				if err == nil && !slices.ContainsFunc(differ, func(d string) bool { return strings.Contains(d, "no_such_field") }) {
					t.Errorf("%s %s: an unknown field at %q is not seen", f.name, filepath.Base(file), place)
				}
			}
		}
	}
}

// free are the objects whose members are nobody's to name: a tool's schema, and
// what a model called it with.
func free(family, place string) bool {
	return strings.Contains(place, "/parameters") || strings.Contains(place, "/input_schema") ||
		family == "anthropic" && strings.HasSuffix(place, "/input")
}

// objects are all objects of a JSON value by their place.
func objects(place string, v any) map[string]map[string]any {
	found := map[string]map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		found[place] = v
		for key, value := range v {
			maps.Copy(found, objects(place+"/"+key, value))
		}
	case []any:
		for i, value := range v {
			maps.Copy(found, objects(fmt.Sprintf("%s/%d", place, i), value))
		}
	}
	return found
}

// through reads a value at a place of a request into the library's type, writes
// it again, and says what did not come back as it went in.
func through(text []byte, place string, params any) ([]string, error) {
	if err := json.Unmarshal(text, params); err != nil {
		return nil, fmt.Errorf("%s: the library cannot read it: %w", place, err)
	}
	again, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: the library cannot write it: %w", place, err)
	}
	var sent, back any
	if err := errors.Join(json.Unmarshal(text, &sent), json.Unmarshal(again, &back)); err != nil {
		return nil, err
	}
	return compare(place, sent, back), nil
}

// throughResponses takes the items one by one: the library finds an item's kind
// by its type alone, which a message may leave out, and takes an answer's message
// for a shorter kind of one.
func throughResponses(text []byte) ([]string, error) {
	var whole map[string]json.RawMessage
	var items []map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(whole["input"], &items); err != nil {
		return nil, err
	}
	delete(whole, "input")
	rest, err := json.Marshal(whole)
	if err != nil {
		return nil, err
	}
	found, err := through(rest, "", new(responses.ResponseNewParams))
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		place := fmt.Sprintf("/input/%d", i)
		if _, typed := item["type"]; !typed {
			found = append(found, place+"/type: not sent")
			item["type"] = "message"
		}
		var params any = new(responses.ResponseInputItemUnionParam)
		if item["role"] == "assistant" {
			params = new(responses.ResponseOutputMessageParam)
		}
		one, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		differ, err := through(one, place, params)
		if err != nil {
			return nil, err
		}
		found = append(found, differ...)
	}
	return found, nil
}

func compare(place string, sent, back any) []string {
	var found []string
	switch sent := sent.(type) {
	case map[string]any:
		other, ok := back.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: sent %v, the library has %v", place, sent, back)}
		}
		for _, key := range slices.Sorted(maps.Keys(sent)) {
			value, ok := other[key]
			if !ok {
				found = append(found, fmt.Sprintf("%s/%s: the library has no such field", place, key))
				continue
			}
			found = append(found, compare(place+"/"+key, sent[key], value)...)
		}
		for _, key := range slices.Sorted(maps.Keys(other)) {
			if _, ok := sent[key]; !ok {
				found = append(found, fmt.Sprintf("%s/%s: the library sends it too, as %v", place, key, other[key]))
			}
		}
	case string:
		if want := []any{map[string]any{"type": "text", "text": sent}}; reflect.DeepEqual(back, want) {
			return []string{place + ": sent as a text, and the library writes a list of one"}
		}
		if sent != back {
			// Not the short form: no exception stands for it.
			return []string{fmt.Sprintf("%s (another value): sent %v, the library has %v", place, sent, back)}
		}
	case []any:
		other, ok := back.([]any)
		if !ok || len(other) != len(sent) {
			return []string{fmt.Sprintf("%s: sent %v, the library has %v", place, sent, back)}
		}
		for i := range sent {
			found = append(found, compare(fmt.Sprintf("%s/%d", place, i), sent[i], other[i])...)
		}
	default:
		if !reflect.DeepEqual(sent, back) {
			found = append(found, fmt.Sprintf("%s: sent %v, the library has %v", place, sent, back))
		}
	}
	return found
}

// testFiles are the files of a family that a pattern names; none is a failure.
func testFiles(t *testing.T, family, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", family, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s of %s: %v", pattern, family, err)
	}
	return files
}
