// Package export writes what was said in a session, as it is stored, for people to keep
// (sonny.md 26). What the daemon redacted stays redacted; keys are not in a history.
package export

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"agent/client"
	"agent/client/items"
	"agent/client/termsafe"
	"agent/internal/sonny/screen/cells"
	"agent/protocol"
)

// Format is how a history is written.
type Format string

// The formats.
const (
	Markdown Format = "md"
	JSON     Format = "json" // an object a line
)

// Tools is what of tool calls is written.
type Tools string

// What may be written of them.
const (
	None    Tools = "none"
	Summary Tools = "summary" // a line each
	Full    Tools = "full"
)

// Options are what is written, and how.
type Options struct {
	Format Format
	Tools  Tools
}

// Check refuses what is no option. usage_error.
func (o Options) Check() error {
	switch {
	case o.Format != Markdown && o.Format != JSON:
		return protocol.Fail(protocol.UsageError, "--format is md or json")
	case o.Tools != None && o.Tools != Summary && o.Tools != Full:
		return protocol.Fail(protocol.UsageError, "--tools is none, summary or full")
	}
	return nil
}

// Write writes a bot's history, the oldest first.
func Write(ctx context.Context, out io.Writer, c *client.Client, bot string, o Options) error {
	e := &exporter{out: out, json: o.Format == JSON, tools: o.Tools}
	return e.all(ctx, c, bot)
}

// exporter writes a history.
type exporter struct {
	out   io.Writer
	json  bool
	tools Tools
}

// Line is a part of an item, as JSON has it.
type Line struct {
	Turn   int64  `json:"turn"`
	Node   int64  `json:"node"`
	Kind   string `json:"kind"` // user, assistant, thinking, tool_call, tool_result, other
	Tool   string `json:"tool,omitempty"`
	CallID string `json:"call_id,omitempty"`
	Text   string `json:"text"`
}

func (e *exporter) all(ctx context.Context, c *client.Client, bot string) error {
	for it, err := range c.History(ctx, bot, client.HistoryOptions{OldestFirst: true}) {
		if err != nil {
			return err
		}
		if it.Error != "" {
			if err := e.part(it, items.Part{Kind: items.Other, Text: "[" + string(it.Error) + "]"}); err != nil {
				return err
			}
			continue
		}
		for _, p := range items.Parts(it.Item) {
			if err := e.part(it, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *exporter) part(it *protocol.Item, p items.Part) error {
	call := p.Kind == items.Call || p.Kind == items.Result
	if call && (e.tools == None || e.tools == Summary && p.Kind == items.Result) {
		return nil
	}
	text := p.Text
	if p.Kind == items.Call && e.tools == Summary {
		text = cells.NewCall(p.CallID, p.Name, p.Text).Subject()
	}
	if e.json {
		plain, err := json.Marshal(Line{it.Turn, it.Node, string(p.Kind), p.Name, p.CallID, text})
		if err == nil {
			_, err = e.out.Write(append(termsafe.AppendJSON(nil, plain), '\n'))
		}
		return err
	}
	_, err := io.WriteString(e.out, e.markdown(p, text))
	return err
}

// markdown is a part under its heading.
func (e *exporter) markdown(p items.Part, text string) string {
	switch p.Kind {
	case items.User:
		return "## You\n\n" + ended(text) + "\n"
	case items.Assistant:
		return "## Reply\n\n" + ended(text) + "\n"
	case items.Thinking:
		if strings.TrimSpace(text) == "" {
			return ""
		}
		return "> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ") + "\n\n"
	case items.Call:
		if e.tools == Summary {
			return "- `" + p.Name + "` " + text + "\n\n"
		}
		return "### " + p.Name + "\n\n" + fenced(text)
	}
	return fenced(text)
}

func ended(text string) string { return strings.TrimRight(text, "\n") + "\n" }

// fenced is a text in a fence that is longer than any in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + ended(text) + fence + "\n\n"
}
