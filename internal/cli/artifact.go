package cli

import (
	"context"
	"io"
	"os"

	"agent/client/termsafe"
	"agent/protocol"

	"golang.org/x/term"
)

var artifactVerb = verb{
	name: "artifact", short: "retained tool output",
	long: "Prints the output that a call kept: all its streams, one page of one with --stream,\n" +
		"or with --raw the text of one to its end.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, s := a.common(t), t.starts()
		f := &artifact{app: a}
		r := &f.request
		t.filled(&r.Bot, "bot", "NAME", "the bot; required")
		t.number(&r.Turn, "turn", 1, mostInteger, "the turn; required")
		t.filled(&r.CallID, "call", "ID", "the call; required")
		t.filled(&f.stream, "stream", "NAME", "the stream, as tool_completed names it")
		t.stated(&f.offset, "offset", 0, mostInteger, "where a page begins, in bytes; default 0")
		t.stated(&f.limit, "limit", protocol.MinArtifactLimit, protocol.MaxArtifactLimit, "bytes of a page; default 65536")
		t.toggle(&f.raw, "raw", "the text itself, to the stream's end; needs --stream")
		read := a.reading(c, s, t, f.run, "bot", "turn", "call")
		return func(ctx context.Context, operands []string) error {
			if f.raw && f.stream == "" {
				return usagef("--raw needs --stream")
			}
			return read(ctx, operands)
		}
	},
}

type artifact struct {
	app           *app
	request       protocol.ArtifactRequest
	stream        string
	offset, limit *int64
	raw           bool
}

func (f *artifact) run(ctx context.Context, l *link) error {
	if f.stream != "" {
		f.request.Stream = protocol.Set(f.stream)
	}
	if f.offset != nil {
		f.request.Offset = protocol.Set(*f.offset)
	}
	if f.limit != nil {
		f.request.Limit = protocol.Set(*f.limit)
	}
	if !f.raw {
		return f.app.ask(ctx, l, protocol.OpArtifact, &f.request)
	}
	return f.pages(ctx, l)
}

// pages writes the stream's text as it is; to a terminal through the filter.
func (f *artifact) pages(ctx context.Context, l *link) error {
	to := f.app.stdout
	if file, ok := to.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		safe := termsafe.NewWriter(to)
		defer safe.Flush()
		to = safe
	}
	for {
		var page protocol.ArtifactPage
		if err := l.Do(ctx, protocol.OpArtifact, &f.request, &page); err != nil {
			return err
		}
		if _, err := io.WriteString(to, page.Text); err != nil {
			return outputError(err)
		}
		if page.Done {
			return nil
		}
		if page.NextOffset <= f.request.Offset.Or(0) {
			return protocol.Fail(protocol.InvalidArtifactPage, "the daemon answered with a page that leads nowhere")
		}
		f.request.Offset = protocol.Set(page.NextOffset)
	}
}
