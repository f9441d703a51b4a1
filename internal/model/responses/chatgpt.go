package responses

import (
	"encoding/json"
	"net/http"
	"net/url"

	"agent/internal/model"
	"agent/internal/model/wire"
)

// The ChatGPT backend speaks the family with a few differences (providers.md
// 10.4).

// turnStateHeader carries the token that keeps the calls of a turn at one place
// of the backend.
const turnStateHeader = "x-codex-turn-state"

// turnStateLimit bounds what is kept of a header in a parked turn's record; a
// longer token is not used.
const turnStateLimit = 8 << 10

// forChatGPT is a request as the backend takes it: it wants instructions, and
// refuses a cap on the output.
func forChatGPT(req *model.Request) *model.Request {
	r := *req
	r.MaxOutput = 0
	if r.Instructions == "" {
		r.Instructions = " "
	}
	return &r
}

// keepTurn sends the turn's token with a call, and takes the one that the
// turn's first call is answered with.
func keepTurn(call *wire.Call, state *string) {
	if state == nil {
		return
	}
	if *state != "" {
		if call.Header == nil {
			call.Header = http.Header{}
		}
		call.Header.Set(turnStateHeader, *state)
		return
	}
	call.Answered = func(h http.Header) {
		if token := h.Get(turnStateHeader); len(token) <= turnStateLimit {
			*state = token
		}
	}
}

// planWindow is how much of one of a plan's limits is used.
type planWindow struct {
	UsedPercent   float64 `json:"used_percent"`
	WindowMinutes int64   `json:"window_minutes,omitempty"`
	ResetAt       int64   `json:"reset_at,omitempty"` // Unix seconds
}

// plan reads what the headers say of the subscription's limits, for stats.
func plan(h http.Header) json.RawMessage {
	windows := map[string]planWindow{}
	for _, name := range []string{"primary", "secondary"} {
		figure := func(what string) (float64, bool) {
			n, ok := wire.Figure(h.Get("x-codex-" + name + "-" + what))
			if !ok || n >= 1<<53 {
				return 0, false
			}
			return n, true
		}
		used, ok := figure("used-percent")
		if !ok {
			continue
		}
		minutes, _ := figure("window-minutes")
		reset, _ := figure("reset-at")
		windows[name] = planWindow{UsedPercent: used, WindowMinutes: int64(minutes), ResetAt: int64(reset)}
	}
	if len(windows) == 0 {
		return nil
	}
	raw, err := json.Marshal(windows)
	if err != nil {
		panic("responses: plan figures do not encode: " + err.Error())
	}
	return raw
}

// listQuery is what the backend wants to know before it lists its models.
func listQuery(version string) string {
	return "client_version=" + url.QueryEscape(version)
}
