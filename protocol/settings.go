package protocol

import (
	stdjson "encoding/json"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Settings are what was set for one bot over the daemon's values (section 7).
// In configure a null one goes back to the daemon's. Extra holds keys that are
// unknown here, or whose value is of the wrong type: in a request each of them
// is invalid_setting.
type Settings struct {
	ApprovalHoldMS      Opt[int64]  `json:"approval_hold_ms,omitzero"`
	ContextBytes        Opt[int64]  `json:"context_bytes,omitzero"`
	ContextItems        Opt[int64]  `json:"context_items,omitzero"`
	NoteTurns           Opt[int64]  `json:"note_turns,omitzero"`
	CompactAt           Opt[int64]  `json:"compact_at,omitzero"`
	CompactKeep         Opt[int64]  `json:"compact_keep,omitzero"`
	RetainTurns         Opt[int64]  `json:"retain_turns,omitzero"`
	MaxOutputTokens     Opt[int64]  `json:"max_output_tokens,omitzero"`
	StallTimeoutSeconds Opt[int64]  `json:"stall_timeout_seconds,omitzero"`
	KeepWarmSeconds     Opt[int64]  `json:"keep_warm_seconds,omitzero"`
	CacheTTL            Opt[string] `json:"cache_ttl,omitzero"`
	WebSearch           Opt[string] `json:"web_search,omitzero"`
	Extra               Extra       `json:",embed"`
}

// number is the field of a key whose value is an integer, or nil.
func (s *Settings) number(key string) *Opt[int64] {
	switch key {
	case "approval_hold_ms":
		return &s.ApprovalHoldMS
	case "context_bytes":
		return &s.ContextBytes
	case "context_items":
		return &s.ContextItems
	case "note_turns":
		return &s.NoteTurns
	case "compact_at":
		return &s.CompactAt
	case "compact_keep":
		return &s.CompactKeep
	case "retain_turns":
		return &s.RetainTurns
	case "max_output_tokens":
		return &s.MaxOutputTokens
	case "stall_timeout_seconds":
		return &s.StallTimeoutSeconds
	case "keep_warm_seconds":
		return &s.KeepWarmSeconds
	}
	return nil
}

// text is the field of a key whose value is a string, or nil.
func (s *Settings) text(key string) *Opt[string] {
	switch key {
	case "cache_ttl":
		return &s.CacheTTL
	case "web_search":
		return &s.WebSearch
	}
	return nil
}

// UnmarshalJSONFrom reads an object. A bad member lands in Extra rather than
// failing, since it has an error code of its own.
func (s *Settings) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*s = Settings{}
	if dec.PeekKind() != '{' {
		return errWrongType
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		s.set(key, value)
	}
	_, err := dec.ReadToken()
	return err
}

func (s *Settings) set(key string, value jsontext.Value) {
	if f := s.number(key); f != nil && json.Unmarshal(value, f, wireIntegers()) == nil {
		return
	} else if f != nil {
		*f = Opt[int64]{}
	}
	if f := s.text(key); f != nil && json.Unmarshal(value, f) == nil {
		return
	} else if f != nil {
		*f = Opt[string]{}
	}
	if s.Extra == nil {
		s.Extra = Extra{}
	}
	s.Extra[key] = stdjson.RawMessage(value.Clone())
}
