package sandbox

// The machine's own architecture, as the kernel's audit names it; it has one set
// of system calls.
const (
	nativeArch = 0xc00000b7
	x32Bit     = 0
)
