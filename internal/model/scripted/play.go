package scripted

import (
	"context"
	"strings"
	"time"

	"agent/internal/model"
)

// defaultStall is the stall bound of a request that names none (runtime.md 18).
const defaultStall = 120 * time.Second

// player streams one answer at the step's pace.
type player struct {
	ctx  context.Context
	req  *model.Request
	step *step
	pace time.Duration
	sink func(model.Event)
	sent int // bytes of text and thinking
}

// play streams an answer, or as much as the step lets pass. It returns how many
// bytes were streamed, -1 when the call failed before its stream began.
func (p *player) play(a *answer) (int, error) {
	if err := p.pause(time.Duration(p.step.DelayMS) * time.Millisecond); err != nil {
		return -1, err
	}
	if err := p.step.Error.at(p.req.Attempt); err != nil {
		return -1, err
	}
	if a.search != nil {
		p.sink(model.Event{Kind: model.EventWebSearch, Status: "searching", Query: a.search.Query})
		p.sink(model.Event{Kind: model.EventWebSearch, Status: "completed", Query: a.search.Query})
	}
	chunks := append(pieces(model.EventThinking, a.thinking), pieces(model.EventText, a.text)...)
	cut := p.step.Cut
	if cut == nil || cut.Attempts != nil && p.req.Attempt >= *cut.Attempts {
		return p.sent, p.stream(chunks)
	}
	// Half of it comes through, so that there is something to take back.
	if err := p.stream(chunks[:(len(chunks)+1)/2]); err != nil {
		return p.sent, err
	}
	return p.sent, p.cutOff(cut.Kind)
}

func (p *player) stream(chunks []model.Event) error {
	for i, c := range chunks {
		if i > 0 {
			if err := p.pause(p.pace); err != nil {
				return err
			}
		}
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		p.sink(c)
		p.sent += len(c.Text)
	}
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	return nil
}

func (p *player) cutOff(kind string) error {
	switch kind {
	case "eof":
		return model.Errorf("missing_completion", "the script cut the stream")
	case "mid_frame":
		return model.Errorf("truncated_sse_frame", "the script cut the stream inside a frame")
	}
	return p.pause(1<<62 - 1)
}

// pause waits for d, for the end of the context or for the stall bound,
// whichever is first.
func (p *player) pause(d time.Duration) error {
	if p.ctx.Err() != nil {
		return context.Cause(p.ctx)
	}
	if d <= 0 {
		return nil
	}
	bound := p.req.Stall
	if bound <= 0 {
		bound = defaultStall
	}
	timer := time.NewTimer(min(d, bound))
	defer timer.Stop()
	select {
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	case <-timer.C:
	}
	if d > bound {
		return model.Errorf("provider_stream_stalled", "nothing came for %s (--stall-timeout)", bound)
	}
	return nil
}

// pieces splits a text after each run of spaces; joined they are the text.
func pieces(kind, text string) []model.Event {
	var out []model.Event
	for text != "" {
		end := strings.IndexByte(text, ' ')
		if end < 0 {
			end = len(text)
		}
		for end < len(text) && text[end] == ' ' {
			end++
		}
		out = append(out, model.Event{Kind: kind, Text: text[:end]})
		text = text[end:]
	}
	return out
}

// at is the failure of an attempt, nil once the stated attempts are used up.
func (f *failure) at(attempt int) error {
	if f == nil || f.Attempts != nil && attempt >= *f.Attempts {
		return nil
	}
	return &model.Error{Code: f.Code, Detail: f.Detail, Retry: time.Duration(f.RetryAfterMS) * time.Millisecond}
}

// used is what a call that streamed is charged: bytes by four, whole numbers,
// so that totals are the same each time. item is the length of the encoded
// answer, sent what was streamed of one that was cut.
func (st *step) used(req *model.Request, a *answer, sent, item int, err error) *model.Usage {
	out := item
	if err != nil {
		out = sent
	}
	u := &model.Usage{
		Input:  (req.Items.Bytes + int64(len(req.Instructions)) + int64(len(req.Tools))) / 4,
		Output: int64(out) / 4,
	}
	if a.search != nil {
		u.WebSearches = 1
	}
	if s := st.Usage; s != nil {
		s.override(u)
	}
	u.Bound()
	return u
}

func (s *usage) override(u *model.Usage) {
	if s.Input != nil {
		u.Input = *s.Input
	}
	if s.Output != nil {
		u.Output = *s.Output
	}
	u.Cached = s.Cached
	if s.CacheWrite != nil {
		u.CacheWrite, u.CacheWrite1h, u.HasCacheWrite = *s.CacheWrite, s.CacheWrite1h, true
	}
	if s.Reasoning != nil {
		u.Reasoning, u.HasReasoning = *s.Reasoning, true
	}
}
