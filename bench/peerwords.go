package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// dialect is how a family words an answer.
type dialect interface {
	begin(http.ResponseWriter)
	text(string)
	call(name, arguments string)
	end()
}

// object is a piece of JSON.
type object = map[string]any

// answers numbers answers and calls.
var answers atomic.Int64

// sse writes an event stream.
type sse struct {
	w     io.Writer
	flush func()
	id    string
}

func (s *sse) begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	s.w, s.flush, s.id = w, func() { http.NewResponseController(w).Flush() }, fmt.Sprint(answers.Add(1))
	s.flush()
}

func (s *sse) data(kind string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // objects of our own
	}
	if kind != "" {
		fmt.Fprintf(s.w, "event: %s\n", kind)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", text)
	s.flush()
}

// chatWords is Chat Completions.
type chatWords struct {
	sse
	reason string
}

func (c *chatWords) choice(delta object, finish any) {
	c.data("", object{
		"id": "chatcmpl-" + c.id, "object": "chat.completion.chunk", "created": 1, "model": "fake",
		"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
	})
}

func (c *chatWords) begin(w http.ResponseWriter) {
	c.sse.begin(w)
	c.reason = "stop"
	c.choice(object{"role": "assistant", "content": ""}, nil)
}

func (c *chatWords) text(s string) { c.choice(object{"content": s}, nil) }

func (c *chatWords) call(name, arguments string) {
	c.reason = "tool_calls"
	c.choice(object{"tool_calls": []object{{
		"index": 0, "id": "call_" + c.id, "type": "function",
		"function": object{"name": name, "arguments": arguments},
	}}}, nil)
}

func (c *chatWords) end() {
	c.choice(object{}, c.reason)
	c.data("", object{
		"id": "chatcmpl-" + c.id, "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": []object{},
		"usage": object{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
	})
	fmt.Fprint(c.w, "data: [DONE]\n\n")
	c.flush()
}

// responsesWords is Responses.
type responsesWords struct {
	sse
	sequence int
	said     string
	output   []object
}

func (r *responsesWords) event(kind string, v object) {
	v["type"], v["sequence_number"] = kind, r.sequence
	r.sequence++
	r.data(kind, v)
}

func (r *responsesWords) response(status string) object {
	return object{
		"id": "resp_" + r.id, "object": "response", "created_at": 1, "model": "fake", "status": status, "output": r.output,
		"usage": object{
			"input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
			"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
		},
	}
}

func (r *responsesWords) begin(w http.ResponseWriter) {
	r.sse.begin(w)
	r.output = []object{}
	r.event("response.created", object{"response": r.response("in_progress")})
}

func (r *responsesWords) message(status string, content ...object) object {
	if content == nil {
		content = []object{}
	}
	return object{"id": "msg_" + r.id, "type": "message", "role": "assistant", "status": status, "content": content}
}

func textPart(s string) object {
	return object{"type": "output_text", "text": s, "annotations": []object{}}
}

func (r *responsesWords) text(s string) {
	where := func(more object) object {
		more["item_id"], more["output_index"], more["content_index"] = "msg_"+r.id, 0, 0
		return more
	}
	if r.said == "" {
		r.event("response.output_item.added", object{"output_index": 0, "item": r.message("in_progress")})
		r.event("response.content_part.added", where(object{"part": textPart("")}))
	}
	r.said += s
	r.event("response.output_text.delta", where(object{"delta": s}))
}

func (r *responsesWords) call(name, arguments string) {
	item := func(status, arguments string) object {
		return object{
			"id": "fc_" + r.id, "type": "function_call", "status": status,
			"call_id": "call_" + r.id, "name": name, "arguments": arguments,
		}
	}
	r.event("response.output_item.added", object{"output_index": 0, "item": item("in_progress", "")})
	r.event("response.function_call_arguments.delta", object{"item_id": "fc_" + r.id, "output_index": 0, "delta": arguments})
	r.event("response.function_call_arguments.done", object{"item_id": "fc_" + r.id, "output_index": 0, "name": name, "arguments": arguments})
	r.output = append(r.output, item("completed", arguments))
	r.event("response.output_item.done", object{"output_index": 0, "item": r.output[0]})
}

func (r *responsesWords) end() {
	if r.said != "" {
		at := object{"item_id": "msg_" + r.id, "output_index": 0, "content_index": 0, "text": r.said}
		r.event("response.output_text.done", at)
		r.event("response.content_part.done", object{"item_id": "msg_" + r.id, "output_index": 0, "content_index": 0, "part": textPart(r.said)})
		r.output = append(r.output, r.message("completed", textPart(r.said)))
		r.event("response.output_item.done", object{"output_index": 0, "item": r.output[0]})
	}
	r.event("response.completed", object{"response": r.response("completed")})
}
