// Package snapshot keeps what the files of a folder were before each message
// (sonny.md 10.7), so that they can be put back.
//
// A state is a tree in a private git repository, one for each checkout, with its own
// index and configuration. The person's repository is only asked which files there are.
// Files are kept and put back byte for byte: no attribute, filter or line ending counts.
// What git ignores, and what lies outside the folder, is not covered.
package snapshot
