package modelsfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agent/protocol"
)

func ids(list []Model) (out []string) {
	for _, m := range list {
		out = append(out, m.ID)
	}
	return out
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	old := []Model{{"gone/m", "x"}, {"a/keeps", "my note"}, {"a/lost", "y"}, {"b/kept", "z"}}
	text, results, err := Discover(old, map[string]protocol.ModelList{
		"b": {Error: "provider_http_401", Detail: "bad\nkey"},
		"a": {Models: []protocol.ModelInfo{
			{ID: "new", Name: "A new\x1b[2J\none", ContextTokens: 200_000},
			{ID: "keeps", Name: "Its name"},
			{ID: "new"},
			{ID: "has blank"},
			{ID: "has#hash"},
			{ID: ""},
			{ID: strings.Repeat("x", 257)},
			{ID: "v/x:free"},
		}},
		"c": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := heading + "\n# a\na/new # A new [2J one, 200000 tokens of context\na/keeps # my note\na/v/x:free\n" +
		"\n# b: not listed, provider_http_401\nb/kept # z\n\n# c\n"
	if string(text) != want {
		t.Errorf("PV-64 the text is\n%s\nwant\n%s", text, want)
	}
	if results["a"].Models != 3 || results["b"].Error != "provider_http_401" || results["c"] != (Result{}) || len(results) != 3 {
		t.Errorf("results %+v", results)
	}
	again, _, err := Discover(mustParse(t, text), map[string]protocol.ModelList{"a": {Error: "x"}, "b": {Models: []protocol.ModelInfo{{ID: "kept"}}}})
	if err != nil || !slices.Equal(ids(mustParse(t, again)), []string{"a/new", "a/keeps", "a/v/x:free", "b/kept"}) {
		t.Errorf("the next time: %v\n%s", err, again)
	}
}

func mustParse(t testing.TB, text []byte) []Model {
	t.Helper()
	list, err := Parse("f", text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestDiscoverNobody(t *testing.T) {
	t.Parallel()
	text, results, err := Discover([]Model{{"a/m", ""}}, map[string]protocol.ModelList{
		"a": {Error: "provider_http_500", Detail: "down"}, "b": {Models: []protocol.ModelInfo{{ID: "no use"}}},
	})
	if !errors.Is(err, protocol.ModelsNoneListed) || text != nil || len(results) != 2 ||
		!strings.Contains(err.Error(), "a: provider_http_500: down; b listed no model") {
		t.Errorf("CL-73 got %q %v", text, err)
	}
}

func TestDiscoverLeavesOutWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	many := make([]protocol.ModelInfo, 5000)
	for i := range many {
		many[i].ID = fmt.Sprintf("%d-%s", i, strings.Repeat("x", 230))
	}
	lists := map[string]protocol.ModelList{"a": {Models: []protocol.ModelInfo{{ID: "m"}}}, "big": {Models: many}, "c": {Models: []protocol.ModelInfo{{ID: "m"}}}}
	text, results, err := Discover([]Model{{"big/old", ""}}, lists)
	if err != nil || len(text) > MaxSize || results["big"].Error != protocol.ProviderModelsLimit || !strings.Contains(string(text), "# big: not listed, provider_models_limit") {
		t.Fatalf("%d bytes, %+v, %v", len(text), results["big"], err)
	}
	if got := ids(mustParse(t, text)); !slices.Equal(got, []string{"a/m", "big/old", "c/m"}) {
		t.Errorf("the file lists %q", got)
	}
}

// Whatever providers name: the file is one that reads back, and lists what the
// result says it does.
func FuzzDiscover(f *testing.F) {
	f.Add("p/m # n", "claude-1", "Claude\none", "gpt-1 x", "provider_http_500")
	f.Add("", "a#b", "\u202e", "v/x:free", "")
	f.Fuzz(func(t *testing.T, old, one, name, two, code string) {
		kept, err := Parse("f", []byte(old))
		if err != nil {
			kept = nil
		}
		text, results, err := Discover(kept, map[string]protocol.ModelList{
			"p": {Models: []protocol.ModelInfo{{ID: one, Name: name}, {ID: two}}}, "q": {Models: []protocol.ModelInfo{{ID: two, Name: name}}}, "r": {Error: "x"},
		})
		if err != nil {
			if !errors.Is(err, protocol.ModelsNoneListed) || text != nil {
				t.Fatal(err)
			}
			return
		}
		list, err := Parse("f", text)
		if err != nil {
			t.Fatalf("%q does not read back: %v", text, err)
		}
		if n := results["p"].Models + results["q"].Models; n > len(list) {
			t.Fatalf("%d models were listed, %d read back: %q", n, len(list), text)
		}
	})
}
