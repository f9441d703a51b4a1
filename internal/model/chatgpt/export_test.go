package chatgpt

import "time"

// WithStep is the file with a function that its writes call between their
// steps.
func (f File) WithStep(step func(string)) File {
	f.step = step
	return f
}

// SetNow gives the login a clock.
func (l *Login) SetNow(now func() time.Time) { l.now = now }

// Due and Valid are the rules of when a token is renewed and used.
func (s *SignIn) Due(now time.Time) bool   { return s.due(now) }
func (s *SignIn) Valid(now time.Time) bool { return s.valid(now) }
