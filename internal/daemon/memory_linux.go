package daemon

import (
	"bufio"
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// releaseProgram lets go of the pages of the program that are mapped: most are
// of code that runs once, at the start. What is needed again comes back from
// the page cache, 64 KiB at a fault. Without it they are over half of what an
// idle daemon holds.
func releaseProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	var at, size uintptr
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		if from, to, ok := programPages(lines.Bytes(), program); ok {
			at, size = from, to-from
		}
		// Only pages that are the file's: one that was written to is nowhere else.
		if private, ok := bytes.CutPrefix(lines.Bytes(), []byte("Anonymous:")); ok {
			if size > 0 && string(bytes.TrimSpace(private)) == "0 kB" {
				_, _, _ = unix.Syscall(unix.SYS_MADVISE, at, size, unix.MADV_DONTNEED)
			}
			size = 0
		}
	}
}

// programPages reads the head of a mapping: its range, when it is a read-only
// one of the program's file.
func programPages(line []byte, program string) (from, to uintptr, ok bool) {
	fields := bytes.Fields(line)
	if len(fields) < 6 || !bytes.HasSuffix(line, []byte(" "+program)) || len(fields[1]) != 4 || fields[1][1] == 'w' {
		return 0, 0, false
	}
	low, high, _ := bytes.Cut(fields[0], []byte("-"))
	a, err := strconv.ParseUint(string(low), 16, 64)
	b, err2 := strconv.ParseUint(string(high), 16, 64)
	return uintptr(a), uintptr(b), err == nil && err2 == nil && b > a
}
