package modelsfile

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"agent/internal/place"
	"agent/protocol"
)

// heading is the first line of a file that Discover made.
const heading = "# Written by `agent models --discover`: one PROVIDER/MODEL a line, then # and a note.\n"

// Result is what Discover did with one provider: the number of its models in
// the file, or why its lines were left as they were.
type Result struct {
	Models int
	Error  protocol.Code
	Detail string
}

// AppendJSON writes {"models":N} or {"error":…,"detail":…}.
func (r Result) AppendJSON(dst []byte) ([]byte, error) {
	if r.Error == "" {
		return protocol.Append(dst, struct {
			Models int `json:"models"`
		}{r.Models})
	}
	return protocol.Append(dst, struct {
		Error  protocol.Code `json:"error"`
		Detail string        `json:"detail"`
	}{r.Error, r.Detail})
}

// Discover makes the file's new text of what it holds and of the lists that a
// daemon's providers gave (providers.md 14, cli.md 13). Providers stand in the
// order of their names. One that answered has the lines of its list; a model
// that was there keeps its note. One that failed keeps its lines below a comment
// with its code. One that is not among lists has none any more.
//
// Ids that would not read back are dropped. A list that would take the file past
// MaxSize is left out by name, as one that failed with provider_models_limit.
//
// The error is models_none_listed when no provider named a usable model; it
// names each refusal, and text is nil.
func Discover(old []Model, lists map[string]protocol.ModelList) (text []byte, results map[string]Result, err error) {
	kept := map[string][]Model{}
	notes := map[string]string{}
	for _, m := range old {
		provider, _, _ := protocol.ParseModelRef(m.ID)
		kept[provider] = append(kept[provider], m)
		notes[m.ID] = m.Note
	}
	names := slices.Sorted(maps.Keys(lists))
	results = make(map[string]Result, len(names))
	text = []byte(heading)
	listed := 0
	for _, name := range names {
		list := lists[name]
		found := usable(name, list.Models, notes)
		part := section(name, "", found)
		if list.Error == "" && len(text)+len(part) > MaxSize {
			list.Error = protocol.ProviderModelsLimit
			list.Detail = fmt.Sprintf("its list of %d models would make the file larger than %d bytes", len(found), MaxSize)
		}
		if list.Error != "" {
			results[name] = Result{Error: list.Error, Detail: list.Detail}
			part = section(name, list.Error, kept[name])
			if len(text)+len(part) > MaxSize {
				part = section(name, list.Error, nil)
			}
		} else {
			results[name] = Result{Models: len(found)}
			listed += len(found)
		}
		text = append(text, part...)
	}
	if listed == 0 {
		return nil, results, noneListed(names, results)
	}
	return text, results, nil
}

// Write replaces the file by text, 0600 and as one step: whoever reads it finds
// the old content or the new, whole. Its folder must exist.
func Write(path string, text []byte) error { return place.WritePrivate(path, text) }

// section is a provider's part of the file.
func section(name string, code protocol.Code, models []Model) []byte {
	var b bytes.Buffer
	b.WriteString("\n# " + name)
	if code != "" {
		b.WriteString(": not listed, " + string(code))
	}
	b.WriteByte('\n')
	for _, m := range models {
		b.WriteString(m.ID)
		if m.Note != "" {
			b.WriteString(" # " + m.Note)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// usable are the models of a list whose ids a reader of the file would find
// again, each once.
func usable(name string, list []protocol.ModelInfo, notes map[string]string) []Model {
	found := make([]Model, 0, len(list))
	seen := map[string]bool{}
	for _, m := range list {
		id := name + "/" + m.ID
		if seen[id] || strings.Contains(id, "#") || !validID(id) {
			continue
		}
		seen[id] = true
		note, was := notes[id]
		if !was || note == "" {
			note = noteOf(m)
		}
		found = append(found, Model{ID: id, Note: note})
	}
	return found
}

// noteOf is what a provider says of a model, as a note.
func noteOf(m protocol.ModelInfo) string {
	var parts []string
	if name := oneLine(m.Name); name != "" {
		parts = append(parts, name)
	}
	if m.ContextTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens of context", m.ContextTokens))
	}
	return strings.Join(parts, ", ")
}

// oneLine is text in which nothing can end a line or steer a terminal.
func oneLine(text string) string {
	text = strings.ToValidUTF8(text, "")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
}

func noneListed(names []string, results map[string]Result) error {
	said := make([]string, 0, len(names))
	for _, name := range names {
		switch r := results[name]; {
		case r.Error == "":
			said = append(said, name+" listed no model whose id can be used")
		case r.Detail == "":
			said = append(said, name+": "+string(r.Error))
		default:
			said = append(said, name+": "+string(r.Error)+": "+r.Detail)
		}
	}
	return protocol.Fail(protocol.ModelsNoneListed, "no provider named a model: "+strings.Join(said, "; "))
}
