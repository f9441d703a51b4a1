package main

import "golang.org/x/sys/unix"

func diskName(fs *unix.Statfs_t) string { return unix.ByteSliceToString(fs.Fstypename[:]) }
