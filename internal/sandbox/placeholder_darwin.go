package sandbox

import "golang.org/x/sys/unix"

// Placeholders has nothing to do on macOS: a Seatbelt profile keeps a name from
// being made without anything standing there (sandbox.md 5.3). It is safe for
// concurrent use.
type Placeholders struct{}

// OpenPlaceholders makes no journal. It does not fail.
func OpenPlaceholders(string) (*Placeholders, error) { return &Placeholders{}, nil }

// Close does nothing.
func (*Placeholders) Close() error { return nil }

// Placed is a plan whose protected names were looked at, and what a command must
// find unchanged at its end.
type Placed struct {
	Plan *Plan
	was  map[string]fileKey
}

// Place notes which files the plan protects. With changed the caller plans anew:
// a protected name has come or gone meanwhile. It does not fail.
func (*Placeholders) Place(p *Plan) (placed *Placed, changed bool, err error) {
	placed = &Placed{Plan: p, was: map[string]fileKey{}}
	for _, e := range p.Entries {
		var st unix.Stat_t
		there := unix.Lstat(e.Path, &st) == nil
		switch e.Kind {
		case AbsentFolder, AbsentFile:
			if there {
				return nil, true, nil
			}
		case ReadOnly:
			switch {
			case e.Root == "":
			case !there:
				return nil, true, nil
			default:
				placed.was[e.Path] = key(&st)
			}
		}
	}
	return placed, false, nil
}

// Remove does nothing.
func (*Placed) Remove() {}

// Changed are the protected entries that are another file at the command's end
// than at its start: somebody outside replaced them (sandbox.md 11). The profile
// goes by names, and so held for the new one too.
func (d *Placed) Changed() []string { return replaced(d.was) }
