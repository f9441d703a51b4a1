// Package fault has what went wrong in the words of a person at Sonny: a disk that takes
// nothing more, and the daemon's refusals with what can be done about them where they are
// read. It changes words alone; codes stay as they are.
package fault
