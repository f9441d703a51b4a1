package screen

import (
	"fmt"
	"slices"
	"strings"

	"agent/internal/sonny/memory"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// memoryPanel lists the facts, the person's and the project's, the newest first
// (sonny.md 25.5).
type memoryPanel struct {
	listPanel
	memory *memory.Memory
	facts  map[string]keptFact // by the row's id
	order  []keptFact
	failed map[string]string // what was edited and is no fact, by the row's id
}

// keptFact is a fact with whose it is.
type keptFact struct {
	scope memory.Scope
	memory.Fact
}

func (k *keptFact) id() string { return k.scope.String() + "/" + k.Name }

// openMemory lists the facts that hold all of some words.
func (a *App) openMemory(words string) error {
	p := &memoryPanel{memory: memory.Open(a.o.Home, a.o.Clock), failed: map[string]string{}}
	if err := p.read(a); err != nil {
		return err
	}
	p.name, p.title, p.empty, p.hint = "memory", "memory", "nothing is remembered yet", []string{"e edit", "d remove", "t trust"}
	p.right = func() string { return fmt.Sprint(len(p.order)) }
	p.rows = func(*App) []lists.Row { return p.listed() }
	p.detail = func(_ *App, r lists.Row, w int) []text.Line { return p.about(r, w) }
	p.keys = map[string]func(*App, lists.Row) bool{
		"memory_edit":   func(a *App, r lists.Row) bool { p.edit(a, r); return false },
		"memory_remove": func(a *App, r lists.Row) bool { p.remove(r); return false },
		"memory_trust": func(a *App, r lists.Row) bool {
			_, err := p.memory.Trust(p.facts[r.ID].scope, p.facts[r.ID].Name)
			p.changed(a, err)
			return false
		},
	}
	if words != "" {
		p.Filter = &edit.Field{}
		p.Filter.Set(words)
	}
	a.panel = p
	return nil
}

// read takes the facts as they are now.
func (p *memoryPanel) read(a *App) error {
	p.facts, p.order = map[string]keptFact{}, nil
	for _, s := range []memory.Scope{{}, {Project: a.project()}} {
		list, _, err := p.memory.List(s)
		if err != nil {
			return err
		}
		for _, f := range list {
			k := keptFact{s, f}
			p.facts[k.id()] = k
			p.order = append(p.order, k)
		}
	}
	slices.SortStableFunc(p.order, func(x, y keptFact) int { return strings.Compare(y.Verified, x.Verified) })
	return nil
}

// changed says what a change failed of, and shows the facts as they are now.
func (p *memoryPanel) changed(a *App, err error) {
	a.failing(err)
	a.failing(p.read(a))
}

func (p *memoryPanel) listed() (rows []lists.Row) {
	for _, k := range p.order {
		mark := ""
		if len(k.External) > 0 {
			mark = "external  "
		}
		rows = append(rows, described(k.id(), k.Name, k.Verified, mark+k.Description))
	}
	return rows
}

func (p *memoryPanel) about(r lists.Row, w int) []text.Line {
	k := p.facts[r.ID]
	lines := []text.Line{text.Of(text.Dim, cells.OneLine(k.scope.String()+" · "+k.Type+" · "+k.Source))}
	return append(lines, text.Wrap([]text.Span{{Text: cells.OneLine(k.Text)}}, text.Frame{Width: w})...)
}

func (p *memoryPanel) remove(r lists.Row) {
	k := p.facts[r.ID]
	p.ask(&question{text: "Forget " + k.Name + "?", yes: func(a *App) {
		_, err := p.memory.Remove(k.scope, k.Name)
		p.changed(a, err)
	}})
}

// edit has the person's editor change a fact, as its file is written. What it saves is
// checked as any save is; what is no fact changes nothing, and is there again when the
// editor is opened next on it.
func (p *memoryPanel) edit(a *App, r lists.Row) {
	k := p.facts[r.ID]
	argv := a.editor()
	if len(argv) == 0 {
		return
	}
	was := k.Editable()
	begun, again := p.failed[r.ID]
	if !again {
		begun = was
	}
	now, err := a.edit(argv, begun)
	if err != nil || now == strings.TrimSuffix(was, "\n") {
		delete(p.failed, r.ID)
		a.failing(err)
		return
	}
	draft, err := memory.ParseEdited(k.Name, now)
	if err == nil {
		_, err = p.memory.Save(k.scope, *draft)
	}
	delete(p.failed, r.ID)
	if err != nil {
		p.failed[r.ID] = now
		err = fmt.Errorf("%s is as it was, and e goes on with what you wrote: %w", k.Name, err)
	}
	p.changed(a, err)
}
