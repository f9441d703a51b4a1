package setup

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"agent/client"
	"agent/protocol"
)

// SpecForm is how another endpoint is written (providers.md 2).
const SpecForm = "NAME=FAMILY,URL,KEY_VARIABLE"

var (
	specName    = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	keyVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	families    = []string{"anthropic", "chat", "responses", "responses-ws"}
)

// Spec looks at the spec of an endpoint as it was typed, before anything is kept, and gives
// the variable that its key is read from; "" where it needs none. The daemon that is started
// with it has the last word. An error says what is wrong, without a word of what was typed.
func Spec(spec string) (variable string, err error) {
	name, rest, _ := strings.Cut(spec, "=")
	fields := append(strings.SplitN(rest, ",", 3), "", "")
	family, base, variable := fields[0], fields[1], fields[2]
	preset := client.IsPreset(name)
	switch {
	case strings.ContainsAny(spec, " \t") || !specName.MatchString(name):
		return "", badSpec("it begins with a name of letters, digits, - and _, and is one word")
	case family == "" && !preset:
		return "", badSpec("no provider is known by that name, so it needs its family and its URL")
	case family != "" && !slices.Contains(families, family):
		return "", badSpec("its family is one of " + strings.Join(families, ", "))
	case base == "" && !preset, base != "" && !reachable(base):
		return "", badSpec("its URL begins with http:// or https:// and names a host, without a user, a query and a fragment")
	case variable != "" && !keyVariable.MatchString(variable):
		return "", badSpec("what follows the URL is the name of a variable, not a key")
	}
	if p, ok := ByName(name); ok && variable == "" && base == "" {
		return p.Variable, nil
	}
	return variable, nil
}

func badSpec(why string) error {
	return protocol.Fail(protocol.UsageError, "that is no spec: "+why+". write "+SpecForm)
}

// reachable reports whether an endpoint can be reached by a URL.
func reachable(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
