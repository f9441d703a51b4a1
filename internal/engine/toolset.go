package engine

import (
	"strings"
	"sync"

	"agent/internal/model"
)

// toolSet is a selection of tools as a family's request carries it. Bots with
// the same selection share one (runtime.md 10).
type toolSet struct {
	names   []string
	encoded []byte
}

// toolSets are the selections that were asked for, each encoded once.
type toolSets struct {
	e    *Engine
	mu   sync.Mutex
	sets map[string]*toolSet
}

func (s *toolSets) init(e *Engine) { s.e, s.sets = e, map[string]*toolSet{} }

// of gives the selection, in its order. Tools that this build does not have
// are left out, so that a bot of another build can still run.
func (s *toolSets) of(family model.Family, names []string) *toolSet {
	key := string(family) + " " + strings.Join(names, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.sets[key]; set != nil {
		return set
	}
	set := &toolSet{}
	var defs []model.ToolDef
	for _, n := range names {
		if t := s.e.tools[n]; t != nil {
			set.names = append(set.names, n)
			defs = append(defs, t.Def())
		}
	}
	if len(defs) > 0 {
		set.encoded = s.e.cfg.Codecs[family].Tools(defs)
	}
	s.sets[key] = set
	return set
}
