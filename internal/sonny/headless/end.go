package headless

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"agent/internal/sonny/lead"
	"agent/protocol"
)

// result is the run's end by how its turn ended.
func (r *run) result(end ended) *Result {
	res := &Result{Text: r.reply, Error: end.failure()}
	res.Status, res.Exit = end.verdict(r.why, r.counts)
	r.done = end.status == protocol.StatusCompleted
	switch {
	case r.why.is == byTimeout && res.Status == TimedOut:
		res.Error = &Failure{Code: "timeout", Detail: "the turn had not ended after " + r.Timeout.String()}
	case r.why.is == bySignal && res.Status == Completed:
		res.Exit = exitBySignal + r.why.signal // it ended, and the person asked it to
		res.Status = Interrupted
	case res.Status == Completed && r.FailOnDenied && r.counts.denied > 0:
		res.Status, res.Exit = Denied, exitDenied
		res.Error = &Failure{Code: "denied", Detail: count(r.counts.denied, "call was", "calls were") + " denied, refused or expired"}
	}
	return res
}

// failed is the run's end by an error.
func (r *run) failed(err error) *Result {
	res := &Result{Text: r.reply}
	switch {
	case r.why.is == bySignal:
		res.Status, res.Exit = Interrupted, exitBySignal+r.why.signal
		res.Error = &Failure{Code: "interrupted", Detail: "sonny exec was interrupted before the turn began"}
	case r.left:
		res.Status, res.Exit = Completed, exitDone // nobody reads it: the turn goes on without us
	default:
		res.Status, res.Exit, res.Error = verdictOf(err)
	}
	return res
}

// cleanWithin bounds what is done after the turn.
const cleanWithin = time.Minute

// finish writes the reply where it is wanted, gives back what was taken, and tells the
// result.
func (r *run) finish(ctx context.Context, res *Result) {
	ctx, cancel := context.WithTimeout(ctx, cleanWithin)
	defer cancel()
	if r.Last != "" && r.done && (res.Status == Completed || res.Status == Denied) {
		r.trouble(res, writeWhole(r.Last, res.Text))
	}
	if r.bot != nil {
		r.clean(ctx, res)
		res.Session = r.bot.Name
		r.out.on(r.bot.Name, r.turn)
	}
	res.Usage, res.Files, res.Worktree = usageOf(&r.sum), r.files, r.tree.told()
	r.out.end(res)
}

// clean gives the bot its budget back, or takes away what was made for this run alone.
func (r *run) clean(ctx context.Context, res *Result) {
	if r.left {
		return
	}
	if !r.Ephemeral || !r.made {
		r.trouble(res, r.uncap(ctx))
		return
	}
	r.trouble(res, r.remove(ctx))
	if r.tree != nil && r.tree.unchanged(ctx, &r.kept) {
		r.trouble(res, r.tree.undo(ctx))
	}
}

// trouble makes a run that had completed fail by what went wrong after it.
func (r *run) trouble(res *Result, err error) {
	if err == nil {
		return
	}
	if res.Status != Completed {
		f := failureOf(err)
		r.out.tell(&noteEvent{fault: true, Code: string(f.Code), Detail: f.Detail})
		return
	}
	res.Status, res.Exit, res.Error = verdictOf(err)
}

// remove deletes the bot, whose turn may still be ending.
func (r *run) remove(ctx context.Context) error {
	_, err := r.c.Delete(ctx, r.bot.Name)
	if errors.Is(err, protocol.BotNotFound) {
		err = nil
	}
	if err != nil {
		return err
	}
	return r.Book.Change(func(page *lead.Page) error {
		page.Forget(r.kept.Store, r.kept.BotID)
		return nil
	})
}

// checkLast refuses a place for the final reply that cannot have one, before anything
// is done.
func checkLast(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return protocol.Fail(protocol.UsageError, "--last "+path+": its folder is not there")
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return protocol.Fail(protocol.UsageError, "--last "+path+" is no file")
	}
	return nil
}

// writeWhole replaces a file by a text, whole or not at all. A new file has the
// permissions that the umask gives, one that is there keeps its own.
func writeWhole(path, text string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := os.FileMode(0o666)
	info, statErr := os.Stat(path)
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+suffix()+".tmp"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if statErr == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
