package engine

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	"agent/internal/model"
	"agent/internal/tool"
	"agent/protocol"
)

// toolSet is a selection of tools as a family's request carries it. Bots with
// the same selection share one (runtime.md 10).
type toolSet struct {
	names   []string
	encoded []byte
}

// maxToolSets bounds how many selections are kept. Clients can declare any
// number of tools over time; a selection that was dropped is encoded again.
const maxToolSets = 256

// toolSets are the selections that were asked for, each encoded once.
type toolSets struct {
	e    *Engine
	mu   sync.Mutex
	sets map[string]*toolSet
}

func (s *toolSets) init(e *Engine) { s.e, s.sets = e, map[string]*toolSet{} }

// of gives the selection, in its order, the tools of the bot's client behind.
// Tools that this build does not have are left out, so that a bot of another
// build can still run.
// sandboxed says that the bot is.
func (s *toolSets) of(family model.Family, names []string, declared []protocol.ClientTool, sandboxed bool) *toolSet {
	key := fmt.Sprint(family, sandboxed, " ", strings.Join(names, " "))
	for i := range declared {
		d := &declared[i]
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %s", d.Name, d.Description, d.Parameters))
		key += "\n" + string(sum[:])
	}
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
			if sandboxed {
				defs = append(defs, tool.SandboxedDef(t))
			} else {
				defs = append(defs, t.Def())
			}
		}
	}
	for i := range declared {
		set.names = append(set.names, declared[i].Name)
	}
	defs = append(defs, clientDefs(declared)...)
	if len(defs) > 0 {
		set.encoded = s.e.cfg.Codecs[family].Tools(defs)
	}
	if len(s.sets) >= maxToolSets {
		clear(s.sets)
	}
	s.sets[key] = set
	return set
}
