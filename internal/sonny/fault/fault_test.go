package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agent/internal/place"
	"agent/protocol"
)

func TestADiskThatTakesNothing(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	of := func(op, path string, err error) error { return &fs.PathError{Op: op, Path: path, Err: err} }
	for _, row := range []struct {
		name  string
		err   error
		cause string
		words string
	}{
		{
			"a full disk, with the file, what became of it and what to do",
			of(place.OpReplace, "/home/me/.agent/config.toml", syscall.ENOSPC),
			"disk full", "disk full: ~/.agent/config.toml could not be written and stays as it was; make room, then do it again",
		},
		{
			"a quota", of("write", "/data/x", syscall.EDQUOT),
			"disk quota used up", "disk quota used up: /data/x could not be written; delete something of yours, then do it again",
		},
		{
			"a disk that is mounted read-only", of("mkdir", "/home/me/.agent/sonny", syscall.EROFS),
			"read-only disk", "read-only disk: ~/.agent/sonny could not be made; make it writable, then do it again",
		},
		{
			"a folder that the person may not write", of(place.OpCreate, "/home/me/.agent/sonny/pastes/a", syscall.EACCES),
			"read-only folder", "read-only folder ~/.agent/sonny/pastes: ~/.agent/sonny/pastes/a could not be made; make it writable for you, then do it again",
		},
		{
			"a lock is named as what it locks", of("open", "/home/me/.agent/sonny/sessions.json.lock", syscall.ENOSPC),
			"disk full", "disk full: ~/.agent/sonny/sessions.json could not be written; make room, then do it again",
		},
		{
			"a file that came in by a rename", &os.LinkError{Op: "rename", Old: "/a", New: "/home/me/b", Err: syscall.EROFS},
			"read-only disk", "read-only disk: ~/b could not be written; make it writable, then do it again",
		},
		{
			"what others said around it stays", fmt.Errorf("write it: %w; the rest is kept", of("write", "/a", syscall.ENOSPC)),
			"disk full", "write it: disk full: /a could not be written; make room, then do it again; the rest is kept",
		},
		{
			"under a code that hides it", &protocol.Error{Code: "memory_invalid", Detail: "no file", Cause: of("write", "/a", syscall.ENOSPC)},
			"disk full", "disk full: /a could not be written; make room, then do it again",
		},
		{"the daemon's full disk", storage("sqlite_primary=13 sqlite_extended=13"), "disk full", "disk full: the daemon's store could not be written; make room, then do it again"},
		{"a full disk as SQLite's shared memory sees it", storage("sqlite_primary=10 sqlite_extended=4874"), "disk full", "disk full: the daemon's store could not be written; make room, then do it again"},
		{"the daemon's read-only store", storage("sqlite_primary=8 sqlite_extended=1032"), "read-only disk", "read-only disk: the daemon's store could not be written; make it writable, then do it again"},
		{"a disk that fails below the daemon", storage("sqlite_primary=10 sqlite_extended=778"), "disk error", "disk error: the daemon's store could not be written; save what is on that disk, and have it looked at"},
		{
			"what the daemon adds is what to do", storage("sqlite_primary=13 sqlite_extended=13: all is stopped, but the pause is not recorded; pause again"),
			"disk full", "disk full: the daemon's store could not be written; all is stopped, but the pause is not recorded; pause again",
		},
		{"another refusal of the store", storage("what binds a bot cannot be read"), "the store cannot be written", "the store cannot be written: what binds a bot cannot be read"},
		{
			"in the words of a daemon that did not start",
			protocol.Fail("daemon_start_failed", "storage_error: sqlite_primary=13 sqlite_extended=13: the disk that holds /s is full"),
			"", "daemon_start_failed: disk full: the disk that holds /s is full",
		},
		{"a file that may not be read is another fault", of("open", "/a", syscall.EACCES), "", "/a may not be read by you: give yourself the right to (chmod u+r, and u+x for a folder)"},
		{"a folder that is not there", of("lstat", "/nosuch", syscall.ENOENT), "", "/nosuch is not there"},
		{"a path through a file", fmt.Errorf("--image: %w", of("stat", "/home/me/a/b", syscall.ENOTDIR)), "", "--image: ~/a/b is not there: a part of that path is a file, and no folder"},
		{
			"under a code that shows it", &protocol.Error{Code: "config_invalid", Detail: "open /a: permission denied; look at it", Cause: of("open", "/a", syscall.EACCES)},
			"", "config_invalid: /a may not be read by you: give yourself the right to (chmod u+r, and u+x for a folder); look at it",
		},
		{"a program that is not there", of("fork/exec", "/home/me/tell", syscall.ENOENT), "", "the program ~/tell is not there, or the one that its first line names"},
		{"a file that is not to be run", of("fork/exec", "/tell", syscall.EACCES), "", "/tell may not be run by you: chmod u+x makes it a program"},
		{"a program that is nowhere on PATH", &exec.Error{Name: "tell", Err: exec.ErrNotFound}, "", "there is no program tell on your PATH: install it, or name another"},
		{"and so is all else", errors.New("no"), "", "no"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := Cause(row.err); got != row.cause {
				t.Errorf("cause %q, want %q", got, row.cause)
			}
			if got := Screen.Words(row.err); got != row.words {
				t.Errorf("words %q,\nwant  %q", got, row.words)
			}
			told := Verb.Told(row.err)
			if row.cause != "" && !strings.Contains(told.Detail, row.cause) || strings.Contains(told.Error(), "sqlite_") {
				t.Errorf("told %q", told)
			}
			if again := Verb.Told(fmt.Errorf("%w", told)); again.Error() != told.Error() || Verb.Words(told) != told.Error() {
				t.Errorf("told twice it is %q, not %q", again, told)
			}
			if !errors.Is(told, row.err) {
				t.Error("what it was told of is lost")
			}
		})
	}
	if Verb.Told(nil) != nil {
		t.Error("nothing is told of no error")
	}
	if code := Verb.Told(of("write", "/a", syscall.ENOSPC)).Code; code != protocol.StorageError {
		t.Errorf("a bare fault of a disk has the code %s", code)
	}
}

func storage(detail string) error { return protocol.Fail(protocol.StorageError, detail) }

// A temporary name is nobody's: what a write failed of names the file that was meant.
func TestWhatCouldNotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gone", "facts.md")
	for name, write := range map[string]func(string, []byte) error{"replace": place.WritePrivate, "create": place.CreatePrivate} {
		var of *fs.PathError
		if err := write(path, nil); !errors.As(err, &of) || of.Op != name || of.Path != path || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
	there := filepath.Join(t.TempDir(), "facts.md")
	if err := place.WritePrivate(there, nil); err != nil {
		t.Fatal(err)
	}
	if err := place.CreatePrivate(there, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
}

func TestRefusals(t *testing.T) {
	paused := protocol.Fail(protocol.DaemonPaused, "paused by client: tests; --delivery queue waits for agent resume").
		With("by", "client").With("by_id", nil).With("reason", "tests")
	bot := protocol.Fail(protocol.DaemonPaused, "paused by demo.lead; --delivery queue waits for agent resume").
		With("by", "demo.lead").With("by_id", 3).With("reason", nil)
	mine := protocol.Fail(protocol.DaemonPaused, "paused by person; --delivery queue waits for agent resume").
		With("by", "person").With("by_id", nil).With("reason", nil)
	busy := protocol.Fail(protocol.BotBusy, "turn 3 is running: steer it with --delivery steer --turn 3, queue behind it with --delivery queue, or ask a fork: fork --source a --bot NEW")
	for _, row := range []struct {
		err                *protocol.Error
		screen, verb, exec string
	}{
		{
			paused, "paused by a program that gave no name: tests; /unpause lets all go on",
			"paused by a program that gave no name: tests; sonny unpause lets all go on", "paused by a program that gave no name: tests; --delivery queue waits for sonny unpause",
		},
		{bot, "paused by demo.lead; /unpause lets all go on", "paused by demo.lead; sonny unpause lets all go on", "paused by demo.lead; --delivery queue waits for sonny unpause"},
		{mine, "paused by you; /unpause lets all go on", "paused by you; sonny unpause lets all go on", "paused by you; --delivery queue waits for sonny unpause"},
		{
			busy, "turn 3 is running; Enter steers it, Tab queues behind it",
			"turn 3 is running; wait for its end, or let sonny exec --delivery queue stand in line",
			"turn 3 is running; --delivery queue waits in line, --delivery steer joins it, --fork NAME asks a copy of it",
		},
		{
			protocol.Fail(protocol.BotBusy, "turn 3 of a runs; its sandbox can be changed when it is over"),
			"turn 3 of a runs; its sandbox can be changed when it is over", "turn 3 of a runs; its sandbox can be changed when it is over", "turn 3 of a runs; its sandbox can be changed when it is over",
		},
		{
			protocol.Fail(protocol.ActiveAgentLimit, "all 4 active slots are taken; --delivery queue waits for one"),
			"all 4 active slots are taken; a message waits in line for one", "all 4 active slots are taken; try again when a turn is over", "all 4 active slots are taken; --delivery queue waits for one",
		},
		{
			protocol.Fail(protocol.ProviderUnavailable, "provider x is not registered with this daemon; start it with --provider x"),
			"the daemon has no provider x; /setup connects it, /model takes another", "the daemon has no provider x; sonny setup connects it", "the daemon has no provider x; sonny setup connects it, --model takes another",
		},
		{
			protocol.Fail(protocol.ProviderLoginExpired, "the sign-in in /a has ended; run agent login chatgpt"),
			"the sign-in in /a has ended; run /login", "the sign-in in /a has ended; run sonny login chatgpt", "the sign-in in /a has ended; run sonny login chatgpt",
		},
		{
			protocol.Fail(protocol.SandboxDenied, "the writable folder /p is not what it was: it has become a link or is gone; configure the bot's folders anew"),
			"the writable folder /p is not what it was: it has become a link or is gone; put the folder itself back there, or begin a new session where it is now (/new)",
			"the writable folder /p is not what it was: it has become a link or is gone; put the folder itself back there, or begin a new session where it is now (sonny --new)",
			"the writable folder /p is not what it was: it has become a link or is gone; put the folder itself back there, or run sonny exec where it is now, without --session",
		},
		{
			protocol.Fail(protocol.EscalationRefused, "it works outside; the person may set a gate (agent configure --approval manual)"),
			"it works outside; with /approval manual it asks you", "it works outside; a row that asks lets you allow it", "it works outside; a row that asks (--row auto) lets it be allowed",
		},
	} {
		for w, want := range map[Where]string{Screen: row.screen, Verb: row.verb, Exec: row.exec} {
			if got := w.Told(row.err); got.Detail != want || got.Code != row.err.Code {
				t.Errorf("%v: %q,\nwant %q", w, got, want)
			}
			if got, want := w.Words(fmt.Errorf("it failed: %w", row.err)), "it failed: "+string(row.err.Code)+": "+want; got != want {
				t.Errorf("%v: %q,\nwant %q", w, got, want)
			}
		}
	}
}
