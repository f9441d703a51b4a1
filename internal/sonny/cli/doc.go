// Package cli is the sonny command: its verbs, one file per verb, and what they share
// (sonny.md 2). A verb parses its line, asks the room that does the work, and prints;
// no verb holds work of its own.
package cli
