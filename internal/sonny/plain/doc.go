// Package plain is Sonny in lines of text (sonny.md 14), for screen readers and for
// terminals that can do nothing else: what is said, each line under a label, and one
// line that is typed. No cursor is moved, nothing is coloured, nothing is written twice.
//
// It decides nothing: whoever owns the model hands in what there is to say and takes
// the lines that were typed.
package plain
