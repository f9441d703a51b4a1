package model

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzAppendBeside(f *testing.F) {
	own := Picture{Hash: [32]byte{1}}.Placeholder()
	f.Add("plain")
	f.Add(own)
	f.Add(`a \` + own + ` "` + own + `" \\` + own)
	f.Add(own + own)
	f.Add("@pictur" + own)
	f.Fuzz(func(t *testing.T, text string) {
		b := AppendBeside([]byte("["), text)
		if at, _ := FindPlaceholder(b); at >= 0 {
			t.Errorf("%s is taken for a picture", b)
		}
		var back string
		if err := json.Unmarshal(b[1:], &back); err != nil || utf8.ValidString(text) && back != text {
			t.Errorf("%q comes back as %q: %v", text, back, err)
		}
		if !strings.Contains(text, picturePrefix) && string(b[1:]) != string(AppendString(nil, text)) {
			t.Errorf("%q was changed", text)
		}
	})
}
