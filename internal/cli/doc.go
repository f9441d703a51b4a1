// Package cli is the agent command: its grammar, its verbs, and what it shows
// (the command-line document, whose sections the comments name). Whatever a
// verb does with a daemon goes through package client; serve alone is the
// daemon.
//
// A verb is a file that declares a verb value and adds it to verbs. Its flags
// are rows of one table (flags.go), which one scan of the line checks
// (scan.go) before anything else happens.
package cli
