package tool

// StartClean closes the files that the program inherited, and makes sure that
// commands will start with default signal handlers and an empty mask. Here, for
// the signals, the runtime's own resetting between fork and exec is
// all there is.
func StartClean() error {
	closeInherited()
	return nil
}
