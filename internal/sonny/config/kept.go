package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"agent/internal/place"
	"agent/protocol"
)

// maxKept bounds trust.json and state.json, in bytes.
const maxKept = 1 << 20

// InSonny is the path of one of Sonny's own files, in ~/.agent/sonny.
func InSonny(name string) (string, error) {
	dir, err := place.AgentDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "sonny", name), nil
}

// readKept reads a JSON file of Sonny's own into v. A file that is none is as good as
// missing, and the notice says so: what it held is asked or chosen again. One that is a
// link or another's is an error.
func readKept(path string, v any) (*Notice, error) {
	text, _, err := place.ReadOwn(path, maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what Sonny keeps: %w", err)
	}
	if json.Unmarshal(text, v) != nil {
		return &Notice{Text: path + " is damaged and is begun anew: what you answered and picked before is asked again"}, nil
	}
	return nil, nil
}

// changeKept reads such a file into v, lets edit change it, and writes it back. edit is
// told whether v is what the file holds.
func changeKept(path string, v any, edit func(whole bool) error) (notice *Notice, err error) {
	_, err = rewrite(path, func() ([]byte, []byte, error) {
		if notice, err = readKept(path, v); err != nil {
			return nil, nil, err
		}
		if err := edit(notice == nil); err != nil {
			return nil, nil, err
		}
		now, err := json.MarshalIndent(v, "", "  ")
		if err == nil && len(now) >= maxKept {
			err = protocol.Fail(protocol.IoError, path+" is full")
		}
		return nil, append(now, '\n'), err
	})
	return notice, err
}
