package doctor

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// Sandbox makes the checks of the sandbox alone: the program, what it confines, and the
// network (sonny.md 19.1, step 4). It reaches no daemon but one of its own, and takes a minute
// at most.
func Sandbox(ctx context.Context, o Options) []Check {
	d := &Doctor{o: o, mends: map[string][]mend{}}
	d.quiet = newDiscretion(&o, nil, o.Environ)
	var out []Check
	for _, c := range table() {
		if strings.HasPrefix(c.id, "sandbox.") {
			out = append(out, d.made(ctx, c))
		}
	}
	return out
}

// SandboxCommand is the command with which a person would mend what a check of the sandbox
// found, for a shell; "" where none is known. Sonny never runs it.
func SandboxCommand(c Check) string {
	if c.Status != Fail || runtime.GOOS != "linux" {
		return ""
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	return mendCommand(c, read, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
}

// installers are the commands that install a package, by the program that does.
var installers = [][2]string{
	{"apt-get", "sudo apt-get install bubblewrap"},
	{"dnf", "sudo dnf install bubblewrap"},
	{"pacman", "sudo pacman -S bubblewrap"},
	{"zypper", "sudo zypper install bubblewrap"},
	{"apk", "sudo apk add bubblewrap"},
}

// limits are the kernel's switches by which user namespaces are held back, the value that
// does, and what lets them be.
var limits = []struct{ path, holds, mends string }{
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", profile},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"},
}

// profile is a profile of AppArmor for bubblewrap alone: others stay held back.
const profile = `printf '%s\n' 'abi <abi/4.0>,' 'include <tunables/global>' 'profile bwrap /usr/bin/bwrap flags=(unconfined) {' '  userns,' '}' | ` +
	`sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap`

func mendCommand(c Check, read func(path string) string, has func(program string) bool) string {
	if c.ID == "sandbox.program" {
		for _, i := range installers {
			if has(i[0]) {
				return i[1]
			}
		}
		return ""
	}
	if !slices.ContainsFunc([]string{"userns", "namespaces"}, func(sign string) bool { return strings.Contains(c.Summary+c.Remedy, sign) }) {
		return ""
	}
	for _, l := range limits {
		if read(l.path) == l.holds {
			return l.mends
		}
	}
	return ""
}
