package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"agent/internal/model"
	"agent/internal/store"
	"agent/internal/tool"
	"agent/protocol"
)

// shownArguments bounds the arguments in a tool_started event, in characters.
const shownArguments = 2048

// runCalls runs a round's calls one after another, in the model's order
// (runtime.md 5).
func (t *task) runCalls(calls []model.Call) error {
	for i := range calls {
		if s := t.stopped(); s != nil {
			return s
		}
		if err := t.runCall(&calls[i], calls[i+1:]); err != nil {
			return err
		}
	}
	return nil
}

// runCall runs one call; rest are those behind it, which a park keeps.
func (t *task) runCall(call *model.Call, rest []model.Call) error {
	work, refusal := t.plannedRefusal(call)
	if refusal != nil {
		return t.finishCall(call, *refusal)
	}
	cleared, refusal, err := t.clear(call, rest)
	if err != nil {
		return err
	}
	if refusal != nil {
		return t.finishCall(call, *refusal)
	}
	if decl := t.clientTool(call.Name); decl != nil {
		return t.serve(call, decl, rest, cleared.row)
	}
	if err := t.startCall(call, &cleared); err != nil {
		return err
	}
	if call.Name == "wait" {
		return t.wait(call, rest)
	}
	ctx, cancel := context.WithCancel(t.ctx)
	env := t.env(call)
	cleared.into(env)
	env.Beyond = beyond{t: t, call: call.ID, env: env, sandboxed: cleared.sandboxed, allowed: cleared.allowed}
	res := work.Run(ctx, env, call.Arguments)
	cancel()
	if s := t.stopped(); s != nil {
		t.e.dropPictures(res.Pictures)
		return s // what it did is unknown to the model; the ending says so
	}
	return t.finishCall(call, res)
}

// plannedRefusal answers a call that never starts: a tool that the bot may not
// call, or arguments that its schema does not take.
func (t *task) plannedRefusal(call *model.Call) (tool.Tool, *tool.Result) {
	refuse := func(code protocol.Code, detail string) (tool.Tool, *tool.Result) {
		r := tool.Fail(string(code), string(t.e.cfg.Redact.Bytes([]byte(detail))))
		return nil, &r
	}
	if call.ProviderName != "" {
		return refuse(protocol.ToolNotAvailable, call.ProviderName+" is no name that a tool can have")
	}
	work, decl := t.e.tools[call.Name], t.clientTool(call.Name)
	if work == nil && decl == nil || !contains(t.effective, call.Name) {
		return refuse(protocol.ToolNotAvailable, call.Name+" is not among the tools this bot may call")
	}
	if call.Invalid != "" {
		return refuse(protocol.InvalidToolArguments, call.Invalid)
	}
	if decl != nil {
		if err := t.e.checkServed(decl, call.Arguments); err != nil {
			return refuse(protocol.InvalidToolArguments, err.Error())
		}
		return nil, nil
	}
	if err := work.Check(call.Arguments); err != nil {
		var f *tool.Failure
		if errors.As(err, &f) {
			return refuse(protocol.Code(f.Code), f.Detail)
		}
		return refuse(protocol.InvalidToolArguments, err.Error())
	}
	return work, nil
}

// startCall commits the intent before anything happens.
func (t *task) startCall(call *model.Call, c *cleared) error {
	shown, cut := cutCharacters(string(call.Arguments), shownArguments)
	return t.e.store.Do("call_start", func(tx *store.Tx) error {
		row, err := t.execute(tx, call.ID, c.row)
		if err != nil {
			return err
		}
		data := newObject().str("call_id", call.ID).str("name", call.Name).str("arguments", shown).
			bool("arguments_truncated", cut)
		if row != nil {
			data.raw("approvals", encodeVerdicts(row.given(false)))
			if row.OverturnedBy != nil {
				data.str("overturned_by", *row.OverturnedBy)
			}
		}
		_, err = tx.AddEvent(t.bot, t.name, t.turn, protocol.KindToolStarted, data.bool("sandboxed", c.confinement != nil).done())
		return err
	})
}

// execute records that a call is about to run. Its row is read again here: a call
// that gates were asked about starts only when each of them allowed it, on the
// request that the task saw.
func (t *task) execute(tx *store.Tx, callID string, seen *approvalRow) (*approvalRow, error) {
	if s := t.stopped(); s != nil {
		return nil, s // nothing starts behind an interrupt that was answered
	}
	call, ok, err := store.CallByID(tx.Conn(), t.turn, callID)
	if err != nil {
		return nil, err
	}
	row, err := approvalOf(&call)
	switch {
	case err != nil:
		return nil, err
	case !ok, (row == nil) != (seen == nil), row != nil && (row.standing() != allowedByAll || row.Request != seen.Request):
		return nil, protocol.Fail(protocol.StoreRowInvalid, "the call "+callID+" has no verdict that lets it start")
	}
	tx.AfterCommit(func() { t.e.withdraw(t.turn, callID) })
	return row, tx.ExecuteCall(t.turn, callID)
}

// finishCall commits a call's result with all it brings.
func (t *task) finishCall(call *model.Call, res tool.Result) error {
	return t.finishCallWith(call, res, nil)
}

// finishCallWith is finishCall of a result that delivers commands' results.
func (t *task) finishCallWith(call *model.Call, res tool.Result, procs []int64) error {
	rows := shown(res.Pictures)
	out := model.Result{CallID: call.ID, Output: res.Output, Failed: res.Failed, Pictures: inItem(rows)}
	item := t.codec.Result(out)
	packArtifacts(&res)
	var head int64
	err := t.e.store.Do("call_finish", func(tx *store.Tx) error {
		own, apart, err := heldPictures(tx, t.codec, t.turn, call.ID, rows)
		if err != nil {
			return err
		}
		node, err := tx.AppendNode(t.head, store.NewNode{Item: item, Pictures: own, Stub: stubOf(t.codec, t.effective, out)})
		if err != nil {
			return err
		}
		if err := tx.SetHead(t.bot, t.turn, node); err != nil {
			return err
		}
		if err := t.keep(tx, call.ID, node, &res); err != nil {
			return err
		}
		for _, id := range procs {
			if err := tx.Delivered(id, node); err != nil {
				return err
			}
		}
		row, err := t.e.answerCall(tx, t.turn, call.ID)
		if err != nil {
			return err
		}
		if head, err = t.e.showApart(tx, t.codec, t.bot, t.turn, node, apart); err != nil {
			return err
		}
		if err := t.addExternal(tx, res.External, call.Name); err != nil {
			return err
		}
		if _, err = tx.AddEvent(t.bot, t.name, t.turn, protocol.KindToolCompleted, completedData(call.ID, node, &res, row)); err != nil {
			return err
		}
		return t.e.askAgainAfter(tx, t.bot, t.turn, call.ID, &res)
	})
	if err != nil {
		t.e.dropPictures(res.Pictures)
		return err
	}
	t.head = head
	return nil
}

// completedData is the data of tool_completed. row is that of a call which was
// judged and did not start, nil for any other.
func completedData(callID string, node int64, res *tool.Result, row *approvalRow) json.RawMessage {
	streams := make([]string, len(res.Artifacts))
	for i, a := range res.Artifacts {
		streams[i] = a.Stream
	}
	o := newObject().str("call_id", callID).int("node", node).strs("artifacts", streams)
	if res.Note != nil {
		o.int("note", node)
	} else {
		o.null("note")
	}
	if row != nil {
		judgedData(o, row)
	}
	if res.External {
		o.bool("external", true)
	}
	return o.done()
}

// keep records what a result brings besides its item.
func (t *task) keep(tx *store.Tx, callID string, node int64, res *tool.Result) error {
	if err := t.e.keepArtifacts(tx, t.turn, callID, res); err != nil {
		return err
	}
	for _, s := range res.Seen {
		row := store.SeenRow{Path: s.Path, Size: s.Size, MtimeNS: s.MtimeNS, Inode: int64(s.Inode), Hash: s.Hash[:]}
		if err := tx.SetSeen(t.name, node, row); err != nil {
			return err
		}
	}
	if res.Note == nil {
		return nil
	}
	bot, _, err := store.BotByID(tx.Conn(), t.bot)
	if err != nil {
		return err
	}
	return tx.SetNote(t.bot, node, bot.Note, *res.Note)
}

// packArtifacts packs the streams of a result that go into rows, before the job
// that records them: the store's worker never compresses (runtime.md 12).
func packArtifacts(res *tool.Result) {
	for i := range res.Artifacts {
		res.Artifacts[i].Data = store.Pack(res.Artifacts[i].Data)
	}
}

// keepArtifacts records the streams that a call or a command kept, packed.
func (e *Engine) keepArtifacts(tx *store.Tx, turn int64, callID string, res *tool.Result) error {
	for _, a := range res.Artifacts {
		row := store.ArtifactRow{Stream: a.Stream, Data: a.Data, Bytes: a.Bytes, Truncated: a.Truncated}
		if a.File != "" {
			name, err := e.store.SpillName(a.File)
			if err != nil {
				return err
			}
			row.File = name
		}
		if err := tx.AddArtifact(turn, callID, row); err != nil {
			return err
		}
	}
	return nil
}

// env is what a call runs in.
func (t *task) env(call *model.Call) *tool.Env {
	cfg := &t.e.cfg
	return &tool.Env{
		Bot: t.name, BotID: t.bot, Turn: t.turn, CallID: call.ID, Workspace: t.workspace,
		Environ: t.environ(), Shell: cfg.Shell, FilesDir: filepath.Join(t.e.store.FilesDir(), strconv.FormatInt(t.bot, 10)),
		Redact: cfg.Redact, Processes: t.e.processes, Captures: t.e.captures, IsStoreFile: t.e.store.IsStoreFile,
		SelfExe: cfg.Self, Seen: seen{t}, Past: &past{t: t}, Pictures: pictureKeeper{t.e}, TextOnly: t.e.takesNoPictures(t.model),
		Cause: func() tool.StopCause {
			if s := t.stopped(); s != nil {
				return s.kind
			}
			return tool.StopInterrupt
		},
	}
}

// environ is a command's environment (runtime.md 10). What the daemon's starter
// or a policy had under the names given here is not in cfg.Environ.
func (t *task) environ() []string {
	cfg := &t.e.cfg
	env := append(cfg.Environ[:len(cfg.Environ):len(cfg.Environ)],
		"AGENT_BIN="+cfg.Self, "AGENT_STORE="+cfg.StorePath, "AGENT_MODEL="+t.model, "AGENT_BOT="+t.name,
		fmt.Sprintf("AGENT_BOT_ID=%d", t.bot), fmt.Sprintf("AGENT_TURN=%d", t.turn), "AGENT_SHELL_CONTEXT=1")
	if cfg.SocketPath != "" {
		env = append(env, "AGENT_SOCKET="+cfg.SocketPath)
	}
	if t.creator != "" {
		env = append(env, "AGENT_PARENT="+t.creator, fmt.Sprintf("AGENT_PARENT_ID=%d", t.creatorID))
	}
	return env
}

// seen is the bot's memory of files.
type seen struct{ t *task }

func (s seen) Seen(ctx context.Context, path string) (tool.SeenFile, bool, error) {
	row, ok, err := s.t.e.seenFile(ctx, s.t.name, path)
	f := tool.SeenFile{Path: path, Size: row.Size, MtimeNS: row.MtimeNS, Inode: uint64(row.Inode)}
	copy(f.Hash[:], row.Hash)
	return f, ok, err
}

// cutCharacters is the first n characters of s.
func cutCharacters(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	for i := range s {
		if n == 0 {
			return s[:i], true
		}
		n--
	}
	return s, false
}
