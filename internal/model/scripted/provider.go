// Package scripted is the model family that speaks from a file (providers.md
// 13): no key, no network, the same answer to the same request each time. Its
// bots are real bots with the real store and the real tools.
package scripted

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"agent/internal/model"
)

// MaxFile is the largest script file, in bytes.
const MaxFile = 4 << 20

//go:embed builtin.json
var builtin []byte

// Provider answers from one script file. It is safe for concurrent use and
// opens no connection.
type Provider struct {
	path string // "": the built-in script

	mu     sync.Mutex
	script *script
	size   int64
	mtime  time.Time
}

// New reads and checks the script at path, absolute or starting with "~/"; ""
// is the built-in one. Errors are *model.Error: invalid_provider_spec for the
// path, invalid_script for what stands in the file.
func New(path string) (*Provider, error) {
	if path == "" {
		s, err := parse(builtin)
		return &Provider{script: s}, err
	}
	abs, err := absolute(path)
	if err != nil {
		return nil, err
	}
	p := &Provider{path: abs}
	if _, err := p.reread(); err != nil {
		return nil, err
	}
	return p, nil
}

func absolute(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", model.Errorf("invalid_provider_spec", "script %s: %v", path, err)
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		return "", model.Errorf("invalid_provider_spec", "script %s: the path must be absolute or start with ~/", path)
	}
	return filepath.Clean(path), nil
}

// Info says where the script comes from.
func (p *Provider) Info() model.Info {
	url := p.path
	if url == "" {
		url = "builtin"
	}
	return model.Info{Family: model.FamilyScripted, URL: url, Transport: "local", Auth: "none"}
}

// Models lists the file's models in its order.
func (p *Provider) Models(context.Context) ([]model.Model, error) {
	s := p.current()
	out := make([]model.Model, len(s.Models))
	for i, e := range s.Models {
		out[i] = model.Model{ID: e.name, ContextTokens: e.ContextTokens}
	}
	return out, nil
}

// Status has no pools of its own to report.
func (p *Provider) Status() json.RawMessage { return json.RawMessage(`{"pools":{}}`) }

func (p *Provider) current() *script {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.script
}

// reread gives the file's script, reading it again when its size or time of
// change is another. A broken version leaves the last good one to the turns
// that are under way.
func (p *Provider) reread() (*script, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path == "" {
		return p.script, nil
	}
	info, err := os.Stat(p.path)
	if err != nil {
		return nil, invalid("the script cannot be read: %v", err)
	}
	if p.script != nil && info.Size() == p.size && info.ModTime().Equal(p.mtime) {
		return p.script, nil
	}
	data, info, err := readFile(p.path)
	if err != nil {
		return nil, err
	}
	s, err := parse(data)
	if err != nil {
		return nil, err
	}
	p.script, p.size, p.mtime = s, info.Size(), info.ModTime()
	return s, nil
}

// readFile reads a regular file of at most MaxFile bytes. It does not wait for
// the other end of a pipe.
func readFile(path string) ([]byte, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, invalid("the script cannot be read: %v", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, invalid("the script cannot be read: %v", err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, model.Errorf("invalid_provider_spec", "script %s: not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, nil, invalid("the script cannot be read: %v", err)
	}
	if len(data) > MaxFile {
		return nil, nil, model.Errorf("invalid_provider_spec", "script %s: over %d MiB", path, MaxFile>>20)
	}
	return data, info, nil
}

// answer is what a step comes to for one request.
type answer struct {
	text, thinking string
	calls          []model.Call
	search         *webSearch
}

// Complete plays the step that the request selects.
func (p *Provider) Complete(ctx context.Context, req *model.Request, sink func(model.Event), rep *model.Report) (*model.Completion, error) {
	sel, err := p.choose(ctx, req)
	if err != nil {
		return nil, err
	}
	a := sel.anchor()
	st := a.script.step(a.n)
	if err := st.Expect.met(req, sel); err != nil {
		return nil, err
	}
	ans, err := compose(req, sel, st)
	if err != nil {
		return nil, err
	}
	item := appendAssistant(nil, ans)
	if len(item) > maxOutput {
		return nil, errTooLong()
	}
	rep.Dispatched = true
	rep.SentMS = time.Now().UnixMilli()
	pl := player{ctx: ctx, req: req, step: st, pace: sel.model.pace(st), sink: sink}
	sent, err := pl.play(ans)
	if sent >= 0 && ctx.Err() == nil {
		rep.Usage = st.used(req, ans, sent, len(item), err)
	}
	if err != nil {
		return nil, err
	}
	c := &model.Completion{
		Items:    [][]byte{item},
		Calls:    ans.calls,
		Usage:    rep.Usage,
		External: ans.search != nil,
	}
	if st.Fallback != nil {
		c.Fallbacks = []model.Switch{{From: st.Fallback.From, To: st.Fallback.To}}
	}
	return c, nil
}

// choose finds the anchor and makes sure that there is a step for it.
func (p *Provider) choose(ctx context.Context, req *model.Request) (*selection, error) {
	s := p.current()
	if req.Round == 0 && req.Attempt == 0 {
		var err error
		if s, err = p.reread(); err != nil {
			return nil, err
		}
	}
	e := s.model(req.Model)
	if e == nil {
		return nil, model.Errorf("provider_http_404", "the script has no model %s; it has %s", clip(req.Model, 64), clip(s.modelNames(), 256))
	}
	sel := &selection{model: e}
	if err := sel.read(req.Items); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &model.Error{Code: "io_error", Detail: clip(err.Error(), 512), Cause: err}
	}
	a := sel.anchor()
	if a == nil {
		return nil, model.Errorf("script_exhausted", "no script of model %s matches a prompt of the request", e.name)
	}
	if a.script.step(a.n) == nil {
		return nil, model.Errorf("script_exhausted", "the script of model %s has %d steps and step %d was asked for, after the prompt %q",
			e.name, len(a.script.Steps), a.n, clip(a.prompt, 80))
	}
	return sel, nil
}

// compose expands a step for a request.
func compose(req *model.Request, sel *selection, st *step) (*answer, error) {
	a := sel.anchor()
	ex := expander{room: maxOutput, value: func(name string) string { return lookup(req, sel, a, name) }}
	ans := &answer{search: st.WebSearch}
	text := deref(st.Text)
	calls := st.Calls
	if missing := unavailable(req, calls); missing != "" {
		calls = nil
		text = strings.ReplaceAll("Tool "+missing+" is not available to this bot.", "$", "$$")
		if st.Without != nil {
			text = *st.Without
		}
	}
	var err error
	if ans.text, err = ex.text(text); err != nil {
		return nil, err
	}
	if ans.thinking, err = ex.text(deref(st.Thinking)); err != nil {
		return nil, err
	}
	round := req.Skipped + int64(sel.assistants) + 1
	safe := model.NewSafe(req)
	for i, c := range calls {
		args, err := ex.arguments(c.Arguments)
		if err != nil {
			return nil, err
		}
		id := c.ID
		if id == "" {
			id = fmt.Sprintf("call-%d-%d", round, i)
		}
		call, err := safe.Call(id, c.Tool, args, false)
		if err != nil {
			return nil, &model.Error{Code: "io_error", Detail: clip(err.Error(), 512), Cause: err}
		}
		ans.calls = append(ans.calls, call)
	}
	return ans, nil
}

// unavailable names the first called tool that the request does not offer.
func unavailable(req *model.Request, calls []scriptCall) string {
	for _, c := range calls {
		if !req.AllowTools || !slices.Contains(req.ToolNames, c.Tool) {
			return c.Tool
		}
	}
	return ""
}

func lookup(req *model.Request, sel *selection, a *anchor, name string) string {
	switch name {
	case "prompt":
		return a.prompt
	case "last":
		return clipBytes(string(sel.last), 4<<10)
	case "bot":
		return req.Bot
	case "workspace":
		return req.Workspace
	case "n":
		return fmt.Sprint(a.n)
	}
	return a.values[name]
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (e *entry) pace(st *step) time.Duration {
	ms := e.PaceMS
	if st.PaceMS != nil {
		ms = *st.PaceMS
	}
	return time.Duration(ms) * time.Millisecond
}

// met finds the first expectation that the request does not meet.
func (x *expect) met(req *model.Request, sel *selection) error {
	if x == nil {
		return nil
	}
	fail := func(format string, args ...any) error {
		e := model.Errorf("script_expectation_failed", format, args...)
		e.Detail = clip(e.Detail, 512)
		return e
	}
	switch {
	case x.Tools != nil && !sameSet(*x.Tools, req.ToolNames):
		return fail("tools: wanted %s; offered %s", orNone(sorted(*x.Tools)), orNone(sorted(req.ToolNames)))
	case x.Reasoning != nil && *x.Reasoning != req.Reasoning:
		return fail("reasoning: wanted %q, is %q", *x.Reasoning, req.Reasoning)
	case x.Images != nil && *x.Images != sel.images:
		return fail("images: wanted %d, the request has %d", *x.Images, sel.images)
	case x.InstructionsContains != nil && !strings.Contains(req.Instructions, *x.InstructionsContains):
		return fail("instructions_contains: the instructions do not contain %q", *x.InstructionsContains)
	case x.LastResultContains != nil && !strings.Contains(string(sel.last), *x.LastResultContains):
		return fail("last_result_contains: %q is not in the latest tool result, which begins %q", *x.LastResultContains, clip(string(sel.last), 120))
	case x.Items != nil && *x.Items != req.Items.Count:
		return fail("items: wanted %d, the request has %d", *x.Items, req.Items.Count)
	}
	return nil
}

func sameSet(a, b []string) bool { return slices.Equal(sorted(a), sorted(b)) }

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return slices.Compact(s)
}
