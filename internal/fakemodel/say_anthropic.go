package fakemodel

import (
	"strconv"
)

// anthropic streams a reply as Messages events.
func (st *stream) anthropic() error {
	blocks := build(st.req, st.reply.Blocks)
	u := st.usage(said(blocks))
	if err := st.event("message_start", st.anthropicStart(u)); err != nil {
		return err
	}
	if err := st.before(); err != nil {
		return err
	}
	for i := range blocks {
		if err := st.anthropicBlock(i, &blocks[i]); err != nil {
			return err
		}
	}
	if f := st.reply.Fail; f != nil {
		return st.last("error", nil, nil, false, func(b []byte) []byte {
			b = appendString(append(b, `,"error":{"type":`...), f.Type)
			b = appendString(append(b, `,"message":`...), f.Message)
			return append(b, '}')
		})
	}
	stop := st.reply.Stop
	if stop == "" {
		stop = "end_turn"
		for i := range blocks {
			if blocks[i].kind == "call" {
				stop = "tool_use"
			}
		}
	}
	if err := st.event("message_delta", func(b []byte) []byte {
		b = appendString(append(b, `,"delta":{"stop_reason":`...), stop)
		b = append(b, `,"stop_sequence":null},"usage":{"output_tokens":`...)
		return append(strconv.AppendInt(b, u.Output, 10), '}')
	}); err != nil {
		return err
	}
	var items [][]byte
	switch stop {
	case "end_turn", "tool_use", "stop_sequence", "pause_turn":
		items = st.stored(anthropicStored(blocks))
	}
	return st.last("message_stop", items, nil, stop == "pause_turn", nil)
}

func (st *stream) anthropicStart(u Usage) func([]byte) []byte {
	return func(b []byte) []byte {
		b = append(b, `,"message":{"id":"msg_`...)
		b = strconv.AppendInt(b, st.req.Seq, 10)
		b = appendString(append(b, `","type":"message","role":"assistant","model":`...), st.req.Model)
		b = append(b, `,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`...)
		b = appendUsage(b, u, 1)
		return append(b, '}')
	}
}

// appendUsage writes the numbers in the family's own parts.
func appendUsage(b []byte, u Usage, output int64) []byte {
	parts := []struct {
		name  string
		value int64
	}{
		{`{"input_tokens":`, u.Input - u.Cached - u.CacheWrite},
		{`,"cache_read_input_tokens":`, u.Cached},
		{`,"cache_creation_input_tokens":`, u.CacheWrite},
		{`,"cache_creation":{"ephemeral_5m_input_tokens":`, u.CacheWrite - u.CacheWrite1h},
		{`,"ephemeral_1h_input_tokens":`, u.CacheWrite1h},
		{`},"output_tokens":`, output},
	}
	for _, p := range parts {
		b = strconv.AppendInt(append(b, p.name...), p.value, 10)
	}
	return append(b, '}')
}

func (st *stream) anthropicBlock(i int, x *built) error {
	if err := st.event("content_block_start", func(b []byte) []byte {
		b = strconv.AppendInt(append(b, `,"index":`...), int64(i), 10)
		b = append(b, `,"content_block":`...)
		switch x.kind {
		case "text":
			b = append(b, `{"type":"text","text":""}`...)
		case "thinking":
			b = append(b, `{"type":"thinking","thinking":"","signature":""}`...)
		case "redacted":
			b = appendRedacted(b, x)
		case "call":
			b = appendString(append(b, `{"type":"tool_use","id":`...), x.sentID)
			b = appendString(append(b, `,"name":`...), x.name)
			b = append(b, `,"input":{}}`...)
		default:
			b = append(b, x.text...)
		}
		return b
	}); err != nil {
		return err
	}
	if err := st.anthropicDeltas(i, x); err != nil {
		return err
	}
	return st.event("content_block_stop", func(b []byte) []byte {
		return strconv.AppendInt(append(b, `,"index":`...), int64(i), 10)
	})
}

func (st *stream) anthropicDeltas(i int, x *built) error {
	var kind, field string
	switch x.kind {
	case "text":
		kind, field = "text_delta", "text"
	case "thinking":
		kind, field = "thinking_delta", "thinking"
	case "call":
		kind, field = "input_json_delta", "partial_json"
	default:
		return nil
	}
	for _, part := range splitDeltas(x.text, st.reply.DeltaSize) {
		if err := st.gap(); err != nil {
			return err
		}
		if err := st.anthropicDelta(i, kind, field, part); err != nil {
			return err
		}
	}
	if x.kind != "thinking" {
		return nil
	}
	return st.anthropicDelta(i, "signature_delta", "signature", x.signature)
}

func (st *stream) anthropicDelta(i int, kind, field, part string) error {
	return st.event("content_block_delta", func(b []byte) []byte {
		b = strconv.AppendInt(append(b, `,"index":`...), int64(i), 10)
		b = append(append(append(b, `,"delta":{"type":"`...), kind...), `","`...)
		b = appendString(append(append(b, field...), `":`...), part)
		return append(b, '}')
	})
}

func appendRedacted(b []byte, x *built) []byte {
	b = appendString(append(b, `{"type":"redacted_thinking","data":`...), x.signature)
	return append(b, '}')
}

// stored is what the client has to send back: what the reply states, or else
// made.
func (st *stream) stored(made [][]byte) [][]byte {
	if st.reply.Stored != nil {
		return st.reply.Stored
	}
	return made
}

// anthropicStored is the one message that holds the blocks.
func anthropicStored(blocks []built) [][]byte {
	b := []byte(`{"role":"assistant","content":[`)
	for len(blocks) > 0 {
		// An answer that ends so cannot come back as it is.
		if x := blocks[len(blocks)-1]; x.kind != "thinking" && x.kind != "redacted" && (x.kind != "text" || !blank(x.text)) {
			break
		}
		blocks = blocks[:len(blocks)-1]
	}
	n := 0
	for i := range blocks {
		x := &blocks[i]
		if x.kind == "text" && blank(x.text) {
			continue
		}
		if n++; n > 1 {
			b = append(b, ',')
		}
		switch x.kind {
		case "text":
			b = appendString(append(b, `{"type":"text","text":`...), x.text)
			b = append(b, '}')
		case "thinking":
			b = appendString(append(b, `{"type":"thinking","thinking":`...), x.text)
			b = appendString(append(b, `,"signature":`...), x.signature)
			b = append(b, '}')
		case "redacted":
			b = appendRedacted(b, x)
		case "call":
			b = appendString(append(b, `{"type":"tool_use","id":`...), x.storeID)
			b = appendString(append(b, `,"name":`...), x.tool)
			b = append(append(append(b, `,"input":`...), trim(x.stored)...), '}')
		default:
			b = append(b, x.text...)
		}
	}
	if n == 0 {
		return nil
	}
	return [][]byte{append(b, "]}"...)}
}
