package cli

import (
	"strings"
	"testing"

	"agent/protocol"
)

func TestServerNotes(t *testing.T) {
	t.Parallel()
	got := serverNotes(map[string]protocol.ProviderInfo{
		"vllm": {Family: "chat"}, "ollama": {Family: "chat"}, "llamacpp": {Family: "responses"}, "mine": {Family: "chat"},
	})
	if len(got) != 2 || !strings.HasPrefix(got[0], "ollama: ") || !strings.Contains(got[0], "OLLAMA_CONTEXT_LENGTH") || !strings.HasPrefix(got[1], "vllm: ") {
		t.Errorf("%q", got)
	}
}
