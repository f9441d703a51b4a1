package approver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The words of a reply (approvals.md 13).
const (
	allow   = "allow"
	deny    = "deny"
	unclear = "unclear"

	unknown  = "unknown"
	low      = "low"
	medium   = "medium"
	high     = "high"
	critical = "critical"
)

var (
	outcomes       = []string{allow, deny, unclear}
	riskLevels     = []string{low, medium, high, critical}
	authorizations = []string{unknown, low, medium, high}
)

// opinion is what the judge says of one call, its defaults filled in.
type opinion struct {
	outcome, risk, authorization, rationale string
}

// allows is the mechanical floor under the judge: an allow that contradicts its
// own risk and authorization is none.
func (o opinion) allows() bool {
	if o.outcome != allow {
		return false
	}
	switch o.risk {
	case low, medium:
		return true
	case high:
		return o.authorization == medium || o.authorization == high
	}
	return false
}

// parseReply reads the judge's reply on the calls of these ids. A reply that is
// not exactly what the schema says, about exactly these calls, is an error as a
// whole: nothing of it counts. The error quotes nothing of the reply.
func parseReply(text string, ids []string) (map[string]opinion, error) {
	// From the first brace to the last is the text itself when it is one object,
	// and the one try at it when it is not.
	first, last := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if first < 0 || last < first {
		return nil, errors.New("no JSON object")
	}
	// The decoder refuses a name that stands twice, bytes that are no UTF-8, and
	// anything behind the object.
	var top map[string]jsontext.Value
	if err := v2.Unmarshal([]byte(text[first:last+1]), &top); err != nil {
		return nil, errors.New("not one JSON object")
	}
	list, there := top["verdicts"]
	if !there || len(top) != 1 || list.Kind() != '[' {
		return nil, errors.New("not an object with the one member verdicts, a list")
	}
	var entries []jsontext.Value
	if err := v2.Unmarshal(list, &entries); err != nil {
		return nil, errors.New("the list of verdicts cannot be read")
	}
	said := make(map[string]opinion, len(ids))
	for i, entry := range entries {
		id, o, err := parseVerdict(entry)
		if err != nil {
			return nil, fmt.Errorf("verdict %d: %w", i+1, err)
		}
		if _, twice := said[id]; twice {
			return nil, fmt.Errorf("verdict %d: an id that stands twice", i+1)
		}
		if !slices.Contains(ids, id) {
			return nil, fmt.Errorf("verdict %d: an id that was not asked about", i+1)
		}
		said[id] = o
	}
	if len(said) != len(ids) {
		return nil, fmt.Errorf("%d verdicts on %d calls", len(said), len(ids))
	}
	return said, nil
}

// parseVerdict reads one verdict. A member that is there must hold one of its
// words: null is none.
func parseVerdict(entry jsontext.Value) (id string, o opinion, err error) {
	if entry.Kind() != '{' {
		return "", o, errors.New("no object")
	}
	var members map[string]jsontext.Value
	if err := v2.Unmarshal(entry, &members); err != nil {
		return "", o, errors.New("it cannot be read")
	}
	given := map[string]string{}
	for name, value := range members {
		if value.Kind() != '"' {
			return "", o, errors.New("a member that is no string")
		}
		var text string
		if err := v2.Unmarshal(value, &text); err != nil {
			return "", o, errors.New("a member that cannot be read")
		}
		switch name {
		case "id", "rationale":
		case "outcome":
			err = oneOf(text, outcomes)
		case "risk_level":
			err = oneOf(text, riskLevels)
		case "user_authorization":
			err = oneOf(text, authorizations)
		default:
			err = errors.New("a member that the schema has not")
		}
		if err != nil {
			return "", o, err
		}
		given[name] = text
	}
	id, named := given["id"]
	if !named || given["outcome"] == "" {
		return "", o, errors.New("no id, or no outcome")
	}
	return id, filled(given), nil
}

func oneOf(word string, words []string) error {
	if !slices.Contains(words, word) {
		return errors.New("a word that the schema has not")
	}
	return nil
}

// filled puts the defaults in the place of what was left out.
func filled(given map[string]string) opinion {
	o := opinion{given["outcome"], given["risk_level"], given["user_authorization"], given["rationale"]}
	if o.risk == "" && o.outcome == allow {
		o.risk = low
	} else if o.risk == "" {
		o.risk = high
	}
	if o.authorization == "" {
		o.authorization = unknown
	}
	return o
}
