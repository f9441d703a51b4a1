package screen_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/internal/sonny/sonnytest"
)

var pictures = flag.Bool("pictures", false, "write the pictures of docs/screens anew")

// TestPictures plays the scenes of the guide. With -pictures it draws them:
//
//	go test ./internal/sonny/screen -run Pictures -pictures
func TestPictures(t *testing.T) {
	t.Parallel()
	like := sonnytest.Terminal{Width: 80, Height: 24, Background: "#161616", Synchronized: true, Graphemes: true}
	at := func(h *sonnytest.Home, dir string, like sonnytest.Terminal) *sonnytest.Screen {
		return h.With("COLORTERM=truecolor", sonnytest.FrozenClock).In(dir).Screen(like, "sonny", "--no-motion")
	}

	t.Run("start", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		s := at(h, dir, like)
		wants(t, s, "1 AGENTS.md", "net on · main")
		picture(t, s, "start", "No agent works in ~/demo yet", "demo.lead", "workspace-write")
	})

	t.Run("work", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		h.Write("demo/session.go", "package session\n\nvar ttl = 0\n")
		s := at(h, dir, like)
		s.WaitFor("1 AGENTS.md")
		send(s, "think: The cookie has no lifetime yet. | I set the lifetime first.")
		s.WaitFor("✔ done")
		send(s, "edit: session.go | var ttl = 0 | var ttl = 3600")
		s.Until("its end", func(screen string) bool { // a message sent earlier would steer
			return strings.Contains(screen, "\n  done") && strings.Contains(screen, "✔ done")
		})
		send(s, "sh: seq 1 40")
		s.WaitFor("+38 lines")
		picture(t, s, "work", "▸ edit  session.go  +1 −1", "▸ shell  seq 1 40")
	})

	t.Run("approval", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("row = \"manual\"\n"))
		s := at(h, dir, like)
		s.WaitFor("manual")
		send(s, "esc: git push origin v1.4.0")
		s.WaitFor("asks to leave the sandbox")
		picture(t, s, "approval", "git push origin v1.4.0", "allow once", "deny and say why")
	})

	t.Run("rail", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t, settings("task_updates = false\n"))
		h.Write("demo/session.go", "package session\n\nvar ttl = 0\n")
		wide := like
		wide.Width = 160
		s := at(h, dir, wide)
		s.WaitFor("1 AGENTS.md")
		send(s, "think: The cookie has no lifetime yet. | I set the lifetime first; the server and the tests are tasks of their own.")
		s.WaitFor("✔ done")
		turnOf(s, func() { send(s, "edit: session.go | var ttl = 0 | var ttl = 3600") })
		send(s, "/rename login cookie fix")
		s.WaitFor("login cookie fix")
		made(t, h, "demo.schema", dir, "say: the schema holds")
		settled(h, "demo.schema")
		made(t, h, "demo.server", dir, "sh: until [ -e release ]; do sleep 0.1; done")
		made(t, h, "api.lead", h.Repo("api", map[string]string{"x": "y\n"}), "sh: until [ -e release ]; do sleep 0.1; done")
		s.Keys("C-b")
		wants(t, s, "├ ✔ schema", "└ ● server", "● api.lead")
		s.Keys("Down", "Down")
		s.Type("p")
		s.WaitFor("(Alt+→ moves here)")
		s.Keys("Escape")
		s.WaitGone("Esc back to the message")
		picture(t, s, "rail", "other folders", "demo.server  ● working", "▸ shell  until [ -e release ]")
		h.Write("demo/release", "")
		h.Write("api/release", "")
	})

	t.Run("markdown", func(t *testing.T) {
		t.Parallel()
		h, dir := demo(t)
		tall := like
		tall.Height = 48
		tall.Width = 100
		s := at(h, dir, tall)
		s.WaitFor("1 AGENTS.md")
		send(s, "md: everything")
		s.WaitFor("✔ done")
		picture(t, s, "markdown", "The end of everything")
	})
}

// picture checks that a scene shows what its picture is about, and draws it when asked.
func picture(t *testing.T, s *sonnytest.Screen, name string, holds ...string) {
	t.Helper()
	wants(t, s, holds...)
	if !*pictures {
		return
	}
	path := filepath.Join("..", "..", "..", "docs", "screens", name+".svg")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	svg := strings.ReplaceAll(s.SVG(), "sonny devel", "sonny")
	if err := os.WriteFile(path, []byte(svg), 0o644); err != nil {
		t.Fatal(err)
	}
}
