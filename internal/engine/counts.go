package engine

import (
	"encoding/json"
	"fmt"
	"strings"

	"agent/internal/store"
	"agent/protocol"
)

// verdictWindow is how many of a turn's newest verdicts under a tag are looked
// back at (approvals.md 14).
const verdictWindow = 50

// counts are the verdicts of a bot's newest turn that had any, by tag. The daemon
// counts and draws no conclusion, but for approvals_unserved.
type counts struct {
	Turn int64                `json:"turn"`
	Tags map[string]*tagCount `json:"tags"`
}

type tagCount struct {
	InRow  int64 `json:"in_row"`
	InTurn int64 `json:"in_turn"`
	// Last are the newest verdicts, oldest first: a for an allow, d for a denial.
	Last    string `json:"last"`
	Expired int64  `json:"expired"` // deadlines that passed since the last verdict
}

func countsOf(b *store.Bot) (c counts, err error) {
	if b.Denials != nil && json.Unmarshal(b.Denials, &c) != nil {
		return c, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("bots %d: denials cannot be read", b.ID))
	}
	return c, nil
}

// countsIn are a bot's counts in one turn, which begin anew with each.
func countsIn(b *store.Bot, turn int64) (counts, error) {
	c, err := countsOf(b)
	if c.Turn != turn {
		c = counts{Turn: turn}
	}
	if c.Tags == nil {
		c.Tags = map[string]*tagCount{}
	}
	return c, err
}

func (c *counts) tag(tag string) *tagCount {
	t := c.Tags[tag]
	if t == nil {
		t = &tagCount{}
		c.Tags[tag] = t
	}
	return t
}

// judged counts a verdict that somebody gave.
func (c *counts) judged(tag, decision string) {
	t := c.tag(tag)
	t.Expired = 0
	if decision == protocol.Allow {
		t.InRow = 0
		t.remember("a")
		return
	}
	t.deny()
}

// expired counts the denial of a call that nobody judged. That a deadline has
// passed is counted apart, once for all calls that it was of.
func (c *counts) expired(tag string) { c.tag(tag).deny() }

func (t *tagCount) deny() {
	t.InRow++
	t.InTurn++
	t.remember("d")
}

func (t *tagCount) remember(one string) {
	t.Last += one
	if len(t.Last) > verdictWindow {
		t.Last = t.Last[len(t.Last)-verdictWindow:]
	}
}

// of are the counts of one tag as the wire gives them.
func (c *counts) of(tag string) protocol.Denials {
	d := protocol.Denials{Window: verdictWindow}
	if t := c.Tags[tag]; t != nil {
		d.InRow, d.InTurn, d.Expired = t.InRow, t.InTurn, t.Expired
		d.Recent = int64(strings.Count(t.Last, "d"))
	}
	return d
}

// record are the counts as a bot's record gives them.
func (c *counts) record() map[string]protocol.Denials {
	out := map[string]protocol.Denials{}
	for tag := range c.Tags {
		d := c.of(tag)
		d.Turn = c.Turn
		out[tag] = d
	}
	return out
}

// keepCounts writes a bot's counts.
func keepCounts(tx *store.Tx, bot int64, c *counts) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return tx.SetDenials(bot, raw)
}
