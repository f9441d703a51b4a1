package wire

import (
	"context"
	"io"
	"time"

	"agent/internal/model"
	"agent/internal/model/pace"
)

// Ask makes one attempt of a call whose answer is one body and no stream, of at
// most limit bytes: pool, permit, request, body. take reads the body and says
// what it used. Errors are those of Stream.
func (c *Client) Ask(ctx context.Context, call *Call, limit int64, take func([]byte) (*model.Usage, error), rep *model.Report) error {
	b := &body{prefix: call.Prefix, items: call.Items, suffix: call.Suffix}
	grant, park, err := c.Pools.Acquire(ctx, call.Pool, pace.Estimate(b.length(), call.MaxOutput))
	if err != nil {
		rep.ParkFor = park
		return err
	}
	a := &attempt{c: c, call: call, body: b, rep: rep, grant: grant}
	err = a.ask(ctx, limit, take)
	rep.Dispatched, rep.SentMS = a.dispatched.Load(), a.sentMS.Load()
	if e, ok := err.(*model.Error); ok && refusedForPace(e) {
		grant.Refused(e.Retry)
	}
	grant.End(rep.Dispatched, err == nil, rep.Usage)
	return c.Clean(err)
}

func (a *attempt) ask(parent context.Context, limit int64, take func([]byte) (*model.Usage, error)) error {
	release, err := a.c.env.Transports.Permit(parent)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	a.cancel = cancel
	resp, err := a.send(ctx)
	if err != nil {
		return a.failure(parent, ctx, err, connectionError)
	}
	defer resp.Body.Close()
	a.rep.RequestID = resp.Header.Get(a.c.family.RequestID)
	if resp.StatusCode/100 != 2 {
		return a.refused(parent, resp)
	}
	a.grant.Learn(a.c.family.Limits(resp.Header))
	a.grant.Accepted()
	late := time.AfterFunc(errorBodyTime, func() { cancel(nil) })
	defer late.Stop()
	text, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return a.failure(parent, ctx, err, streamError)
	case int64(len(text)) > limit:
		return model.Errorf("provider_response_limit", "the answer is longer than %d bytes", limit)
	}
	a.rep.Usage, err = take(text)
	return err
}
