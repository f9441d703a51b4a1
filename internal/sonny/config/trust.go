package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"agent/internal/place"
	"agent/protocol"
)

// Answer is what the person said of a folder's own files (sonny.md 3.5).
type Answer struct {
	Folder string `json:"folder"` // its real path
	Use    bool   `json:"use"`    // false: open it without them
	Setup  string `json:"setup"`  // the digest of its .agents/setup then; "" when it had none
}

// maxAnswers bounds what is kept; past it the oldest is forgotten, and asked again.
const maxAnswers = 2048

type trustFile struct {
	Folders []Answer `json:"folders"` // oldest first
}

// TrustOf is the answer that a trust.json keeps for a folder, nil when there is none:
// then the person is asked. A damaged file keeps none, and the notice says so.
func TrustOf(path, folder string) (*Answer, *Notice, error) {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, nil, err
	}
	var kept trustFile
	notice, err := readKept(path, &kept)
	if err != nil || notice != nil {
		return nil, notice, err
	}
	for _, a := range kept.Folders {
		if a.Folder == real {
			return &a, nil, nil
		}
	}
	return nil, nil, nil
}

// OpenedWithout reports whether the person opened a folder without its own files. A
// folder that they were not asked about is none of those. Where the answers are lost what
// was said is not known, which is an error: nobody goes on as if it had been yes.
func OpenedWithout(path, folder string) (bool, error) {
	answer, notice, err := TrustOf(path, folder)
	if notice != nil {
		return true, failf(protocol.IoError, "%s is damaged, and whether the files of %s are used is not known; open the folder in Sonny and answer anew, or remove that file", path, folder)
	}
	return answer != nil && !answer.Use, err
}

// Trust keeps an answer for a folder, with the digest of its setup as it is now. A
// setup that cannot be read can only be answered with no.
func Trust(path, folder string, use bool) (*Notice, error) {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	setup, err := SetupDigest(real)
	if err != nil && use {
		return nil, err
	}
	var kept trustFile
	return changeKept(path, &kept, func(whole bool) error {
		if !whole {
			kept = trustFile{}
		}
		kept.Folders = slices.DeleteFunc(kept.Folders, func(a Answer) bool { return a.Folder == real })
		kept.Folders = append(kept.Folders, Answer{real, use, setup})
		kept.Folders = kept.Folders[max(0, len(kept.Folders)-maxAnswers):]
		return nil
	})
}

// SetupChanged reports whether a folder's setup is another than the one that the
// person answered for. One that cannot be read counts as changed.
func (a *Answer) SetupChanged() bool {
	now, err := SetupDigest(a.Folder)
	return err != nil || now != a.Setup
}

// maxSetup bounds a setup that is looked at, in bytes.
const maxSetup = 1 << 20

// SetupDigest is the SHA-256 of a folder's .agents/setup, "" when it has none.
func SetupDigest(folder string) (string, error) {
	text, _, err := place.ReadOwn(filepath.Join(folder, ".agents", "setup"), maxSetup)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("the folder's setup: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
