// Package screen is Sonny's screen: one goroutine, the App's loop, owns all that is
// shown. Keys, the daemon's events and the answers to what was asked come to it; frames
// go to the terminal (sonny.md 7). Nothing in the loop waits: what takes time runs
// beside it and comes back as a function for the loop to call.
package screen
