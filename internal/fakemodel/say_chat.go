package fakemodel

import (
	"fmt"
	"slices"
	"strconv"
)

// chat streams a reply as Chat Completions chunks.
func (st *stream) chat() error {
	blocks := build(st.req, st.reply.Blocks)
	if err := st.chunk(`{"role":"assistant","content":""}`, "null"); err != nil {
		return err
	}
	if err := st.before(); err != nil {
		return err
	}
	for i := range blocks {
		if err := st.chatBlock(blocks, i); err != nil {
			return err
		}
	}
	if st.reply.Chat.WholeCalls {
		if err := st.wholeCalls(blocks); err != nil {
			return err
		}
	}
	if f := st.reply.Fail; f != nil {
		return st.last("", nil, nil, false, func(b []byte) []byte {
			b = append(st.chunkHead(b), `,"error":{"message":`...)
			b = appendString(b, f.Message)
			b = appendString(append(b, `,"type":`...), f.Type)
			code := f.Type
			if _, err := strconv.Atoi(code); err != nil {
				code = strconv.Quote(code)
			}
			b = append(append(append(b, `,"code":`...), code...), `},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`...)
			return append(b, "\n\n"...)
		})
	}
	stop := st.chatStop(blocks)
	var items [][]byte
	if slices.Contains([]string{"stop", "tool_calls", "function_call"}, stop) {
		items = st.stored(chatStored(blocks, st.reply.Chat.Reasoning))
	}
	return st.last("", items, nil, false, func(b []byte) []byte {
		b = append(appendChoice(st.chunkHead(b), `{}`, strconv.Quote(stop)), "}\n\n"...)
		if !st.reply.Chat.NoUsage {
			b = append(st.chunkHead(b), `,"choices":[],"usage":`...)
			b = append(appendChatUsage(b, st.usage(said(blocks))), "}\n\n"...)
		}
		if !st.reply.Chat.NoDone {
			b = append(b, "data: [DONE]\n\n"...)
		}
		return b
	})
}

func (st *stream) chatStop(blocks []built) string {
	if st.reply.Stop != "" {
		return st.reply.Stop
	}
	for i := range blocks {
		if blocks[i].kind == "call" {
			return "tool_calls"
		}
	}
	return "stop"
}

func (st *stream) chunkHead(b []byte) []byte {
	b = append(b, fmt.Sprintf(`data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1,"model":`, st.req.Seq)...)
	return appendString(b, st.req.Model)
}

func appendChoice(b []byte, delta, reason string) []byte {
	b = append(append(b, `,"choices":[{"index":0,"delta":`...), delta...)
	return append(append(append(b, `,"finish_reason":`...), reason...), `}]`...)
}

// chunk sends one chunk; delta and reason are JSON.
func (st *stream) chunk(delta, reason string) error {
	st.frame = append(appendChoice(st.chunkHead(st.frame[:0]), delta, reason), "}\n\n"...)
	return st.write(st.frame)
}

func appendChatUsage(b []byte, u Usage) []byte {
	return append(b, fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		u.Input, u.Output, u.Input+u.Output, u.Cached, u.CacheWrite, u.Reasoning)...)
}

func (st *stream) chatBlock(blocks []built, i int) error {
	x := &blocks[i]
	switch x.kind {
	case "text":
		return st.chatDeltas(`{"content":`, x.text, `}`)
	case "thinking":
		return st.chatDeltas(`{`+thinkingName(st.reply.Chat.Reasoning), x.text, `}`)
	case "redacted":
		return st.chunk(`{"reasoning_details":[`+detailOf(i, x)+`]}`, "null")
	case "call":
		if st.reply.Chat.WholeCalls {
			return nil
		}
		n := 0
		for _, before := range blocks[:i] {
			if before.kind == "call" {
				n++
			}
		}
		return st.chatCall(n, x)
	}
	return st.chunk(x.text, "null")
}

func thinkingName(reasoning bool) string {
	if reasoning {
		return `"reasoning":`
	}
	return `"reasoning_content":`
}

func detailOf(i int, x *built) string {
	return `{"type":"reasoning.encrypted","data":"` + x.signature + `","index":` + strconv.Itoa(i) + `}`
}

func (st *stream) chatDeltas(before, s, after string) error {
	for _, part := range splitDeltas(s, st.reply.DeltaSize) {
		if err := st.gap(); err != nil {
			return err
		}
		if err := st.chunk(string(appendString([]byte(before), part))+after, "null"); err != nil {
			return err
		}
	}
	return nil
}

// callHead is a call as it is streamed, up to its arguments; an id that is
// stated empty is left out.
func (st *stream) callHead(n int, x *built) string {
	b := []byte(`{`)
	if !st.reply.Chat.NoIndex {
		b = append(b, `"index":`+strconv.Itoa(n)+`,`...)
	}
	if x.sentID != "" {
		b = append(appendString(append(b, `"id":`...), x.sentID), ',')
	}
	b = appendString(append(b, `"type":"function","function":{"name":`...), x.name)
	return string(append(b, `,"arguments":`...))
}

func (st *stream) chatCall(n int, x *built) error {
	if err := st.chunk(`{"tool_calls":[`+st.callHead(n, x)+`""}}]}`, "null"); err != nil {
		return err
	}
	head := `{"tool_calls":[{`
	if !st.reply.Chat.NoIndex {
		head += `"index":` + strconv.Itoa(n) + `,`
	}
	return st.chatDeltas(head+`"function":{"arguments":`, x.text, `}}]}`)
}

func (st *stream) wholeCalls(blocks []built) error {
	list := ""
	n := 0
	for i := range blocks {
		if x := &blocks[i]; x.kind == "call" {
			if n > 0 {
				list += ","
			}
			list += string(appendString([]byte(st.callHead(n, x)), x.text)) + `}}`
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return st.chunk(`{"tool_calls":[`+list+`]}`, "null")
}

// chatStored is the one message that holds the blocks.
func chatStored(blocks []built, reasoning bool) [][]byte {
	var said, thought, details, calls []byte
	comma := func(b []byte) []byte {
		if len(b) > 0 {
			b = append(b, ',')
		}
		return b
	}
	for i := range blocks {
		x := &blocks[i]
		switch x.kind {
		case "text":
			said = append(said, x.text...)
		case "thinking":
			thought = append(thought, x.text...)
		case "redacted":
			details = append(comma(details), detailOf(i, x)...)
		case "call":
			calls = appendString(append(comma(calls), `{"id":`...), x.storeID)
			calls = appendString(append(calls, `,"type":"function","function":{"name":`...), x.tool)
			calls = appendString(append(calls, `,"arguments":`...), x.stored)
			calls = append(calls, `}}`...)
		}
	}
	if blank(string(said)) && len(calls) == 0 {
		return nil
	}
	b := appendString([]byte(`{"role":"assistant","content":`), string(said))
	if len(thought) > 0 {
		b = appendString(append(append(b, ','), thinkingName(reasoning)...), string(thought))
	}
	if len(details) > 0 {
		b = append(append(append(b, `,"reasoning_details":[`...), details...), ']')
	}
	if len(calls) > 0 {
		b = append(append(append(b, `,"tool_calls":[`...), calls...), ']')
	}
	return [][]byte{append(b, '}')}
}

// chatAtOnce sends all of a reply as one chat.completion.
func (st *stream) chatAtOnce() error {
	blocks := build(st.req, st.reply.Blocks)
	b := append([]byte(nil), fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","created":1,"model":`, st.req.Seq)...)
	b = append(appendString(b, st.req.Model), `,"choices":[{"index":0,"message":`...)
	items := chatStored(blocks, st.reply.Chat.Reasoning)
	message := []byte(`{"role":"assistant","content":null}`)
	if len(items) > 0 {
		message = items[0]
	}
	b = append(append(b, message...), `,"finish_reason":"`+st.chatStop(blocks)+`"}],"usage":`...)
	b = append(appendChatUsage(b, st.usage(said(blocks))), '}')
	st.finish(len(b), items, nil, false)
	return st.write(b)
}
