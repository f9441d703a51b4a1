package fakemodel

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The checks of a Messages request (providers.md 6).

var levels = []string{"low", "medium", "high", "xhigh", "max"}

const (
	bindingBeta  = "thinking-binding-controls-2026-08-01"
	fallbackBeta = "server-side-fallback-2026-07-01"
	maxMarks     = 4
)

func (c *checker) anthropicFields() error {
	f := c.fields
	if err := f.shape("", "model", "max_tokens", "system?", "stream", "cache_control?", "tools?", "tool_choice?",
		"thinking?", "output_config?", "fallbacks?", "messages"); err != nil {
		return err
	}
	for _, check := range []func(object) error{c.anthropicLimits, c.anthropicSystem, c.anthropicTools, c.anthropicThinking} {
		if err := check(f); err != nil {
			return err
		}
	}
	if f.has("fallbacks") {
		if !f.is("fallbacks", `"default"`) {
			return fault("invalid_value", "fallbacks", `must be "default"`)
		}
		if !beta(c.req.Header, fallbackBeta) {
			return fault("missing_beta", "fallbacks", fallbackBeta)
		}
	}
	if v, ok := f.get("cache_control"); ok {
		if err := c.mark(v, "cache_control"); err != nil {
			return err
		}
	}
	if c.marks > maxMarks {
		return fault("too_many_cache_marks", "", "%d, at most %d", c.marks, maxMarks)
	}
	return nil
}

func (c *checker) anthropicLimits(f object) error {
	var err error
	if c.req.Model, err = f.text("model", ""); err != nil {
		return err
	}
	if c.req.Model == "" {
		return fault("invalid_value", "model", "is empty")
	}
	v, _ := f.get("max_tokens")
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 0 {
		return fault("invalid_value", "max_tokens", "must be a whole number, is %s", v)
	}
	c.req.MaxTokens = n
	c.req.Refresh = n == 0
	want := "true"
	if c.req.Refresh {
		want = "false"
	}
	if !f.is("stream", want) {
		return fault("invalid_value", "stream", "must be %s", want)
	}
	return nil
}

func (c *checker) anthropicSystem(f object) error {
	v, ok := f.get("system")
	if !ok {
		return nil
	}
	n := 0
	err := each(v, "system", func(i int, block jsontext.Value) error {
		n++
		where := "system[" + strconv.Itoa(i) + "]"
		b, err := parseObject(block, where)
		if err != nil {
			return err
		}
		c.req.System, err = c.textBlock(b, where)
		return err
	})
	if err == nil && n == 0 {
		return fault("invalid_value", "system", "is empty; leave it out")
	}
	return err
}

func (c *checker) anthropicTools(f object) error {
	v, ok := f.get("tools")
	if ok {
		err := each(v, "tools", func(i int, tool jsontext.Value) error {
			return c.anthropicTool(tool, "tools["+strconv.Itoa(i)+"]")
		})
		if err != nil {
			return err
		}
		if len(c.req.Tools) == 0 {
			return fault("invalid_value", "tools", "is empty; leave it out")
		}
	}
	choice, ok := f.get("tool_choice")
	if !ok {
		return nil
	}
	if len(c.req.Tools) == 0 {
		return fault("tool_choice_without_tools", "tool_choice", "")
	}
	o, err := parseObject(choice, "tool_choice")
	if err != nil {
		return err
	}
	if !o.is("type", `"none"`) || len(o) != 1 {
		return fault("invalid_value", "tool_choice", `must be {"type":"none"}`)
	}
	c.req.ToolsOff = true
	return nil
}

func (c *checker) anthropicTool(raw []byte, where string) error {
	o, err := parseObject(raw, where)
	if err != nil {
		return err
	}
	if o.has("type") {
		if err := o.shape(where, "type", "name", "max_uses?"); err != nil {
			return err
		}
		if !o.is("type", `"web_search_20250305"`) || !o.is("name", `"web_search"`) {
			return fault("invalid_tool", where, "an unknown tool of the provider")
		}
		return c.tool("web_search", where)
	}
	if err := o.shape(where, "name", "description", "input_schema", "cache_control?"); err != nil {
		return err
	}
	if v, ok := o.get("cache_control"); ok {
		if err := c.mark(v, where+".cache_control"); err != nil {
			return err
		}
	}
	name, err := o.text("name", where)
	if err != nil {
		return err
	}
	if _, err := o.text("description", where); err != nil {
		return err
	}
	schema, _ := o.get("input_schema")
	if err := checkSchema(schema, where+".input_schema"); err != nil {
		return err
	}
	return c.tool(name, where)
}

func checkSchema(raw []byte, where string) error {
	s, err := parseObject(raw, where)
	if err != nil {
		return err
	}
	if !s.is("type", `"object"`) {
		return fault("invalid_tool", where, `its type must be "object"`)
	}
	return nil
}

// tool enters the name of an offered tool.
func (c *checker) tool(name, where string) error {
	if !toolForm.MatchString(name) {
		return fault("invalid_tool", where+".name", "%q", name)
	}
	if slices.Contains(c.req.Tools, name) {
		return fault("duplicate_tool", where+".name", "%s", name)
	}
	c.req.Tools = append(c.req.Tools, name)
	return nil
}

func (c *checker) anthropicThinking(f object) error {
	adaptive := false
	if v, ok := f.get("thinking"); ok {
		o, err := parseObject(v, "thinking")
		if err != nil {
			return err
		}
		kind, err := o.kind("thinking")
		if err != nil {
			return err
		}
		switch kind {
		case "adaptive":
			adaptive = true
			err = o.shape("thinking", "type", "display?", "block_binding?")
		case "enabled":
			if err = o.shape("thinking", "type", "budget_tokens", "display?", "block_binding?"); err == nil {
				err = c.thinkingBudget(o)
			}
		default:
			err = fault("invalid_value", "thinking.type", "%q", kind)
		}
		if err != nil {
			return err
		}
		if binding, ok := o.get("block_binding"); ok {
			if string(binding) != `{"prefix_mismatch_behavior":"drop_block"}` {
				return fault("invalid_value", "thinking.block_binding", "%s", clip(binding))
			}
			if !beta(c.req.Header, bindingBeta) {
				return fault("missing_beta", "thinking.block_binding", bindingBeta)
			}
		}
	}
	v, ok := f.get("output_config")
	if !ok {
		return nil
	}
	o, err := parseObject(v, "output_config")
	if err != nil {
		return err
	}
	if err := o.shape("output_config", "effort"); err != nil {
		return err
	}
	if c.req.Effort, err = o.text("effort", "output_config"); err != nil {
		return err
	}
	if !adaptive || !slices.Contains(levels, c.req.Effort) {
		return fault("invalid_value", "output_config.effort", "%q with adaptive thinking %t", c.req.Effort, adaptive)
	}
	return nil
}

func (c *checker) thinkingBudget(o object) error {
	v, _ := o.get("budget_tokens")
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 1024 || n >= c.req.MaxTokens {
		return fault("invalid_value", "thinking.budget_tokens", "must be 1024 or more and below max_tokens, is %s", v)
	}
	return nil
}

// mark checks and counts one cache mark.
func (c *checker) mark(raw []byte, where string) error {
	c.marks++
	o, err := parseObject(raw, where)
	if err != nil {
		return err
	}
	if err := o.shape(where, "type", "ttl?"); err != nil {
		return err
	}
	if !o.is("type", `"ephemeral"`) || o.has("ttl") && !o.is("ttl", `"5m"`) && !o.is("ttl", `"1h"`) {
		return fault("invalid_value", where, "%s", clip(raw))
	}
	return nil
}

// anthropicItem checks one message.
func (c *checker) anthropicItem(raw []byte, where string) error {
	o, err := parseObject(raw, where)
	if err != nil {
		return err
	}
	if err := o.shape(where, "role", "content"); err != nil {
		return err
	}
	role, err := o.text("role", where)
	if err != nil {
		return err
	}
	content, _ := o.get("content")
	switch {
	case role != "user" && role != "assistant":
		return fault("invalid_value", where+".role", "%q", role)
	case c.n == 0 && role != "user":
		return fault("first_not_user", where, "the first message is the %s's", role)
	case role == "assistant":
		if err := c.settled(where, "an answer"); err != nil {
			return err
		}
	}
	c.lastRole = role
	if err := c.anthropicContent(content, role, where+".content"); err != nil {
		return err
	}
	return c.advance(raw, role == "assistant", where)
}

func (c *checker) anthropicContent(content jsontext.Value, role, where string) error {
	if content.Kind() == '"' {
		s, err := text(content, where)
		if err != nil {
			return err
		}
		return c.userText(s, role, where)
	}
	n := 0
	last := ""
	err := each(content, where, func(i int, raw jsontext.Value) error {
		n++
		at := where + "[" + strconv.Itoa(i) + "]"
		b, err := parseObject(raw, at)
		if err != nil {
			return err
		}
		kind, err := b.kind(at)
		if err != nil {
			return err
		}
		last = kind
		if role == "assistant" {
			return c.answerBlock(b, kind, at)
		}
		return c.userBlock(b, kind, at)
	})
	switch {
	case err == nil && n == 0:
		return fault("empty_content", where, "")
	case err == nil && (last == "thinking" || last == "redacted_thinking"):
		return fault("ends_with_thinking", where, "the final block of an answer cannot be %s", last)
	}
	return err
}

func (c *checker) userText(s, role, where string) error {
	if blank(s) {
		return fault("empty_text", where, "%q", s)
	}
	if role == "user" {
		if err := c.settled(where, "text"); err != nil {
			return err
		}
		c.said(s)
	}
	return nil
}

func (c *checker) userBlock(b object, kind, where string) error {
	switch kind {
	case "text":
		s, err := c.textBlock(b, where)
		if err != nil {
			return err
		}
		return c.userText(s, "user", where)
	case "image":
		if err := c.settled(where, "a picture"); err != nil {
			return err
		}
		return c.imageBlock(b, where)
	case "tool_result":
		return c.resultBlock(b, where)
	}
	return fault("invalid_block", where, "a user cannot say %q", kind)
}

func (c *checker) textBlock(b object, where string) (string, error) {
	if err := b.shape(where, "type", "text", "cache_control?", "citations?"); err != nil {
		return "", err
	}
	if !b.is("type", `"text"`) {
		return "", fault("invalid_block", where, "a text block is wanted")
	}
	if v, ok := b.get("cache_control"); ok {
		if err := c.mark(v, where+".cache_control"); err != nil {
			return "", err
		}
	}
	s, err := b.text("text", where)
	if err == nil && blank(s) {
		err = fault("empty_text", where, "%q", s)
	}
	return s, err
}

func (c *checker) imageBlock(b object, where string) error {
	if err := b.shape(where, "type", "source", "cache_control?"); err != nil {
		return err
	}
	if v, ok := b.get("cache_control"); ok {
		if err := c.mark(v, where+".cache_control"); err != nil {
			return err
		}
	}
	v, _ := b.get("source")
	where += ".source"
	s, err := parseObject(v, where)
	if err != nil {
		return err
	}
	if err := s.shape(where, "type", "media_type", "data"); err != nil {
		return err
	}
	if !s.is("type", `"base64"`) {
		return fault("invalid_picture", where, "the source is not base64")
	}
	mediaType, err := s.text("media_type", where)
	if err != nil {
		return err
	}
	data, err := s.text("data", where)
	if err != nil {
		return err
	}
	return checkPicture(mediaType, data, where)
}

func (c *checker) resultBlock(b object, where string) error {
	if err := b.shape(where, "type", "tool_use_id", "content?", "is_error?", "cache_control?"); err != nil {
		return err
	}
	id, err := b.text("tool_use_id", where)
	if err != nil {
		return err
	}
	if err := c.result(id, where); err != nil {
		return err
	}
	if v, ok := b.get("is_error"); ok && v.Kind() != 't' && v.Kind() != 'f' {
		return fault("wrong_type", where+".is_error", "true or false is wanted")
	}
	if v, ok := b.get("cache_control"); ok {
		if err := c.mark(v, where+".cache_control"); err != nil {
			return err
		}
	}
	content, ok := b.get("content")
	if !ok {
		c.resulted("")
		return nil
	}
	if content.Kind() == '"' {
		s, err := text(content, where+".content")
		c.resulted(s)
		return err
	}
	return each(content, where+".content", func(i int, raw jsontext.Value) error {
		at := where + ".content[" + strconv.Itoa(i) + "]"
		part, err := parseObject(raw, at)
		if err != nil {
			return err
		}
		if part.is("type", `"image"`) {
			return c.imageBlock(part, at)
		}
		s, err := c.textBlock(part, at)
		c.resulted(s)
		return err
	})
}

// answerBlock checks a block of an answer that comes back.
func (c *checker) answerBlock(b object, kind, where string) error {
	switch kind {
	case "text":
		_, err := c.textBlock(b, where)
		return err
	case "thinking":
		if err := b.shape(where, "type", "thinking", "signature"); err != nil {
			return err
		}
		return c.secret(b, where)
	case "redacted_thinking":
		if err := b.shape(where, "type", "data"); err != nil {
			return err
		}
		return c.secret(b, where)
	case "tool_use":
		return c.callBlock(b, where)
	case "server_tool_use", "web_search_tool_result", "fallback":
		return nil // kept raw: the comparison with what was issued decides
	}
	return fault("invalid_block", where, "an assistant cannot say %q", kind)
}

func (c *checker) secret(b object, where string) error {
	signature, _ := b.text("signature", where)
	data, _ := b.text("data", where)
	if signature == "" && data == "" {
		return fault("thinking_unsigned", where, "")
	}
	k, _ := secretOf(b)
	if !c.history.knows(k) && !c.opts.Foreign {
		return fault("thinking_changed", where, "this server never issued this thinking with this signature")
	}
	return nil
}

func (c *checker) callBlock(b object, where string) error {
	if err := b.shape(where, "type", "id", "name", "input"); err != nil {
		return err
	}
	id, err := b.text("id", where)
	if err != nil {
		return err
	}
	name, err := b.text("name", where)
	if err != nil {
		return err
	}
	if !toolForm.MatchString(name) {
		return fault("invalid_tool", where+".name", "%q", name)
	}
	if input, _ := b.get("input"); input.Kind() != '{' {
		return fault("input_not_object", where+".input", "%s", clip(input))
	} else if !isStrict(input) {
		return fault("input_not_strict", where+".input", "%s", clip(input))
	}
	return c.call(id, where)
}
