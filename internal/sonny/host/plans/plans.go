// Package plans keeps the plans that bots show (sonny.md 29): one file for each bot,
// STORE.plans/BOT_ID.json. It changes only what Sonny shows, and goes with the bot.
package plans

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"agent/internal/place"
)

// The states of a step.
const (
	Todo  = "todo"
	Doing = "doing"
	Done  = "done"
)

// Step is one step of a plan.
type Step struct {
	Text  string `json:"text"`
	State string `json:"state"`
}

// The bounds of a plan.
const (
	MaxSteps = 30
	MaxText  = 200 // bytes of a step's text
)

// Dir is the folder of a store's plans.
func Dir(store string) string { return store + ".plans" }

func path(store string, bot int64) string {
	return filepath.Join(Dir(store), fmt.Sprintf("%d.json", bot))
}

// maxFile bounds a plan's file, in bytes.
const maxFile = 64 << 10

// Read is a bot's plan; nil where it has none.
func Read(store string, bot int64) ([]Step, error) {
	text, _, err := place.ReadOwn(path(store, bot), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []Step
	if err := json.Unmarshal(text, &steps); err != nil {
		return nil, fmt.Errorf("%s: %w", path(store, bot), err)
	}
	return steps, nil
}

// Write replaces a bot's plan.
func Write(store string, bot int64, steps []Step) error {
	if err := place.MakePrivateDir(Dir(store)); err != nil {
		return err
	}
	text, err := json.Marshal(steps)
	if err != nil {
		return err
	}
	return place.WritePrivate(path(store, bot), append(text, '\n'))
}

// Clear takes a bot's plan away; one that is not there is cleared.
func Clear(store string, bot int64) error {
	if err := os.Remove(path(store, bot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sweep takes the plans away of bots that are gone.
func Sweep(store string, there func(bot int64) bool) error {
	entries, err := os.ReadDir(Dir(store))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		id, err := strconv.ParseInt(strings.TrimSuffix(e.Name(), ".json"), 10, 64)
		if err == nil && !there(id) {
			os.Remove(filepath.Join(Dir(store), e.Name()))
		}
	}
	return nil
}
