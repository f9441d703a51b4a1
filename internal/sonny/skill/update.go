package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agent/internal/place"
	"agent/protocol"
)

// Skills are the shipped ones of a home folder: their files in ~/.agents/skills, and
// in ~/.agent/skills the record, a copy of what was last written.
type Skills struct {
	home    string
	shipped set
}

// Open is the skills below a home folder; nothing is made or read yet.
func Open(home string) *Skills { return &Skills{home, shipped()} }

// A State is what an update found of a skill, or made of it.
type State string

// The states.
const (
	Installed State = "installed" // it was not there
	Updated   State = "updated"
	Current   State = "current"
	Yours     State = "yours"   // the person has changed it, and Sonny leaves it alone
	Removed   State = "removed" // Sonny does not ship it any more
	Left      State = "left"    // something stands in a file's place that is no such file
)

// An Outcome is one skill's.
type Outcome struct {
	Name  string   `json:"name"`
	State State    `json:"state"`
	Paths []string `json:"paths,omitempty"` // of Left: each with what it is. Of a restore: where what stood there is kept
}

// patience is how long an update waits for another program's.
const patience = 10 * time.Second

// Update brings the shipped skills to what this build ships; wanted false takes them
// away. A skill's files are replaced only when each is as it was last written. One
// that the person has edited, put in a shipped file's place, or removed makes the
// whole skill theirs for good. The skill is written first and the record second, so
// that a crash in between is repaired by the next update.
//
// Errors: skills_busy; skill_left for a folder above the skills that is no folder of
// the person's own.
func (k *Skills) Update(wanted bool) ([]Outcome, error) {
	var all []Outcome
	return all, k.locked(func() error {
		ship := k.shipped
		if !wanted {
			ship = nil
		}
		names, err := k.recorded()
		if err != nil {
			return err
		}
		for _, name := range union(names, slices.Sorted(maps.Keys(ship))) {
			o, err := k.updateOne(name, ship[name])
			if err != nil {
				return err
			}
			all = append(all, o)
		}
		return nil
	})
}

// updateOne updates a skill; ship is empty for one that is shipped no longer.
func (k *Skills) updateOne(name string, ship files) (Outcome, error) {
	o := Outcome{Name: name, State: Yours}
	if there(k.mark(name)) {
		return o, nil
	}
	record, odd := readTree(k.record(name))
	now, oddNow := readFiles(k.folder(name), union(slices.Sorted(maps.Keys(record)), slices.Sorted(maps.Keys(ship))))
	if odd = append(odd, oddNow...); len(odd) > 0 {
		o.State, o.Paths = Left, odd
		return o, nil
	}
	if !k.asWritten(name, now, record, ship) {
		return o, k.makeYours(name)
	}
	return k.bring(name, now, record, ship)
}

// asWritten reports whether every file is as the record or, after an update that was
// cut short, as the shipped skill has it; a folder without a record holds nothing
// else.
func (k *Skills) asWritten(name string, now, record, ship files) bool {
	for file := range allOf(record, ship) {
		is, has := now[file]
		was, had := record[file]
		will, shall := ship[file]
		if (has != had || is != was) && (has != shall || is != will) {
			return false
		}
	}
	return len(record) > 0 || !k.holdsOther(name, ship)
}

// holdsOther reports whether a skill's folder holds what is not shipped.
func (k *Skills) holdsOther(name string, ship files) bool {
	list, err := os.ReadDir(k.folder(name))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return slices.ContainsFunc(list, func(e os.DirEntry) bool {
		for file := range ship {
			if top, _, _ := strings.Cut(file, "/"); top == e.Name() {
				return false
			}
		}
		return !leftover(e.Name())
	})
}

// bring writes the skill, then the record.
func (k *Skills) bring(name string, now, record, ship files) (Outcome, error) {
	o := Outcome{Name: name, State: Current}
	switch {
	case len(ship) == 0:
		o.State = Removed
	case len(now) == 0:
		o.State = Installed
	case !maps.Equal(now, ship):
		o.State = Updated
	}
	if err := writeTree(k.folder(name), now, ship); err != nil {
		return o, err
	}
	between()
	if maps.Equal(record, ship) {
		return o, nil
	}
	return o, writeTree(k.record(name), record, ship)
}

// between runs after a skill was written and before its record is.
var between = func() {}

// makeYours leaves a skill to the person.
func (k *Skills) makeYours(name string) error {
	return asLeft(place.WritePrivate(k.mark(name), nil))
}

// Restore makes a skill Sonny's again: its files are written as this build ships
// them. What stood in their place is kept in ~/.agent/skills/NAME.replaced. Errors:
// invalid_name for none that is shipped; skill_left for a link, a pipe or a large
// file in a shipped file's place; skills_busy.
func (k *Skills) Restore(name string) (*Outcome, error) {
	ship, ok := k.shipped[name]
	if !ok {
		return nil, k.unknown(name)
	}
	o := &Outcome{Name: name, State: Updated}
	return o, k.locked(func() error {
		now, odd := readFiles(k.folder(name), slices.Sorted(maps.Keys(ship)))
		if len(odd) > 0 {
			return protocol.Fail(codeLeft, strings.Join(odd, "; ")+"; move it away first")
		}
		if len(now) == 0 {
			o.State = Installed
		}
		kept, err := k.keep(name, now, ship)
		if err != nil {
			return err
		}
		o.Paths = kept
		if err := writeTree(k.folder(name), now, ship); err != nil {
			return err
		}
		record, _ := readTree(k.record(name))
		if err := writeTree(k.record(name), record, ship); err != nil {
			return err
		}
		if err := os.Remove(k.mark(name)); !errors.Is(err, fs.ErrNotExist) {
			return asLeft(err)
		}
		return nil
	})
}

// keep copies the files that a restore replaces, and says where they are.
func (k *Skills) keep(name string, now, ship files) (paths []string, err error) {
	edited := files{}
	for file, text := range now {
		if text != ship[file] {
			edited[file] = text
		}
	}
	if len(edited) == 0 {
		return nil, nil
	}
	dir := filepath.Join(k.records(), name+".replaced")
	old, _ := readTree(dir)
	if err := writeTree(dir, old, edited); err != nil {
		return nil, err
	}
	for _, file := range slices.Sorted(maps.Keys(edited)) {
		paths = append(paths, filepath.Join(dir, file))
	}
	return paths, nil
}

func (k *Skills) unknown(name string) error {
	return protocol.Fail(protocol.InvalidName, fmt.Sprintf("Sonny ships no skill %q; these it does: %s", name, strings.Join(slices.Sorted(maps.Keys(k.shipped)), ", ")))
}

func (k *Skills) records() string           { return filepath.Join(k.home, ".agent", "skills") }
func (k *Skills) record(name string) string { return filepath.Join(k.records(), name) }

// mark is a file that makes a skill the person's. No skill's name has a dot.
func (k *Skills) mark(name string) string { return filepath.Join(k.records(), name+".yours") }

// folder is the skill as bots see it.
func (k *Skills) folder(name string) string { return filepath.Join(k.home, ".agents", "skills", name) }

// recorded are the names that have a record.
func (k *Skills) recorded() (names []string, err error) {
	list, err := os.ReadDir(k.records())
	if err != nil {
		return nil, asLeft(err)
	}
	for _, e := range list {
		if e.IsDir() && PlainName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// locked makes the folders, and does something while no other program does.
func (k *Skills) locked(do func() error) error {
	if err := makeAgents(k.home); err != nil {
		return err
	}
	for _, dir := range []string{filepath.Join(k.home, ".agents", "skills"), filepath.Join(k.home, ".agent")} {
		if err := place.MakeOwnDir(dir); err != nil {
			return asLeft(err)
		}
	}
	if err := place.MakePrivateDir(k.records()); err != nil {
		return asLeft(err)
	}
	lock, err := place.LockWithin(filepath.Join(k.records(), ".lock"), string(codeBusy), patience)
	var held *place.Error
	if errors.As(err, &held) {
		return protocol.Fail(codeBusy, "another Sonny has been updating the skills for "+patience.String()+"; end that one, or try again")
	}
	if err != nil {
		return asLeft(err)
	}
	defer lock.Close()
	return do()
}

// union is both lists' names, sorted, each once.
func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// allOf are the paths that any of two skills has.
func allOf(a, b files) map[string]bool {
	all := map[string]bool{}
	for file := range a {
		all[file] = true
	}
	for file := range b {
		all[file] = true
	}
	return all
}
