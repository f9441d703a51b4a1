package fakemodel

import (
	"fmt"
	"strconv"
	"strings"
)

// responses streams a reply as Responses events.
func (st *stream) responses() error {
	blocks := build(st.req, st.reply.Blocks)
	if err := st.event("response.created", func(b []byte) []byte {
		return append(b, fmt.Sprintf(`,"response":{"id":"resp_%d","status":"in_progress","output":[]}`, st.req.Seq)...)
	}); err != nil {
		return err
	}
	if err := st.before(); err != nil {
		return err
	}
	var items [][]byte
	var exact []bool
	for i := range blocks {
		x := &blocks[i]
		if err := st.responsesDeltas(i, x); err != nil {
			return err
		}
		item := responsesItem(st.req.Seq, i, x, x.sentID, x.name, x.text)
		if err := st.event("response.output_item.done", func(b []byte) []byte {
			b = strconv.AppendInt(append(b, `,"output_index":`...), int64(i), 10)
			return append(append(b, `,"item":`...), item...)
		}); err != nil {
			return err
		}
		if x.mended {
			item = responsesItem(st.req.Seq, i, x, x.storeID, x.tool, x.stored)
		}
		items, exact = append(items, item), append(exact, !x.mended)
	}
	for i := len(blocks) - 1; i >= 0 && (blocks[i].kind == "thinking" || blocks[i].kind == "redacted"); i-- {
		items, exact = items[:i], exact[:i] // nothing follows it: it cannot come back
	}
	if st.reply.Stored != nil {
		items, exact = st.reply.Stored, nil
	}
	return st.responsesEnd(blocks, items, exact)
}

func (st *stream) responsesEnd(blocks []built, items [][]byte, exact []bool) error {
	u := st.usage(said(blocks))
	switch {
	case st.reply.Fail != nil:
		f := st.reply.Fail
		return st.last("response.failed", nil, nil, false, func(b []byte) []byte {
			b = appendString(append(b, `,"response":{"status":"failed","error":{"code":`...), f.Type)
			b = appendString(append(b, `,"message":`...), f.Message)
			return append(b, `},"usage":null}`...)
		})
	case st.reply.Stop != "":
		return st.last("response.incomplete", nil, nil, false, func(b []byte) []byte {
			b = appendString(append(b, `,"response":{"status":"incomplete","incomplete_details":{"reason":`...), st.reply.Stop)
			return append(appendResponsesUsage(append(b, `},"usage":`...), u), '}')
		})
	}
	return st.last("response.completed", items, exact, false, func(b []byte) []byte {
		b = append(b, fmt.Sprintf(`,"response":{"id":"resp_%d","status":"completed","output":[],"usage":`, st.req.Seq)...)
		return append(appendResponsesUsage(b, u), '}')
	})
}

func appendResponsesUsage(b []byte, u Usage) []byte {
	return append(b, fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		u.Input, u.Cached, u.CacheWrite, u.Output, u.Reasoning, u.Input+u.Output)...)
}

func (st *stream) responsesDeltas(i int, x *built) error {
	var kind, place string
	switch x.kind {
	case "text":
		kind, place = "response.output_text.delta", `,"content_index":0`
	case "thinking":
		kind, place = "response.reasoning_summary_text.delta", `,"summary_index":0`
	case "call":
		kind = "response.function_call_arguments.delta"
	default:
		return nil
	}
	for _, part := range splitDeltas(x.text, st.reply.DeltaSize) {
		if err := st.gap(); err != nil {
			return err
		}
		if err := st.event(kind, func(b []byte) []byte {
			b = strconv.AppendInt(append(b, `,"output_index":`...), int64(i), 10)
			return appendString(append(append(b, place...), `,"delta":`...), part)
		}); err != nil {
			return err
		}
	}
	return nil
}

// responsesItem is the output item of a block.
func responsesItem(seq int64, i int, x *built, id, name, arguments string) []byte {
	own := fmt.Sprintf("%d_%d", seq, i)
	var b []byte
	switch x.kind {
	case "text":
		b = append(b, `{"type":"message","id":"msg_`+own+`","role":"assistant","status":"completed","content":[{"type":"output_text","text":`...)
		b = append(appendString(b, x.text), `,"annotations":[]}]}`...)
	case "thinking", "redacted":
		b = append(b, `{"type":"reasoning","id":"rs_`+own+`","summary":[`...)
		if x.kind == "thinking" {
			b = append(appendString(append(b, `{"type":"summary_text","text":`...), x.text), '}')
		}
		b = append(appendString(append(b, `],"encrypted_content":`...), x.signature), '}')
	case "call":
		b = append(b, `{"type":"function_call","id":"fc_`+own+`","call_id":`...)
		b = appendString(append(appendString(b, id), `,"name":`...), name)
		b = append(appendString(append(b, `,"arguments":`...), arguments), `,"status":"completed"}`...)
	default:
		b = append(b, x.text...)
	}
	return b
}

func trim(s string) string { return strings.Trim(s, " \t\r\n") }
