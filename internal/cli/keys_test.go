package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/model/modeltest"
)

// keyServer answers well and lets a test see what each request carried.
func keyServer(t *testing.T) *modeltest.Server {
	return modeltest.Serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("content-type", "text/event-stream")
		io.WriteString(w, wellStream["responses"])
	})
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
		{"PV-7 PO-80 a file that the group can read is refused, and nothing of it is used", 0o640, nil, ""},
		{"PV-7 one that others can write is refused as well", 0o602, nil, ""},
		{"PV-7 it is refused even where the environment has the key", 0o604, []string{"K=" + fromEnv}, ""},
		{"PV-7 PO-80 a private file's key is used", 0o600, nil, fromFile},
		{"PV-7 PO-80 one that only its owner can read as well", 0o400, nil, fromFile},
		{"PV-7 PV-68 the environment's wins", 0o600, []string{"K=" + fromEnv}, fromEnv},
		{"PV-7 an empty variable is filled up", 0o600, []string{"K="}, fromFile},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := keyServer(t)
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
				if s.Count() > 0 || len(g.made()) > 0 {
					t.Errorf("%d requests; made %q", s.Count(), g.made())
				}
				return
			}
			if r.status != 0 || s.Count() != 1 {
				t.Fatalf("exit %d, %d requests: %s", r.status, s.Count(), r.stderr)
			}
			if req, _ := s.Request(0); req.Header.Get("authorization") != "Bearer "+row.want {
				t.Errorf("the provider saw %q", req.Header.Get("authorization"))
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
	s := keyServer(t)
	g := newGround(t, "AGENT_PROVIDER=openrouter=responses,"+s.URL)
	t.Run("PV-8 a model is the provider up to the first slash, and its id all after it", func(t *testing.T) {
		out := g.must("run", "--new", "--bot", "B", "--model", "openrouter/vendor/model:free", "hi")
		if !strings.Contains(out, "Well.") {
			t.Errorf("the answer is %s", out)
		}
		if _, body := s.Request(0); !strings.Contains(string(body), `"model":"vendor/model:free"`) {
			t.Errorf("the provider was asked %s", body)
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
		if s.Count() != 1 {
			t.Errorf("%d requests", s.Count())
		}
	})
}
