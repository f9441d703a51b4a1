package lead

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agent/client"
	"agent/internal/place"
	"agent/protocol"
)

// Later is a change of where a bot works and what it reaches, which the person made while
// a turn ran: it holds when that is over (sonny.md 4). It is kept in a file of its own, so
// that it is sent, by the tool host, also where no screen is open any more.
type Later struct {
	Store string `json:"store"` // the store's path
	Bot   string `json:"bot"`
	BotID int64  `json:"bot_id"`
	Words string `json:"words"` // what the person chose

	// What changes; nil stays.
	Sandbox *string   `json:"sandbox,omitempty"`
	Roots   *[]string `json:"writable_roots,omitempty"`
	Network *bool     `json:"network,omitempty"`
}

// LaterOf is what of a change waits for a turn to end.
func LaterOf(store, words string, c *protocol.Configure) *Later {
	return &Later{
		Store: store, Bot: c.Bot, BotID: c.BotID, Words: words,
		Sandbox: given(c.Sandbox), Roots: given(c.WritableRoots), Network: given(c.Network),
	}
}

// Waits reports whether there is anything of it.
func (l *Later) Waits() bool { return l.Sandbox != nil || l.Roots != nil || l.Network != nil }

// Change is what is sent.
func (l *Later) Change() *protocol.Configure {
	c := &protocol.Configure{Bot: l.Bot, BotID: l.BotID}
	if l.Sandbox != nil {
		c.Sandbox = protocol.Set(*l.Sandbox)
	}
	if l.Roots != nil {
		c.WritableRoots = protocol.Set(*l.Roots)
	}
	if l.Network != nil {
		c.Network = protocol.Set(*l.Network)
	}
	return c
}

func given[T any](o protocol.Opt[T]) *T {
	if v, ok := o.Get(); ok {
		return &v
	}
	return nil
}

func laterDir(sonny string) string { return filepath.Join(sonny, "later") }

func laterPath(sonny, store string, id int64) string {
	sum := sha256.Sum256([]byte(store))
	return filepath.Join(laterDir(sonny), fmt.Sprintf("%s-%d.json", hex.EncodeToString(sum[:4]), id))
}

// Keep puts it in the place of an earlier one of the same bot.
func (l *Later) Keep(sonny string) error {
	data, err := json.Marshal(l)
	if err == nil {
		err = place.MakePrivateDir(laterDir(sonny))
	}
	if err == nil {
		err = place.WritePrivate(laterPath(sonny, l.Store, l.BotID), data)
	}
	return err
}

// ReadLater is what waits for a bot's turn to end; nil for nothing.
func ReadLater(sonny, store string, id int64) (*Later, error) {
	l, err := readLater(laterPath(sonny, store, id))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return l, err
}

const maxLater = 256 << 10

func readLater(path string) (*Later, error) {
	data, _, err := place.ReadOwn(path, maxLater)
	if err != nil {
		return nil, err
	}
	l := &Later{}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return l, nil
}

// DropLater forgets what waited for a bot.
func DropLater(sonny, store string, id int64) { os.Remove(laterPath(sonny, store, id)) }

// SendLater sends what waits in a store: for the bot of a name, or "" for all. What meets
// a turn that runs waits on.
func SendLater(ctx context.Context, c *client.Client, sonny, store, bot string) error {
	entries, err := os.ReadDir(laterDir(sonny))
	if err != nil {
		return nil // there was never any
	}
	var failed []error
	for _, e := range entries {
		l, err := readLater(filepath.Join(laterDir(sonny), e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was sent meanwhile
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if l.Store != store || bot != "" && l.Bot != bot {
			continue
		}
		switch _, err := c.Configure(ctx, l.Change()); {
		case errors.Is(err, protocol.BotBusy):
		case err == nil, errors.Is(err, protocol.BotNotFound):
			DropLater(sonny, store, l.BotID)
		default:
			failed = append(failed, fmt.Errorf("%s, which the person chose for %s, is not set: %w", l.Words, l.Bot, err))
		}
	}
	return errors.Join(failed...)
}
