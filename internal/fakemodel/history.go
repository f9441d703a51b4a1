package fakemodel

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"

	"agent/internal/model"

	"github.com/go-json-experiment/json/jsontext"
)

// key is a digest of an item or of all items up to a place.
type key [16]byte

func sum(b []byte) key {
	h := sha256.Sum256(b)
	return key(h[:16])
}

func chain(prefix, item key) key {
	var b [32]byte
	copy(b[:], prefix[:])
	copy(b[16:], item[:])
	return sum(b[:])
}

// issued is an item that the server sent.
type issued struct {
	fp    key
	raw   key
	exact bool // must come back byte for byte
	pause bool // the answer it ends was a pause: no user item need follow
}

// history remembers what was answered, by digests alone.
type history struct {
	mu sync.Mutex
	// answers holds, by the items before them, the items that were sent.
	answers map[key][]issued
	// anywhere holds every variant in which an issued item may come back when
	// its place cannot be checked; the value says pause.
	anywhere map[key]bool
	// secrets holds thinking with its signature and encrypted reasoning.
	secrets map[key]bool
	// thoughts holds, by what an answer of the chat family says besides, the
	// digests of the thinking it was issued with.
	thoughts map[key]map[key]bool
	// ends holds the items of each conversation's latest request.
	ends  map[string]key
	isEnd map[key]int
}

func newHistory() *history {
	return &history{
		answers:  make(map[key][]issued),
		anywhere: make(map[key]bool),
		secrets:  make(map[key]bool),
		thoughts: make(map[key]map[key]bool),
		ends:     make(map[string]key),
		isEnd:    make(map[key]int),
	}
}

func (h *history) after(prefix key) []issued {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers[prefix]
}

func (h *history) ended(prefix key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isEnd[prefix] > 0
}

func (h *history) issuedAnywhere(family model.Family, raw []byte) (known, pause bool) {
	fp := fingerprint(family, raw, looseIDs)
	h.mu.Lock()
	defer h.mu.Unlock()
	pause, known = h.anywhere[fp]
	return known, pause
}

func (h *history) knows(secret key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.secrets[secret]
}

// issue enters an answer that is sent whole: from now on a request may go on
// from it. exact[i] says that item i must come back byte for byte.
func (h *history) issue(req *Request, items [][]byte, exact []bool, pause bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	prefix := req.prefix
	for i, raw := range items {
		fp := fingerprint(req.Family, raw, 0)
		if req.Family == model.FamilyChat {
			said := fingerprint(req.Family, raw, looseIDs)
			var thought key
			raw, thought = chatParts(raw)
			if h.thoughts[said] == nil {
				h.thoughts[said] = make(map[key]bool)
			}
			h.thoughts[said][thought] = true
		}
		last := i == len(items)-1
		x := issued{fp: fp, raw: sum(raw), exact: exact != nil && exact[i], pause: pause && last}
		if !slices.Contains(h.answers[prefix], x) {
			// The old slice may be in a checker's hands.
			h.answers[prefix] = append(slices.Clip(h.answers[prefix]), x)
		}
		h.anywhere[fingerprint(req.Family, raw, looseIDs)] = x.pause
		h.anywhere[fingerprint(req.Family, raw, looseIDs|noThinking)] = x.pause
		for _, secret := range secretsOf(req.Family, raw) {
			h.secrets[secret] = true
		}
		prefix = chain(prefix, fp)
	}
}

// continues checks that a request goes on where its conversation was, and
// makes it the conversation's latest.
func (h *history) continues(req *Request, opts *Options) *Violation {
	if req.Identity == "" || req.Refresh {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before, known := h.ends[req.Identity]
	if known && !opts.Window {
		switch {
		case !req.passed[before]:
			return &Violation{Request: req.Seq, Reason: "history_not_continued", Detail: "the items of the last request of " + req.Identity + " are not the beginning of this one"}
		case !opts.Lost && before != req.prefix && len(h.answers[before]) > 0 && !h.wentOn(before, req):
			return &Violation{Request: req.Seq, Reason: "answer_lost", Detail: "the answer to the last request of " + req.Identity + " is not in this one"}
		}
	}
	if known {
		if h.isEnd[before]--; h.isEnd[before] == 0 {
			delete(h.isEnd, before)
		}
	}
	h.ends[req.Identity] = req.prefix
	h.isEnd[req.prefix]++
	return nil
}

// wentOn reports whether an answer given after prefix is in the request.
func (h *history) wentOn(prefix key, req *Request) bool {
	for _, x := range h.answers[prefix] {
		if req.passed[chain(prefix, x.fp)] {
			return true
		}
	}
	return false
}

// looseness of a fingerprint.
type looseness int

const (
	looseIDs   looseness = 1 << iota // ids of calls do not count
	noThinking                       // nor does thinking
)

// fingerprint digests what an item in the server's name says. Two spellings of
// a string are one; what the client must keep as it came is taken as it is. An
// id of the client's own making stands for any the server could not have used.
func fingerprint(family model.Family, raw []byte, loose looseness) key {
	switch family {
	case model.FamilyResponses:
		return sum(responsesPrint(raw, loose))
	case model.FamilyChat:
		return sum(chatPrint(raw, loose))
	}
	return sum(anthropicPrint(raw, loose))
}

func anthropicPrint(raw []byte, loose looseness) []byte {
	var b []byte
	add := func(parts ...string) {
		for _, p := range parts {
			b = append(append(b, p...), 0)
		}
	}
	o, _ := parseObject(raw, "")
	content, _ := o.get("content")
	each(content, "", func(_ int, block jsontext.Value) error {
		f, _ := parseObject(block, "")
		str := func(name string) string { s, _ := f.text(name, ""); return s }
		kind := str("type")
		switch kind {
		case "text":
			cites, _ := f.get("citations")
			add(kind, str("text"), string(cites))
		case "thinking":
			if loose&noThinking == 0 {
				add(kind, str("thinking"), str("signature"))
			}
		case "redacted_thinking":
			if loose&noThinking == 0 {
				add(string(block))
			}
		case "tool_use":
			input, _ := f.get("input")
			add(kind, printID(str("id"), loose), str("name"), string(input))
		default:
			add(string(block))
		}
		return nil
	})
	return b
}

func responsesPrint(raw []byte, loose looseness) []byte {
	o, _ := parseObject(raw, "")
	if kind, _ := o.text("type", ""); kind != "function_call" {
		return raw
	}
	slices.SortFunc(o, func(a, b member) int { return strings.Compare(a.name, b.name) })
	var b []byte
	for _, m := range o {
		v := string(m.value)
		switch m.name {
		case "call_id":
			id, _ := text(m.value, "")
			v = printID(id, loose)
		case "arguments":
			v, _ = text(m.value, "")
		}
		b = append(append(append(b, m.name...), 0), v...)
		b = append(b, 0)
	}
	return b
}

func printID(id string, loose looseness) string {
	if loose&looseIDs != 0 || ourForm.MatchString(id) {
		return ""
	}
	return id
}

// secretsOf digests what only this server can have made.
func secretsOf(family model.Family, raw []byte) []key {
	o, _ := parseObject(raw, "")
	if family == model.FamilyChat {
		return nil
	}
	if family == model.FamilyResponses {
		if s, _ := o.text("encrypted_content", ""); s != "" {
			return []key{sum([]byte(s))}
		}
		return nil
	}
	var out []key
	content, _ := o.get("content")
	each(content, "", func(_ int, block jsontext.Value) error {
		f, _ := parseObject(block, "")
		if k, ok := secretOf(f); ok {
			out = append(out, k)
		}
		return nil
	})
	return out
}

// secretOf digests a thinking block with its signature, or a redacted one.
func secretOf(f object) (key, bool) {
	kind, _ := f.text("type", "")
	a, _ := f.text("thinking", "")
	b, _ := f.text("signature", "")
	if kind == "redacted_thinking" {
		a, _ = f.text("data", "")
	} else if kind != "thinking" {
		return key{}, false
	}
	return sum([]byte(kind + "\x00" + a + "\x00" + b)), true
}
