package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agent/internal/fakemodel"
)

// donePhrase ends every answer of the peers' model server: a program that does
// not print it did not show the answer.
const donePhrase = "all-is-said"

// peerModel is the model server of the comparison. Unlike the other two it is
// lenient: each program words its requests in its own way. It speaks Responses
// and Chat Completions. A request without tools is one for a title or the like
// and gets a word at once; it counts nowhere.
type peerModel struct {
	url  string
	end  func() error
	quit chan struct{}

	mu      sync.Mutex
	streams int // so many answers wait for one another; 0: none waits
	rounds  int // tool calls before an answer
	open    int
	met     chan struct{} // closed when all streams are open
	onward  chan struct{} // closed when they may go on
	first   time.Time     // the first request with tools
	called  int           // tool calls made
	results int           // most results seen in one request
	wrong   []string
}

func newPeerModel() (*peerModel, error) {
	m := &peerModel{quit: make(chan struct{})}
	url, end, err := fakemodel.Loopback(http.HandlerFunc(m.serve))
	if err != nil {
		return nil, err
	}
	m.url, m.end = url+"/v1", end
	m.expect(0, 0)
	return m, nil
}

func (m *peerModel) close() {
	close(m.quit)
	m.end()
}

// expect begins a measurement: so many streams that wait for one another, or so
// many rounds of one tool call each.
func (m *peerModel) expect(streams, rounds int) (met <-chan struct{}, release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams, m.rounds, m.open, m.called, m.results = streams, rounds, 0, 0, 0
	m.first, m.wrong = time.Time{}, nil
	m.met, m.onward = make(chan struct{}), make(chan struct{})
	return m.met, sync.OnceFunc(func() { close(m.onward) })
}

// seen is what a measurement came to: when the first request arrived, and an
// error when it was not what was expected.
func (m *peerModel) seen() (first time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.wrong) > 0:
		return m.first, fmt.Errorf("a request the model server could not answer: %s", m.wrong[0])
	case m.first.IsZero():
		return m.first, fmt.Errorf("no request with tools reached the model server")
	case m.called != m.rounds || m.results != m.rounds:
		return m.first, fmt.Errorf("%d tool calls and %d results, not %d", m.called, m.results, m.rounds)
	case m.open != m.streams:
		return m.first, fmt.Errorf("%d streams at once, not %d", m.open, m.streams)
	}
	return m.first, nil
}

// peerRequest is what both families' requests have for us.
type peerRequest struct {
	Stream   bool             `json:"stream"`
	Tools    []map[string]any `json:"tools"`
	Messages []struct {
		Role string `json:"role"`
	} `json:"messages"`
	Input json.RawMessage `json:"input"`
}

// results counts the tool results in a request's history.
func (r *peerRequest) results() (n int) {
	for _, m := range r.Messages {
		if m.Role == "tool" {
			n++
		}
	}
	var items []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(r.Input, &items) == nil {
		for _, i := range items {
			if strings.HasSuffix(i.Type, "_call_output") {
				n++
			}
		}
	}
	return n
}

// commandTools are the names under which the programs offer a command.
var commandTools = []string{"shell", "shell_command", "exec_command", "bash"}

// commandCall makes a call of a program's command tool that does nothing, by
// the tool's own schema.
func (r *peerRequest) commandCall() (name, arguments string, err error) {
	var offered []string
	for _, t := range r.Tools {
		if f, ok := t["function"].(map[string]any); ok {
			t = f
		}
		name, _ := t["name"].(string)
		offered = append(offered, name)
		if !slices.Contains(commandTools, strings.ToLower(name)) {
			continue
		}
		schema, _ := t["parameters"].(map[string]any)
		text, err := json.Marshal(commandArguments(schema))
		return name, string(text), err
	}
	return "", "", fmt.Errorf("no command among its tools: %s", strings.Join(offered, ", "))
}

// commandArguments fills in what a command's schema requires.
func commandArguments(schema map[string]any) map[string]any {
	args := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, r := range required {
		name, _ := r.(string)
		property, _ := properties[name].(map[string]any)
		kind := property["type"]
		if kinds, ok := kind.([]any); ok && slices.Contains(kinds, any("null")) {
			args[name] = nil
			continue
		}
		switch kind {
		case "array":
			args[name] = []string{"sh", "-c", "true"}
		case "integer", "number":
			args[name] = 10_000
		case "boolean":
			args[name] = false
		default:
			args[name] = "true" // a command, and a description as good as any
		}
	}
	return args
}

func (m *peerModel) serve(w http.ResponseWriter, r *http.Request) {
	var speak dialect
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		fmt.Fprint(w, `{"object":"list","data":[{"id":"fake","object":"model"}],"models":[]}`)
		return
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/responses"):
		speak = &responsesWords{}
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		speak = &chatWords{}
	default:
		http.NotFound(w, r)
		return
	}
	var req peerRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil || !req.Stream {
		m.refuse(w, fmt.Sprintf("no JSON, or no stream: %v", err))
		return
	}
	m.answer(r.Context(), w, &req, speak)
}

func (m *peerModel) refuse(w http.ResponseWriter, why string) {
	m.mu.Lock()
	m.wrong = append(m.wrong, why)
	m.mu.Unlock()
	http.Error(w, `{"error":{"message":"`+strings.NewReplacer(`"`, `'`, `\`, `/`).Replace(why)+`"}}`, http.StatusBadRequest)
}

func (m *peerModel) answer(ctx context.Context, w http.ResponseWriter, req *peerRequest, speak dialect) {
	if len(req.Tools) == 0 {
		speak.begin(w)
		speak.text("Work")
		speak.end()
		return
	}
	wait, calls, err := m.arrived(req.results())
	if err != nil {
		m.refuse(w, err.Error())
		return
	}
	if calls {
		name, arguments, err := req.commandCall()
		if err != nil {
			m.refuse(w, err.Error())
			return
		}
		speak.begin(w)
		speak.call(name, arguments)
		speak.end()
		return
	}
	speak.begin(w)
	m.say(ctx, speak, wait)
	speak.end()
}

// arrived counts a request with tools. Where streams wait for one another it
// gives what to wait for.
func (m *peerModel) arrived(results int) (wait <-chan struct{}, calls bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first.IsZero() {
		m.first = time.Now()
	}
	m.results = max(m.results, results)
	if results < m.rounds {
		if m.called++; m.called > m.rounds {
			return nil, false, errors.New("too many calls: results are missing from the history")
		}
		return nil, true, nil
	}
	if m.streams == 0 {
		return nil, false, nil
	}
	if m.open++; m.open == m.streams {
		close(m.met)
	}
	return m.onward, false, nil
}

// say answers: at once, or as W1 does once all streams are open.
func (m *peerModel) say(ctx context.Context, speak dialect, wait <-chan struct{}) {
	if wait == nil {
		speak.text(donePhrase)
		return
	}
	speak.text("So. ")
	select {
	case <-wait:
	case <-ctx.Done():
		return
	case <-m.quit:
		return
	}
	for range streamDeltas {
		time.Sleep(streamGap)
		speak.text(strings.Repeat("word ", partDelta/5) + "\n")
	}
	speak.text(donePhrase)
}

// streamGap is the time between the pieces of W1's stream.
const streamGap = 25 * time.Millisecond
