package engine

import (
	"agent/internal/model"
	"agent/internal/store"
)

// webSearch is the tool that a provider runs, and no daemon: a bot that has it
// among its tools has its requests ask for it, where its provider serves it
// (providers.md 15).
const webSearch = "web_search"

// searcher is a provider that says whether a request with a web_search setting
// has it search.
type searcher interface{ ServesWebSearch(mode string) bool }

// searchMode is the setting that a bot's requests to a provider carry, "" for
// none.
func searchMode(b *store.Bot, p model.Provider) string {
	s, ok := p.(searcher)
	if mode := b.Settings.WebSearch.Or("live"); ok && contains(b.Effective(), webSearch) && s.ServesWebSearch(mode) {
		return mode
	}
	return ""
}

// unavailable are a bot's tools that its provider does not serve. A provider
// that is not there says nothing, nor one that plays what a script says.
func (e *Engine) unavailable(b *store.Bot) []string {
	out := []string{}
	if !contains(b.Tools, webSearch) {
		return out
	}
	p, err := e.provider(b.Provider, model.Family(b.Family))
	if err != nil {
		return out
	}
	if s, ok := p.(searcher); ok && !s.ServesWebSearch(b.Settings.WebSearch.Or("live")) {
		out = append(out, webSearch)
	}
	return out
}
