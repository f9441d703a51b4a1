package model

import (
	"slices"
	"strings"
)

// Binding is what a build has for one family: its codec and how a provider of
// it is made.
type Binding struct {
	Codec Codec
	New   func(Spec) (Provider, error)
}

// Registry holds a daemon's providers by name. It is made once, at start, and
// only read after: safe for concurrent use.
type Registry struct {
	providers map[string]Provider
	families  map[Family]Binding
}

// NewRegistry resolves and makes every provider of specs. families says what
// this build has; a spec that asks for more is refused with
// invalid_provider_spec, so that nothing runs otherwise than was stated.
func NewRegistry(specs []Spec, getenv func(string) string, families map[Family]Binding) (*Registry, error) {
	r := &Registry{providers: make(map[string]Provider, len(specs)), families: families}
	for _, s := range specs {
		if lacks := r.missing(s); lacks != "" {
			return nil, Errorf("invalid_provider_spec",
				"provider %s: this build does not have %s yet", s.Name, lacks)
		}
		s, err := s.Resolve(getenv)
		if err != nil {
			return nil, err
		}
		p, err := families[s.Family].New(s)
		if err != nil {
			return nil, err
		}
		r.providers[s.Name] = p
	}
	return r, nil
}

// missing names what a spec needs and this build lacks, or "".
func (r *Registry) missing(s Spec) string {
	if _, ok := r.families[s.Family]; !ok {
		return "the family " + string(s.Family)
	}
	return ""
}

// Provider is the provider of a name.
func (r *Registry) Provider(name string) (Provider, bool) {
	p, ok := r.providers[name]
	return p, ok
}

// Names are the names of all providers, sorted.
func (r *Registry) Names() []string {
	names := make([]string, 0, len(r.providers))
	for name := range r.providers {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// CodecFor is the codec of a family this build has.
func (r *Registry) CodecFor(f Family) (Codec, bool) {
	b, ok := r.families[f]
	return b.Codec, ok
}
