package secret

// automaton finds every occurrence of a set of patterns in one pass over a
// text (Aho and Corasick). It is immutable once built.
//
// The patterns are few and long, so nearly every node has one child: children
// hang on a list instead of in a table of 256, which keeps a node at 24 bytes
// and a 2 KiB token at 48 KiB. Only the root, where ordinary text stays, has a
// table.
type automaton struct {
	root  [256]int32 // first steps; 0 stays at the root
	nodes []node     // nodes[0] is the root
}

type node struct {
	fail    int32 // the longest proper suffix that is a path, too
	child   int32 // first child, 0 for none
	sibling int32 // next child of the same parent, 0 for none
	begun   int32 // how many of the last bytes read begin a pattern that is not whole yet
	longest int32 // length of the longest pattern that ends here, 0 for none
	label   byte
}

// span is a stretch of a text, by byte offsets from its start.
type span struct{ start, end int64 }

func newAutomaton(patterns []string) *automaton {
	a := &automaton{nodes: make([]node, 1)}
	for _, p := range patterns {
		a.insert(p)
	}
	a.link()
	return a
}

func (a *automaton) insert(pattern string) {
	at := int32(0)
	for i := range len(pattern) {
		next := a.step(at, pattern[i])
		if next == 0 {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{
				label: pattern[i], begun: int32(i + 1), sibling: a.nodes[at].child,
			})
			a.nodes[at].child = next
			if at == 0 {
				a.root[pattern[i]] = next
			}
		}
		at = next
	}
	a.nodes[at].longest = int32(len(pattern))
}

// step follows one edge of the tree, 0 when there is none.
func (a *automaton) step(at int32, c byte) int32 {
	if at == 0 {
		return a.root[c]
	}
	n := a.nodes[at].child
	for n != 0 && a.nodes[n].label != c {
		n = a.nodes[n].sibling
	}
	return n
}

// link sets the fail links, breadth first: a node's is found from its
// parent's, which is nearer to the root.
func (a *automaton) link() {
	queue := make([]int32, 0, len(a.nodes))
	for c := a.nodes[0].child; c != 0; c = a.nodes[c].sibling {
		queue = append(queue, c)
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		if a.nodes[at].child == 0 { // whole: only a suffix can go on
			a.nodes[at].begun = a.nodes[a.nodes[at].fail].begun
		}
		for c := a.nodes[at].child; c != 0; c = a.nodes[c].sibling {
			fail := a.next(a.nodes[at].fail, a.nodes[c].label)
			a.nodes[c].fail = fail
			a.nodes[c].longest = max(a.nodes[c].longest, a.nodes[fail].longest)
			queue = append(queue, c)
		}
	}
}

// next is the node after reading c at a node. Each fail link it follows
// undoes an earlier step, so a whole text costs a bounded number for each byte.
func (a *automaton) next(at int32, c byte) int32 {
	for {
		if n := a.step(at, c); n != 0 {
			return n
		}
		if at == 0 {
			return 0
		}
		at = a.nodes[at].fail
	}
}

// scan reads text, which starts at offset from of the whole, from node at. It
// appends what it finds to spans, joined, and returns the node after the last
// byte. Spans are disjoint and in order; touching ones stay two.
func (a *automaton) scan(at int32, from int64, text []byte, spans []span) (int32, []span) {
	for i := 0; i < len(text); i++ {
		if at == 0 {
			for i < len(text) && a.root[text[i]] == 0 {
				i++
			}
			if i == len(text) {
				return 0, spans
			}
		}
		at = a.next(at, text[i])
		if n := a.nodes[at].longest; n != 0 {
			end := from + int64(i) + 1
			spans = join(spans, span{end - int64(n), end})
		}
	}
	return at, spans
}

// join adds a span that ends after all others, merging those it overlaps.
func join(spans []span, s span) []span {
	for len(spans) > 0 && s.start < spans[len(spans)-1].end {
		last := spans[len(spans)-1]
		s.start, s.end = min(s.start, last.start), max(s.end, last.end)
		spans = spans[:len(spans)-1]
	}
	return append(spans, s)
}
