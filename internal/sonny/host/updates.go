package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/protocol"
)

// The pace of a lead's messages (sonny.md 6).
const (
	shareFor  = 10 * time.Second // ends that come within it share a message
	every     = time.Minute
	slowAfter = 10 // messages in an hour; from then on one comes in slowEvery
	slowEvery = 10 * time.Minute
	maxNamed  = 32 // tasks a message
)

// originTasks is the origin of the messages.
const originTasks = "tasks"

// updates tells leads at rest what became of their tasks. It belongs to the loop of
// follow.
type updates struct {
	h     *host
	world *live.World
	leads map[int64]*hearing
	waits map[int64]map[string]bool // by bot: the handles that its running turn has waited for
}

// hearing is what one lead has not heard yet.
type hearing struct {
	record  *protocol.Bot
	project string
	news    map[int64]*news // by the task's id
	since   time.Time       // when the first of them came
	sent    []time.Time     // messages of the last hour
	facts   factList        // as they were when it last heard
}

// news is what there is to say of one task.
type news struct {
	bot   string
	turn  int64 // the latest
	state string
	ended int // turns that ended since the lead last heard
}

const waitsForApproval = "waiting for approval"

func newUpdates(h *host) *updates {
	return &updates{h: h, world: live.New(h.ready), leads: map[int64]*hearing{}, waits: map[int64]map[string]bool{}}
}

// take takes one note of the feed. What is listed at attach is history: only events
// make news.
func (u *updates) take(n live.Note) {
	switch {
	case n.Ready != nil && !n.Resumed:
		u.world = live.New(n.Ready)
	case n.Bots != nil:
		u.world.Page(n.Bots)
		u.known()
	case n.Waits != nil:
		u.world.Wait(n.Waits)
	case n.Event != nil:
		u.event(n.Event)
	}
}

// known notes what the leads that there are know of memory, so that a later change is
// one.
func (u *updates) known() {
	for _, f := range u.allLeads() {
		u.hearing(f.Record, f.Project)
	}
}

func (u *updates) event(e *protocol.Event) {
	if b := u.world.Bot(e.Bot); b != nil && e.Kind == protocol.KindDeleted {
		u.h.gone(b.Record.ID, e.Bot)
		delete(u.leads, b.Record.ID)
		delete(u.waits, b.Record.ID)
	}
	b := u.world.Apply(e)
	if b == nil {
		return
	}
	switch id := b.Record.ID; e.Kind {
	case protocol.KindAccepted:
		delete(u.waits, id)
	case protocol.KindToolStarted:
		var d protocol.ToolStarted
		if e.Decode(&d) == nil && d.Name == "wait" {
			var a struct {
				Handles []string `json:"handles"`
			}
			_ = json.Unmarshal([]byte(d.Arguments), &a) // cut or odd ones name nothing
			u.waitsFor(id, a.Handles)
		}
	case protocol.KindTurnWaiting:
		var d protocol.TurnWaiting
		if e.Decode(&d) == nil {
			u.waitsFor(id, d.Handles)
		}
	case protocol.KindTurnFinished:
		var d protocol.TurnFinished
		if e.Decode(&d) == nil && d.Status != protocol.StatusSteered && !d.Missed() {
			u.ended(b, e.Turn, d.Status)
		}
	case protocol.KindApprovalRequested:
		u.asks(b, e.Turn)
	}
}

// waitsFor notes that a bot's turn hears of these itself: it needs no message.
func (u *updates) waitsFor(bot int64, handles []string) {
	if u.waits[bot] == nil {
		u.waits[bot] = map[string]bool{}
	}
	h := u.leads[bot]
	for _, handle := range handles {
		u.waits[bot][handle] = true
		if h == nil {
			continue
		}
		for id, n := range h.news {
			if n.handle() == handle && n.state != waitsForApproval {
				delete(h.news, id)
			}
		}
	}
}

func (n *news) handle() string { return fmt.Sprintf("turn:%s/%d", n.bot, n.turn) }

// ended is a task's turn that has ended.
func (u *updates) ended(b *live.Bot, turn int64, status string) {
	h := u.leadOf(b)
	if h == nil {
		return
	}
	n := &news{bot: b.Record.Name, turn: turn, state: status, ended: 1}
	if u.waits[h.record.ID][n.handle()] {
		delete(h.news, b.Record.ID)
		return
	}
	if old := h.news[b.Record.ID]; old != nil {
		n.ended += old.ended
	}
	u.put(h, b, n)
}

// asks is a task that waits for a verdict.
func (u *updates) asks(b *live.Bot, turn int64) {
	h := u.leadOf(b)
	if h == nil || u.waits[h.record.ID][fmt.Sprintf("turn:%s/%d", b.Record.Name, turn)] {
		return
	}
	n := &news{bot: b.Record.Name, turn: turn, state: waitsForApproval}
	if old := h.news[b.Record.ID]; old != nil {
		n.ended = old.ended
	}
	u.put(h, b, n)
}

func (u *updates) put(h *hearing, b *live.Bot, n *news) {
	if len(h.news) == 0 {
		h.since = u.h.Now()
	}
	h.news[b.Record.ID] = n
}

// allLeads are the bots that hear of tasks.
func (u *updates) allLeads() []lead.Found {
	page, _, err := lead.BookIn(u.h.sonny).Read()
	if err != nil {
		u.h.logf("sessions: %v", err)
		return nil
	}
	return slices.DeleteFunc(lead.Sessions(u.h.ready.Store.Identity, page, u.world.Records()), func(f lead.Found) bool {
		return f.Gone() || f.Kind == lead.KindExec || f.Kind == lead.KindTask
	})
}

// leadOf is the lead that a bot is a task of; nil for none. Of two that it could be
// the older one is.
func (u *updates) leadOf(b *live.Bot) *hearing {
	leads := u.allLeads()
	hidden := map[int64]bool{}
	for _, f := range leads {
		hidden[f.BotID] = true
	}
	if hidden[b.Record.ID] {
		return nil
	}
	slices.SortFunc(leads, func(a, b lead.Found) int { return int(a.BotID - b.BotID) })
	records := u.world.Records()
	for _, f := range leads {
		if slices.ContainsFunc(lead.Tasks(f.Record, f.Project, records, hidden), func(t *protocol.Bot) bool { return t.ID == b.Record.ID }) {
			return u.hearing(f.Record, f.Project)
		}
	}
	return nil
}

func (u *updates) hearing(record *protocol.Bot, project string) *hearing {
	h := u.leads[record.ID]
	if h == nil {
		h = &hearing{news: map[int64]*news{}, facts: u.h.changes.list(u.h.memory, project)}
		u.leads[record.ID] = h
	}
	h.record, h.project = record, project
	return h
}

// send sends what is due, and says when to look again; zero: when something happens.
func (u *updates) send(ctx context.Context, now time.Time) (next time.Time) {
	set, _ := u.h.Settings("")
	for _, h := range u.leads {
		u.settled(h)
		if len(h.news) == 0 {
			continue
		}
		if !set.TaskUpdates {
			clear(h.news)
			continue
		}
		at := u.world.ByID(h.record.ID)
		if at == nil || at.Turn != 0 || len(at.Queue) > 0 || u.world.Paused != nil {
			continue // it is told when it rests
		}
		due := h.due(now)
		if !due.After(now) {
			due = u.tell(ctx, h, now)
		}
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

// settled drops the news that a task waits for a verdict that it has got.
func (u *updates) settled(h *hearing) {
	for id, n := range h.news {
		b := u.world.ByID(id)
		if n.state == waitsForApproval && (b == nil || len(b.Waits) == 0) {
			delete(h.news, id)
		}
	}
}

// due is when the next message may go.
func (h *hearing) due(now time.Time) time.Time {
	h.sent = slices.DeleteFunc(h.sent, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	due := h.since.Add(shareFor)
	if len(h.sent) == 0 {
		return due
	}
	pause := every
	if len(h.sent) >= slowAfter {
		pause = slowEvery
	}
	if next := h.sent[len(h.sent)-1].Add(pause); next.After(due) {
		due = next
	}
	return due
}

// tell sends one message. Zero: it was taken, or comes back when the lead rests again.
func (u *updates) tell(ctx context.Context, h *hearing, now time.Time) time.Time {
	named := h.named()
	facts := u.h.changes.list(u.h.memory, h.project)
	text, err := u.text(ctx, h, named, facts)
	if err != nil {
		return u.failed(h, now, err)
	}
	_, err = u.h.Client.Submit(ctx, &protocol.Submit{
		Bot: h.record.Name, BotID: h.record.ID, Origin: originTasks, Prompt: text, RequestID: keyFor(h.record.ID, named),
	})
	switch {
	case errors.Is(err, protocol.BotNotFound):
		clear(h.news)
		return time.Time{}
	case err != nil:
		return u.failed(h, now, err)
	}
	clear(h.news)
	h.sent, h.facts = append(h.sent, now), facts
	u.h.changes.heard(h.record.ID)
	return time.Time{}
}

// failed tries again later: the lead was given work just now, or the daemon is at its
// limit.
func (u *updates) failed(h *hearing, now time.Time, err error) time.Time {
	u.h.logf("task updates for %s: %v", h.record.Name, err)
	return now.Add(shareFor)
}

// named are the tasks of a message, by name.
func (h *hearing) named() []*news {
	var out []*news
	for _, n := range h.news {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *news) int { return strings.Compare(a.bot, b.bot) })
	return out
}

// keyFor makes one turn of a message however many programs send it.
func keyFor(lead int64, named []*news) string {
	sum := sha256.New()
	for _, n := range named {
		fmt.Fprintf(sum, "%s %s\n", n.handle(), n.state)
	}
	return fmt.Sprintf("tasks_%d_%s", lead, hex.EncodeToString(sum.Sum(nil)[:12]))
}

// text is the message.
func (u *updates) text(ctx context.Context, h *hearing, named []*news, facts factList) (string, error) {
	var own, others []string
	for _, n := range named[:min(len(named), maxNamed)] {
		who, mine, err := u.asked(ctx, h, n)
		if err != nil {
			return "", err
		}
		line := fmt.Sprintf("- %s %s, asked for by %s", n.handle(), n.state, who)
		if n.ended > 1 {
			line += fmt.Sprintf(", %d turns ended since you last heard", n.ended)
		}
		if mine {
			own = append(own, line)
		} else {
			others = append(others, line)
		}
	}
	var b strings.Builder
	b.WriteString("Task updates:\n")
	part := func(head string, lines []string) {
		if len(lines) > 0 {
			b.WriteString("\n" + head + "\n" + strings.Join(lines, "\n") + "\n")
		}
	}
	part("Turns that agents or services asked for:", own)
	part("Turns that the person asked for; leave these alone, they are between the person and the task:", others)
	if more := len(named) - maxNamed; more > 0 {
		fmt.Fprintf(&b, "\nand %d more tasks\n", more)
	}
	part("Memory that others have changed since you last heard:", u.h.changes.since(h.record.ID, h.facts, facts))
	return b.String(), nil
}

// asked says who asked for a turn, and whether that was anybody but the person.
func (u *updates) asked(ctx context.Context, h *hearing, n *news) (who string, mine bool, err error) {
	for t, err := range u.h.Client.Turns(ctx, n.bot, n.turn-1) {
		switch {
		case errors.Is(err, protocol.BotNotFound):
			return "somebody; the task is gone", true, nil
		case err != nil:
			return "", false, err
		case t.Turn != n.turn:
			return "somebody; the turn is gone", true, nil
		case t.From != nil && t.From.BotID == h.record.ID:
			return "you", true, nil
		case t.From != nil:
			return t.From.Bot, true, nil
		case t.Origin != "":
			return t.Origin, true, nil
		}
		return "the person", false, nil
	}
	return "somebody; the turn is gone", true, nil
}
