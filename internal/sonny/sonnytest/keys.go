package sonnytest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// plainKeys are the keys that have a name in tmux, with what a terminal sends for each.
var plainKeys = map[string]string{
	"Enter": "\r", "Escape": "\x1b", "Tab": "\t", "BTab": "\x1b[Z", "Space": " ", "BSpace": "\x7f",
	"F1": "\x1bOP", "F2": "\x1bOQ", "F3": "\x1bOR", "F4": "\x1bOS",
}

// finals are the keys whose sequence ends in a letter, numbers those whose sequence
// ends in a number and ~. Both take modifiers.
var (
	finals  = map[string]string{"Up": "A", "Down": "B", "Right": "C", "Left": "D", "Home": "H", "End": "F"}
	numbers = map[string]string{
		"IC": "2", "DC": "3", "PPage": "5", "PageUp": "5", "NPage": "6", "PageDown": "6",
		"F5": "15", "F6": "17", "F7": "18", "F8": "19", "F9": "20", "F10": "21", "F11": "23", "F12": "24",
	}
)

// keySequence is what a terminal sends for a key by tmux's name: a character, a named
// key, with C-, M- and S- before it.
func keySequence(name string) (string, error) {
	key, ctrl, meta, shift := modifiers(name)
	modifier := ""
	if n := 1 + 4*ctrl + 2*meta + shift; n > 1 {
		modifier = fmt.Sprint(n)
	}
	if final, ok := finals[key]; ok {
		if modifier != "" {
			return "\x1b[1;" + modifier + final, nil
		}
		return "\x1b[" + final, nil
	}
	if number, ok := numbers[key]; ok {
		if modifier != "" {
			modifier = ";" + modifier
		}
		return "\x1b[" + number + modifier + "~", nil
	}
	seq, named := plainKeys[key]
	if !named {
		seq = key
	}
	if shift == 1 || !named && utf8.RuneCountInString(key) != 1 {
		return "", fmt.Errorf("no terminal has a sequence for the key %s", name)
	}
	if ctrl == 1 {
		code, ok := controlOf(seq)
		if !ok {
			return "", fmt.Errorf("no terminal has a sequence for the key %s", name)
		}
		seq = string(rune(code))
	}
	return strings.Repeat("\x1b", meta) + seq, nil
}

// modifiers takes the modifiers off a key's name, each 0 or 1.
func modifiers(name string) (key string, ctrl, meta, shift int) {
	for len(name) > 2 && name[1] == '-' {
		switch name[0] {
		case 'C':
			ctrl = 1
		case 'M':
			meta = 1
		case 'S':
			shift = 1
		default:
			return name, ctrl, meta, shift
		}
		name = name[2:]
	}
	return name, ctrl, meta, shift
}

// controlOf is the control character of a key.
func controlOf(key string) (byte, bool) {
	if key == " " {
		return 0, true
	}
	if len(key) != 1 {
		return 0, false
	}
	c := strings.ToUpper(key)[0]
	return c & 0x1f, c >= '@' && c <= '_'
}
