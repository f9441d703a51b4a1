package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agent/client"
	"agent/internal/place"
	"agent/internal/sonny/host/tools"
	"agent/internal/sonny/lead"
	"agent/protocol"
)

// note is what is kept of a call from before its first effect until its result is
// stored: with it a call that is offered again is not run again (companions.md 2.3).
type note struct {
	Bot     string `json:"bot"`
	BotID   int64  `json:"bot_id"`
	Turn    int64  `json:"turn"`
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	Subject string `json:"subject,omitempty"`

	// What it came to, once that is known: then a call that is offered again gets it.
	Done     bool          `json:"done,omitempty"`
	Text     string        `json:"text,omitempty"`
	External bool          `json:"external,omitempty"`
	Code     protocol.Code `json:"code,omitempty"`
	Detail   string        `json:"detail,omitempty"`
}

// notes are the files of the folder STORE.companions/calls. Each belongs to one call.
type notes struct{ dir string }

func openNotes(dir string) (*notes, error) { return &notes{dir}, place.MakePrivateDir(dir) }

// noteKey is the name of a call's note.
func noteKey(c *client.ToolCall) string { return tools.CallKey(&c.ToolCall) }

func (n *notes) path(key string) string { return filepath.Join(n.dir, key+".json") }

// maxNote bounds a note that is read, in bytes: a result, escaped.
const maxNote = 8 << 20

// read is the note of a call; nil where there is none.
func (n *notes) read(key string) (*note, error) {
	text, _, err := place.ReadOwn(n.path(key), maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	of := new(note)
	if json.Unmarshal(text, of) != nil {
		return new(note), nil // it is there, and tells nothing
	}
	return of, nil
}

// answer is what a call gets whose note is there.
func (n *note) answer(err error) (client.ToolOutput, error) {
	switch {
	case err != nil:
		return client.ToolOutput{}, protocol.Fail(outcomeUnknown, "the note of the call cannot be read: "+err.Error())
	case !n.Done:
		return client.ToolOutput{}, protocol.Fail(outcomeUnknown, "the tool host ended while it did this; look what is there before you ask again")
	case n.Code != "":
		return client.ToolOutput{}, protocol.Fail(n.Code, n.Detail)
	}
	return client.ToolOutput{Text: n.Text, External: n.External}, nil
}

func (n *notes) begin(key string, of *note) error { return n.write(key, of) }

func (n *notes) write(key string, of *note) error {
	text, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return place.WritePrivate(n.path(key), text)
}

// done keeps what a call came to until the daemon has stored it. When that cannot be
// kept the note stays as it is, and the call is not run again.
func (n *notes) done(key string, out client.ToolOutput, err error) {
	of, readErr := n.read(key)
	if readErr != nil || of == nil {
		return
	}
	of.Done, of.Text, of.External = true, out.Text, out.External
	if err != nil {
		coded := new(protocol.Error)
		if !errors.As(err, &coded) {
			coded = protocol.Fail(protocol.ToolFailed, err.Error())
		}
		of.Code, of.Detail = coded.Code, coded.Detail
	}
	_ = n.write(key, of)
}

// settled tells the note of a start what came of it.
func (n *notes) settled(s lead.Settled) {
	prefix := fmt.Sprintf("%d-%d-", s.Lead, s.Turn)
	entries, _ := listDir(n.dir)
	for _, e := range entries {
		key, isNote := strings.CutSuffix(e.Name(), ".json")
		if !isNote || !strings.HasPrefix(key, prefix) {
			continue
		}
		of, err := n.read(key)
		if err != nil || of == nil || of.Done || of.Tool != "start_task" || of.Subject != s.Bot {
			continue
		}
		if s.Started == nil {
			n.done(key, client.ToolOutput{}, protocol.Fail(outcomeUnknown, "the tool host ended while it started "+s.Bot+"; what it had made is undone, but its setup may have run: ask again"))
			continue
		}
		if text, err := json.Marshal(s.Started); err == nil {
			n.done(key, client.ToolOutput{Text: string(text)}, nil)
		}
	}
}

// drop takes away the note of a call of a turn, or of all of them for "": their
// results are stored.
func (n *notes) drop(turn int64, callID string) {
	entries, _ := listDir(n.dir)
	for _, e := range entries {
		if tools.TurnOfKey(e.Name()) != turn {
			continue
		}
		key := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".json"), ".log")
		of, err := n.read(key)
		if callID == "" || err == nil && of != nil && of.CallID == callID {
			os.Remove(filepath.Join(n.dir, e.Name()))
		}
	}
}

// keep drops all notes but those of calls that are still to be answered.
func (n *notes) keep(pending map[string]bool) {
	entries, _ := listDir(n.dir)
	for _, e := range entries {
		if key := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".json"), ".log"); !pending[key] {
			os.Remove(filepath.Join(n.dir, e.Name()))
		}
	}
}
