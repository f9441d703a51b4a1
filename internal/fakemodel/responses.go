package fakemodel

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The checks of a Responses request (providers.md 7).

func (c *checker) responsesFields() error {
	f := c.fields
	if f.has("previous_response_id") {
		return fault("unknown_field", "previous_response_id", "nothing is kept at the server")
	}
	if err := f.shape("", "model", "instructions", "stream", "store", "include", "max_output_tokens?", "tools",
		"tool_choice?", "reasoning?", "prompt_cache_key?", "input"); err != nil {
		return err
	}
	for name, want := range map[string]string{"stream": "true", "store": "false", "include": `["reasoning.encrypted_content"]`} {
		if !f.is(name, want) {
			return fault("invalid_value", name, "must be %s", want)
		}
	}
	var err error
	if c.req.Model, err = f.text("model", ""); err != nil {
		return err
	}
	if c.req.Model == "" {
		return fault("invalid_value", "model", "is empty")
	}
	if c.req.System, err = f.text("instructions", ""); err != nil {
		return err
	}
	if c.req.CacheKey, err = f.text("prompt_cache_key", ""); err != nil {
		return err
	}
	if v, ok := f.get("max_output_tokens"); ok {
		if c.req.MaxTokens, err = strconv.ParseInt(string(v), 10, 64); err != nil || c.req.MaxTokens < 16 {
			return fault("invalid_value", "max_output_tokens", "must be a whole number of 16 or more, is %s", v)
		}
	}
	if err := c.responsesTools(f); err != nil {
		return err
	}
	return c.responsesReasoning(f)
}

func (c *checker) responsesTools(f object) error {
	v, _ := f.get("tools")
	err := each(v, "tools", func(i int, tool jsontext.Value) error {
		return c.responsesTool(tool, "tools["+strconv.Itoa(i)+"]")
	})
	if err != nil || !f.has("tool_choice") {
		return err
	}
	if len(c.req.Tools) == 0 {
		return fault("tool_choice_without_tools", "tool_choice", "")
	}
	if !f.is("tool_choice", `"none"`) {
		return fault("invalid_value", "tool_choice", `must be "none"`)
	}
	c.req.ToolsOff = true
	return nil
}

func (c *checker) responsesTool(raw []byte, where string) error {
	o, err := parseObject(raw, where)
	if err != nil {
		return err
	}
	kind, err := o.kind(where)
	if err != nil {
		return err
	}
	switch kind {
	case "web_search":
		if err := o.shape(where, "type", "external_web_access?"); err != nil {
			return err
		}
		return c.tool("web_search", where)
	case "function":
	default:
		return fault("invalid_tool", where, "type %q", kind)
	}
	if err := o.shape(where, "type", "name", "description", "parameters", "strict"); err != nil {
		return err
	}
	if !o.is("strict", "false") {
		return fault("invalid_value", where+".strict", "must be false")
	}
	if _, err := o.text("description", where); err != nil {
		return err
	}
	schema, _ := o.get("parameters")
	if err := checkSchema(schema, where+".parameters"); err != nil {
		return err
	}
	name, err := o.text("name", where)
	if err != nil {
		return err
	}
	return c.tool(name, where)
}

func (c *checker) responsesReasoning(f object) error {
	v, ok := f.get("reasoning")
	if !ok {
		return nil
	}
	o, err := parseObject(v, "reasoning")
	if err != nil {
		return err
	}
	if err := o.shape("reasoning", "effort", "summary"); err != nil {
		return err
	}
	if c.req.Effort, err = o.text("effort", "reasoning"); err != nil {
		return err
	}
	if !slices.Contains(levels, c.req.Effort) || !o.is("summary", `"auto"`) {
		return fault("invalid_value", "reasoning", "%s", clip(v))
	}
	return nil
}

// responsesItem checks one item of the input.
func (c *checker) responsesItem(raw []byte, where string) error {
	o, err := parseObject(raw, where)
	if err != nil {
		return err
	}
	kind := "message"
	if o.has("type") {
		if kind, err = o.text("type", where); err != nil {
			return err
		}
	}
	own := true
	switch kind {
	case "message":
		own, err = c.messageItem(o, where)
	case "function_call":
		err = c.callItem(o, where)
	case "function_call_output":
		own, err = false, c.outputItem(o, where)
	case "reasoning":
		err = c.reasoningItem(o, where)
	case "web_search_call":
		err = c.between(where)
		c.reasoning = false
	default:
		err = fault("invalid_item", where, "type %q", kind)
	}
	if err != nil {
		return err
	}
	c.lastRole = "user"
	if own {
		c.lastRole = "assistant"
	}
	return c.advance(raw, own, where)
}

// between refuses an item of an answer once results of the one before have
// begun and not ended.
func (c *checker) between(where string) error {
	if c.answering {
		return c.settled(where, "an answer")
	}
	return nil
}

// outside refuses a user's or a tool's item where the output of a reasoning
// item must stand.
func (c *checker) outside(where string) error {
	if c.reasoning {
		return fault("reasoning_without_output", where, "the item before is a reasoning item")
	}
	return nil
}

func (c *checker) messageItem(o object, where string) (own bool, err error) {
	role, err := o.text("role", where)
	if err != nil {
		return false, err
	}
	content, ok := o.get("content")
	switch {
	case !ok:
		return false, fault("missing_field", where+".content", "")
	case role == "assistant":
		c.reasoning = false
		if err := c.between(where); err != nil {
			return true, err
		}
		n := 0
		err := each(content, where+".content", func(i int, part jsontext.Value) error {
			n++
			at := where + ".content[" + strconv.Itoa(i) + "]"
			p, err := parseObject(part, at)
			if err == nil && !p.is("type", `"output_text"`) {
				err = fault("invalid_block", at, "output_text is wanted")
			}
			return err
		})
		if err == nil && n == 0 {
			err = fault("empty_content", where+".content", "")
		}
		return true, err
	case role != "user":
		return false, fault("invalid_value", where+".role", "%q", role)
	}
	if err := o.shape(where, "type?", "role", "content"); err != nil {
		return false, err
	}
	if err := c.outside(where); err != nil {
		return false, err
	}
	if err := c.settled(where, "a user's message"); err != nil {
		return false, err
	}
	n := 0
	err = each(content, where+".content", func(i int, part jsontext.Value) error {
		n++
		s, isText, err := inputPart(part, where+".content["+strconv.Itoa(i)+"]")
		if isText {
			c.said(s)
		}
		return err
	})
	if err == nil && n == 0 {
		err = fault("empty_content", where+".content", "")
	}
	return false, err
}

// inputPart checks a part of a user's message or of a tool's output.
func inputPart(raw []byte, where string) (s string, isText bool, err error) {
	p, err := parseObject(raw, where)
	if err != nil {
		return "", false, err
	}
	kind, err := p.kind(where)
	if err != nil {
		return "", false, err
	}
	switch kind {
	case "input_text":
		if err := p.shape(where, "type", "text"); err != nil {
			return "", false, err
		}
		s, err := p.text("text", where)
		if err == nil && blank(s) {
			err = fault("empty_text", where, "%q", s)
		}
		return s, true, err
	case "input_image":
		if err := p.shape(where, "type", "image_url", "detail"); err != nil {
			return "", false, err
		}
		if !p.is("detail", `"auto"`) {
			return "", false, fault("invalid_value", where+".detail", `must be "auto"`)
		}
		url, err := p.text("image_url", where)
		if err != nil {
			return "", false, err
		}
		rest, ok := strings.CutPrefix(url, "data:")
		mediaType, data, ok2 := strings.Cut(rest, ";base64,")
		if !ok || !ok2 {
			return "", false, fault("invalid_picture", where, "not a data: URL with base64")
		}
		return "", false, checkPicture(mediaType, data, where)
	}
	return "", false, fault("invalid_block", where, "a user cannot say %q", kind)
}

func (c *checker) callItem(o object, where string) error {
	c.reasoning = false
	if err := c.between(where); err != nil {
		return err
	}
	for _, name := range []string{"call_id", "name", "arguments"} {
		if !o.has(name) {
			return fault("missing_field", where+"."+name, "")
		}
	}
	name, err := o.text("name", where)
	if err != nil {
		return err
	}
	if !toolForm.MatchString(name) {
		return fault("invalid_tool", where+".name", "%q", name)
	}
	args, err := o.text("arguments", where)
	if err != nil {
		return err
	}
	if !isObject(args) {
		return fault("arguments_not_object", where+".arguments", "%s", clip([]byte(args)))
	}
	if !isStrict([]byte(args)) {
		return fault("input_not_strict", where+".arguments", "%s", clip([]byte(args)))
	}
	id, err := o.text("call_id", where)
	if err != nil {
		return err
	}
	return c.call(id, where)
}

func (c *checker) outputItem(o object, where string) error {
	if err := c.outside(where); err != nil {
		return err
	}
	if err := o.shape(where, "type", "call_id", "output"); err != nil {
		return err
	}
	id, err := o.text("call_id", where)
	if err != nil {
		return err
	}
	if err := c.result(id, where); err != nil {
		return err
	}
	out, _ := o.get("output")
	if out.Kind() == '"' {
		s, err := text(out, where+".output")
		c.resulted(s)
		return err
	}
	return each(out, where+".output", func(i int, part jsontext.Value) error {
		s, isText, err := inputPart(part, where+".output["+strconv.Itoa(i)+"]")
		if isText {
			c.resulted(s)
		}
		return err
	})
}

func (c *checker) reasoningItem(o object, where string) error {
	c.reasoning = true
	if err := c.between(where); err != nil {
		return err
	}
	s, err := o.text("encrypted_content", where)
	if err != nil {
		return err
	}
	if s == "" {
		return fault("missing_field", where+".encrypted_content", "nothing is kept at the server")
	}
	if !c.history.knows(sum([]byte(s))) && !c.opts.Foreign {
		return fault("reasoning_changed", where, "this server never issued this encrypted_content")
	}
	return nil
}
