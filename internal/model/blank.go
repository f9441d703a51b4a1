package model

import (
	"strings"
	"unicode"
)

// Blank reports whether a text holds nothing but white space, as the strictest
// provider sees it.
func Blank[Text ~[]byte | ~string](text Text) bool {
	return strings.TrimFunc(string(text), func(r rune) bool {
		return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
	}) == ""
}

// Said is what a user said, or what stands for it where that is blank: once
// stored, a text that a provider refuses would make every later request of the
// conversation fail.
func Said(text string) string {
	if Blank(text) {
		return "(blank)"
	}
	return text
}
