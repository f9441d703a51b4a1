package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestNeed runs scripts/need.sh on machines made of stubs: a folder that is
// the whole PATH, in which package managers only write down what they are
// asked, and "install" by making a program.
func TestNeed(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name     string
		stubs    map[string]string // program → body of its script
		missing  string            // packages whose program is not there at first
		code     int
		says     []string
		ran      []string // what package managers were asked, in order
		wantNone bool     // nothing may be printed
	}{
		{
			name: "nothing is missing and nothing is said", stubs: machine("0", "go1.26.8"), wantNone: true,
		},
		{
			name: "root installs what is missing, and only that", stubs: machine("0", "go1.26.8", "apt-get"), missing: "ripgrep tmux",
			ran: []string{"apt-get update -q", "apt-get install -y --no-install-recommends ripgrep tmux"},
		},
		{
			name: "another user goes through sudo where it asks nothing", stubs: machine("1000", "go1.26.8", "apt-get", "sudo"), missing: "tmux",
			ran: []string{"sudo -n true", "sudo -n apt-get update -q", "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends tmux"},
		},
		{
			name: "without root and sudo the command to type is printed", stubs: machine("1000", "go1.26.8", "apt-get"), missing: "tmux",
			code: 1, says: []string{"sudo sh -c 'apt-get update -q && env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends tmux'"},
		},
		{
			name: "another system's packages", stubs: machine("0", "go1.27.0", "dnf"), missing: "ripgrep",
			ran: []string{"dnf install -y ripgrep"},
		},
		{
			name: "no package manager is known", stubs: machine("0", "go1.26.8"), missing: "git tmux",
			code: 1, says: []string{"missing: git tmux", "by hand"},
		},
		{
			name: "an old Go is named, and the one that is needed", stubs: machine("0", "go1.22.4", "apt-get"), missing: "tmux",
			code: 1, says: []string{"Go 1.26 or newer", "go1.22.4"},
		},
		{
			name: "no Go at all", stubs: without(machine("0", "", "apt-get"), "go"),
			code: 1, says: []string{"Go 1.26 or newer", "not on PATH"},
		},
		{
			name: "the package manager fails", stubs: machine("0", "go1.26.8", "apk-broken"), missing: "tmux",
			code: 1, says: []string{"the package manager failed: apk add --no-cache tmux"},
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			out, ran, code := need(t, row.stubs, strings.Fields(row.missing))
			if code != row.code {
				t.Errorf("exit %d, want %d: %s", code, row.code, out)
			}
			for _, want := range row.says {
				if !strings.Contains(out, want) {
					t.Errorf("it does not say %q: %s", want, out)
				}
			}
			if row.wantNone && out != "" {
				t.Errorf("it says %q", out)
			}
			if row.ran != nil || len(row.says) > 0 && row.stubs["apk"] == "" {
				if got, want := outermost(ran), row.ran; strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("it ran\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

// machine is a PATH's programs: a user's number, a Go's version, and package
// managers among them.
func machine(uid, goVersion string, managers ...string) map[string]string {
	stubs := map[string]string{
		"id": "echo " + uid,
		"go": "echo " + goVersion,
	}
	for _, name := range managers {
		switch name {
		case "sudo":
			stubs[name] = `echo "sudo $*" >>"$RAN"; shift; "$@"`
		case "apk-broken":
			stubs["apk"] = "exit 3"
		default:
			stubs[name] = `echo "` + name + ` $*" >>"$RAN"
for word in "$@"; do
	case $word in
	bubblewrap) : >"$BIN/bwrap" && chmod +x "$BIN/bwrap" ;;
	ripgrep) : >"$BIN/rg" && chmod +x "$BIN/rg" ;;
	git | tmux) : >"$BIN/$word" && chmod +x "$BIN/$word" ;;
	esac
done`
		}
	}
	return stubs
}

func without(stubs map[string]string, name string) map[string]string {
	delete(stubs, name)
	return stubs
}

// need runs the script on such a machine.
func need(t *testing.T, stubs map[string]string, missing []string) (out string, ran []string, code int) {
	t.Helper()
	script, err := filepath.Abs("../../scripts/need.sh")
	if err != nil {
		t.Fatal(err)
	}
	sh := lookUp(t, "sh")
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	for _, name := range []string{"dirname", "uname", "chmod", "env", "true", "sh"} {
		if err := os.Symlink(lookUp(t, name), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bwrap:bubblewrap", "git:git", "rg:ripgrep", "tmux:tmux"} {
		program, pkg, _ := strings.Cut(name, ":")
		if !slices.Contains(missing, pkg) {
			stubs[program] = "exit 0"
		}
	}
	for name, body := range stubs {
		if err := writeProgram(filepath.Join(bin, name), "#!"+sh+"\n"+body+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(sh, script)
	cmd.Env = []string{"PATH=" + bin, "BIN=" + bin, "RAN=" + log}
	said, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(said), strings.Split(strings.TrimSuffix(string(written), "\n"), "\n"), cmd.ProcessState.ExitCode()
}

// writeProgram keeps other goroutines from starting a process meanwhile: a child
// that inherits the file while it is written makes running it fail as busy.
func writeProgram(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o700)
}

// outermost leaves out what sudo ran on.
func outermost(ran []string) []string {
	var kept []string
	for i, line := range ran {
		if line == "" || i > 0 && strings.HasPrefix(ran[i-1], "sudo") && strings.HasSuffix(ran[i-1], line) {
			continue
		}
		kept = append(kept, line)
	}
	return kept
}

func lookUp(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
