package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/internal/window"
	"agent/protocol"
)

// sharedPrompt is the size from which a started prompt is kept in its node
// alone (runtime.md 24).
const sharedPrompt = 4 << 10

// sharable reports whether a prompt's node keeps it whole: of a blank one it
// keeps another text.
func sharable(prompt string) bool { return len(prompt) >= sharedPrompt && !model.Blank(prompt) }

// admission is one submission on its way through the store's writer. Its job
// may be run twice (runtime.md 25), so everything it finds out is set anew.
type admission struct {
	e        *Engine
	by       *Owner
	given    *protocol.From // of the request, as it came
	req      *protocol.Submit
	delivery protocol.Delivery
	folder   folder // of req.Workspace
	slot     bool   // an active slot is held for this submission
	pictures []tool.PictureData
	looking  bool // only to be judged: its pictures are not looked at yet

	delta  delta
	answer protocol.Submitted
	start  *task // set when the turn starts now
}

// Submit admits a submission. done is called once, after the commit that the
// answer reports, on the store's goroutine or in the call; it must not block.
// Submissions of one caller are admitted in the order of its calls: one with
// pictures returns once they are kept.
func (e *Engine) Submit(by *Owner, req *protocol.Submit, done func(*protocol.Submitted, *protocol.Error)) {
	a := &admission{e: e, by: by, given: req.From, req: req, delivery: req.Delivery}
	if a.delivery == "" {
		a.delivery = protocol.Reject
	}
	if err := a.checkShape(); err != nil {
		done(nil, err)
		return
	}
	a.folder = checkFolder(req.Workspace)
	if len(req.Pictures) > 0 {
		settled, err := a.takePictures()
		switch {
		case err != nil:
			done(nil, err)
			return
		case settled:
			done(&a.answer, nil)
			return
		}
	}
	e.admissions <- struct{}{}
	e.store.Go("submit", a.run, func(err error) {
		<-e.admissions
		started := err == nil && a.start != nil
		if err != nil {
			e.pending.undo(&a.delta)
		}
		if err != nil || a.answer.Duplicate {
			e.dropPictures(a.pictures)
		}
		if !started && a.slot {
			e.release()
		}
		if err != nil {
			done(nil, asError(err))
			return
		}
		done(&a.answer, nil)
	})
}

// takePictures keeps the pictures of a submission that every other check lets
// through (protocol.md 8, submit). settled says that it has its answer already,
// as a request that was admitted before has.
func (a *admission) takePictures() (settled bool, err *protocol.Error) {
	a.looking = true
	if err := a.e.store.Do("submit_check", a.run); err != nil {
		return false, asError(err)
	}
	a.looking = false
	if a.answer.Duplicate {
		return true, nil
	}
	a.pictures, err = a.e.takePictures(a.req.Pictures)
	return false, err
}

func (a *admission) checkShape() *protocol.Error {
	r := a.req
	switch {
	case !protocol.ValidName(r.RequestID):
		return protocol.Fail(protocol.InvalidName, "request_id is 1 to 128 bytes of letters, digits, - _ .")
	case len(r.Prompt) > protocol.MaxPrompt:
		return protocol.Fail(protocol.PromptLimit, fmt.Sprintf("%d bytes of at most %d", len(r.Prompt), protocol.MaxPrompt))
	case !a.delivery.Valid():
		return protocol.Fail(protocol.InvalidDelivery, "delivery is reject, queue or steer")
	case r.ExpectedTurn != 0 && a.delivery != protocol.Steer:
		return protocol.Fail(protocol.InvalidDelivery, "expected_turn goes with steer only")
	case r.From != nil && r.Origin != "":
		return protocol.Fail(protocol.InvalidOrigin, "from and origin exclude each other")
	case r.Origin != "" && !protocol.ValidName(r.Origin):
		return protocol.Fail(protocol.InvalidOrigin, "an origin is 1 to 128 bytes of letters, digits, - _ .")
	}
	if r.Model != "" {
		if _, _, ok := protocol.ParseModelRef(r.Model); !ok {
			return protocol.Fail(protocol.InvalidModel, "a model is PROVIDER/MODEL")
		}
	}
	return checkPictures(r.Pictures)
}

// run is the job. It takes a slot, and gives one that it turns out not to need
// back at once: jobs come one after another, so a request that needs none never
// keeps one from another.
func (a *admission) run(tx *store.Tx) error {
	if !a.slot {
		a.slot = a.e.reserve()
	}
	err := a.job(tx)
	if a.slot && (err != nil || a.start == nil) {
		a.slot = false
		a.e.release()
	}
	return err
}

// job makes every check of runtime.md 6 and writes the turn.
func (a *admission) job(tx *store.Tx) error {
	e, c, r := a.e, tx.Conn(), a.req
	e.pending.undo(&a.delta)
	a.start = nil

	bot, err := findBot(c, r.Bot, r.BotID)
	if err != nil {
		return err
	}
	if a.by != nil {
		if r.From, err = a.by.maySubmit(c, &bot, r, a.given); err != nil {
			return err
		}
	}
	if prior, ok, err := store.TurnByRequest(c, bot.Name, r.RequestID); err != nil {
		return err
	} else if ok {
		return a.reconcile(c, &bot, &prior)
	}
	paused, err := e.standingPause(c)
	if err != nil {
		return err
	}
	if a.delivery == protocol.Reject {
		if e.isDraining() {
			return protocol.Fail(protocol.DaemonDraining, "the daemon is shutting down; queue it for the next start")
		}
		if paused != nil {
			return daemonPaused(paused)
		}
		if !a.slot {
			return protocol.Fail(protocol.ActiveAgentLimit, fmt.Sprintf("all %d active slots are taken; --delivery queue waits for one", e.cfg.Limits.Active))
		}
	}
	if r.ExpectedTurn != 0 && bot.RunningTurn != r.ExpectedTurn {
		return protocol.Fail(protocol.StaleTurn, "the bot's current turn is not the one expected")
	}
	if err := a.checkModel(&bot); err != nil {
		return err
	}
	head, err := store.ReadyHead(c, bot.Name)
	if err != nil {
		return err
	}
	busy := bot.RunningTurn != 0 || head != 0
	if busy && a.delivery == protocol.Reject {
		return botBusy(&bot, head)
	}
	if bot.Budget > 0 && bot.TokensUsed >= bot.Budget {
		return budgetExhausted(&bot)
	}
	workspace, err := a.workspace(&bot)
	if err != nil {
		return err
	}
	if err := a.checkFrom(c); err != nil {
		return err
	}
	starts := !busy && a.slot && paused == nil && !e.isClosing()
	if !starts {
		if err := a.checkPending(); err != nil {
			return err
		}
	}
	if a.looking {
		return nil
	}
	return a.write(tx, &bot, busy, starts, workspace)
}

// reconcile answers a known request id (runtime.md 7).
func (a *admission) reconcile(c *store.Conn, bot *store.Bot, t *store.Turn) error {
	same, err := a.samePrompt(c, bot, t)
	if err != nil {
		return err
	}
	if !same || t.Model != a.req.Model || t.Delivery != string(a.delivery) ||
		t.ExpectedTurn != a.req.ExpectedTurn || !a.folder.is(t.Workspace) {
		return protocol.Fail(protocol.IdempotencyConflict,
			fmt.Sprintf("request %s made turn %d with other contents", a.req.RequestID, t.ID))
	}
	a.answer = submitted(bot, t, true)
	return nil
}

func (a *admission) samePrompt(c *store.Conn, bot *store.Bot, t *store.Turn) (bool, error) {
	if t.PromptNode == 0 {
		return t.Prompt == a.req.Prompt, nil
	}
	item, _, err := store.ItemOf(c, nil, t.PromptNode)
	if err != nil {
		return false, err
	}
	d, err := a.e.cfg.Codecs[model.Family(bot.Family)].Describe(item)
	if err != nil {
		return false, protocol.Fail(protocol.StoreRowInvalid, fmt.Sprintf("the prompt of turn %d cannot be read", t.ID))
	}
	return d.Text == senderOf(t).Text(a.req.Prompt), nil
}

func (a *admission) checkModel(bot *store.Bot) error {
	ref := a.req.Model
	name := bot.Provider
	if ref != "" {
		name, _, _ = protocol.ParseModelRef(ref)
	}
	_, err := a.e.provider(name, model.Family(bot.Family))
	if err == nil {
		return nil
	}
	// A steer without a model passes on the running turn's (protocol.md 8).
	if ref == "" && a.delivery == protocol.Steer && bot.RunningTurn != 0 {
		if t := a.e.taskOf(bot.ID); t != nil && t.turn == bot.RunningTurn {
			return nil
		}
	}
	return err
}

// workspace is the folder to record with the turn: only one that the
// submission names. The bot's own stays a default.
func (a *admission) workspace(bot *store.Bot) (string, error) {
	if a.req.Workspace != "" {
		if a.folder.err != nil {
			return "", a.folder.err
		}
		return a.folder.path, nil
	}
	if bot.Workspace == "" {
		return "", protocol.Fail(protocol.WorkspaceRequired, "neither the submission nor the bot names a workspace")
	}
	return "", nil
}

func (a *admission) checkFrom(c *store.Conn) error {
	f := a.req.From
	if f == nil || a.by != nil {
		return nil
	}
	id, err := checkFrom(c, f)
	if err != nil {
		return err
	}
	f.BotID = id
	return nil
}

// checkFrom says which bot a from names, by id (protocol.md 8).
func checkFrom(c *store.Conn, f *protocol.From) (int64, error) {
	t, ok, err := store.TurnByID(c, f.Turn)
	if err != nil {
		return 0, err
	}
	bot, found, err := store.BotByName(c, f.Bot)
	if err != nil {
		return 0, err
	}
	if !ok || !found || t.Bot != bot.Name || f.BotID != 0 && f.BotID != bot.ID {
		return 0, protocol.Fail(protocol.InvalidFrom, fmt.Sprintf("turn %d is no turn of a bot %s", f.Turn, f.Bot))
	}
	return bot.ID, nil
}

// write records the turn as running, ready or queued.
func (a *admission) write(tx *store.Tx, bot *store.Bot, busy, starts bool, workspace string) error {
	e, r := a.e, a.req
	t := store.Turn{
		Bot: bot.Name, RequestID: r.RequestID, Prompt: r.Prompt, Origin: r.Origin, Workspace: workspace,
		Model: r.Model, Delivery: string(a.delivery), ExpectedTurn: r.ExpectedTurn,
	}
	if r.From != nil {
		t.FromBot, t.FromBotID, t.FromTurn = r.From.Bot, r.From.BotID, r.From.Turn
	}
	switch {
	case starts:
		t.Status, t.StartedMS = protocol.StatusRunning, e.nowMS()
	case busy:
		t.Status = protocol.StatusQueued
	default:
		t.Status = protocol.StatusReady
	}
	row := t
	if starts && sharable(t.Prompt) {
		row.Prompt = "" // its node keeps it, in the same transaction
	}
	if err := tx.InsertTurn(&row); err != nil {
		return err
	}
	t.ID = row.ID
	if err := tx.AddTurnPictures(t.ID, shown(a.pictures)); err != nil {
		return err
	}
	if starts {
		task, cursor, err := e.start(tx, bot, &t)
		if err != nil {
			return err
		}
		a.start = task
		a.answer = submitted(bot, &t, false)
		a.answer.Cursor = &cursor
		return nil
	}
	e.pending.add(&a.delta, 1, int64(len(r.Prompt)))
	cursor, err := tx.AddEvent(bot.ID, bot.Name, t.ID, protocol.KindQueued, newObject().
		str("request_id", t.RequestID).str("status", t.Status).str("delivery", t.Delivery).
		str("workspace", effective(t.Workspace, bot.Workspace)).
		str("model", effective(t.Model, bot.Provider+"/"+bot.Model)).done())
	if err != nil {
		return err
	}
	a.answer = submitted(bot, &t, false)
	a.answer.Cursor = &cursor
	tx.AfterCommit(func() { e.inLine(bot.ID, &t) })
	return nil
}

// inLine notes in memory what a commit put in line.
func (e *Engine) inLine(bot int64, t *store.Turn) {
	switch {
	case t.Status == protocol.StatusReady:
		e.addReady(1)
		e.dispatch()
	case t.Delivery == string(protocol.Steer):
		if task := e.taskOf(bot); task != nil {
			task.steer.Store(true)
		}
	}
}

func (a *admission) checkPending() error {
	l := a.e.cfg.Limits
	turns, bytes := a.e.pending.get()
	if l.Pending > 0 && turns+1 > l.Pending {
		return protocol.Fail(protocol.PendingLimit, fmt.Sprintf("%d submissions wait already, of at most %d", turns, l.Pending))
	}
	if l.PendingBytes > 0 && bytes+int64(len(a.req.Prompt)) > l.PendingBytes {
		return protocol.Fail(protocol.PendingLimit, fmt.Sprintf("the prompts that wait may take %d bytes", l.PendingBytes))
	}
	return nil
}

func submitted(bot *store.Bot, t *store.Turn, duplicate bool) protocol.Submitted {
	return protocol.Submitted{
		Bot: bot.Name, BotID: bot.ID, Turn: t.ID, RequestID: t.RequestID, Duplicate: duplicate,
		Status: t.Status, Handle: protocol.TurnHandle(bot.Name, t.ID).String(),
	}
}

// findBot resolves a name, with the identity that the caller means where it
// gives one (runtime.md 3).
func findBot(c *store.Conn, name string, id int64) (store.Bot, error) {
	b, ok, err := store.BotByName(c, name)
	if err != nil {
		return b, err
	}
	if !ok || b.Status == protocol.StatusDeleting {
		return b, noBot(name)
	}
	if id != 0 && id != b.ID {
		return b, protocol.Fail(protocol.BotNotFound, fmt.Sprintf("%s is now bot %d, not %d", name, b.ID, max(id, 0)))
	}
	return b, nil
}

// noBot names the bot that is missing, cut where that is no name.
func noBot(name string) *protocol.Error {
	if len(name) > protocol.MaxName {
		name = strings.ToValidUTF8(name[:protocol.MaxName], "") + "…"
	}
	return protocol.Fail(protocol.BotNotFound, name)
}

func botBusy(b *store.Bot, head int64) error {
	turn := b.RunningTurn
	steer := fmt.Sprintf("steer it with --delivery steer --turn %d, ", turn)
	what := fmt.Sprintf("turn %d is running", turn)
	if turn == 0 {
		turn, steer, what = head, "", fmt.Sprintf("turn %d waits for a slot", head)
	}
	return protocol.Fail(protocol.BotBusy, fmt.Sprintf("%s: %squeue behind it with --delivery queue, "+
		"or ask a fork: fork --source %s --bot NEW", what, steer, b.Name)).With("turn", turn)
}

func budgetExhausted(b *store.Bot) *protocol.Error {
	return protocol.Fail(protocol.BudgetExhausted, fmt.Sprintf("%d of %d tokens are used", b.TokensUsed, b.Budget)).
		With("budget_tokens", b.Budget).With("tokens_used", b.TokensUsed)
}

func effective(given, def string) string {
	if given != "" {
		return given
	}
	return def
}

func senderOf(t *store.Turn) window.Sender {
	return window.Sender{Bot: t.FromBot, BotID: t.FromBotID, Origin: t.Origin}
}

// folder is a workspace as a request names it, looked at before the job that
// decides by it: the writer waits for no file system.
type folder struct {
	asked string
	path  string // canonical
	err   *protocol.Error
}

func checkFolder(path string) folder {
	f := folder{asked: path, path: path}
	if path == "" {
		return f
	}
	if !utf8.ValidString(path) {
		f.err = protocol.Fail(protocol.WorkspaceNotUTF8, "the workspace's path is not UTF-8")
		return f
	}
	bad := func(why string) folder {
		f.err = protocol.Fail(protocol.WorkspaceMustExistAndBeAbsolute, path+": "+why)
		return f
	}
	if !filepath.IsAbs(path) {
		return bad("not an absolute path")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		f.path = resolved(path)
		return bad("no such folder")
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return bad("not a folder")
	}
	if !utf8.ValidString(real) {
		f.err = protocol.Fail(protocol.WorkspaceNotUTF8, "the workspace's real path is not UTF-8")
		return f
	}
	f.path = real
	return f
}

// resolved is a path with the symlinks in its longest existing part followed: a
// folder that is gone is known by it as what was recorded.
func resolved(path string) string {
	path = filepath.Clean(path)
	for part := path; part != "/"; {
		part = filepath.Dir(part)
		if real, err := filepath.EvalSymlinks(part); err == nil {
			return filepath.Join(real, path[len(part):])
		}
	}
	return path
}

// is reports whether a recorded workspace is the one asked for.
func (f folder) is(recorded string) bool { return f.path == recorded || f.asked == recorded }
