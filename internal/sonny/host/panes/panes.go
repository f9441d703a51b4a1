// Package panes is where Sonny's screens are, so that run_in_pane opens its panes
// beside them (sonny.md 29), and so that only one of them tells the person of something
// (28). A screen calls Attach when it opens a session and when the person looks at it,
// and Detach when it ends; the tool host asks Attached.
package panes

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agent/internal/place"
)

// Record is a screen that shows a bot's session, as a file attached/PID.json.
type Record struct {
	PID    int       `json:"pid"`
	Store  string    `json:"store"`  // the store's identity
	BotID  int64     `json:"bot_id"` // whose session is on screen; 0: none
	Host   string    `json:"host"`   // "tmux", or "" where panes cannot be opened
	Tmux   string    `json:"tmux"`   // the program's absolute path
	Socket string    `json:"socket"` // of its server
	Server int       `json:"server"` // the server's process
	Pane   string    `json:"pane"`   // the screen's own, such as %3
	Since  time.Time `json:"since"`

	Looked time.Time `json:"looked"` // when the person was seen at this screen last
}

// Here is the record of this process, by its environment. bot is the session on
// screen, 0 for none; store the store's identity.
func Here(getenv func(string) string, store string, bot int64) Record {
	now := time.Now()
	r := Record{PID: os.Getpid(), Store: store, BotID: bot, Since: now, Looked: now}
	server, rest, ok := cutLast(getenv("TMUX"))
	pane := getenv("TMUX_PANE")
	program, err := exec.LookPath("tmux")
	if !ok || err != nil || !ValidPane(pane) || !filepath.IsAbs(rest) {
		return r
	}
	if program, err = filepath.Abs(program); err != nil {
		return r
	}
	r.Host, r.Tmux, r.Socket, r.Server, r.Pane = "tmux", program, rest, server, pane
	return r
}

// cutLast takes SOCKET,PID,SESSION apart.
func cutLast(tmux string) (server int, socket string, ok bool) {
	parts := strings.Split(tmux, ",")
	if len(parts) < 3 {
		return 0, "", false
	}
	server, err := strconv.Atoi(parts[len(parts)-2])
	return server, strings.Join(parts[:len(parts)-2], ","), err == nil && server > 0
}

// ValidPane reports whether a text is a tmux pane's id.
func ValidPane(id string) bool {
	digits, ok := strings.CutPrefix(id, "%")
	return ok && digits != "" && len(digits) < 10 && strings.Trim(digits, "0123456789") == ""
}

func dirOf(sonny string) string { return filepath.Join(sonny, "attached") }

func fileOf(sonny string, pid int) string {
	return filepath.Join(dirOf(sonny), fmt.Sprintf("%d.json", pid))
}

// Attach writes the record, in place of an earlier one of this process. sonny is
// ~/.agent/sonny.
func Attach(sonny string, r Record) error {
	if err := place.Remake(sonny); err != nil {
		return err
	}
	if err := place.MakePrivateDir(dirOf(sonny)); err != nil {
		return err
	}
	text, err := json.Marshal(&r)
	if err != nil {
		return err
	}
	return place.WritePrivate(fileOf(sonny, r.PID), text)
}

// Detach removes the record of this process, if there is one.
func Detach(sonny string) { os.Remove(fileOf(sonny, os.Getpid())) }

// maxRecord bounds a record's file, in bytes, and maxRecords how many are read.
const (
	maxRecord  = 16 << 10
	maxRecords = 256
)

// Attached are the records of screens that run and show a bot's session, the newest
// first.
func Attached(sonny, store string, bot int64) ([]Record, error) {
	all, err := All(sonny, store)
	all = slices.DeleteFunc(all, func(r Record) bool { return r.BotID != bot })
	slices.SortStableFunc(all, func(a, b Record) int { return b.Since.Compare(a.Since) })
	return all, err
}

// All are the records of the screens of a store that run. Those of processes that are
// gone are removed.
func All(sonny, store string) ([]Record, error) {
	entries, err := os.ReadDir(dirOf(sonny))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Record
	for _, e := range entries[:min(len(entries), maxRecords)] {
		path := filepath.Join(dirOf(sonny), e.Name())
		text, _, err := place.ReadOwn(path, maxRecord)
		var r Record
		if err != nil || json.Unmarshal(text, &r) != nil || e.Name() != fmt.Sprintf("%d.json", r.PID) {
			continue
		}
		if syscall.Kill(r.PID, 0) == syscall.ESRCH {
			os.Remove(path)
			continue
		}
		if r.Store == store {
			out = append(out, r)
		}
	}
	return out, nil
}
