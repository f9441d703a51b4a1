package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agent/internal/store"
	"agent/protocol"
)

func TestBrokenApprovalRows(t *testing.T) {
	t.Parallel()
	for i, raw := range []string{
		`"x"`, `{}`, `{"request":1,"gates":[]}`, `{"request":0,"gates":[{"tag":"manual","decision":"allow"}]}`,
		`{"request":1,"gates":[{"tag":"manual","decision":"perhaps"}]}`,
		`{"request":1,"gates":[{"tag":"manual","decision":"allow"},{"tag":"second","decision":"expired"}]}`,
	} {
		t.Run("R2 R4 a row that no allow can be read from lets nothing run: "+raw, func(t *testing.T) {
			t.Parallel()
			g := newGated(t, 0)
			g.make("Ada", manual)
			turn := g.submit("Ada", "one echo broken >> ran")
			g.k.parked(1)
			a := g.k.waiting(1)[0]
			g.p.kill()
			s, err := store.Open(store.Options{Path: g.set.Store})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Do("break", func(tx *store.Tx) error { return tx.SetApproval(turn, a.CallID, json.RawMessage(raw)) }); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			g.p = g.start()
			g.attach()
			lines, o := g.ended("Ada", turn)
			if len(of(lines, "tool_started")) != 0 || g.ran() != "" {
				t.Errorf("%v %+v", kinds(lines), o)
			}
			if broken := i < 4; broken && (o.Status != "failed" || *o.Error != protocol.StoreRowInvalid) || !broken && o.Status != "completed" {
				t.Errorf("outcome %+v", o)
			}
		})
	}
	t.Run("gates that cannot be read end the turn, and are never none", func(t *testing.T) {
		t.Parallel()
		g := newGated(t, 0)
		b := g.make("Ada", manual)
		g.p.kill()
		s, err := store.Open(store.Options{Path: g.set.Store})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Do("break", func(tx *store.Tx) error {
			bot, _, err := store.BotByID(tx.Conn(), b.ID)
			if err != nil {
				return err
			}
			bot.Gates = json.RawMessage(`[{"tag":"manual"}]`)
			return tx.ConfigureBot(&bot)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		g.p = g.start()
		g.attach()
		lines, o := g.ended("Ada", g.submit("Ada", "one echo broken >> ran"))
		if o.Status != "failed" || *o.Error != protocol.StoreRowInvalid || g.ran() != "" {
			t.Errorf("%v %+v", kinds(lines), o)
		}
		g.k.refused(protocol.StoreRowInvalid, "fork", fmt.Sprintf(`"source":"Ada","bot":"Kid","workspace":%q`, g.workspace))
		g.k.refused(protocol.StoreRowInvalid, "create", g.creation("Child", fmt.Sprintf(`,"created_by":"Ada","created_by_id":%d`, b.ID)))
	})
}

func TestRuleTexts(t *testing.T) {
	t.Parallel()
	g := newGated(t, 0)
	t.Run("PR-74 rules that do not parse name their place and make no bot", func(t *testing.T) {
		text := quotedText("# one\n# two\nprefix_rule(\n")
		l := g.k.refused(protocol.InvalidRules, "create", g.creation("X", `,"rules":{"files":[{"name":"a.rules","text":""},{"name":"b.rules","text":`+text+`}]}`))
		if l.str("file") != "b.rules" || l.num("line") < 3 {
			t.Errorf("answer %s", l.raw)
		}
		g.k.refused(protocol.BotNotFound, "inspect", `"bot":"X"`)
	})
	t.Run("PR-74 PO-46 rules that their client could not read refuse every command, gate or not", func(t *testing.T) {
		g.make("Ada", manual+`,"rules":{"unreadable":true,"reason":"x"}`)
		lines, o := g.ended("Ada", g.submit("Ada", "one echo no >> ran"))
		if !strings.Contains(o.Text, "command_forbidden") || len(of(lines, "approval_requested")) != 0 || g.ran() != "" {
			t.Errorf("%v %+v", kinds(lines), o)
		}
	})
}

func quotedText(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}
