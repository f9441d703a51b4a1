package secret

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// The shape of a secret in a setting (companions.md 7.4). A setting is refused by it,
// so it is wider than what is masked in a tool's output, where a mask that is wrong
// hides what a bot must read.

var secretWord = regexp.MustCompile(`(?i)token|secret|password|passwd|api[_-]?key|authorization|credential|private[_-]?key|cookie`)

// secretStarts are how known tokens begin.
var secretStarts = []string{"sk-", "ghp_", "github_pat_", "xox", "AKIA"}

// SecretName reports whether a setting of a name holds a secret, whatever its value is.
func SecretName(name string) bool { return secretWord.MatchString(name) }

// SecretForm reports whether a text is, or holds, what is known for a secret by its
// form: a token, a private key, a user or a secret's field in an address.
func SecretForm(text string) bool {
	for _, start := range secretStarts {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return secretAddress(text) || NewJudge(&Values{}).Text(text) != text
}

// secretAddress reports whether a text is a URL with a user or a secret in its query.
// The user of an ssh address is no secret without a password.
func secretAddress(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return false
	}
	if _, password := u.User.Password(); password || u.User != nil && u.Scheme != "ssh" {
		return true
	}
	for name := range u.Query() {
		if SecretName(name) {
			return true
		}
	}
	return false
}

// The least length and entropy of a text that is taken for a secret by its letters.
const (
	denseLength  = 20
	denseEntropy = 4.0 // bits a character
)

var denseText = regexp.MustCompile(`[A-Za-z0-9+/_=-]{20,}`)

// SecretDense reports whether a text holds a run that looks like chance: 20 or more
// characters of base64's, of 4 bits each or more. Of a path from the root each name
// counts by itself. A model's name or a program's may be one, too, so it is for texts
// that hold neither.
func SecretDense(text string) bool {
	for _, run := range denseText.FindAllString(text, -1) {
		parts := []string{run}
		if run[0] == '/' {
			parts = strings.Split(run, "/")
		}
		if slices.ContainsFunc(parts, dense) {
			return true
		}
	}
	return false
}

func dense(run string) bool { return len(run) >= denseLength && entropy(run) >= denseEntropy }

// entropy is Shannon's, in bits a character.
func entropy(text string) float64 {
	var counts [256]float64
	for i := range len(text) {
		counts[text[i]]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			p := n / float64(len(text))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}
