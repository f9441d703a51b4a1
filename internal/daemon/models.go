package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"agent/internal/model"
	"agent/protocol"
)

// listedAtOnce is how many providers one request asks at the same time.
const listedAtOnce = 4

// listRoom is what the lists of one answer may take together: a line, less what
// stands around them. It leaves room for a refusal of every provider.
const listRoom = protocol.MaxLine - 128<<10

// providerModels asks every provider for its own list (protocol.md 12). It waits
// for the slowest, at most 10 s for each four. A provider's refusal stands in
// the answer; a list for which there is no room in it is refused by name, the
// longest first.
func (d *Daemon) providerModels(ctx context.Context) (*protocol.ProviderModels, *protocol.Error) {
	names := d.opt.Registry.Names()
	lists := make([]protocol.ModelList, len(names))
	places := make(chan struct{}, listedAtOnce)
	var asked sync.WaitGroup
	for i, name := range names {
		places <- struct{}{}
		asked.Go(func() {
			defer func() { <-places }()
			p, _ := d.opt.Registry.Provider(name)
			lists[i] = modelList(p.Models(ctx))
		})
	}
	asked.Wait()
	fitLists(lists, listRoom)
	answer := &protocol.ProviderModels{Providers: make(map[string]protocol.ModelList, len(names))}
	for i, name := range names {
		answer.Providers[name] = lists[i]
	}
	return answer, nil
}

// modelList is a provider's answer as the wire has it.
func modelList(models []model.Model, err error) protocol.ModelList {
	var refused *model.Error
	switch {
	case errors.As(err, &refused):
		return protocol.ModelList{Error: protocol.Code(refused.Code), Detail: refused.Detail}
	case err != nil:
		return protocol.ModelList{Error: protocol.Code("provider_error"), Detail: err.Error()}
	}
	list := protocol.ModelList{Models: make([]protocol.ModelInfo, len(models))}
	for i, m := range models {
		list.Models[i] = protocol.ModelInfo{ID: m.ID, Name: m.Name, ContextTokens: m.ContextTokens, OutputTokens: m.OutputTokens}
	}
	return list
}

// fitLists refuses the longest lists until the others fit into room bytes. The
// short ones go first, so that one endless list costs nobody else theirs.
func fitLists(lists []protocol.ModelList, room int) {
	sizes, order := make([]int, len(lists)), make([]int, len(lists))
	for i := range lists {
		text, _ := protocol.Append(nil, lists[i]) // what is no UTF-8 is written in its place
		sizes[i], order[i] = len(text), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	for _, i := range order {
		if room -= sizes[i]; room >= 0 || lists[i].Error != "" {
			continue
		}
		lists[i] = protocol.ModelList{
			Error:  protocol.ProviderModelsLimit,
			Detail: fmt.Sprintf("its list of %d models does not fit beside the others' into one answer", len(lists[i].Models)),
		}
	}
}
