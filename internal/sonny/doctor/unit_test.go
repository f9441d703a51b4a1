package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/client"
	"agent/client/envfile"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/sonnytest"
	"agent/protocol"
)

func TestDiscretion(t *testing.T) {
	t.Parallel()
	o := &Options{
		Home: "/home/ada", Folder: "/srv/my work", ConfigPath: "/etc/so nny/config.toml",
		Environ: []string{"HOME=/home/link/ada", "OWN_API_KEY=hush-hush-hush-hush", "OPENAI_API_KEY=plainwordsbutakey"},
		Reach:   connect.Options{Target: client.Target{Store: "/home/ada/.agent/state.sqlite", Socket: "/srv/run/s.sock"}},
	}
	d := newDiscretion(o, []envfile.Var{{Name: "ANTHROPIC_API_KEY", Value: "sk-ant-fromthefile"}}, o.Environ)
	for _, row := range []struct{ name, text, want string }{
		{"a path in the home", "/home/ada/.agent/env:2 is no NAME=VALUE", "~/.agent/env:2 is no NAME=VALUE"},
		{"the home itself", "in /home/ada.", "in ~."},
		{"the home by its other spelling", "/home/link/ada/x", "~/x"},
		{"a longer name is another's", "/home/ada2/x and /home/ada.old/y", "…/x and …/y"},
		{"a path outside", `open "/etc/passwd": no`, `open "…/passwd": no`},
		{"several, after any sign", "a=/x/y,/z/w;(/q/r) --socket=/p/s", "a=…/y,…/w;(…/r) --socket=…/s"},
		{"a folder with a blank", "/srv/my work/.agents/x.md: bad", "…/x.md: bad"},
		{"a config with a blank", "/etc/so nny/config.toml:3: bad", "…/config.toml:3: bad"},
		{"what is no path", "scripted/sonny, 5/7, https://api.example.com/v1, ~/x, a / b", "scripted/sonny, 5/7, https://api.example.com/v1, ~/x, a / b"},
		{"a known key", "refused hush-hush-hush-hush and sk-ant-fromthefile and plainwordsbutakey", "refused [REDACTED] and [REDACTED] and [REDACTED]"},
	} {
		if got := d.text(row.text); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	if got := d.text("a\x1b[2Jb\nc\u009b\u202e"); strings.ContainsAny(got, "\x1b\n\u009b\u202e") || !strings.Contains(got, "b") {
		t.Errorf("what a terminal acts on stands in %q", got)
	}
	if long := d.text(strings.Repeat("é", 10_000)); len([]rune(long)) > maxText+1 {
		t.Errorf("%d characters", len([]rune(long)))
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, detail, what, remedy string
		program                    bool
	}{
		{"missing", "no bubblewrap at /usr/bin/bwrap, /bin/bwrap; install the package bubblewrap", "no bubblewrap at /usr/bin/bwrap, /bin/bwrap", "install the package bubblewrap", true},
		{
			"namespaces off", "/usr/bin/bwrap cannot confine commands here (user namespaces are off, or held back by AppArmor: load a profile for bwrap that allows userns, or sysctl a=1 or b=0): bwrap: No permissions",
			"/usr/bin/bwrap cannot confine commands here: user namespaces are off, or held back by AppArmor", "load a profile for bwrap that allows userns, or sysctl a=1 or b=0", false,
		},
		{"not to be trusted", "/usr/bin/bwrap is not owned by root", "/usr/bin/bwrap is not owned by root", "install " + launcher() + " anew from your system's packages", true},
		{"confines too little", "/usr/bin/bwrap confines too little on this machine: it lets commands write to /", "/usr/bin/bwrap confines too little on this machine: it lets commands write to /", "", false},
		{"no words of ours", "something (odd) happened", "something (odd) happened", "", false},
	} {
		if c := CauseOf(row.detail); c != (Cause{row.program, row.what, row.remedy}) {
			t.Errorf("%s: %+v", row.name, c)
		}
	}
}

// What the trial would see of a sandbox that confines nothing.
func TestTrialSeesWhatIsNotConfined(t *testing.T) {
	t.Parallel()
	bin := sonnytest.Programs(t)
	dialer := []string{filepath.Join(bin, "sonny"), "doctor", "--dial"}
	for _, mode := range []string{protocol.SandboxFull, protocol.SandboxWorkspace} {
		tr := &trial{mode: mode}
		if err := tr.make(t.Context(), filepath.Join(bin, "agent"), nil, dialer); err != nil {
			t.Fatal(err)
		}
		open := mode == protocol.SandboxFull
		want := trial{mode: mode, wroteInside: true, wroteOutside: open, reachedWalled: open, reachedOpen: true, ranClosed: true, reachedClosed: open}
		if *tr != want {
			t.Errorf("%s: %+v", mode, *tr)
		}
		d := &Doctor{trial: tr, o: Options{}}
		status := map[bool]Status{true: Fail, false: OK}[open]
		if run, network := d.sandboxRun(t.Context()), d.sandboxNetwork(t.Context()); run.status != status || network.status != status {
			t.Errorf("%s: %+v, %+v", mode, run, network)
		}
	}
	blind := &Doctor{trial: &trial{wroteInside: true, ranClosed: true}}
	if f := blind.sandboxNetwork(t.Context()); f.status != Warn {
		t.Errorf("a trial whose own command does not run says %+v", f)
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	for text, want := range map[string]string{
		"": "", "one\n": "one", "one\ntwo": "two", strings.Repeat("x\n", 10_000) + "last\n\n": "last",
	} {
		if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastLine(log); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := os.WriteFile(log, []byte("why\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pid := int64(7)
	kept := []protocol.Companion{{Name: "approver", PID: &pid}, {Name: "lookout", Log: log}}
	if _, up := companionState(kept, "approver"); !up {
		t.Error("the approver is up")
	}
	if said, up := companionState(kept, "lookout"); up || said != "is down, its last line: why" {
		t.Errorf("%q", said)
	}
	if said, up := companionState(kept, "toolhost"); up || said != "" {
		t.Errorf("%q", said)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "l")); err != nil || lastLine(filepath.Join(dir, "l")) != "" {
		t.Error("a link is read")
	}
}
