package action

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAnActionsBytes(t *testing.T) {
	t.Parallel()
	of := func(brief string) *Action {
		a := new(Action)
		a.Add("bot", "demo.<a>")
		a.Text("brief", brief)
		Opt(a, "role", "")
		Opt(a, "budget", int64(0))
		a.Add("network", true)
		return a
	}
	t.Run("the order is that of the calls, and what is not there is left out", func(t *testing.T) {
		got, err := of("b").Bytes()
		if err != nil || string(got) != `{"bot":"demo.<a>","brief":"b","network":true}` {
			t.Errorf("%s, %v", got, err)
		}
	})
	t.Run("a long text is cut between characters, with its size and digest", func(t *testing.T) {
		brief := "x" + strings.Repeat("é", MaxText)
		got, err := of(brief).Bytes()
		var shown struct {
			Brief  string `json:"brief"`
			Bytes  int    `json:"brief_bytes"`
			SHA256 string `json:"brief_sha256"`
			Note   string `json:"brief_note"`
		}
		if err != nil || json.Unmarshal(got, &shown) != nil {
			t.Fatalf("%v", err)
		}
		sum := sha256.Sum256([]byte(brief))
		if len(shown.Brief) > MaxText || !utf8.ValidString(shown.Brief) || !strings.HasPrefix(brief, shown.Brief) ||
			shown.Bytes != len(brief) || shown.SHA256 != hex.EncodeToString(sum[:]) || !strings.HasPrefix(shown.Note, "cut: ") {
			t.Errorf("%d bytes of %d, %s, %s", len(shown.Brief), shown.Bytes, shown.SHA256, shown.Note)
		}
	})
	t.Run("texts whose characters are written long fit all the same", func(t *testing.T) {
		a := of(strings.Repeat("\x01", MaxText))
		a.Text("setup", strings.Repeat("\x02", MaxText))
		got, err := a.Bytes()
		again, _ := a.Bytes()
		if err != nil || len(got) > MaxBytes || !json.Valid(got) || string(got) != string(again) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
	t.Run("names alone that are too many are refused", func(t *testing.T) {
		a := new(Action)
		a.Add("paths", strings.Split(strings.Repeat("/a/path ", MaxBytes/4), " "))
		if got, err := a.Bytes(); err == nil {
			t.Errorf("%d bytes", len(got))
		}
	})
}

func FuzzAction(f *testing.F) {
	f.Add("a", "b")
	f.Add(strings.Repeat("\xff", 70_000), strings.Repeat("\"", 70_000))
	f.Fuzz(func(t *testing.T, one, two string) {
		a := new(Action)
		a.Text("one", one)
		a.Text("two", two)
		got, err := a.Bytes()
		if err != nil || len(got) > MaxBytes || !json.Valid(got) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}
