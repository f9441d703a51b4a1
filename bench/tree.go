package main

// below reports whether a process is another one or was started below it.
func below(parents map[int]int, pid, top int) bool {
	for range len(parents) { // what is read one by one may show a ring
		if pid == top {
			return true
		}
		pid = parents[pid]
	}
	return false
}
