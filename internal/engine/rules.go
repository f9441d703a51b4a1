package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"agent/internal/rules"
	"agent/internal/store"
	"agent/protocol"
)

// A bot's rules are a reference in its row: the digest of their files with how
// many files and rules they are, or a mark that they could not be read, with the
// reason (sandbox.md 8.1).
const unreadableMark = "unreadable:"

// ruleSets are the evaluated rules of bots, each evaluated once.
type ruleSets struct {
	mu   sync.Mutex
	sets map[string]*rules.Set // by reference
}

// maxRuleSets bounds how many are kept; past it all are evaluated anew.
const maxRuleSets = 64

func (r *ruleSets) get(ref string) *rules.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sets[ref]
}

func (r *ruleSets) put(ref string, s *rules.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sets == nil || len(r.sets) >= maxRuleSets {
		r.sets = map[string]*rules.Set{}
	}
	r.sets[ref] = s
}

// givenRules are the rules of a request: how a bot refers to them, and their
// files for the store, nil for a mark.
type givenRules struct {
	ref   string
	files []byte
}

// checkRules evaluates the rules of a request, apart from the store and the
// engine's loops.
func (e *Engine) checkRules(r *protocol.Rules) (g givenRules, err *protocol.Error) {
	if r.Unreadable {
		switch {
		case len(r.Files) > 0:
			return g, protocol.Fail(protocol.InvalidRules, "rules are either files or unreadable")
		case len(r.Reason) > protocol.MaxReason:
			return g, protocol.Fail(protocol.RulesLimit, fmt.Sprintf("the reason has %d bytes of at most %d", len(r.Reason), protocol.MaxReason))
		}
		return givenRules{ref: unreadableMark + r.Reason}, nil
	}
	if r.Reason != "" {
		return g, protocol.Fail(protocol.InvalidRules, "a reason goes with unreadable rules")
	}
	files := make([]rules.File, len(r.Files))
	named := map[string]bool{}
	for i, f := range r.Files {
		if len(f.Name) == 0 || len(f.Name) > 255 || named[f.Name] {
			return g, protocol.Fail(protocol.InvalidRules, fmt.Sprintf("rule file %d: its name has 1 to 255 bytes and is there once", i+1))
		}
		named[f.Name] = true
		files[i] = rules.File{Name: f.Name, Text: f.Text}
	}
	set, parsed := rules.Parse(files)
	if parsed != nil {
		return g, rulesError(parsed)
	}
	text, jerr := json.Marshal(files)
	if jerr != nil {
		return g, protocol.Fail(protocol.InvalidRules, jerr.Error())
	}
	sum := sha256.Sum256(text)
	g = givenRules{ref: fmt.Sprintf("%s.%d.%d", hex.EncodeToString(sum[:]), len(files), len(set.Rules())), files: text}
	e.ruleSets.put(g.ref, set)
	return g, nil
}

func rulesError(err error) *protocol.Error {
	var bad *rules.Error
	if !errors.As(err, &bad) {
		return protocol.Fail(protocol.InvalidRules, err.Error())
	}
	if bad.Limit {
		return protocol.Fail(protocol.RulesLimit, bad.Error())
	}
	return protocol.Fail(protocol.InvalidRules, bad.Error()).With("file", bad.File).With("line", bad.Line)
}

// rulesInfo is a reference as a bot's record shows it.
func rulesInfo(ref string) *protocol.RulesInfo {
	if ref == "" {
		return nil
	}
	if reason, ok := strings.CutPrefix(ref, unreadableMark); ok {
		return &protocol.RulesInfo{Unreadable: true, Reason: reason}
	}
	digest, rest, _ := strings.Cut(ref, ".")
	files, count, _ := strings.Cut(rest, ".")
	info := &protocol.RulesInfo{Digest: digest}
	info.Files, _ = strconv.ParseInt(files, 10, 64)
	info.Rules, _ = strconv.ParseInt(count, 10, 64)
	return info
}

// rulesOf are the rules that a reference names; nil for none. unreadable says why
// every command is refused: the client's mark, or a stored set that no longer
// evaluates.
func (e *Engine) rulesOf(ctx context.Context, ref string) (set *rules.Set, unreadable string, err error) {
	if ref == "" {
		return nil, "", nil
	}
	if reason, ok := strings.CutPrefix(ref, unreadableMark); ok {
		return nil, "the bot's command rules could not be read: " + reason, nil
	}
	if set = e.ruleSets.get(ref); set != nil {
		return set, "", nil
	}
	var text []byte
	err = e.read(ctx, "rules", func(c *store.Conn) (err error) {
		text, _, err = store.RulesOf(c, ref)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	var files []rules.File
	if json.Unmarshal(text, &files) != nil {
		return nil, "the bot's stored command rules are gone or broken; configure them anew", nil
	}
	set, parsed := rules.Parse(files)
	if parsed != nil {
		return nil, "the bot's stored command rules do not evaluate any more: " + parsed.Error(), nil
	}
	e.ruleSets.put(ref, set)
	return set, "", nil
}
