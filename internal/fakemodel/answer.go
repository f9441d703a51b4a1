package fakemodel

import (
	"fmt"
	"net/http"
	"strconv"

	"agent/internal/model"
)

// Answers that are no streams.

// errorTypes are the families' words for a status.
var errorTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error",
	504: "timeout_error", 529: "overloaded_error",
}

// errorBody is the body of an HTTP error.
func errorBody(family model.Family, status int, message string, seq int64) []byte {
	kind := errorTypes[status]
	if kind == "" {
		kind = "api_error"
	}
	if message == "" {
		message = "The model server was told to answer " + strconv.Itoa(status) + "."
	}
	if family != model.FamilyAnthropic {
		code := kind
		if status == http.StatusTooManyRequests {
			kind, code = "requests", "rate_limit_exceeded"
		}
		b := appendString([]byte(`{"error":{"message":`), message)
		b = appendString(append(b, `,"type":`...), kind)
		b = appendString(append(b, `,"code":`...), code)
		return append(b, `,"param":null}}`...)
	}
	b := appendString([]byte(`{"type":"error","error":{"type":`), kind)
	b = appendString(append(b, `,"message":`...), message)
	return append(b, fmt.Sprintf(`},"request_id":"req_%d"}`, seq)...)
}

// refuse answers a violation.
func refuse(w http.ResponseWriter, family model.Family, v *Violation) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	w.Write(errorBody(family, http.StatusBadRequest, v.Error(), v.Request))
}

// answerRefresh answers a request that only keeps the cache warm.
func answerRefresh(w http.ResponseWriter, req *Request) {
	w.Header().Set("content-type", "application/json")
	b := fmt.Appendf(nil, `{"id":"msg_%d","type":"message","role":"assistant","model":`, req.Seq)
	b = appendString(b, req.Model)
	b = append(b, `,"content":[],"stop_reason":"max_tokens","stop_sequence":null,"usage":`...)
	tokens := req.Bytes / 4
	b = appendUsage(b, Usage{Input: tokens, Cached: tokens}, 0)
	w.Write(append(b, '}'))
}

// listModels answers GET /models in the asking family's form.
func (s *Server) listModels(w http.ResponseWriter, r *http.Request) {
	anthropic := r.Header.Get("anthropic-version") != ""
	b := []byte(`{"object":"list","data":[`)
	if anthropic {
		b = []byte(`{"has_more":false,"data":[`)
	}
	for i, id := range s.opts.Models {
		if i > 0 {
			b = append(b, ',')
		}
		kind := `"object":"model"`
		if anthropic {
			kind = `"type":"model"`
		}
		b = appendString(append(append(append(b, '{'), kind...), `,"id":`...), id)
		b = append(b, '}')
	}
	b = append(b, ']')
	if anthropic && len(s.opts.Models) > 0 {
		b = appendString(append(b, `,"first_id":`...), s.opts.Models[0])
		b = appendString(append(b, `,"last_id":`...), s.opts.Models[len(s.opts.Models)-1])
	}
	w.Header().Set("content-type", "application/json")
	w.Write(append(b, '}'))
}
