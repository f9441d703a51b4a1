package doctor

import (
	"strings"
	"testing"
)

func TestTheCommandThatMendsTheSandbox(t *testing.T) {
	t.Parallel()
	held := Check{ID: "sandbox.run", Status: Fail, Summary: "user namespaces are off, or held back by AppArmor"}
	for _, row := range []struct {
		name  string
		check Check
		files map[string]string
		has   string
		want  string
	}{
		{"the package, by the system's own way", Check{ID: "sandbox.program", Status: Fail}, nil, "dnf", "sudo dnf install bubblewrap"},
		{"the package where no way is known", Check{ID: "sandbox.program", Status: Fail}, nil, "", ""},
		{"AppArmor's limit, by a profile", held, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, "", "profile bwrap /usr/bin/bwrap"},
		{"namespaces of users that are off", held, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "", "kernel.unprivileged_userns_clone=1"},
		{"none of them", held, map[string]string{"/proc/sys/user/max_user_namespaces": "0"}, "", "user.max_user_namespaces=15000"},
		{"held back by nothing that is known", held, nil, "apt-get", ""},
		{"a sandbox that does not confine", Check{ID: "sandbox.run", Status: Fail, Summary: "a write outside the folder went through"}, map[string]string{"/proc/sys/user/max_user_namespaces": "0"}, "", ""},
	} {
		got := mendCommand(row.check, func(path string) string { return row.files[path] }, func(name string) bool { return name == row.has })
		if row.want == "" && got != "" || !strings.Contains(got, row.want) {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}
