package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

func TestRecentSandboxed(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, Options{Path: storePath(t)})
	check := func(limit int, want ...string) {
		t.Helper()
		c := s.readers.free[0].conn
		got, err := RecentSandboxed(c, limit)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range got {
			names = append(names, r.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("at most %d: %v, want %v", limit, names, want)
		}
	}
	event := func(tx *Tx, bot, kind string) error {
		b, _, err := BotByName(tx.Conn(), bot)
		if err != nil {
			return err
		}
		_, err = tx.AddEvent(b.ID, bot, 0, kind, json.RawMessage("{}"))
		return err
	}
	err := s.Do("test", func(tx *Tx) error {
		for i, held := range []bool{true, true, false, true, true} {
			b := &Bot{Name: fmt.Sprint("b", i), Provider: "p", Family: "scripted", Model: "m", Tools: []string{}}
			if held {
				b.Sandbox = json.RawMessage(`{"mode":"read-only"}`)
			}
			if err := tx.InsertBot(b); err != nil {
				return err
			}
			if i == 1 { // its creation is pruned from the events
				continue
			}
			if err := event(tx, b.Name, "created"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	check(9, "b4", "b3", "b0", "b1")
	check(2, "b4", "b3")
	err = s.Do("test", func(tx *Tx) error {
		for _, e := range [][2]string{{"b0", "accepted"}, {"b2", "accepted"}, {"b3", "configured"}} {
			if err := event(tx, e[0], e[1]); err != nil {
				return err
			}
		}
		b, _, err := BotByName(tx.Conn(), "b4")
		if err != nil {
			return err
		}
		return tx.BeginDelete(b.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	check(9, "b0", "b3", "b1")
	check(1, "b0")
	err = s.Do("test", func(tx *Tx) error { // more than is looked through
		for range recentEvents {
			if err := event(tx, "b2", "accepted"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	check(2, "b3", "b1")
}
