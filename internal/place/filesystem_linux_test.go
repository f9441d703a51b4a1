package place

import "testing"

func TestLinuxTypes(t *testing.T) {
	for _, row := range []struct {
		name    string
		magic   uint32
		want    string
		network bool
	}{
		{"NFS", 0x6969, "nfs", true},
		{"SMB", 0xfe534d42, "smb2", true},
		{"CIFS", 0xff534d42, "cifs", true},
		{"9p", 0x01021997, "9p", true},
		{"AFS", 0x5346414f, "afs", true},
		{"Lustre", 0x0bd00bd0, "lustre", true},
		{"FUSE, virtiofs among it", 0x65735546, "fuse", true},
		{"a shared folder of VMware", 0xbacbacbc, "vmhgfs", true},
		{"a shared folder of VirtualBox", 0x786f4256, "vboxsf", true},
		{"ext4", 0xef53, "0xef53", false},
		{"tmpfs", 0x01021994, "0x1021994", false},
		{"one nobody knows", 0x12345678, "0x12345678", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got, network := linuxType(row.magic); got != row.want || network != row.network {
				t.Fatalf("linuxType(%#x) = %q, %v", row.magic, got, network)
			}
		})
	}
}
