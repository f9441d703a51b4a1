package anthropic

import (
	"strconv"
	"strings"

	"agent/internal/model"
)

const (
	webSearchTool = `{"type":"web_search_20250305","name":"web_search","max_uses":8}`
	blockBinding  = `"block_binding":{"prefix_mismatch_behavior":"drop_block"}`
	suffix        = `]}`
)

// cacheControl is the family's cache mark; a ttl other than "1h" is the
// provider's default of five minutes.
func cacheControl(ttl string) string {
	if ttl == "1h" {
		return `{"type":"ephemeral","ttl":"1h"}`
	}
	return `{"type":"ephemeral"}`
}

// prefix is the body up to the first item. bedrock leaves out what Bedrock
// does not serve.
func prefix(req *model.Request, bedrock bool) []byte {
	return prefixFor(req, bedrock, maxTokens(req), true)
}

// prefixFor is prefix with the output limit and the manner of the answer given.
func prefixFor(req *model.Request, bedrock bool, limit int64, stream bool) []byte {
	b := append([]byte(nil), `{"model":`...)
	b = model.AppendString(b, req.Model)
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, limit, 10)
	if !model.Blank(req.Instructions) {
		b = append(b, `,"system":[{"type":"text","text":`...)
		b = model.AppendString(b, req.Instructions)
		b = append(b, `,"cache_control":`...)
		b = append(b, cacheControl(req.CacheTTL)...)
		b = append(b, `}]`...)
	}
	b = append(b, `,"stream":`...)
	b = strconv.AppendBool(b, stream)
	b = append(b, `,"cache_control":`...)
	b = append(b, cacheControl(req.CacheTTL)...)
	b = appendTools(b, req, bedrock)
	b = appendThinking(b, req, limit)
	if req.Fallbacks && !bedrock {
		b = append(b, `,"fallbacks":"default"`...)
	}
	return append(b, `,"messages":[`...)
}

func appendTools(b []byte, req *model.Request, bedrock bool) []byte {
	tools := string(req.Tools)
	if tools == "[]" {
		tools = ""
	}
	if req.WebSearch == "live" && !bedrock {
		if tools == "" {
			tools = "[" + webSearchTool + "]"
		} else {
			tools = strings.TrimSuffix(tools, "]") + "," + webSearchTool + "]"
		}
	}
	if tools == "" {
		return b
	}
	b = append(b, `,"tools":`...)
	b = append(b, tools...)
	if !req.AllowTools {
		b = append(b, `,"tool_choice":{"type":"none"}`...)
	}
	return b
}

// appendThinking encodes the reasoning level (providers.md 16). Unset leaves
// the provider's default.
func appendThinking(b []byte, req *model.Request, limit int64) []byte {
	if req.Reasoning == "" {
		return b
	}
	switch thinkingOf(req.Model) {
	case adaptive:
		b = append(b, `,"thinking":{"type":"adaptive","display":"summarized",`+blockBinding+`},"output_config":{"effort":`...)
		b = model.AppendString(b, req.Reasoning)
		b = append(b, '}')
	case budgeted:
		b = append(b, `,"thinking":{"type":"enabled","budget_tokens":`...)
		b = strconv.AppendInt(b, min(budget(req.Reasoning), limit-1024), 10)
		b = append(b, `,`+blockBinding+`}`...)
	}
	return b
}

func budget(level string) int64 {
	switch level {
	case "low":
		return 2048
	case "medium":
		return 8192
	}
	return 16384
}

// How a model takes a reasoning level.
type thinking int

const (
	adaptive thinking = iota
	budgeted
	unthinking
)

// claudePart is the Claude id inside a model id, which Bedrock wraps.
func claudePart(id string) string {
	if i := strings.Index(id, "claude-"); i > 0 {
		return id[i:]
	}
	return id
}

var budgetedModels = []string{
	"claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5", "claude-opus-4-1", "claude-opus-4-0",
	"claude-sonnet-4-", "claude-opus-4-2025", "claude-3-7-",
}

func thinkingOf(id string) thinking {
	id = claudePart(id)
	switch {
	case strings.HasPrefix(id, "claude-sonnet-4-6"):
		return adaptive
	case hasAnyPrefix(id, budgetedModels):
		return budgeted
	case strings.HasPrefix(id, "claude-3-"), strings.HasPrefix(id, "claude-2"):
		return unthinking
	}
	return adaptive
}

// outputLimits are the full output limits by prefix; the first match counts.
var outputLimits = []struct {
	limit    int64
	prefixes []string
}{
	{64000, []string{
		"claude-haiku-4-5", "claude-opus-4-5", "claude-sonnet-4-5", "claude-sonnet-4-0",
		"claude-sonnet-4-2025", "claude-3-7-sonnet",
	}},
	{32000, []string{"claude-opus-4-1", "claude-opus-4-0", "claude-opus-4-2025"}},
	{8192, []string{"claude-3-5-"}},
	{4096, []string{"claude-3-", "claude-2"}},
}

// maxTokens is the request's output limit: the cap, else the model's own,
// which costs nothing until it is used.
func maxTokens(req *model.Request) int64 {
	if req.MaxOutput > 0 {
		return req.MaxOutput
	}
	id := claudePart(req.Model)
	for _, l := range outputLimits {
		if hasAnyPrefix(id, l.prefixes) {
			return l.limit
		}
	}
	return 128000
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
