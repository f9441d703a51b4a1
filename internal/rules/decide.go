package rules

// Verdict is what a set decides about one script.
type Verdict struct {
	Decision Decision
	// Matches are the rules that decided: those of Decision's kind that match a
	// command of the script, each once, in the set's order.
	Matches []*Rule
	// Unreadable says that Prompt stands because the script cannot be taken
	// apart, and not, or not only, for a rule that matches.
	Unreadable bool
}

// Decide is what the set says about a script (sandbox.md 7, 8.3, 8.4). Allow
// means that the script is plain and that an allow rule matches each of its
// commands.
func (s *Set) Decide(script string) Verdict {
	if v := s.restriction(script); v.Decision != None {
		return v
	}
	return s.allowance(script)
}

// restriction is the strictest prompt or forbidden rule that matches anything in
// the script.
func (s *Set) restriction(script string) (v Verdict) {
	if !s.restricts() {
		return v
	}
	matched := make([]bool, len(s.rules))
	try := func(words []string) {
		for i := range s.rules {
			r := &s.rules[i]
			if r.Decision > Allow && !matched[i] && s.matches(r, words) {
				matched[i] = true
				v.Decision = max(v.Decision, r.Decision)
			}
		}
	}
	readable := search(script, try)
	if commands, ok := Plain(script); ok {
		for _, words := range commands {
			try(words)
		}
	}
	if !readable && v.Decision < Forbidden {
		v.Decision, v.Unreadable = Prompt, true
	}
	for i := range s.rules {
		if matched[i] && s.rules[i].Decision == v.Decision {
			v.Matches = append(v.Matches, &s.rules[i])
		}
	}
	return v
}

func (s *Set) allowance(script string) (v Verdict) {
	commands, plain := Plain(script)
	if !plain {
		return Verdict{}
	}
	seen := map[*Rule]bool{}
	for _, words := range commands {
		r := s.allowing(words)
		if r == nil {
			return Verdict{}
		}
		if !seen[r] {
			seen[r] = true
			v.Matches = append(v.Matches, r)
		}
	}
	v.Decision = Allow
	return v
}

// allowing is the first allow rule that matches a command; nil: none.
func (s *Set) allowing(words []string) *Rule {
	for i := range s.rules {
		if r := &s.rules[i]; r.Decision == Allow && s.matches(r, words) {
			return r
		}
	}
	return nil
}
