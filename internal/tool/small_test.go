package tool

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEcho(t *testing.T) {
	t.Parallel()
	env, _ := newEnv(t, "sk-12345678")
	if r := ok(t, call(t, env, "echo", map[string]any{"text": "a <b> sk-12345678"})); r.Output != "a <b> [REDACTED]" {
		t.Errorf("got %s", r.Output)
	}
}

func TestNote(t *testing.T) {
	t.Parallel()
	env, w := newEnv(t)
	w.room = 10
	r := ok(t, call(t, env, "note", map[string]any{"text": "0123456789"}))
	if r.Output != `{"bytes":10,"cleared":false}` || r.Note == nil || *r.Note != "0123456789" {
		t.Errorf("got %s, %v", r.Output, r.Note)
	}
	r = call(t, env, "note", map[string]any{"text": "012345678\n"})
	failed(t, r, "note_context_limit", "11 bytes")
	if r.Note != nil {
		t.Error("a refused note was kept")
	}
	w.room = -5
	r = ok(t, call(t, env, "note", map[string]any{"text": ""}))
	if r.Output != `{"bytes":0,"cleared":true}` || r.Note == nil || *r.Note != "" {
		t.Errorf("got %s, %v", r.Output, r.Note)
	}
}

type historyResult struct {
	Turn            int64
	Format, Text    string
	Offset          int64
	NextOffset      int64 `json:"next_offset"`
	Items           int64
	Truncated, Done bool
}

func history(t *testing.T, env *Env, args map[string]any) (historyResult, Result) {
	t.Helper()
	r := ok(t, call(t, env, "history", args))
	var h historyResult
	if err := json.Unmarshal([]byte(r.Output), &h); err != nil {
		t.Fatal(err)
	}
	return h, r
}

func TestHistory(t *testing.T) {
	t.Parallel()
	line := `{"role":"user","content":"é <tag> \"quoted\""}` + "\n"
	t.Run("a short turn is one page", func(t *testing.T) {
		t.Parallel()
		env, w := newEnv(t)
		w.view = View{Text: line, Items: 1}
		h, _ := history(t, env, map[string]any{"turn": 4})
		if h.Turn != 4 || h.Format != "jsonl" || h.Text != line || h.Items != 1 || h.Truncated || !h.Done || h.NextOffset != int64(len(line)) {
			t.Errorf("got %+v", h)
		}
	})
	for _, row := range []struct {
		name      string
		room      int64
		args      map[string]any
		truncated bool
	}{
		{"pages by limit join to the whole", 1 << 20, map[string]any{"limit": 1000}, false},
		{"pages shrink to the room the context has", 3000, map[string]any{}, true},
		{"pages of four bytes join, too", 1 << 20, map[string]any{"limit": 4}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			env, w := newEnv(t)
			w.view = View{Text: strings.Repeat(line, 100), Items: 100}
			w.room = row.room
			var joined strings.Builder
			row.args["turn"] = 1
			for done := false; !done; {
				row.args["offset"] = joined.Len()
				h, r := history(t, env, row.args)
				if !utf8.ValidString(h.Text) || h.Text == "" || h.Offset != int64(joined.Len()) {
					t.Fatalf("a bad page: %+v", h)
				}
				if size := int64(len(quote(r.Output))); size > row.room {
					t.Fatalf("encoded %d bytes into room for %d", size, row.room)
				}
				if h.Truncated != (row.truncated && !h.Done) {
					t.Fatalf("truncated is %v, done %v", h.Truncated, h.Done)
				}
				joined.WriteString(h.Text)
				done = h.Done
			}
			if joined.String() != w.view.Text {
				t.Error("the pages do not join to the whole")
			}
		})
	}
	t.Run("no room", func(t *testing.T) {
		t.Parallel()
		env, w := newEnv(t)
		w.view = View{Text: line, Items: 1}
		for _, w.room = range []int64{-1, 255, 256} {
			failed(t, call(t, env, "history", map[string]any{"turn": 1}), "history_context_exhausted", "no room")
		}
	})
	t.Run("what the past refuses keeps its code", func(t *testing.T) {
		t.Parallel()
		env, w := newEnv(t)
		w.viewErr = &Failure{"turn_not_in_history", "the lineage has 3 turns"}
		failed(t, call(t, env, "history", map[string]any{"turn": 9}), "turn_not_in_history", "3 turns")
	})
}
