package ahead

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/edit"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/setup"
)

// The first run where it is read out: each line is an answer to what is asked, or none.

// asksKey reports whether a line may be a key, typed where it belongs or a moment too late.
func (f *FirstRun) asksKey() bool {
	return f.page == nil && !slices.Contains([]step{askRegion, askSpec, askOpen}, f.step)
}

// line takes a line. One that is no answer changes nothing, which is then said; an empty one
// leaves what is asked. done is true when a provider is connected and taken.
func (f *FirstRun) line(ctx context.Context, line string) (done bool, err error) {
	switch {
	case line == "esc":
		return f.press(ctx, term.Key{Name: line})
	case !f.asksKey() && setup.HoldsKey(line):
		f.say("that looks like a key, and none is asked for here; nothing was kept", true)
		return false, nil
	case f.page != nil:
		if f.page.line(f, line) {
			f.closePage()
		}
		return false, nil
	}
	if line == "" && !slices.Contains([]step{askKey, connected, trying, askSpecKey}, f.step) {
		f.back()
		return false, nil
	}
	switch f.step {
	case askKey:
		return f.keyLine(ctx, line)
	case askWhose:
		return false, f.pickWhose(ctx, line)
	case trying:
	case refused:
		if line == "k" {
			f.keep(f.listed)
		}
	case connected:
		if line == "" {
			return f.start("enter"), nil
		}
		f.opensLine(ctx, line)
	default:
		f.field.Set(line)
		return f.enter(ctx)
	}
	return false, nil
}

// keyLine takes a line for a key, or for the number of a row.
func (f *FirstRun) keyLine(ctx context.Context, line string) (bool, error) {
	switch {
	case len(line) == 1 && line >= "1" && line <= fmt.Sprint(len(choices)):
		return f.choose(ctx, int(line[0]-'0'))
	case f.opensLine(ctx, line):
		return false, nil
	}
	f.field.Set(line)
	f.take(ctx)
	return false, nil
}

// opensLine takes a line for the number of a row that can be opened. It reports whether it is.
func (f *FirstRun) opensLine(ctx context.Context, line string) bool {
	return len(line) == 1 && f.opens(ctx, line)
}

// asked says what a line can be now.
func (f *FirstRun) asked() string {
	if f.page != nil {
		return f.page.asked
	}
	switch f.step {
	case askWhose:
		return "whose key is it? type 1 for Anthropic, 2 for OpenAI or 3 for OpenRouter. an empty line leaves it."
	case trying:
		return "the key is being tried. esc leaves it."
	case refused:
		return "type k to keep the key anyway. an empty line leaves it."
	case connected:
		return "an empty line starts. a number changes what is set, esc asks for another key."
	case askRegion:
		return "type the region. an empty line leaves it."
	case askSpec:
		return "type the spec. an empty line leaves it."
	case askSpecKey:
		return "type or paste its key. an empty line means none, esc leaves it."
	case askOpen:
		return "type " + lead.OpenWord + ", then Enter. an empty line means no."
	}
	return "paste a key, or type a number. esc leaves with what is done."
}

// line takes a line for a page: a row's number, a key of the page, or where it has a filter
// the name of a row. It reports whether the page closes.
func (p *page) line(f *FirstRun, line string) (back bool) {
	switch {
	case line == "":
		return true
	case slices.Contains([]string{"up", "down"}, line), line != "enter" && p.keys[line] != nil:
		return p.key(f, term.Key{Name: line})
	case p.Typing:
		return p.named(f, line)
	}
	return p.number(line)
}

// saidMost bounds how many rows are named where a line could mean several.
const saidMost = 5

// named takes the one row that a line names, in whole or by a part that no other has.
func (p *page) named(f *FirstRun, line string) (back bool) {
	p.Filter.Set(line)
	var ids []string
	for _, r := range p.Through(p.rows()) {
		id := strings.TrimPrefix(r.ID, onTop)
		if id == line {
			ids = []string{id}
			break
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	p.Filter = &edit.Field{}
	switch n := len(ids); {
	case n == 1:
		return p.keys["enter"](ids[0])
	case n > 1:
		f.say(fmt.Sprintf("%d are called so, type more of the name: %s", n, strings.Join(ids[:min(n, saidMost)], ", ")), true)
	}
	return false
}
