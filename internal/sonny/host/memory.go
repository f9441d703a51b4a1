package host

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"agent/client"
	"agent/internal/sonny/memory"
	"agent/protocol"
)

// memoryTool is the agents' hand on memory (sonny.md 25.2). It waits for nobody.
func memoryTool(c *Call) (any, error) {
	var a struct {
		Action      string `json:"action"`
		Name        string `json:"name"`
		Type        string `json:"type"`
		Description string `json:"description"`
		Source      string `json:"source"`
		Text        string `json:"text"`
		Query       string `json:"query"`
		Scope       string `json:"scope"`
	}
	if err := c.decode(&a); err != nil {
		return nil, err
	}
	if !c.set.Memory {
		return nil, protocol.Fail(invalidArguments, "action: the person has memory turned off")
	}
	_, project, err := c.h.lead(c.ctx, c.bot)
	if err != nil {
		return nil, err
	}
	m := c.h.memory
	if a.Action == "show" {
		shown, err := m.Show(project)
		if err != nil {
			return nil, err
		}
		return c.read(shown, nil) // an index line is not a fact's text
	}
	scope, err := memory.ParseScope(a.Scope, project)
	if err != nil {
		return nil, err
	}
	switch a.Action {
	case "save":
		return c.save(scope, memory.Draft{Name: a.Name, Type: a.Type, Description: a.Description, Source: a.Source, Text: a.Text})
	case "rm":
		if err := c.begin(scope.String() + " " + a.Name); err != nil {
			return nil, err
		}
		removed, err := m.Remove(scope, a.Name)
		if err == nil && !removed.Duplicate {
			c.h.changes.own(c.BotID, scope, a.Name)
		}
		return removed, err
	case "recall":
		found, err := m.Recall(scope, a.Query)
		if err != nil {
			return nil, err
		}
		return c.read(found, found.Marks())
	case "index":
		return m.Index(scope)
	case "check":
		return m.Check(scope)
	}
	return nil, invalid("action", fmt.Sprintf("%q is none of save, rm, show, recall, index and check", a.Action))
}

// read gives what was read of memory. Facts of outside content make the turn one that
// has read outside content: their marks go with what it saves.
func (c *Call) read(value any, marks []string) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if len(marks) > 0 {
		c.h.recalls.add(c.Turn, marks)
	}
	return client.ToolOutput{Text: string(text), External: len(marks) > 0}, nil
}

func (c *Call) save(scope memory.Scope, d memory.Draft) (any, error) {
	var err error
	if d.External, err = c.external(); err != nil {
		return nil, err
	}
	d.By = fmt.Sprintf("turn:%s/%d", c.Bot, c.Turn)
	if err := c.begin(scope.String() + " " + d.Name); err != nil {
		return nil, err
	}
	saved, err := c.h.memory.Save(scope, d)
	if err == nil {
		c.h.changes.own(c.BotID, scope, d.Name)
	}
	return saved, err
}

// external is what the turn has read of outside content so far, as memory marks it. The
// daemon keeps the names of the tools; whatever an agent says of it counts for nothing.
func (c *Call) external() ([]string, error) {
	p, err := c.h.Client.Prompts(c.ctx, c.Bot, c.Turn, 1)
	if err != nil {
		return nil, err
	}
	var marks []string
	for _, tool := range p.External {
		switch tool {
		case "web_search", "web_fetch", "browser", "desktop":
			marks = append(marks, tool)
		case "memory":
			marks = append(marks, c.recalled()...)
		default: // exec and whatever else brings in what servers say
			marks = append(marks, "mcp:"+tool)
		}
	}
	slices.Sort(marks)
	return slices.Compact(marks), nil
}

// recalled are the marks of the facts that the turn has recalled. A host that was
// started since does not know them, and takes those of all facts that the turn can have
// read.
func (c *Call) recalled() []string {
	if marks := c.h.recalls.of(c.Turn); marks != nil {
		return marks
	}
	_, project, err := c.h.lead(c.ctx, c.bot)
	if err == nil {
		if shown, err := c.h.memory.Show(project); err == nil && len(shown.Marks()) > 0 {
			return shown.Marks()
		}
	}
	return []string{"mcp:memory"}
}

// recalls are the marks of what turns have recalled, until the turns end. It is safe
// for concurrent use.
type recalls struct {
	mu sync.Mutex
	by map[int64][]string // by turn
}

func (r *recalls) add(turn int64, marks []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[int64][]string{}
	}
	r.by[turn] = append(r.by[turn], marks...)
}

func (r *recalls) of(turn int64) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.by[turn])
}

func (r *recalls) drop(turn int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, turn)
}
