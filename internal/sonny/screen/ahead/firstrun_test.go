package ahead

import (
	"context"
	"errors"
	"strings"
	"testing"

	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/setup"
	"agent/protocol"
)

// still is a terminal on which nothing happens.
type still struct{}

func (*still) Events() <-chan term.Event { return nil }
func (*still) Draw(*term.Frame)          {}
func (*still) Write(string)              {}
func (*still) Size() (int, int, error)   { return 80, 24, nil }
func (*still) Suspend()                  {}
func (*still) Resume() error             { return nil }

// first is a first-run screen whose provider answers as it is told.
type first struct {
	*FirstRun
	t     *testing.T
	kept  []string
	asked int
}

func newFirst(t *testing.T, models []string, answer error) *first {
	f := &first{t: t}
	f.FirstRun = &FirstRun{
		Term: &still{}, Keys: keys.Default(), w: 80, h: 24, results: make(chan func(), 1),
		Try: func(context.Context, setup.Provider, string) ([]string, error) { f.asked++; return models, answer },
		Keep: func(p setup.Provider, key string, models []string) error {
			f.kept = append(f.kept, p.Name+" "+key)
			return nil
		},
	}
	return f
}

// press presses keys, and waits for what a provider was asked.
func (f *first) press(names ...string) (done bool) {
	f.t.Helper()
	for _, name := range names {
		k := term.Key{Name: name}
		if len(name) == 1 {
			k.Text = name
		}
		var err error
		if done, err = f.FirstRun.press(context.Background(), k); err != nil {
			f.t.Fatal(err)
		}
		if f.step == trying {
			(<-f.results)()
		}
	}
	return done
}

func (f *first) paste(key string) { f.field.Editor().Type(key) }

func (f *first) screen() string {
	frame := term.NewFrame(80, 24)
	f.view(frame)
	var rows []string
	for y := range 24 {
		rows = append(rows, frame.Row(y))
	}
	return strings.Join(rows, "\n")
}

func TestAKeyAtTheFirstRun(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-api03-secret"

	t.Run("a key that works is kept, and Enter goes on", func(t *testing.T) {
		f := newFirst(t, []string{"anthropic/a", "anthropic/b"}, nil)
		f.paste(key)
		if strings.Contains(f.screen(), "secret") || !strings.Contains(f.screen(), "•••") {
			t.Errorf("the key is on screen:\n%s", f.screen())
		}
		if f.press("enter") {
			t.Error("it went on by itself")
		}
		if len(f.kept) != 1 || f.kept[0] != "anthropic "+key || !strings.Contains(f.screen(), "✔ anthropic  2 models") {
			t.Errorf("kept %q\n%s", f.kept, f.screen())
		}
		if !f.press("enter") {
			t.Error("Enter did not go on")
		}
	})

	t.Run("a refused one is kept on the person's word alone", func(t *testing.T) {
		f := newFirst(t, nil, setup.Refused{Err: protocol.Fail("provider_http_401", "invalid x-api-key")})
		f.paste(key)
		f.press("enter")
		if len(f.kept) != 0 || !strings.Contains(f.screen(), "invalid x-api-key") || strings.Contains(f.screen(), "secret") {
			t.Errorf("kept %q\n%s", f.kept, f.screen())
		}
		f.press("esc")
		if f.key != "" || len(f.kept) != 0 {
			t.Errorf("going back kept something: %q", f.kept)
		}
		f.paste(key)
		f.press("enter", "k")
		if len(f.kept) != 1 {
			t.Errorf("kept %q", f.kept)
		}
	})

	t.Run("a provider that cannot be reached keeps it, with a warning", func(t *testing.T) {
		f := newFirst(t, nil, errors.New("no route to host"))
		f.paste(key)
		f.press("enter")
		if len(f.kept) != 1 || !strings.Contains(f.screen(), "no route to host") {
			t.Errorf("kept %q\n%s", f.kept, f.screen())
		}
	})

	t.Run("SO-122 one of no known prefix is asked about", func(t *testing.T) {
		f := newFirst(t, []string{"openai/a"}, nil)
		f.paste("xyz")
		f.press("enter")
		if f.asked != 0 || !strings.Contains(f.screen(), "Whose key is it?") {
			t.Fatalf("asked %d\n%s", f.asked, f.screen())
		}
		f.press("2")
		if len(f.kept) != 1 || f.kept[0] != "openai xyz" {
			t.Errorf("kept %q", f.kept)
		}
	})
}
