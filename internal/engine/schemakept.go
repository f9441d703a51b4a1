package engine

import (
	"encoding/json"
	"sync"
)

// schemas are those that calls were checked by, each parsed once. They are kept
// up to a bound; one that was dropped is parsed again. Safe for concurrent use.
type schemas struct {
	mu   sync.Mutex
	kept map[string]*schema // by their text
	cost int                // of all kept
}

const (
	maxSchemasCost = 4 << 20 // about a tenth of the bytes that they take in memory
	patternCost    = 16      // of an instruction of a pattern
)

func (k *schemas) of(raw json.RawMessage) (*schema, error) {
	k.mu.Lock()
	s := k.kept[string(raw)]
	k.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := parseSchema(raw)
	if err != nil {
		return nil, err
	}
	cost := len(raw) + s.size*patternCost
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || k.cost+cost > maxSchemasCost {
		k.kept, k.cost = map[string]*schema{}, 0
	}
	if k.kept[string(raw)] == nil {
		k.kept[string(raw)] = s
		k.cost += cost
	}
	return s, nil
}
