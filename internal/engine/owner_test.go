package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"agent/internal/model"
	"agent/internal/store"
	"agent/protocol"
)

// asks makes each request that an owner may make of some bot, and gives the codes
// of the refusals.
func (c *timed) asks(o *Owner, bot string) map[string]protocol.Code {
	codes := map[string]protocol.Code{}
	note := func(op string, err *protocol.Error) {
		codes[op] = ""
		if err != nil {
			codes[op] = err.Code
		}
	}
	done := make(chan *protocol.Error, 1)
	c.e.Submit(o, &protocol.Submit{Bot: bot, RequestID: "asked", Prompt: "go", Delivery: protocol.Queue},
		func(_ *protocol.Submitted, err *protocol.Error) { done <- err })
	note("submit", <-done)
	c.e.Create(o, &protocol.Create{Bot: "New", Model: "p/m", Tools: []string{}}, func(_ *protocol.Bot, err *protocol.Error) { done <- err })
	note("create", <-done)
	_, err := c.e.Fork(context.Background(), o, &protocol.Fork{Source: bot, Bot: "New2"})
	note("fork", err)
	_, err = c.e.Interrupt(o, &protocol.Interrupt{Bot: bot, Turn: 99})
	note("interrupt", err)
	_, err = c.e.Prune(o, &protocol.Prune{Bot: bot})
	note("prune", err)
	_, err = c.e.Delete(o, &protocol.Delete{Bot: bot})
	note("delete", err)
	return codes
}

func TestAnOwnerIsAnIdentity(t *testing.T) {
	t.Parallel()
	c := newTimed(t)
	defer c.close()
	c.says = func(context.Context, *model.Request, *model.Report) (*model.Completion, error) { return text("ok") }
	make := func(by *Owner, name string) *Owner {
		t.Helper()
		var id int64
		done := make(chan *protocol.Error, 1)
		c.e.Create(by, &protocol.Create{Bot: name, Model: "p/m", Tools: []string{}, Workspace: "/"}, func(b *protocol.Bot, err *protocol.Error) {
			if err == nil {
				id = b.ID
			}
			done <- err
		})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return &Owner{id, name}
	}
	ada := make(nil, "Ada")
	kid := make(ada, "Kid")
	if _, err := c.e.Delete(nil, &protocol.Delete{Bot: "Ada"}); err != nil {
		t.Fatal(err)
	}
	namesake := make(nil, "Ada")
	for _, bot := range []string{"Kid", "Ada"} {
		for op, code := range c.asks(ada, bot) {
			if code != protocol.BotSocketRefused && !(op == "create" && code == protocol.CreatorNotFound) {
				t.Errorf("%s of %s by a deleted bot: %q", op, bot, code)
			}
		}
	}
	for op, code := range c.asks(namesake, "Kid") {
		want := protocol.BotSocketRefused
		if op == "create" || op == "submit" {
			want = ""
		}
		if code != want {
			t.Errorf("%s by the namesake of its maker: %q, want %q", op, code, want)
		}
	}
	<-c.ends
	if _, err := c.e.Fork(context.Background(), kid, &protocol.Fork{Source: "Kid", Bot: "Mine"}); err != nil {
		t.Error(err)
	}
}

func TestCreatorsAboveDeletedOnes(t *testing.T) {
	t.Parallel()
	c := newTimed(t)
	defer c.close()
	err := c.store.Do("test", func(tx *store.Tx) error {
		for i := range int64(6) {
			b := &store.Bot{Name: fmt.Sprint("b", i), Provider: "p", Family: "scripted", Model: "m", Tools: []string{}, CreatedByID: i}
			if i > 0 {
				b.CreatedBy = fmt.Sprint("b", i-1)
			}
			if err := tx.InsertBot(b); err != nil {
				return err
			}
		}
		check := func(bot int64, limit int, want ...int64) error {
			got, err := creatorsOf(tx.Conn(), bot, limit)
			if err == nil && !slices.Equal(got, want) {
				t.Errorf("above %d, at most %d: %v, want %v", bot, limit, got, want)
			}
			return err
		}
		if err := check(6, 99, 5, 4, 3, 2, 1); err != nil {
			return err
		}
		if err := check(6, 3, 5, 4, 3); err != nil {
			return err
		}
		// The fourth is gone, and left its children what was above it.
		text, err := json.Marshal(limits{Creators: []int64{3, 2, 1}})
		if err != nil {
			return err
		}
		if err := tx.LimitChildren(4, text, ""); err != nil {
			return err
		}
		if err := tx.BeginDelete(4); err != nil {
			return err
		}
		gone, _, err := store.BotByID(tx.Conn(), 4)
		if err != nil {
			return err
		}
		for d := (store.DeletedPiece{}); !d.Gone; {
			if d, err = tx.DeletePiece(&gone); err != nil {
				return err
			}
		}
		if err := check(6, 99, 5, 4, 3, 2, 1); err != nil {
			return err
		}
		return check(6, 3, 5, 4, 3)
	})
	if err != nil {
		t.Fatal(err)
	}
}
