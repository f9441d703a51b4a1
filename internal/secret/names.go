package secret

import (
	"bytes"
	"strings"
)

// maxName is how long a field's name is looked at, in bytes: of a longer run
// the last 64 count.
const maxName = 64

// class is how much a field's name says about its value (approvals.md 20.5).
type class byte

const (
	harmless class = iota
	always         // the value is a secret
	strict         // it is one if it looks like one
	header         // it is one behind a scheme
	cookie         // it is one if it looks like a cookie
)

// secretNames are secrets by themselves and behind another word.
var secretNames = []string{
	"password", "passwd", "passphrase", "api_key", "apikey", "access_key", "secret_key", "secret_access_key",
	"private_key", "signing_key", "encryption_key",
}

// secretEndings are secrets behind another word alone.
var secretEndings = []string{"_pass", "_pwd", "_secret", "_token"}

// plainTokens are the words before _token that make it a place in a list, or a
// mark in a vocabulary.
var plainTokens = []string{
	"page", "next", "continuation", "pagination", "sync", "resume", "cursor", "eos", "bos", "pad", "unk", "sep", "cls",
	"mask", "special",
}

// endsSecretly reports whether a name ends in the last three letters of a
// secret's: a look at them rules out most others.
func endsSecretly(name []byte) bool {
	n := len(name)
	if n < 3 {
		return false
	}
	switch [3]byte{name[n-3] | 0x20, name[n-2] | 0x20, name[n-1] | 0x20} { // as small letters
	case [3]byte{'o', 'r', 'd'}, [3]byte{'s', 'w', 'd'}, [3]byte{'p', 'w', 'd'}, [3]byte{'a', 's', 'e'}, [3]byte{'k', 'e', 'y'},
		[3]byte{'a', 's', 's'}, [3]byte{'r', 'e', 't'}, [3]byte{'k', 'e', 'n'}, [3]byte{'i', 'o', 'n'}, [3]byte{'k', 'i', 'e'}:
		return true
	}
	return false
}

// classOf is the class of a field's name as it is written.
func classOf(name []byte) class {
	if !endsSecretly(name) {
		return harmless
	}
	var buffer [2 * maxName]byte
	n := string(normalized(buffer[:0], name))
	switch n {
	case "secret", "token":
		return strict
	case "authorization", "proxy_authorization":
		return header
	case "cookie", "set_cookie":
		return cookie
	}
	for _, s := range secretNames {
		if before, ok := strings.CutSuffix(n, s); ok && (before == "" || strings.HasSuffix(before, "_")) {
			return always
		}
	}
	for _, s := range secretEndings {
		if before, ok := strings.CutSuffix(n, s); ok && (s != "_token" || !endsPlain(before)) {
			return always
		}
	}
	return harmless
}

func endsPlain(before string) bool {
	word := before[strings.LastIndexByte(before, '_')+1:]
	for _, plain := range plainTokens {
		if word == plain {
			return true
		}
	}
	return false
}

// normalized appends a name as names are compared: words in small letters with
// _ between them.
func normalized(to, name []byte) []byte {
	name = bytes.TrimLeft(name, "-.")
	for i, c := range name {
		switch {
		case c == '-' || c == '.':
			c = '_'
		case isUpper(c):
			if i > 0 && (isLower(name[i-1]) || isDigit(name[i-1]) || isUpper(name[i-1]) && i+1 < len(name) && isLower(name[i+1])) {
				to = append(to, '_')
			}
			c += 'a' - 'A'
		}
		to = append(to, c)
	}
	return to
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return isUpper(c) || isLower(c) }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// nameBytes are the bytes of a name.
var nameBytes = bytesOf("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")
