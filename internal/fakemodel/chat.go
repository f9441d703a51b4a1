package fakemodel

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"agent/internal/model"
)

// The checks of a Chat Completions request (providers.md 9), as a local server
// would make them that takes nothing it does not know.

const chatPath = "/v1/chat/completions"

// chatState is what the checks of this family remember of the messages.
type chatState struct {
	system   bool
	thoughts []thought // since the last user message
}

// thought is an answer behind the last user message.
type thought struct {
	where    string
	said     key // all but its thinking and its ids
	thinking key
	calls    bool
}

var chatLevels = []string{"low", "medium", "high"}

func (c *checker) chatFields() error {
	f := c.fields
	if err := f.shape("", "model", "stream", "stream_options", "max_tokens?", "tools?", "tool_choice?",
		"reasoning_effort?", "messages"); err != nil {
		return err
	}
	for name, want := range map[string]string{"stream": "true", "stream_options": `{"include_usage":true}`} {
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
	if v, ok := f.get("max_tokens"); ok {
		if c.req.MaxTokens, err = strconv.ParseInt(string(v), 10, 64); err != nil || c.req.MaxTokens < 1 {
			return fault("invalid_value", "max_tokens", "must be a whole number above 0, is %s", v)
		}
	}
	if f.has("reasoning_effort") {
		if c.req.Effort, err = f.text("reasoning_effort", ""); err != nil {
			return err
		}
		if !slices.Contains(chatLevels, c.req.Effort) {
			return fault("invalid_value", "reasoning_effort", "%q", c.req.Effort)
		}
	}
	return c.chatTools(f)
}

func (c *checker) chatTools(f object) error {
	if v, ok := f.get("tools"); ok {
		n := 0
		err := each(v, "tools", func(i int, tool jsontext.Value) error {
			n++
			return c.chatTool(tool, "tools["+strconv.Itoa(i)+"]")
		})
		if err == nil && n == 0 {
			err = fault("empty_tools", "tools", "")
		}
		if err != nil {
			return err
		}
	}
	if !f.has("tool_choice") {
		return nil
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

func (c *checker) chatTool(raw []byte, where string) error {
	o, err := parseObject(raw, where)
	if err != nil {
		return err
	}
	if err := o.shape(where, "type", "function"); err != nil {
		return err
	}
	if !o.is("type", `"function"`) {
		return fault("invalid_tool", where, "the type is not function")
	}
	v, _ := o.get("function")
	where += ".function"
	if o, err = parseObject(v, where); err != nil {
		return err
	}
	if err := o.shape(where, "name", "description", "parameters"); err != nil {
		return err
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

// chatItem checks one message.
func (c *checker) chatItem(raw []byte, where string) error {
	o, err := parseObject(raw, where)
	if err != nil {
		return err
	}
	role, err := o.text("role", where)
	if err != nil {
		return err
	}
	switch role {
	case "system":
		return c.chatSystem(o, where)
	case "user":
		err = c.chatUser(o, where)
	case "tool":
		err = c.chatResult(o, where)
	case "assistant":
		return c.chatAnswer(o, raw, where)
	default:
		err = fault("invalid_value", where+".role", "%q", role)
	}
	if err != nil {
		return err
	}
	c.lastRole = "user"
	return c.advance(raw, false, where)
}

func (c *checker) chatSystem(o object, where string) (err error) {
	if c.n > 0 {
		return fault("system_not_first", where, "")
	}
	if err := o.shape(where, "role", "content"); err != nil {
		return err
	}
	c.chat.system = true
	if c.req.System, err = o.text("content", where); err == nil && blank(c.req.System) {
		err = fault("empty_text", where+".content", "%q", c.req.System)
	}
	return err
}

func (c *checker) chatUser(o object, where string) error {
	if err := o.shape(where, "role", "content"); err != nil {
		return err
	}
	if err := c.settled(where, "a user's message"); err != nil {
		return err
	}
	none := sum(nil)
	for _, t := range c.chat.thoughts {
		if t.thinking != none {
			return fault("thinking_before_user", t.where, "a user's message follows at %s", where)
		}
	}
	c.chat.thoughts = c.chat.thoughts[:0]
	content, _ := o.get("content")
	where += ".content"
	if content.Kind() == '"' {
		s, err := text(content, where)
		if err == nil && blank(s) {
			err = fault("empty_text", where, "%q", s)
		}
		if err == nil {
			c.chatSaid(s)
		}
		return err
	}
	said, pictures, parts := "", 0, 0
	err := each(content, where, func(i int, part jsontext.Value) error {
		parts++
		s, isText, err := chatPart(part, where+"["+strconv.Itoa(i)+"]")
		if said += s; !isText {
			pictures++
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case parts == 0:
		return fault("empty_content", where, "")
	case pictures == 0:
		return fault("parts_without_picture", where, "a text alone is a string")
	}
	c.chatSaid(said)
	return nil
}

// chatSaid notes a user's text. What tools showed is none.
func (c *checker) chatSaid(s string) {
	if !c.req.AfterResult || !strings.HasPrefix(s, "[shown by the tools above") {
		c.said(s)
	}
}

func chatPart(raw []byte, where string) (s string, isText bool, err error) {
	p, err := parseObject(raw, where)
	if err != nil {
		return "", false, err
	}
	kind, err := p.kind(where)
	if err != nil {
		return "", false, err
	}
	switch kind {
	case "text":
		if err := p.shape(where, "type", "text"); err != nil {
			return "", false, err
		}
		s, err := p.text("text", where)
		if err == nil && blank(s) {
			err = fault("empty_text", where, "%q", s)
		}
		return s, true, err
	case "image_url":
		if err := p.shape(where, "type", "image_url"); err != nil {
			return "", false, err
		}
		v, _ := p.get("image_url")
		where += ".image_url"
		u, err := parseObject(v, where)
		if err != nil {
			return "", false, err
		}
		if err := u.shape(where, "url"); err != nil {
			return "", false, err
		}
		url, err := u.text("url", where)
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

func (c *checker) chatResult(o object, where string) error {
	if err := o.shape(where, "role", "tool_call_id", "content"); err != nil {
		return err
	}
	id, err := o.text("tool_call_id", where)
	if err != nil {
		return err
	}
	if err := c.result(id, where); err != nil {
		return err
	}
	s, err := o.text("content", where)
	c.resulted(s)
	return err
}

func (c *checker) chatAnswer(o object, raw []byte, where string) error {
	if err := o.shape(where, "role", "content", "reasoning_content?", "reasoning?", "reasoning_details?", "tool_calls?"); err != nil {
		return err
	}
	if err := c.settled(where, "an answer"); err != nil {
		return err
	}
	content, err := o.text("content", where) // null is what some servers refuse
	if err != nil {
		return err
	}
	list, called := o.get("tool_calls")
	if !called && blank(content) {
		return fault("empty_content", where, "")
	}
	n := 0
	if called {
		err := each(list, where+".tool_calls", func(i int, call jsontext.Value) error {
			n++
			return c.chatCall(call, where+".tool_calls["+strconv.Itoa(i)+"]")
		})
		if err == nil && n == 0 {
			err = fault("empty_calls", where+".tool_calls", "")
		}
		if err != nil {
			return err
		}
	}
	bare, thinking := chatParts(raw)
	c.chat.thoughts = append(c.chat.thoughts, thought{where, fingerprint(model.FamilyChat, raw, looseIDs), thinking, n > 0})
	c.lastRole = "assistant"
	return c.advance(bare, true, where)
}

func (c *checker) chatCall(raw []byte, where string) error {
	o, err := parseObject(raw, where)
	if err != nil {
		return err
	}
	if !o.is("type", `"function"`) {
		return fault("invalid_value", where+".type", `must be "function"`)
	}
	id, err := o.text("id", where)
	if err != nil {
		return err
	}
	v, _ := o.get("function")
	f, err := parseObject(v, where+".function")
	if err != nil {
		return err
	}
	if err := f.shape(where+".function", "name", "arguments"); err != nil {
		return err
	}
	name, err := f.text("name", where+".function")
	if err != nil {
		return err
	}
	if !toolForm.MatchString(name) {
		return fault("invalid_tool", where+".function.name", "%q", name)
	}
	args, err := f.text("arguments", where+".function")
	if err != nil {
		return err
	}
	if !isObject(args) || !isStrict([]byte(args)) {
		return fault("arguments_not_object", where+".function.arguments", "%s", clip([]byte(args)))
	}
	return c.call(id, where)
}

// chatThoughts checks the thinking behind the last user message: an answer that
// called has what it was issued with, one that did not has none.
func (c *checker) chatThoughts() error {
	none := sum(nil)
	for _, t := range c.chat.thoughts {
		switch {
		case !t.calls && t.thinking != none:
			return fault("thinking_without_calls", t.where, "")
		case t.calls && !c.history.thought(t.said, t.thinking) && !c.opts.Foreign:
			return fault("thinking_changed", t.where, "it was issued with other thinking, or the thinking is missing")
		}
	}
	return nil
}

// thought reports whether an answer was issued with this thinking.
func (h *history) thought(said, thinking key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.thoughts[said][thinking]
}

// chatParts is an answer without its thinking, and a digest of that.
func chatParts(raw []byte) (bare []byte, thinking key) {
	o, _ := parseObject(raw, "")
	var thoughts []byte
	bare = []byte{'{'}
	for _, m := range o {
		if m.name == "reasoning_content" || m.name == "reasoning" {
			s, _ := text(m.value, "")
			thoughts = append(append(append(thoughts, m.name...), 0), s...)
			continue
		}
		if len(bare) > 1 {
			bare = append(bare, ',')
		}
		bare = append(append(appendString(bare, m.name), ':'), m.value...)
	}
	return append(bare, '}'), sum(thoughts)
}

// chatPrint is what an answer says besides its thinking.
func chatPrint(raw []byte, loose looseness) []byte {
	var b []byte
	add := func(parts ...string) {
		for _, p := range parts {
			b = append(append(b, p...), 0)
		}
	}
	o, _ := parseObject(raw, "")
	said, _ := o.text("content", "")
	details, _ := o.get("reasoning_details")
	add(said, string(details))
	list, _ := o.get("tool_calls")
	each(list, "", func(_ int, call jsontext.Value) error {
		f, _ := parseObject(call, "")
		for _, m := range f {
			switch m.name {
			case "id":
				id, _ := text(m.value, "")
				add("id", printID(id, loose))
			case "function":
				fn, _ := parseObject(m.value, "")
				name, _ := fn.text("name", "")
				args, _ := fn.text("arguments", "")
				add(name, args)
			default:
				add(m.name, string(m.value))
			}
		}
		return nil
	})
	return b
}
