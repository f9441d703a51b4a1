package roster

import (
	"fmt"
	"slices"
	"strings"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen/cells"
	"agent/internal/sonny/screen/lists"
	"agent/internal/sonny/screen/text"
)

// Branch is what a row of the tree says beside the name: what the fork began after, and
// what was said in it last; "" for what is not known.
type Branch struct{ From, Last string }

// Kinsman is a session in a tree, with how deep it stands.
type Kinsman struct {
	lead.Found
	depth int
}

// Family are all that a session is a fork of, or a fork of those, in the order of a tree.
func Family(of int64, all []lead.Found) (out []Kinsman) {
	byID := map[int64]lead.Found{}
	for _, f := range all {
		byID[f.BotID] = f
	}
	root := of
	for range all {
		parent, ok := byID[byID[root].ForkOf]
		if !ok {
			break
		}
		root = parent.BotID
	}
	seen := map[int64]bool{}
	var add func(id int64, depth int)
	add = func(id int64, depth int) {
		f, ok := byID[id]
		if !ok || seen[id] {
			return
		}
		seen[id] = true
		out = append(out, Kinsman{f, depth})
		var under []int64
		for _, g := range all {
			if g.ForkOf == id {
				under = append(under, g.BotID)
			}
		}
		slices.Sort(under)
		for _, u := range under {
			add(u, depth+1)
		}
	}
	add(root, 0)
	return out
}

// Fork is a session of a tree of forks, with what is known of it.
func Fork(m Kinsman, info Branch) lists.Row {
	head := strings.Repeat("  ", m.depth)
	if m.depth > 0 {
		head = strings.Repeat("  ", m.depth-1) + "└ "
	}
	spans := []text.Span{{Text: head, Role: text.Rule}, {Text: text.Pad(cells.OneLine(Title(m.Found)), max(8, 26-len(head))) + "  "}}
	if m.Gone() {
		spans = append(spans, text.Span{Text: "gone", Role: text.Fail})
	}
	if info.From != "" {
		spans = append(spans, text.Span{Text: "after " + cells.OneLine(info.From) + "  ", Role: text.Dim})
	}
	if info.Last != "" {
		spans = append(spans, text.Span{Text: cells.OneLine(info.Last), Role: text.Dim})
	}
	return lists.Row{ID: fmt.Sprint(m.BotID), Line: text.Join(spans...)}
}
