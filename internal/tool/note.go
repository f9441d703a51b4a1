package tool

import (
	"context"
	_ "embed"
	"fmt"

	"agent/protocol"
)

var (
	//go:embed note.md
	noteText string
	//go:embed note.json
	noteParameters string
)

// noteTool keeps the carry-forward note (runtime.md 11, note).
var noteTool = &builtin[noteArgs]{
	name: "note", description: noteText, parameters: noteParameters, check: checkNote, run: runNote,
}

type noteArgs struct {
	Text arg[string] `json:"text"`
}

const maxNote = 8 << 10 // bytes

func checkNote(a *noteArgs) *Failure {
	if f := required("text", a.Text); f != nil {
		return f
	}
	if n := len(a.Text.value); n > maxNote {
		return failuref(protocol.ToolInputLimit, "the note is %d bytes; at most %d are kept", n, maxNote)
	}
	return nil
}

func runNote(ctx context.Context, env *Env, a *noteArgs) Result {
	text := a.Text.value
	if text != "" {
		room, err := env.Past.NoteRoom(ctx)
		if err != nil {
			return env.refuse(pastFailure(err))
		}
		if need := int64(len(quote(text)) - len(`""`)); need > room {
			return env.refuse(failuref(protocol.NoteContextLimit,
				"the note takes %d bytes and the context has room for %d beside the current turn; the old note stands", need, max(room, 0)))
		}
	}
	return Result{
		Output: fmt.Sprintf(`{"bytes":%d,"cleared":%t}`, len(text), text == ""),
		Note:   &text,
	}
}
