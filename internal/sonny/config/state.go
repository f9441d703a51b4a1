package config

import "slices"

// State is what Sonny remembers between two runs and the person need not set.
type State struct {
	Model   string   `json:"model,omitempty"`   // picked last, for the next lead
	Effort  string   `json:"effort,omitempty"`  // with it
	SetUp   bool     `json:"set_up,omitempty"`  // the first run has finished once
	Notices []string `json:"notices,omitempty"` // what is said only once and was, oldest first
}

// maxNotices bounds the notices that are kept; past it the oldest may be said again.
const maxNotices = 256

// LoadState reads a state.json. A damaged one is an empty State, and the notice says
// so.
func LoadState(path string) (State, *Notice, error) {
	var s State
	notice, err := readKept(path, &s)
	if err != nil || notice != nil {
		return State{}, notice, err
	}
	return s, nil, nil
}

// ChangeState reads a state.json, lets edit change it and writes it back. Others who
// change it at the same time wait.
func ChangeState(path string, edit func(*State)) (*Notice, error) {
	var s State
	return changeKept(path, &s, func(whole bool) error {
		if !whole {
			s = State{}
		}
		edit(&s)
		return nil
	})
}

// Said reports whether a notice of a name was said before, and keeps that it is now.
func (s *State) Said(name string) bool {
	if slices.Contains(s.Notices, name) {
		return true
	}
	s.Notices = append(s.Notices, name)
	s.Notices = s.Notices[max(0, len(s.Notices)-maxNotices):]
	return false
}
