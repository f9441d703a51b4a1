package secret

import (
	"math"
	"net/url"
	"regexp"
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

// shortNames reports whether a run is a path from the root whose names are each too
// short to be a secret.
func shortNames(run string) bool {
	for name := range strings.SplitSeq(run, "/") {
		if len(name) >= denseLength {
			return false
		}
	}
	return run[0] == '/'
}

var denseText = regexp.MustCompile(`[A-Za-z0-9+/_=-]{20,}`)

// SecretDense reports whether a text holds a run that looks like chance: 20 or more
// characters of base64's, of 4 bits each or more. A path of short names is none; names
// of models and programs may be, so it is for texts that hold none of those.
func SecretDense(text string) bool {
	for _, run := range denseText.FindAllString(text, -1) {
		if !shortNames(run) && entropy(run) >= denseEntropy {
			return true
		}
	}
	return false
}

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
