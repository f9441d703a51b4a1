package chat

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// The words of servers for a prompt that is too long, as a code or a type; vLLM
// has only the message.
const contextMessage = "This model's maximum context length is"

func tooLongPrompt(f wire.Failure) bool {
	return f.Says("exceed_context_size_error", "context_length_exceeded") || strings.HasPrefix(f.Message, contextMessage)
}

func noQuota(f wire.Failure) bool {
	return f.Says("insufficient_quota", "usage_limit_reached", "usage_not_included")
}

// httpCode is the code of an HTTP failure, "" for provider_http_N.
func httpCode(status int, f wire.Failure) string {
	switch {
	case status == http.StatusPaymentRequired, status == http.StatusTooManyRequests && noQuota(f):
		return "provider_quota_exhausted"
	case status/100 == 4 && tooLongPrompt(f):
		return "provider_context_exceeded"
	}
	return ""
}

// streamFailure is the error of a chunk that reports one, raw as it came: by
// its number where it has one, else by its words.
func streamFailure(raw []byte) *model.Error {
	f := wire.ParseFailure(raw, "application/json")
	e := &model.Error{Code: "provider_incomplete", Detail: f.Message}
	if e.Detail == "" {
		e.Detail = "the stream reports an error and says nothing of it"
	}
	status, err := strconv.Atoi(f.Code)
	numbered := err == nil && status >= 400 && status <= 599
	switch {
	case tooLongPrompt(f):
		e.Code = "provider_context_exceeded"
	case noQuota(f), numbered && status == http.StatusPaymentRequired:
		e.Code = "provider_quota_exhausted"
	case numbered:
		e.Code = fmt.Sprintf("provider_http_%d", status)
		if status == http.StatusTooManyRequests {
			e.Retry = wire.NamedDelay(f.Message)
		}
	case f.Says("rate_limit_exceeded"), strings.HasPrefix(f.Message, "Rate limit reached"):
		e.Code, e.Retry = "provider_rate_limited", wire.NamedDelay(f.Message)
	case f.Says("server_error", "server_is_overloaded", "slow_down"):
		e.Code = "provider_http_503"
	}
	return e
}
