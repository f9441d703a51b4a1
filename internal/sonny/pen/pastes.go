package pen

import (
	"crypto/rand"
	"path/filepath"
	"time"

	"agent/internal/place"
)

// maxPastes bounds how many pastes are kept; the oldest go first.
const maxPastes = 200

// Scratch is where files of a short life are, in Sonny's folder: what an editor has, and
// what a program gives back. An agent that could change them would write in the person's
// name.
func Scratch(dir string) string { return filepath.Join(dir, "scratch") }

// SavePaste keeps a text under pastes/ in Sonny's folder, and returns its path, by which
// a message can name it.
func SavePaste(dir, text string, at time.Time) (string, error) {
	dir = filepath.Join(dir, "pastes")
	if err := makeFolder(dir); err != nil {
		return "", err
	}
	path := filepath.Join(dir, at.Format("2006-01-02-150405-")+rand.Text()[:6]+".txt")
	if err := place.CreatePrivate(path, []byte(text)); err != nil {
		return "", err
	}
	return path, keepNewest(dir, maxPastes)
}
