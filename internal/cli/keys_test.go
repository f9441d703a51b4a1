package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// keyServer answers well and keeps what each request carried.
type keyServer struct {
	*httptest.Server
	mu     sync.Mutex
	keys   []string // the authorization header
	bodies []string
}

func newKeyServer(t *testing.T) *keyServer {
	s := &keyServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.keys, s.bodies = append(s.keys, r.Header.Get("authorization")), append(s.bodies, string(body))
		s.mu.Unlock()
		w.Header().Set("content-type", "text/event-stream")
		io.WriteString(w, wellStream["responses"])
	}))
	t.Cleanup(s.Close)
	return s
}

// asked gives the keys and the bodies of all requests so far.
func (s *keyServer) asked() (keys, bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys), slices.Clone(s.bodies)
}

// envFile writes ~/.agent/env.
func (g *ground) envFile(mode os.FileMode, text string) string {
	g.t.Helper()
	path := filepath.Join(g.home, ".agent", "env")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		g.t.Fatal(err)
	}
	return path
}

func TestWhereKeysComeFrom(t *testing.T) {
	t.Parallel()
	const fromFile, fromEnv = "key-of-the-file", "key-of-the-environment"
	for _, row := range []struct {
		name string
		mode os.FileMode
		env  []string
		want string // the key that the provider sees; "" when nothing starts
	}{
		{"AP-66 PV-7 PO-80 a file that the group can read is refused, and nothing of it is used", 0o640, nil, ""},
		{"PV-7 one that others can write is refused as well", 0o602, nil, ""},
		{"PV-7 it is refused even where the environment has the key", 0o604, []string{"K=" + fromEnv}, ""},
		{"PV-7 PO-80 a private file's key is used", 0o600, nil, fromFile},
		{"PV-7 PO-80 one that only its owner can read as well", 0o400, nil, fromFile},
		{"AP-83 PV-7 PV-68 the environment's wins", 0o600, []string{"K=" + fromEnv}, fromEnv},
		{"AP-83 PV-7 an empty variable is filled up", 0o600, []string{"K="}, fromFile},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newKeyServer(t)
			g := newGround(t, append(row.env, "AGENT_PROVIDER=p=responses,"+s.URL+",K")...)
			path := g.envFile(row.mode, "K="+fromFile+"\n")
			r := g.run("run", "--new", "--bot", "B", "--model", "p/m", "hi")
			if strings.Contains(r.stdout+r.stderr, fromFile) || strings.Contains(r.stdout+r.stderr, fromEnv) {
				t.Errorf("a key is shown: %s%s", r.stdout, r.stderr)
			}
			if row.want == "" {
				if r.status != 1 || r.code() != "env_file_permissions" || !strings.Contains(r.stderr, path) || !strings.Contains(r.stderr, fmt.Sprintf("%04o", row.mode)) {
					t.Errorf("exit %d: %s", r.status, r.stderr)
				}
				if keys, _ := s.asked(); len(keys) > 0 || len(g.made()) > 0 {
					t.Errorf("%d requests; made %q", len(keys), g.made())
				}
				return
			}
			if keys, _ := s.asked(); r.status != 0 || !slices.Equal(keys, []string{"Bearer " + row.want}) {
				t.Fatalf("exit %d, the provider saw %q: %s", r.status, keys, r.stderr)
			}
			t.Run("PO-80 nothing else below the home holds a key", func(t *testing.T) {
				found := map[string][]byte{}
				g.written(t, found)
				for file, text := range found {
					if strings.Contains(string(text), fromFile) || strings.Contains(string(text), fromEnv) {
						t.Errorf("%s holds a key", file)
					}
				}
			})
		})
	}
}

func TestModelReferences(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t)
	g := newGround(t, "AGENT_PROVIDER=openrouter=responses,"+s.URL)
	t.Run("PV-8 a model is the provider up to the first slash, and its id all after it", func(t *testing.T) {
		out := g.must("run", "--new", "--bot", "B", "--model", "openrouter/vendor/model:free", "hi")
		if !strings.Contains(out, `"status":"completed"`) {
			t.Errorf("it ended %s", out)
		}
		if _, bodies := s.asked(); len(bodies) != 1 || !strings.Contains(bodies[0], `"model":"vendor/model:free"`) {
			t.Errorf("the provider was asked %s", bodies)
		}
		if shown := g.must("show", "--bot", "B"); !strings.Contains(shown, `"provider":"openrouter"`) || !strings.Contains(shown, `"model":"vendor/model:free"`) {
			t.Errorf("the bot's record is %s", shown)
		}
	})
	t.Run("PV-8 what names no provider, or none that can be, is invalid_model", func(t *testing.T) {
		for i, model := range []string{"x", "/x", "a b/x", "openrouter/", "", "openrouter/a\u007fb", "openrouter/" + strings.Repeat("x", 257), strings.Repeat("p", 65) + "/x"} {
			k := record(t, g)
			model, _ := json.Marshal(model)
			k.refuses("invalid_model", "create", fmt.Sprintf(`,"bot":"C%d","model":%s,"instructions":"","tools":[]`, i, model))
			k.refuses("invalid_model", "submit", fmt.Sprintf(`,"bot":"B","request_id":"m%d","prompt":"x","model":%s`, i, model))
		}
		if _, bodies := s.asked(); len(bodies) != 1 {
			t.Errorf("%d requests", len(bodies))
		}
	})
}

func TestStatedTransport(t *testing.T) {
	t.Parallel()
	s := newKeyServer(t)
	g := newGround(t, "AGENT_PROVIDER=openai=responses,"+s.URL)
	g.must("start")
	t.Run("PV-3 a stated transport that the daemon's is not is named, and nothing is submitted", func(t *testing.T) {
		r := g.run("run", "--new", "--bot", "B", "--model", "openai/m", "--provider", "openai=responses-ws,"+s.URL, "hi")
		if r.status != 1 || r.code() != "daemon_configuration_mismatch" || !strings.Contains(r.stderr, "transport websocket but daemon has http") {
			t.Errorf("exit %d: %s", r.status, r.stderr)
		}
		if keys, _ := s.asked(); len(keys) > 0 || strings.Contains(g.must("ls"), `"B"`) {
			t.Error("something was submitted")
		}
	})
	t.Run("PV-3 another AGENT_PROVIDER is no conflict", func(t *testing.T) {
		g.env = append(g.env, "AGENT_PROVIDER=openai=responses-ws,"+s.URL)
		if out := g.must("run", "--new", "--bot", "B", "--model", "openai/m", "hi"); !strings.Contains(out, `"status":"completed"`) {
			t.Errorf("it ended %s", out)
		}
	})
}
