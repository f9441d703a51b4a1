package wire

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
)

const (
	listKept   = 5 * time.Minute
	listTime   = 10 * time.Second
	listBytes  = 8 << 20
	listResult = 1 << 20
	listPages  = 50
)

// Listing keeps a provider's answer about its models, an error included, for
// five minutes and shares it among those who ask at once (providers.md 14).
// The zero Listing is ready. It is safe for concurrent use.
type Listing struct {
	mu      sync.Mutex
	asked   time.Time
	running chan struct{} // closed when the answer is there; nil: nobody asks
	models  []model.Model
	err     error
}

// Get is the kept answer, or what fetch gives. fetch is not bound to the life
// of who asked first, since others may wait for it too; it has 10 s:
// provider_models_deadline.
func (l *Listing) Get(ctx context.Context, fetch func(context.Context) ([]model.Model, error)) ([]model.Model, error) {
	l.mu.Lock()
	if l.running == nil && (l.asked.IsZero() || time.Since(l.asked) >= listKept) {
		l.running = make(chan struct{})
		go l.run(fetch)
	}
	running := l.running
	l.mu.Unlock()
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.models), l.err
}

func (l *Listing) run(fetch func(context.Context) ([]model.Model, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	models, err := fetch(ctx)
	if err != nil && ctx.Err() != nil {
		err = model.Errorf("provider_models_deadline", "the provider did not list its models in %s", listTime)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.models, l.err, l.asked = models, err, time.Now()
	close(l.running)
	l.running = nil
}

// List says how a family lists its models.
type List struct {
	Header http.Header
	Query  string // without "?"
	Paged  bool   // has_more and last_id are followed with after_id
}

// ListModels asks {base}/models. Errors are *model.Error, or ctx's.
func (c *Client) ListModels(ctx context.Context, how List) ([]model.Model, error) {
	release, err := c.env.Transports.Permit(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	var found []listed
	seen := map[string]bool{}
	left, after := int64(listBytes), ""
	if c.models != c.base+"/models" {
		how.Query, how.Paged = "", false // the family's paging is not that list's
	}
	for range listPages {
		body, err := c.get(ctx, how, after, left)
		if renewed(err) {
			body, err = c.get(ctx, how, after, left)
		}
		if err != nil {
			return nil, c.Clean(err)
		}
		left -= int64(len(body))
		page, err := parsePage(body)
		if err != nil {
			return nil, c.Clean(err)
		}
		found = append(found, page.models...)
		if !how.Paged || !page.more {
			return finishList(found)
		}
		if after = page.last; after == "" || seen[after] {
			return nil, model.Errorf("invalid_provider_response", "a page of the model list names no new last_id")
		}
		seen[after] = true
	}
	return nil, model.Errorf("provider_models_limit", "the model list has more than %d pages", listPages)
}

// renewed reports that the credential was renewed when it was refused.
func renewed(err error) bool {
	e, ok := err.(*model.Error)
	return ok && e.Code == "provider_login_refreshed"
}

func (c *Client) get(ctx context.Context, how List, after string, limit int64) ([]byte, error) {
	target, query := c.models, how.Query
	if after != "" {
		query += "&after_id=" + url.QueryEscape(after)
	}
	if query != "" {
		target += "?" + query
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, connectionError(err)
	}
	req.Header.Set("accept", "application/json")
	for name, values := range how.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if err := c.authorize(ctx, req); err != nil {
		return nil, err
	}
	resp, err := c.env.Transports.RoundTrip(req)
	if err != nil {
		return nil, c.withProxy(connectionError(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return nil, c.refusal(ctx, resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, streamError(err)
	}
	if int64(len(body)) > limit {
		return nil, model.Errorf("provider_models_limit", "the model list is longer than 8 MiB")
	}
	return body, nil
}

type listed struct {
	model.Model
	created float64
}

type page struct {
	models []listed
	more   bool
	last   string
}

// entry holds every spelling of a model's facts that providers use. What is of
// another type counts as absent: no model is worth the list.
type entry struct {
	ID          model.Loose[string] `json:"id"`
	Slug        model.Loose[string] `json:"slug"`
	DisplayName model.Loose[string] `json:"display_name"`
	Name        model.Loose[string] `json:"name"`
	Visibility  model.Loose[string] `json:"visibility"`
	Created     jsontext.Value      `json:"created"`

	MaxInput    jsontext.Value           `json:"max_input_tokens"`
	Length      jsontext.Value           `json:"context_length"`
	Window      jsontext.Value           `json:"context_window"`
	MaxModelLen jsontext.Value           `json:"max_model_len"`
	Meta        model.Loose[meta]        `json:"meta"`
	MaxTokens   jsontext.Value           `json:"max_tokens"`
	TopProvider model.Loose[topProvider] `json:"top_provider"`
}

type meta struct {
	Train jsontext.Value `json:"n_ctx_train"`
}

type topProvider struct {
	MaxCompletion jsontext.Value `json:"max_completion_tokens"`
}

func parsePage(body []byte) (page, error) {
	var b struct {
		Data    []model.Loose[entry] `json:"data"`
		Models  []model.Loose[entry] `json:"models"`
		HasMore model.Loose[bool]    `json:"has_more"`
		LastID  model.Loose[string]  `json:"last_id"`
	}
	if err := json.Unmarshal(body, &b, Lenient); err != nil {
		return page{}, model.Errorf("invalid_provider_response", "the model list cannot be read: %v", err)
	}
	if b.Data == nil {
		b.Data = b.Models
	}
	if b.Data == nil {
		return page{}, model.Errorf("invalid_provider_response", "the model list has neither data nor models")
	}
	p := page{more: b.HasMore.Value, last: b.LastID.Value}
	for i := range b.Data {
		e := &b.Data[i].Value
		id := either(e.ID.Value, e.Slug.Value)
		if id == "" || e.Visibility.Given && e.Visibility.Value != "list" {
			continue
		}
		m := listed{Model: model.Model{ID: id, Name: either(e.DisplayName.Value, e.Name.Value)}, created: number(e.Created)}
		if m.Name == id {
			m.Name = ""
		}
		m.ContextTokens = firstCount(e.MaxInput, e.Length, e.Window, e.MaxModelLen, e.Meta.Value.Train)
		m.OutputTokens = firstCount(e.MaxTokens, e.TopProvider.Value.MaxCompletion)
		p.models = append(p.models, m)
	}
	return p, nil
}

func number(v jsontext.Value) float64 {
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return 0
	}
	return n
}

// firstCount is the first that is a positive number, else 0.
func firstCount(values ...jsontext.Value) int64 {
	for _, v := range values {
		if n := number(v); n >= 1 && n < 1<<53 {
			return int64(n)
		}
	}
	return 0
}

// finishList puts the newest first where the provider dates its models, and
// bounds the whole.
func finishList(found []listed) ([]model.Model, error) {
	slices.SortStableFunc(found, func(a, b listed) int {
		switch {
		case a.created > b.created:
			return -1
		case a.created < b.created:
			return 1
		}
		return 0
	})
	models := make([]model.Model, len(found))
	for i, f := range found {
		models[i] = f.Model
	}
	text, err := stdjson.Marshal(models)
	if err != nil {
		return nil, fmt.Errorf("encode the model list: %w", err)
	}
	if len(text) > listResult {
		return nil, &model.Error{
			Code:   "provider_models_limit",
			Detail: fmt.Sprintf("the list of %d models is longer than 1 MiB", len(models)),
		}
	}
	return models, nil
}
