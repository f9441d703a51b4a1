package approver

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"agent/client"
	"agent/protocol"
)

// smallModels say which models of a maker are its small ones: a pattern for the
// maker's models, and one for those that are small and good enough to judge. The
// first group of both is what a provider puts before the name; the second of
// the small one's is the version, the newest of which is taken.
var smallModels = []struct{ maker, small *regexp.Regexp }{
	{regexp.MustCompile(`^(.*?)claude-`), regexp.MustCompile(`^(.*?)claude-haiku-(\d[\d.-]*?)(?:-\d{8})?(?:-v\d+(?::\d+)?)?$`)},
	{regexp.MustCompile(`^(.*?)gpt-\d`), regexp.MustCompile(`^(.*?)gpt-(\d+(?:\.\d+)?)(?:-codex)?-mini$`)},
	{regexp.MustCompile(`^(.*?)gemini-`), regexp.MustCompile(`^(.*?)gemini-(\d+(?:\.\d+)?)-flash$`)},
}

const (
	// listingTime bounds how long a round waits for the providers' model lists, and
	// listAgain is how long none waits for them after that was in vain.
	listingTime = 5 * time.Second
	listAgain   = 5 * time.Minute
)

// chooser picks the judge's model: the one that was named, else the small model
// of the judged bot's provider, by what the provider lists, else the bot's own.
type chooser struct {
	c     *client.Client
	named string // "": none

	mu    sync.Mutex
	lists map[string][]string // by provider, those that answered
	next  time.Time           // when the others are asked again
}

// modelFor is the judge's model for calls of a bot.
func (m *chooser) modelFor(ctx context.Context, bot *protocol.Bot) string {
	if m.named != "" {
		return m.named
	}
	if !hasSmall(bot.Model) {
		return bot.ModelRef()
	}
	if small := smallOf(bot.Model, m.listed(ctx, bot.Provider)); small != "" {
		return bot.Provider + "/" + small
	}
	return bot.ModelRef()
}

// listed are the models that a provider lists, nil when it does not answer. Its
// answer is kept.
func (m *chooser) listed(ctx context.Context, provider string) []string {
	m.mu.Lock()
	list, there := m.lists[provider]
	wait := time.Now().Before(m.next)
	m.mu.Unlock()
	if there || wait {
		return list
	}
	ctx, cancel := context.WithTimeout(ctx, listingTime)
	defer cancel()
	all, err := m.c.ProviderModels(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = time.Now().Add(listAgain)
	if err != nil {
		return nil
	}
	if m.lists == nil {
		m.lists = map[string][]string{}
	}
	for name, answer := range all.Providers {
		if answer.Error != "" {
			continue
		}
		ids := make([]string, len(answer.Models))
		for i := range answer.Models {
			ids[i] = answer.Models[i].ID
		}
		m.lists[name] = ids
	}
	return m.lists[provider]
}

// hasSmall reports whether the maker of a model is known to have small ones.
func hasSmall(model string) bool {
	for _, family := range smallModels {
		if family.maker.MatchString(model) {
			return true
		}
	}
	return false
}

// smallOf is the newest listed small model of the maker of model, under the same
// prefix, or "".
func smallOf(model string, listed []string) (best string) {
	var newest []int
	for _, family := range smallModels {
		own := family.maker.FindStringSubmatch(model)
		if own == nil {
			continue
		}
		for _, id := range listed {
			found := family.small.FindStringSubmatch(id)
			if found == nil || found[1] != own[1] {
				continue
			}
			if v := version(found[2]); best == "" || newer(v, newest) {
				best, newest = id, v
			}
		}
		return best
	}
	return ""
}

func version(text string) (parts []int) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '.' || r == '-' }) {
		n, _ := strconv.Atoi(part)
		parts = append(parts, n)
	}
	return parts
}

func newer(a, b []int) bool {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return i >= len(b) || a[i] > b[i]
		}
	}
	return false
}

// effortful are models of the responses and chat families that take a reasoning
// level; others refuse a request that names one.
var effortful = regexp.MustCompile(`(^|/)(gpt-([5-9]|\d\d)|gpt-oss|o\d|claude-|gemini-(2\.5|[3-9]))|codex`)

// effortFor is the judge's reasoning level where none was asked for: low where the
// model has it.
func effortFor(family, model string) string {
	switch {
	case family == "anthropic", family == "scripted", effortful.MatchString(model):
		return protocol.ReasoningLow
	}
	return ""
}
