package responses

import (
	"strconv"
	"strings"

	"agent/internal/model"
)

const suffix = `]}`

// prefix is the body up to the first item. bedrock leaves out what Bedrock
// does not serve.
func prefix(req *model.Request, bedrock bool) []byte { return fields(req, bedrock, true) }

// fields is prefix; without stream it is what goes over a socket.
func fields(req *model.Request, bedrock, stream bool) []byte {
	b := append([]byte(nil), `{"model":`...)
	b = model.AppendString(b, req.Model)
	b = append(b, `,"instructions":`...)
	b = model.AppendString(b, req.Instructions)
	if stream {
		b = append(b, `,"stream":true`...)
	}
	b = append(b, `,"store":false,"include":["reasoning.encrypted_content"]`...)
	if req.MaxOutput > 0 {
		b = append(b, `,"max_output_tokens":`...)
		b = strconv.AppendInt(b, req.MaxOutput, 10)
	}
	tools := toolsOf(req, bedrock)
	b = append(b, `,"tools":`...)
	b = append(b, tools...)
	if tools != "[]" && !req.AllowTools {
		b = append(b, `,"tool_choice":"none"`...)
	}
	if req.Reasoning != "" {
		b = append(b, `,"reasoning":{"effort":`...)
		b = model.AppendString(b, req.Reasoning)
		b = append(b, `,"summary":"auto"}`...)
	}
	if req.CacheKey != "" {
		b = append(b, `,"prompt_cache_key":`...)
		b = model.AppendString(b, req.CacheKey)
	}
	return append(b, `,"input":[`...)
}

func toolsOf(req *model.Request, bedrock bool) string {
	search := ""
	switch {
	case bedrock:
	case req.WebSearch == "live":
		search = `{"type":"web_search"}`
	case req.WebSearch == "cached":
		search = `{"type":"web_search","external_web_access":false}`
	}
	tools := string(req.Tools)
	switch {
	case tools == "" || tools == "[]":
		return "[" + search + "]"
	case search == "":
		return tools
	}
	return strings.TrimSuffix(tools, "]") + "," + search + "]"
}
