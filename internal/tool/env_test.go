package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"agent/internal/sandbox"
	"agent/internal/secret"
)

// TestMain lets the test program play the daemon's helper children, and the
// children of the kill tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "internal-") {
		os.Exit(HelperMain(os.Args[1:]))
	}
	if len(os.Args) > 2 && os.Args[1] == sandbox.HelperVerb {
		os.Exit(sandbox.RunHelper(os.Args[2], os.Stdin, os.Stdout))
	}
	if role := os.Getenv("TOOL_TEST_CHILD"); role != "" {
		children[role]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// children are the roles that a re-run of this program can play.
var children = map[string]func(){}

// world is what an Env reaches, kept in memory.
type world struct {
	mu        sync.Mutex
	seen      map[string]SeenFile
	artifacts map[string]string
	results   map[int64]string
	view      View
	viewErr   error
	room      int64
	pictures  [][]byte
	keepErr   error
}

func (w *world) Seen(_ context.Context, path string) (SeenFile, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.seen[path]
	return s, ok, nil
}

func (w *world) TurnView(_ context.Context, _, at int64, limit int) (View, error) {
	if w.viewErr != nil {
		return View{}, w.viewErr
	}
	v := w.view
	if at > int64(len(v.Text)) {
		return View{}, &Failure{"invalid_history_page", "past the end"}
	}
	v.Total = int64(len(v.Text))
	v.Text = v.Text[at:]
	if len(v.Text) > limit {
		v.Text = v.Text[:charStart(v.Text, limit)]
	}
	return v, nil
}

func (w *world) Artifact(_ context.Context, turn int64, callID, stream string) (io.ReadCloser, error) {
	text, ok := w.artifacts[fmt.Sprintf("%d/%s/%s", turn, callID, stream)]
	if !ok {
		return nil, &Failure{"artifact_not_found", "the call kept no such stream"}
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func (w *world) ToolResult(_ context.Context, node int64) (string, error) {
	text, ok := w.results[node]
	if !ok {
		return "", &Failure{"result_not_found", "no tool result"}
	}
	return text, nil
}

// Keep remembers a picture's bytes under a hold.
func (w *world) Keep(p *PictureData, bytes io.Reader) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keepErr != nil {
		return w.keepErr
	}
	w.pictures = append(w.pictures, nil)
	p.Hold = int64(len(w.pictures))
	data := make([]byte, p.Bytes)
	_, err := io.ReadFull(bytes, data)
	w.pictures[p.Hold-1] = data
	return err
}

// Drop forgets a picture.
func (w *world) Drop(p PictureData) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pictures = slices.Delete(w.pictures, int(p.Hold-1), int(p.Hold))
}

func (w *world) NoteRoom(context.Context) (int64, error)    { return w.room, nil }
func (w *world) HistoryRoom(context.Context) (int64, error) { return w.room, nil }

// newEnv is a call's surroundings in fresh folders.
func newEnv(t testing.TB, values ...string) (*Env, *world) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var known secret.Values
	for _, v := range values {
		known.Add(secret.Named{Name: "TEST", Value: secret.NewValue(v)})
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{seen: map[string]SeenFile{}, artifacts: map[string]string{}, results: map[int64]string{}, room: 1 << 20}
	workspace := filepath.Join(dir, "work")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	return &Env{
		Bot: "Ada", BotID: 3, Turn: 7, CallID: "call_1",
		Workspace: workspace,
		Environ:   []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir},
		Shell:     FindShell(),
		FilesDir:  filepath.Join(dir, "state.files", "3"),
		Redact:    &known,
		Processes: NewSlots(0),
		Captures:  NewBudget(16 << 20),
		SelfExe:   self,
		IsStoreFile: func(os.FileInfo) bool {
			return false
		},
		Seen: w, Past: w,
		Pictures: w,
	}, w
}

// call runs a tool with arguments given as pairs of name and value, and
// remembers what it saw, as the engine does.
func call(t testing.TB, env *Env, name string, args map[string]any) Result {
	t.Helper()
	return callContext(t, context.Background(), env, name, args)
}

func callContext(t testing.TB, ctx context.Context, env *Env, name string, args map[string]any) Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	tool, ok := Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	r := tool.Run(ctx, env, raw)
	w := env.Seen.(*world)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range r.Seen {
		w.seen[s.Path] = s
	}
	return r
}

// failed checks that a result is an error with code whose detail says what it
// should.
func failed(t testing.TB, r Result, code, says string) {
	t.Helper()
	var e struct{ Error, Detail string }
	if err := json.Unmarshal([]byte(r.Output), &e); err != nil || !r.Failed || e.Error != code || !strings.Contains(e.Detail, says) {
		t.Errorf("got failed=%v %.600s; want %s saying %q", r.Failed, r.Output, code, says)
	}
}

// ok checks that a call did not fail.
func ok(t testing.TB, r Result) Result {
	t.Helper()
	if r.Failed {
		t.Fatalf("failed: %.600s", r.Output)
	}
	return r
}

// file writes a file of the workspace and gives its path.
func file(t testing.TB, env *Env, name, content string) string {
	t.Helper()
	path := filepath.Join(env.Workspace, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// holds checks a file's content.
func holds(t testing.TB, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s holds %.300q, want %.300q", filepath.Base(path), got, want)
	}
}

// unmasked is for what needs no more surroundings than a redactor.
var unmasked = &Env{Redact: noSecrets{}}

// noSecrets masks nothing.
type noSecrets struct{}

func (noSecrets) Bytes(b []byte) []byte             { return b }
func (noSecrets) Stream(w io.Writer) io.WriteCloser { return unclosed{w} }

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
