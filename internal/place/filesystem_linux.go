package place

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// networkTypes are the magic numbers of statfs(2). virtiofs mounts carry
// FUSE's.
var networkTypes = map[uint32]string{
	0x00006969: "nfs",
	0x0000517b: "smb",
	0xfe534d42: "smb2",
	0xff534d42: "cifs",
	0x01021997: "9p",
	0x5346414f: "afs",
	0x6b414653: "afs",
	0x0bd00bd0: "lustre",
	0x65735546: "fuse",
	0x00c36400: "ceph",
	0x73757245: "coda",
	0x0000564c: "ncp",
	0x47504653: "gpfs",
	0xaad7aaea: "panfs",
	0x01161970: "gfs2",
	0x7461636f: "ocfs2",
	0xbacbacbc: "vmhgfs",
	0x786f4256: "vboxsf",
	0x7c7c6673: "prl_fs",
}

func systemFileSystem(path string) (string, bool, error) {
	var st unix.Statfs_t
	if err := ignoringEINTR(func() error { return unix.Statfs(path, &st) }); err != nil {
		return "", false, err
	}
	name, network := linuxType(uint32(st.Type))
	return name, network, nil
}

func linuxType(magic uint32) (string, bool) {
	if name, ok := networkTypes[magic]; ok {
		return name, true
	}
	return fmt.Sprintf("%#x", magic), false
}

func ignoringEINTR(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}
