package cli

import (
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agent/client/envfile"
	"agent/protocol"

	"github.com/creack/pty"
)

func TestAValueIsTypedUnseen(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	sonny, err := exec.LookPath("sonny") // this program, by testscript
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), sonny, "env", "set", "MY_TOKEN")
	cmd.Env = []string{"HOME=" + home, "GORACE=" + noRaceSleep}
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	const question = "MY_TOKEN (not shown): "
	asked := make([]byte, len(question))
	if _, err := io.ReadFull(terminal, asked); err != nil || string(asked) != question {
		t.Fatalf("%q, %v", asked, err)
	}
	if _, err := io.WriteString(terminal, "wrong\x15hunter3\x7f2\r"); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(terminal) // ends with the program, in an error on Linux
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, rest)
	}
	if strings.Contains(string(rest), "hunter") || strings.Contains(string(rest), "wrong") {
		t.Errorf("what was typed is shown: %q", rest)
	}
	vars, err := envfile.Read(filepath.Join(home, ".agent", "env"))
	if err != nil || len(vars) != 1 || vars[0] != (envfile.Var{Name: "MY_TOKEN", Value: "hunter2"}) {
		t.Errorf("%v, %v", vars, err)
	}
}

func TestTypedLine(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"abc\r": "abc", "abc\n": "abc", "\x7fab\x08c\r": "ac", "é\x7fa\r": "a", "a\x04b\r": "a\x04b", "ab\x15\r": "",
	} {
		if got, err := typedLine(strings.NewReader(keys)); got != want || err != nil {
			t.Errorf("%q: %q, %v", keys, got, err)
		}
	}
	for _, keys := range []string{"ab\x03\r", "\x04", "ab", strings.Repeat("a", envfile.MaxSize+1) + "\r"} {
		if got, err := typedLine(strings.NewReader(keys)); got != "" || protocol.CodeOf(err) == "" {
			t.Errorf("%.9q: %q, %v", keys, got, err)
		}
	}
}
