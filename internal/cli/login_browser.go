package cli

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// openBrowser asks the system to show an address. That it could not be shown
// is no error: the address is on the screen.
func openBrowser(address string) {
	name := browser()
	if name == "" {
		return
	}
	cmd := exec.Command(name, address)
	// Not of the terminal's process group: Ctrl-C here must not end a browser.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if cmd.Start() == nil {
		go cmd.Wait()
	}
}

// browser is the program that shows an address: the first that BROWSER names,
// else the system's; "" over ssh and without a display, where a browser would
// open for somebody else or not at all.
func browser() string {
	if os.Getenv("SSH_CONNECTION") != "" {
		return ""
	}
	if first, _, _ := strings.Cut(os.Getenv("BROWSER"), ":"); first != "" {
		return first
	}
	if runtime.GOOS == "darwin" {
		return "open"
	}
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return ""
	}
	return "xdg-open"
}
