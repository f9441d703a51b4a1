package term

import (
	"unicode"
	"unicode/utf8"

	"agent/internal/sonny/screen/theme"

	uv "github.com/charmbracelet/ultraviolet"
)

// reply is what the terminal answers to the questions of Open.
type reply struct {
	mode    int // of a report of a DEC mode
	known   bool
	kitty   bool // the keyboard protocol
	done    bool // the last question was answered
	begins  bool // a paste begins
	colored bool // a Background is the answer to the question for the colour
}

// decode says what one whole sequence is: an event, a reply, or neither.
func decode(d *uv.EventDecoder, seq []byte) (Event, reply) {
	_, e := d.Decode(seq)
	switch e := e.(type) {
	case uv.KeyPressEvent:
		return keyOf(uv.Key(e)), reply{}
	case uv.MultiEvent:
		return first(e), reply{}
	case uv.MouseEvent:
		return mouseOf(e), reply{}
	case uv.FocusEvent:
		return Focus{In: true}, reply{}
	case uv.BlurEvent:
		return Focus{}, reply{}
	case uv.PasteStartEvent:
		return nil, reply{begins: true}
	case uv.ClipboardEvent:
		return Clipboard{Text: e.Content}, reply{}
	case uv.DarkColorSchemeEvent:
		return Background{Dark: true}, reply{}
	case uv.LightColorSchemeEvent:
		return Background{}, reply{}
	case uv.BackgroundColorEvent:
		return backgroundOf(e), reply{colored: true}
	case uv.ModeReportEvent:
		return nil, reply{mode: e.Mode.Mode(), known: !e.Value.IsNotRecognized()}
	case uv.KeyboardEnhancementsEvent:
		return nil, reply{kitty: true}
	case uv.PrimaryDeviceAttributesEvent:
		return nil, reply{done: true}
	}
	return nil, reply{}
}

// first is the key of several meanings of one sequence.
func first(of uv.MultiEvent) Event {
	for _, e := range of {
		if k, ok := e.(uv.KeyPressEvent); ok {
			return keyOf(uv.Key(k))
		}
	}
	return nil
}

func backgroundOf(e uv.BackgroundColorEvent) Event {
	if e.Color == nil {
		return nil
	}
	r, g, b, _ := e.RGBA()
	c := theme.RGB(uint8(r>>8), uint8(g>>8), uint8(b>>8))
	return Background{Dark: theme.IsDark(c), Color: c}
}

func mouseOf(e uv.MouseEvent) Event {
	m := e.Mouse()
	out := Mouse{X: m.X, Y: m.Y, Shift: m.Mod.Contains(uv.ModShift), Alt: m.Mod.Contains(uv.ModAlt), Ctrl: m.Mod.Contains(uv.ModCtrl)}
	switch m.Button {
	case uv.MouseLeft:
		out.Button = Left
	case uv.MouseMiddle:
		out.Button = Middle
	case uv.MouseRight:
		out.Button = Right
	}
	switch e.(type) {
	case uv.MouseReleaseEvent:
		out.Kind = Release
	case uv.MouseMotionEvent:
		out.Kind = Drag
	case uv.MouseWheelEvent:
		out.Kind = WheelUp + MouseKind(m.Button-uv.MouseWheelUp)
	}
	return out
}

const chording = uv.ModCtrl | uv.ModAlt | uv.ModMeta | uv.ModHyper | uv.ModSuper

// keyOf spells a key as key maps do. What types a character is named by it; a chord
// names the key as it is labelled, and where that is no ASCII, the key of a Latin
// keyboard in its place.
func keyOf(k uv.Key) Event {
	k.Mod &= chording | uv.ModShift
	if k.Text != "" && k.Mod&chording == 0 {
		if !typed(k.Text) {
			return nil
		}
		name := k.Text
		if name == " " {
			name = "space"
		}
		return Key{Name: name, Text: k.Text}
	}
	if k.Code < utf8.RuneSelf {
		k.BaseCode = 0
	}
	if k.Mod.Contains(uv.ModShift) && unicode.IsPrint(k.ShiftedCode) && !unicode.IsLetter(k.ShiftedCode) {
		k.Code, k.Mod = k.ShiftedCode, k.Mod&^uv.ModShift
	}
	if k.Code == utf8.RuneError || k.Code >= uv.KeyLeftShift && k.Code <= uv.KeyIsoLevel5Shift {
		return nil
	}
	k.Text = ""
	return Key{Name: k.Keystroke()}
}

// typed reports whether a text may come from a key: none of its characters acts on a
// terminal.
func typed(s string) bool {
	for _, r := range s {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return false
		}
	}
	return true
}
