package host

import (
	"os"
	"path/filepath"
	"strings"

	"agent/internal/place"
	"agent/internal/sonny/config"
	"agent/internal/sonny/lead"
	"agent/protocol"
)

// startTask starts a task under the calling lead (sonny.md 5.1).
func startTask(c *Call) (any, error) {
	var a struct {
		Name         string `json:"name"`
		Brief        string `json:"brief"`
		Role         string `json:"role"`
		Model        string `json:"model"`
		Effort       string `json:"effort"`
		Worktree     *bool  `json:"worktree"`
		Base         string `json:"base"`
		Folder       string `json:"folder"`
		BudgetTokens int64  `json:"budget_tokens"`
	}
	if err := c.decode(&a); err != nil {
		return nil, err
	}
	if c.unset != nil {
		return nil, c.unset
	}
	log, err := c.h.openCallLog(c)
	if err != nil {
		return nil, err
	}
	defer log.close()
	starter, err := c.h.starter(c, log)
	if err != nil {
		return nil, err
	}
	start, err := starter.Resolve(c.ctx, lead.TaskRequest{
		Name: a.Name, Brief: a.Brief, Role: a.Role, Model: a.Model, Effort: a.Effort,
		Worktree: a.Worktree, Base: a.Base, Folder: a.Folder, BudgetTokens: a.BudgetTokens,
	})
	if err != nil {
		return nil, err
	}
	var step *Step
	if start.NeedsVerdict() {
		if step, err = c.step("start_task.start", start.Shown(), ""); err != nil {
			return nil, err
		}
	}
	started, err := c.doStart(start, log)
	if step != nil {
		detail := ""
		if err == nil {
			detail = started.Handle + " in " + started.Workspace
		}
		step.done(err, detail)
	}
	if err != nil {
		return nil, err
	}
	return started, nil
}

// doStart carries the start out. What a setup that failed has printed last is told.
func (c *Call) doStart(start *lead.TaskStart, log *callLog) (*lead.TaskStarted, error) {
	if err := c.begin(start.Bot); err != nil {
		return nil, err
	}
	started, err := start.Do(c.ctx)
	if protocol.CodeOf(err) == protocol.SetupFailed {
		if said := log.last(); said != "" {
			err = protocol.Fail(protocol.SetupFailed, detailOf(err)+"; it printed last:\n"+said)
		}
	}
	return started, err
}

func detailOf(err error) string {
	if coded, ok := err.(*protocol.Error); ok {
		return coded.Detail
	}
	return err.Error()
}

// starter starts tasks under the calling bot.
func (h *host) starter(c *Call, log *callLog) (*lead.TaskStarter, error) {
	_, project, err := h.lead(c.ctx, c.bot)
	if err != nil {
		return nil, err
	}
	if project == "" {
		return nil, protocol.Fail(invalidArguments, c.Bot+" belongs to no project, which a task's name begins with")
	}
	s := &lead.TaskStarter{
		Client: h.Client, Store: h.Store, Sonny: h.sonny, Lead: c.bot, Project: project, Turn: c.Turn,
		Settings: c.set.Lead, Compose: lead.TaskComposer(h.Home, c.set.Texts),
		Keys: lead.KeyVariables(h.ready), Output: log,
	}
	if kept := h.session(c.BotID); kept != nil {
		s.Repo = kept.Repo
	}
	if c.bot.Workspace != nil {
		s.NoFolderFiles, err = config.OpenedWithout(filepath.Join(h.sonny, "trust.json"), *c.bot.Workspace)
	}
	return s, err
}

// callLog is what a call's setup prints: its last part, in a file beside the note, where
// a screen can show it.
type callLog struct {
	path string
	file *os.File
	kept []byte
	size int64
}

// How much of a log is kept, in bytes, and how much of it an error tells.
const (
	keptLog = 64 << 10
	toldLog = 2 << 10
)

// LogOf is where what a call's setup prints is found while it runs.
func LogOf(store, key string) string {
	return filepath.Join(store+".companions", "calls", key+".log")
}

func (h *host) openCallLog(c *Call) (*callLog, error) {
	path := LogOf(h.Store, noteKey(c.ToolCall))
	f, err := place.OpenPrivate(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	return &callLog{path: path, file: f}, err
}

// Write keeps the last part of what comes. A file that cannot be written does not keep
// a setup from running.
func (l *callLog) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p...)
	if over := len(l.kept) - keptLog; over > 0 {
		l.kept = append(l.kept[:0], l.kept[over:]...)
	}
	if l.size += int64(len(p)); l.size > 2*keptLog {
		l.size = int64(len(l.kept))
		_ = l.file.Truncate(0)
		_, _ = l.file.WriteAt(l.kept, 0)
		_, _ = l.file.Seek(0, 2)
		return len(p), nil
	}
	_, _ = l.file.Write(p)
	return len(p), nil
}

// last is the end of what was printed.
func (l *callLog) last() string {
	text := l.kept[max(0, len(l.kept)-toldLog):]
	return strings.TrimSpace(strings.ToValidUTF8(string(text), ""))
}

// close ends the log. It is taken away with the note.
func (l *callLog) close() {
	l.file.Close()
	if len(l.kept) == 0 {
		os.Remove(l.path)
	}
}
