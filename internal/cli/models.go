package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"agent/client/modelsfile"
	"agent/client/termsafe"
	"agent/internal/place"
	"agent/protocol"
)

var modelsVerb = verb{
	name: "models", short: "the models list; --discover writes it",
	long: "Prints what ~/.agent/models lists: one PROVIDER/MODEL a line there, # and a note\n" +
		"after it. Clients offer those; the daemon runs any model. No daemon is needed.\n\n" +
		"--discover asks every provider of the daemon, starting one as run would, and\n" +
		"replaces the file: who answered gets new lines, who did not keeps the old ones, and\n" +
		"lines of providers that the daemon does not have go.",
	declare: func(a *app, t *table) func(context.Context, []string) error {
		c, discover := a.common(t), false
		t.toggle(&discover, "discover", "write the list anew from what the providers say they serve")
		s := t.starts()
		return func(ctx context.Context, _ []string) error {
			if discover {
				return a.discover(ctx, c, s)
			}
			if f := t.givenIn(ofDaemon); f != nil {
				return usagef("--%s is of a daemon, and models needs none without --discover", f.name)
			}
			return a.models()
		}
	},
}

var modelsColumns = []string{"ID", "NOTE"}

func modelsRow(entry json.RawMessage) ([]string, error) {
	var m modelsfile.Model
	if err := json.Unmarshal(entry, &m); err != nil {
		return nil, err
	}
	return []string{m.ID, m.Note}, nil
}

func (a *app) models() error {
	path, err := modelsfile.DefaultPath()
	if err != nil {
		return err
	}
	list, there, err := modelsfile.Read(path)
	if err != nil {
		return err
	}
	if !there && a.pretty {
		fmt.Fprintf(a.stderr, "agent: there is no %s; write one PROVIDER/MODEL a line into it, or run: agent models --discover\n", termsafe.OneLine(path))
	}
	return a.list(modelsColumns, modelsRow, func() ([]json.RawMessage, bool, error) {
		page := make([]json.RawMessage, len(list))
		for i := range list {
			if page[i], err = protocol.Append(nil, &list[i]); err != nil {
				return nil, false, err
			}
		}
		return page, false, nil
	})
}

// discover writes the list anew (section 13). The file is read first: one that
// cannot be read is a person's work, and is not replaced.
func (a *app) discover(ctx context.Context, c *common, s *startup) error {
	if _, err := s.limitsOf(); err != nil {
		return err
	}
	path, err := modelsfile.DefaultPath()
	if err != nil {
		return err
	}
	old, _, err := modelsfile.Read(path)
	if err != nil {
		return err
	}
	l, err := a.connect(ctx, c, s, startAny)
	if err != nil {
		return err
	}
	defer l.Close()
	lists, err := l.ProviderModels(ctx)
	if err != nil {
		return err
	}
	text, results, err := modelsfile.Discover(old, lists.Providers)
	if err != nil {
		return err
	}
	if _, err := place.MakeAgentDir(); err != nil {
		return err
	}
	if err := modelsfile.Write(path, text); err != nil {
		return fmt.Errorf("writing the models list: %w", err)
	}
	if a.pretty {
		for _, note := range serverNotes(l.ready.Providers) {
			fmt.Fprintf(a.stderr, "agent: %s\n", note)
		}
	}
	return a.printDiscovered(path, results)
}

// serverNotes is what a person has to see to at the local servers among the
// providers (providers.md 9), one line for each.
func serverNotes(providers map[string]protocol.ProviderInfo) (notes []string) {
	for _, server := range []struct{ name, note string }{
		{"ollama", "Ollama cuts long prompts without a word: set OLLAMA_CONTEXT_LENGTH to 32768 or more"},
		{"llamacpp", "llama-server calls tools only when it is started with --jinja; --ctx-size sets its context"},
		{"vllm", "vLLM calls tools only with --enable-auto-tool-choice --tool-call-parser NAME"},
		{"lmstudio", "LM Studio loads a model when it is first asked; whether tools work is the model's affair"},
	} {
		if providers[server.name].Family == "chat" {
			notes = append(notes, server.name+": "+server.note)
		}
	}
	return notes
}

func (a *app) printDiscovered(path string, results map[string]modelsfile.Result) error {
	object, err := protocol.Append(nil, struct {
		Path      string                       `json:"path"`
		Written   bool                         `json:"written"`
		Providers map[string]modelsfile.Result `json:"providers"`
	}{path, true, results})
	if err != nil {
		return err
	}
	return a.printObject(object)
}
