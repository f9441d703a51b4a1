// Package roster is who there is, in rows: the rail of sessions with their tasks, the lists
// of bots, sessions and tasks, and the tree of a session's forks (sonny.md 5, 7.1, 10.5,
// 11). What is known of them comes in, rows go out.
package roster

import (
	"agent/internal/sonny/live"
	"agent/internal/sonny/screen/text"
)

// Look is how a state of a bot looks: its mark, which has one cell, and its word.
type Look struct {
	Mark, Word string
	Role       text.Role
}

// Looks are those of all states. It is not changed.
var Looks = map[live.State]Look{
	live.Idle:     {"○", "idle", text.Dim},
	live.Queued:   {"◌", "queued", text.Dim},
	live.Waiting:  {"◐", "waiting", text.Wait},
	live.Working:  {"●", "working", text.Run},
	live.HeldUp:   {"◔", "held up", text.Pace},
	live.NeedsYou: {"!", "needs you", text.Need},
	live.Done:     {"✔", "done", text.Run},
	live.Failed:   {"✘", "failed", text.Fail},
	live.Paused:   {"‖", "paused", text.Warn},
}
