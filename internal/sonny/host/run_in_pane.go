package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agent/internal/place"
	"agent/internal/sonny/host/action"
	"agent/internal/sonny/host/panes"
	"agent/protocol"
)

// paneArgs are run_in_pane's: a command to open a pane with, or one of read and close.
type paneArgs struct {
	Command string `json:"command"`
	Cwd     string `json:"cwd"`
	Title   string `json:"title"`
	Where   string `json:"where"`
	Focus   bool   `json:"focus"`
	Keep    *bool  `json:"keep"`
	Read    *struct {
		Pane  string `json:"pane"`
		Lines int    `json:"lines"`
	} `json:"read"`
	Close string `json:"close"`
}

// The bounds of run_in_pane.
const (
	maxPanes   = 8 // open ones of a lead
	maxCommand = 16 << 10
	maxTitle   = 80
)

// runInPane opens a terminal pane beside the person's Sonny, reads one or closes one
// (sonny.md 29). Opening waits for a verdict.
func runInPane(c *Call) (any, error) {
	var a paneArgs
	if err := c.decode(&a); err != nil {
		return nil, err
	}
	given := 0
	for _, is := range []bool{a.Command != "", a.Read != nil, a.Close != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, invalid("command", "give one of command, read and close")
	}
	if c.unset != nil {
		return nil, c.unset
	}
	if !c.set.Panes {
		return nil, protocol.Fail(panes.NoHost, "the person has panes turned off (panes.enabled)")
	}
	above, _, err := c.h.lead(c.ctx, c.bot)
	if err != nil {
		return nil, err
	}
	switch {
	case a.Read != nil:
		return c.readPane(above.ID, a.Read.Pane, a.Read.Lines)
	case a.Close != "":
		return c.closePane(above.ID, a.Close)
	}
	return c.openPane(above, &a)
}

// openPane resolves where the pane comes, asks, and opens it there.
func (c *Call) openPane(above *protocol.Bot, a *paneArgs) (any, error) {
	if err := c.checkPane(a); err != nil {
		return nil, err
	}
	screen, err := c.screen(above)
	if err != nil {
		return nil, err
	}
	open, err := c.h.panes.open(c.ctx, above.ID)
	if err != nil {
		return nil, err
	}
	if len(open) >= maxPanes {
		return nil, protocol.Fail(panes.NoHost, fmt.Sprintf("%d panes are open already; close one of %s", len(open), idsOf(open)))
	}
	shell := panes.Shell()
	shown := new(action.Action)
	shown.Add("runs", "in a terminal pane of tmux, unconfined, as the person")
	shown.Add("shell", shell)
	shown.Add("cwd", a.Cwd)
	shown.Add("where", a.Where)
	shown.Add("focus", a.Focus)
	shown.Add("keep", *a.Keep)
	action.Opt(shown, "title", a.Title)
	shown.Text("command", a.Command)
	step, err := c.step("run_in_pane.open", shown, "")
	if err != nil {
		return nil, err
	}
	if err := c.begin(""); err != nil {
		step.done(err, "")
		return nil, err
	}
	id, err := screen.Open(c.ctx, shell, &panes.Wanted{
		Command: a.Command, Cwd: a.Cwd, Title: a.Title, Where: a.Where, Focus: a.Focus, Keep: *a.Keep,
	})
	if err == nil {
		err = c.h.panes.add(pane{Lead: above.ID, Pane: id, Tmux: screen.Program, Socket: screen.Socket, Server: screen.Server})
	}
	step.done(err, id)
	if err != nil {
		return nil, err
	}
	return struct {
		Pane string `json:"pane"`
		Host string `json:"host"`
	}{id, "tmux"}, nil
}

// checkPane fills in what was not said.
func (c *Call) checkPane(a *paneArgs) error {
	switch {
	case len(a.Command) > maxCommand || strings.ContainsRune(a.Command, 0):
		return invalid("command", fmt.Sprintf("at most %d bytes, without a NUL", maxCommand))
	case len(a.Title) > maxTitle || strings.ContainsFunc(a.Title, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return invalid("title", fmt.Sprintf("one line of at most %d bytes", maxTitle))
	}
	if a.Where == "" {
		a.Where = c.set.PaneSplit
	}
	if !slices.Contains([]string{"right", "down", "tab"}, a.Where) {
		return invalid("where", "right, down or tab")
	}
	if a.Keep == nil {
		yes := true
		a.Keep = &yes
	}
	base := ""
	if c.bot.Workspace != nil {
		base = *c.bot.Workspace
	}
	if !filepath.IsAbs(a.Cwd) {
		a.Cwd = filepath.Join(base, a.Cwd)
	}
	real, err := filepath.EvalSymlinks(a.Cwd)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(real); err == nil && !info.IsDir() {
			err = errors.New("it is no folder")
		}
	}
	if err != nil || !filepath.IsAbs(a.Cwd) {
		return invalid("cwd", a.Cwd+" is no folder that a command could run in")
	}
	a.Cwd = real
	return nil
}

// screen is the newest screen of a lead that panes can be opened beside.
func (c *Call) screen(above *protocol.Bot) (*panes.Tmux, error) {
	records, err := panes.Attached(c.h.sonny, c.h.ready.Store.Identity, above.ID)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if t := r.At(); r.Host == "tmux" && t.Answers(c.ctx) {
			return t, nil
		}
	}
	return nil, protocol.Fail(panes.NoHost, "no screen of "+above.Name+" is open in tmux; ask the person to open sonny there, or use shell")
}

// readPane gives what a pane shows. It does not wait.
func (c *Call) readPane(lead int64, id string, lines int) (any, error) {
	p, err := c.h.panes.find(c.ctx, lead, id)
	if err != nil {
		return nil, err
	}
	if lines == 0 {
		lines = 50
	}
	if lines < 1 || lines > panes.MaxLines {
		return nil, invalid("read.lines", fmt.Sprintf("1 to %d", panes.MaxLines))
	}
	text, dead, err := p.at().Read(c.ctx, id, lines)
	if err != nil {
		return nil, err
	}
	return struct {
		Pane  string `json:"pane"`
		Ended bool   `json:"ended"`
		Text  string `json:"text"`
	}{id, dead, text}, nil
}

func (c *Call) closePane(lead int64, id string) (any, error) {
	p, err := c.h.panes.find(c.ctx, lead, id)
	if err != nil {
		return nil, err
	}
	if err := c.begin(id); err != nil {
		return nil, err
	}
	if err := p.at().Close(c.ctx, id); err != nil {
		return nil, err
	}
	return struct {
		Pane   string `json:"pane"`
		Closed bool   `json:"closed"`
	}{id, true}, c.h.panes.drop(id, p.Server)
}

// pane is one that the host opened.
type pane struct {
	Lead   int64  `json:"lead"`
	Pane   string `json:"pane"`
	Tmux   string `json:"tmux"`
	Socket string `json:"socket"`
	Server int    `json:"server"` // its process: a later one numbers its panes anew
}

func (p *pane) at() *panes.Tmux {
	return &panes.Tmux{Program: p.Tmux, Socket: p.Socket, Server: p.Server, Pane: p.Pane}
}

func idsOf(list []pane) string {
	var ids []string
	for _, p := range list {
		ids = append(ids, p.Pane)
	}
	return strings.Join(ids, ", ")
}

// paneBook is the file of the panes that the host opened, over its restarts. It is safe
// for concurrent use.
type paneBook struct {
	mu   sync.Mutex
	path string
}

func (b *paneBook) read() ([]pane, error) {
	text, _, err := place.ReadOwn(b.path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []pane
	if err == nil && json.Unmarshal(text, &list) != nil {
		return nil, nil // what it knew is lost: those panes are nobody's
	}
	return list, err
}

func (b *paneBook) change(change func([]pane) []pane) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, err := b.read()
	if err != nil {
		return err
	}
	text, err := json.Marshal(change(list))
	if err != nil {
		return err
	}
	return place.WritePrivate(b.path, text)
}

func (b *paneBook) add(p pane) error {
	return b.change(func(list []pane) []pane { return append(list, p) })
}

func (b *paneBook) drop(id string, server int) error {
	return b.change(func(list []pane) []pane {
		return slices.DeleteFunc(list, func(p pane) bool { return p.Pane == id && p.Server == server })
	})
}

// open are a lead's panes that are still there. Those that are not are forgotten.
func (b *paneBook) open(ctx context.Context, lead int64) ([]pane, error) {
	b.mu.Lock()
	list, err := b.read()
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var open, gone []pane
	for _, p := range list {
		switch there := p.at().Has(ctx, p.Pane); {
		case !there:
			gone = append(gone, p)
		case p.Lead == lead:
			open = append(open, p)
		}
	}
	if len(gone) > 0 {
		err = b.change(func(list []pane) []pane {
			return slices.DeleteFunc(list, func(p pane) bool { return slices.Contains(gone, p) })
		})
	}
	return open, err
}

// find is a lead's pane by its id.
func (b *paneBook) find(ctx context.Context, lead int64, id string) (*pane, error) {
	open, err := b.open(ctx, lead)
	if err != nil {
		return nil, err
	}
	for _, p := range open {
		if p.Pane == id {
			return &p, nil
		}
	}
	return nil, invalid("pane", fmt.Sprintf("%q is no pane that run_in_pane opened for this lead and that is still there", id))
}
