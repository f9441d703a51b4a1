package sandbox

// The machine's own architecture, as the kernel's audit names it, and the bit in
// the numbers of its second set of system calls.
const (
	nativeArch = 0xc000003e
	x32Bit     = 0x40000000
)
