// Package house holds the rules of the tree itself, as tests: which folder may
// import which, that the daemon listens on Unix sockets alone and that one
// room alone dials out, and that the contributor's guide names every folder.
// It has no code of its own; nothing imports it.
package house
