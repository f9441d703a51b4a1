package host

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"agent/internal/sonny/memory"
)

// maxFactLines bounds the lines on memory in a message to a lead.
const maxFactLines = 20

// factList is the facts of the person and of a project, as they stand.
type factList map[factKey]fact

type factKey struct {
	scope memory.Scope
	name  string
}

type fact struct {
	description string
	digest      [sha256.Size]byte
}

// factWatch knows which facts leads have changed themselves: of those they are not
// told. It is safe for concurrent use.
type factWatch struct {
	mu   sync.Mutex
	mine map[int64]map[factKey]bool
}

// own notes that a bot changed a fact.
func (w *factWatch) own(bot int64, scope memory.Scope, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mine == nil {
		w.mine = map[int64]map[factKey]bool{}
	}
	if w.mine[bot] == nil {
		w.mine[bot] = map[factKey]bool{}
	}
	w.mine[bot][factKey{scope, name}] = true
}

// heard forgets what a lead has changed: it has been told of the rest.
func (w *factWatch) heard(bot int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.mine, bot)
}

// list reads the facts that concern a project's lead. A folder that cannot be read
// tells nothing.
func (w *factWatch) list(m *memory.Memory, project string) factList {
	out := factList{}
	scopes := []memory.Scope{{}}
	if project != "" {
		scopes = append(scopes, memory.Scope{Project: project})
	}
	for _, scope := range scopes {
		facts, _, err := m.List(scope)
		if err != nil {
			continue
		}
		for _, f := range facts {
			text, _ := json.Marshal(&f)
			out[factKey{scope, f.Name}] = fact{f.Description, sha256.Sum256(text)}
		}
	}
	return out
}

// since are the lines on what others have saved or removed, at most twenty.
func (w *factWatch) since(bot int64, before, now factList) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for key, f := range now {
		if old, was := before[key]; (!was || old.digest != f.digest) && !w.mine[bot][key] {
			lines = append(lines, fmt.Sprintf("- saved %s (%s): %s", key.name, key.scope, f.description))
		}
	}
	for key := range before {
		if _, is := now[key]; !is && !w.mine[bot][key] {
			lines = append(lines, fmt.Sprintf("- removed %s (%s)", key.name, key.scope))
		}
	}
	slices.Sort(lines)
	if more := len(lines) - maxFactLines; more > 0 {
		lines = append(lines[:maxFactLines-1:maxFactLines-1], fmt.Sprintf("- and %d more", more+1))
	}
	return lines
}
