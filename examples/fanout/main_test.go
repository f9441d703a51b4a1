package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agent/client"
	"agent/protocol"
)

// The lead answers at once; the five never do.
const script = `{"version": 1, "models": {"m": {"scripts": [
  {"match": {"prefix": "Look"}, "steps": [{"text": "Seen."}]},
  {"match": {"regex": "^(What|How|Which)"}, "steps": [{"delay_ms": 3600000, "text": "Late."}]}
]}}}`

func TestNoBotIsLeftWhenItIsEnded(t *testing.T) {
	home, err := os.MkdirTemp("/tmp", "fanout-") // short: a socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	agent := filepath.Join(t.TempDir(), "agent")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", agent, "../../cmd/agent")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	models := filepath.Join(home, "models.json")
	if err := os.WriteFile(models, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"HOME": home, "AGENT_STORE": "", "AGENT_SOCKET": "", "AGENT_MODEL": "mine/m"} {
		t.Setenv(name, value)
	}
	c := &client.Client{Starter: &client.Starter{Bin: agent, Providers: []string{"mine=scripted," + models}}}
	defer c.Close()
	if _, err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer c.Shutdown(context.Background(), 0)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, c, home) }()
	began := 0
	for e, err := range c.Follow(t.Context(), "*", client.FollowOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == protocol.KindAccepted {
			began++
		}
		if began == 1+len(sides) {
			break
		}
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("it did not say that it was ended")
	}
	for bot, err := range c.Bots(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s is left, %s", bot.Name, bot.Status)
	}
}
