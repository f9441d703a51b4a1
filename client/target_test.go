package client

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agent/protocol"
)

func TestResolve(t *testing.T) {
	home, _ := newHome(t)
	other := filepath.Join(home, "other.sqlite")
	link := filepath.Join(home, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name          string
		store, socket string // flags
		env           map[string]string
		want          Target
		code          protocol.Code
	}{
		{"the default store and the socket beside it", "", "", nil, Target{home + "/.agent/state.sqlite", home + "/.agent/state.sqlite.sock"}, ""},
		{"AGENT_STORE", "", "", map[string]string{"AGENT_STORE": other}, Target{other, other + ".sock"}, ""},
		{"an empty variable counts as unset", "", "", map[string]string{"AGENT_STORE": "", "AGENT_SOCKET": ""}, Target{home + "/.agent/state.sqlite", home + "/.agent/state.sqlite.sock"}, ""},
		{"AGENT_SOCKET beside the default store", "", "", map[string]string{"AGENT_SOCKET": "/x/s"}, Target{home + "/.agent/state.sqlite", "/x/s"}, ""},
		{"CL-9 an explicit store beats AGENT_SOCKET", other, "", map[string]string{"AGENT_SOCKET": "/x/s"}, Target{other, other + ".sock"}, ""},
		{"both flags are used as given", other, "/y/s", map[string]string{"AGENT_SOCKET": "/x/s"}, Target{other, "/y/s"}, ""},
		{"an alias derives the same socket", filepath.Join(link, "other.sqlite"), "", nil, Target{other, other + ".sock"}, ""},
		{"a socket too long for an address", other, "/" + strings.Repeat("x", 200), nil, Target{}, protocol.InvalidSocketPath},
		{"a store that is a folder", home, "", nil, Target{}, protocol.InvalidStorePath},
	} {
		t.Run(row.name, func(t *testing.T) {
			for name, value := range row.env {
				t.Setenv(name, value)
			}
			got, err := Resolve(row.store, row.socket)
			if got != row.want || protocol.CodeOf(err) != row.code {
				t.Errorf("got %+v %v", got, err)
			}
		})
	}
	t.Run("CL-10 a long store path derives a private socket under /tmp", func(t *testing.T) {
		socket, err := SocketFor(filepath.Join(home, strings.Repeat("d", 100), "s.sqlite"))
		if err != nil || !strings.HasPrefix(socket, "/tmp/agent-") || !strings.HasSuffix(socket, ".sock") {
			t.Errorf("%s %v", socket, err)
		}
	})
}

func TestFromBotEnv(t *testing.T) {
	newHome(t)
	for _, row := range []struct {
		name string
		env  map[string]string
		want *BotEnv
		code protocol.Code
	}{
		{"outside a bot's shell", nil, nil, ""},
		{
			"a whole identity",
			map[string]string{"AGENT_BOT": "B", "AGENT_BOT_ID": "3", "AGENT_TURN": "9", "AGENT_SOCKET": "/s", "AGENT_PARENT": "P", "AGENT_PARENT_ID": "2"},
			&BotEnv{Bot: "B", BotID: 3, Turn: 9, Socket: "/s", Parent: "P", ParentID: 2}, "",
		},
		{"without a turn", map[string]string{"AGENT_BOT": "B", "AGENT_BOT_ID": "3"}, &BotEnv{Bot: "B", BotID: 3}, ""},
		{"a name without an id", map[string]string{"AGENT_BOT": "B"}, nil, protocol.CreatorIdentityRequired},
		{"an id without a name", map[string]string{"AGENT_BOT_ID": "3"}, nil, protocol.CreatorIdentityRequired},
		{"an id that is no positive integer", map[string]string{"AGENT_BOT": "B", "AGENT_BOT_ID": "0"}, nil, protocol.CreatorIdentityRequired},
	} {
		t.Run(row.name, func(t *testing.T) {
			for name, value := range row.env {
				t.Setenv(name, value)
			}
			got, err := FromBotEnv()
			if protocol.CodeOf(err) != row.code || (got == nil) != (row.want == nil) || got != nil && *got != *row.want {
				t.Errorf("got %+v %v", got, err)
			}
		})
	}
}

func TestABotsClientDeclaresIt(t *testing.T) {
	t.Parallel()
	got := make(chan any, 1)
	f := newFake(t, func(s *fakeSession, r protocol.Request) {
		got <- r.Params
		s.refuse(r, protocol.Fail(protocol.BotSocketRefused, "").With("op", r.Op).With("scope", protocol.Scope{Bot: "B", BotID: 3}))
	})
	b := &BotEnv{Bot: "B", BotID: 3, Turn: 9, Socket: f.socket, Store: "/none"}
	c := b.Client()
	t.Cleanup(func() { c.Close() })
	asked := &protocol.Create{Bot: "X"}
	if _, err := c.Create(t.Context(), asked); !errors.Is(err, protocol.BotSocketRefused) {
		t.Fatal(err)
	}
	if p := (<-got).(*protocol.Create); p.CreatedBy != "B" || p.CreatedByID != 3 || *p.From != (protocol.From{Bot: "B", Turn: 9}) || asked.CreatedBy != "" {
		t.Errorf("got %+v of %+v", p, asked)
	}
	c.Fork(t.Context(), &protocol.Fork{Source: "S", Bot: "X", CreatedBy: "Y", CreatedByID: 4})
	if p := (<-got).(*protocol.Fork); p.CreatedBy != "Y" || p.CreatedByID != 4 {
		t.Errorf("got %+v", p)
	}
	c.Submit(t.Context(), &protocol.Submit{Bot: "X"})
	if p := (<-got).(*protocol.Submit); *p.From != (protocol.From{Bot: "B", Turn: 9}) {
		t.Errorf("got %+v", p)
	}
	c.Submit(t.Context(), &protocol.Submit{Bot: "X", Origin: "trigger"})
	if p := (<-got).(*protocol.Submit); p.From != nil || p.Origin != "trigger" {
		t.Errorf("got %+v", p)
	}
	c.Pause(t.Context(), "x")
	if p := (<-got).(*protocol.PauseRequest); *p.From != (protocol.From{Bot: "B", Turn: 9}) || p.By != "" {
		t.Errorf("got %+v", p)
	}
}

func TestConfinedCommandsAreToldTheWayOn(t *testing.T) {
	newHome(t)
	t.Run("CL-90 the detail names the network and require_escalated", func(t *testing.T) {
		t.Setenv("AGENT_SANDBOX_NETWORK_DISABLED", "1")
		c := &Client{Target: Target{Socket: "/s"}, Dial: func(context.Context, string) (net.Conn, error) {
			return nil, os.NewSyscallError("socket", syscall.EPERM)
		}}
		_, err := c.Ready(t.Context())
		if !errors.Is(err, protocol.DaemonUnavailable) || !strings.Contains(err.Error(), "network") || !strings.Contains(err.Error(), "require_escalated") {
			t.Errorf("got %v", err)
		}
	})
}
