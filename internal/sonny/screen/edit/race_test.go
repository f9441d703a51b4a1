//go:build race

package edit

// raceEnabled says that times mean nothing.
const raceEnabled = true
