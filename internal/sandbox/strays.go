package sandbox

import "time"

// strayTime bounds how long the launchers of a dead daemon are waited for.
const strayTime = time.Second

// EndStrays ends the launchers, and with them the commands, that a dead daemon of the
// same owner (Launcher.Owner) left, and returns when they are gone. It touches nothing
// else: an owner has one daemon at a time, so that the caller, who is about to be it
// and has started no command yet, has none of its own among them. left are the process
// ids of those that did not end within a second.
//
// A launcher is killed with its daemon, but not what it has begun: until a sandbox
// stands, its first process waits for the launcher, for ever if that is dead, or goes on
// to mount, and makes the mount points that have gone meanwhile. So a daemon ends them
// before it takes anything away that they may mount on.
func EndStrays(owner string) (ended int, left []int) {
	return endStrays(owner, time.Now().Add(strayTime))
}
