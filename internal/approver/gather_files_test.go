package approver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agent/protocol"
)

// content is what a call's one file holds as the judge reads it.
func content(t *testing.T, d *document) string {
	t.Helper()
	if len(d.Planned) == 0 || len(d.Planned[0].Files) != 1 || d.Planned[0].Files[0].Content == nil {
		t.Fatalf("planned %+v", d.Planned)
	}
	return *d.Planned[0].Files[0].Content
}

func testFiles(t *testing.T, w *world) {
	t.Run("AP-93 a script that a confined command wrote turns ago is shown", func(t *testing.T) {
		w := w.in(t)
		w.bot("ap93", confined)
		w.ended(w.turn("ap93", "run printf 'rm -rf ~ # no'; printf 'echo evil > /etc/x\\n' > x.sh", nil))
		w.ended(w.turn("ap93", "Thank you.", nil))
		_, d := w.asked("ap93", "escalate bash ./x.sh", nil)
		if got := content(t, d); got != "echo evil > /etc/x\n" {
			t.Errorf("content %q", got)
		}
		p := d.Planned[0]
		if p.Cause != "escalation" || !p.Escalated || p.Justification != "the person said so" || d.Sandbox.Mode != workspaceWrite || d.Sandbox.Network != "off" || len(d.Sandbox.Writable) == 0 {
			t.Errorf("planned %+v in %+v", p, d.Sandbox)
		}
	})
	t.Run("AP-93 over 48 KiB, that call is denied", func(t *testing.T) {
		w := w.in(t)
		w.bot("ap93large", confined)
		w.file(filepath.Join(w.work, "large.sh"), strings.Repeat("#", maxFile+1))
		if e, _ := w.asked("ap93large", "escalate bash ./large.sh", nil); e.refused[0] != tooLargeToShow || len(e.ids) != 0 {
			t.Errorf("refused %v, shown %v", e.refused, e.ids)
		}
		w.file(filepath.Join(w.work, "large.sh"), strings.Repeat("#", maxFile))
		if e, d := w.asked("ap93large", "escalate bash ./large.sh", nil); len(e.refused) != 0 || len(content(t, d)) != maxFile {
			t.Errorf("refused %v", e.refused)
		}
	})
	t.Run("a file that an earlier call of the response will write is a pointer to it", func(t *testing.T) {
		w := w.in(t)
		w.bot("both", confined)
		e, d := w.asked("both", "both tool.sh then sh tool.sh", nil)
		// The write is confined: it needs no verdict, and has run when the call waits.
		if len(e.ids) != 2 || len(d.Planned[0].Files) != 1 {
			t.Fatalf("planned %+v", d.Planned)
		}
		f := d.Planned[0].Files[0]
		if (f.Content == nil || !strings.Contains(*f.Content, "evil")) && f.ChangedBy == "" {
			t.Errorf("the file is shown as it was: %+v", f)
		}
	})
	t.Run("a pipe in a script's place is not waited for", func(t *testing.T) {
		w := w.in(t)
		w.bot("pipe", confined)
		if err := unix.Mkfifo(filepath.Join(w.work, "pipe.sh"), 0o600); err != nil {
			t.Fatal(err)
		}
		if e, _ := w.asked("pipe", "escalate bash pipe.sh", nil); e.refused[0] != tooLargeToShow {
			t.Errorf("refused %v", e.refused)
		}
		if e, _ := w.asked("pipe", "escalate bash pipe.sh/*.sh", nil); len(e.refused) != 0 {
			t.Errorf("with a pipe in a folder's place: refused %v", e.refused)
		}
	})
	t.Run("a link out of the bot's folders shows where it leads and nothing of it", func(t *testing.T) {
		w := w.in(t)
		w.bot("link", confined)
		private := filepath.Join(w.home, "private")
		w.file(private, "the person's own")
		if err := os.Symlink(private, filepath.Join(w.work, "link.sh")); err != nil {
			t.Fatal(err)
		}
		e, d := w.asked("link", "escalate bash link.sh", nil)
		if strings.Contains(e.document, "the person's own") || len(d.Planned[0].Files) != 1 || d.Planned[0].Files[0].LinkTo != private {
			t.Errorf("planned %+v", d.Planned)
		}
	})
	t.Run("long arguments are read whole by their node", func(t *testing.T) {
		w := w.in(t)
		w.bot("whole", nil)
		command := "true; " + strings.Repeat("echo 0123456789; ", 400) + "echo the end"
		r := w.round(w.turn("whole", "run "+command, nil))
		if r.calls[0].Whole() {
			t.Fatal("the announcement holds all of it")
		}
		if _, d := w.shown(r); string(d.Planned[0].Arguments) != `{"command":"`+command+`"}` {
			t.Errorf("arguments of %d bytes", len(d.Planned[0].Arguments))
		}
	})
	t.Run("a bot that was replaced is not judged by its name", func(t *testing.T) {
		w := w.in(t)
		w.bot("replaced", nil)
		r := w.round(w.turn("replaced", "run true", nil))
		r.botID++
		if _, err := w.g.gather(w.ctx, r); err == nil {
			t.Error("it was")
		}
	})
	t.Run("an env file that others can read fails the check", func(t *testing.T) {
		w := w.in(t)
		w.bot("env", nil)
		sub := w.turn("env", "run true", nil)
		r := w.round(sub)
		path := filepath.Join(w.g.dir, "env")
		if err := os.MkdirAll(w.g.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		w.file(path, "X_TOKEN=planted-in-the-file\n")
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := w.g.gather(w.ctx, r); protocol.CodeOf(err) != protocol.EnvFilePermissions {
			t.Errorf("error %v", err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		w.stop(sub)
		if e, _ := w.asked("env", "run echo planted-in-the-file", nil); strings.Contains(e.document, "planted-in-the-file") {
			t.Errorf("the file's secret stands in %s", e.document)
		}
	})
}
