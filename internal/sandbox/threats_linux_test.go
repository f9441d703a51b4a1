package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agent/protocol"
)

// threat is a row of the threat table (sandbox.md 10): what is tried inside, and
// what becomes of each act.
type threat struct {
	name string
	// prep makes the world of it on the host, and may change the bot's setting.
	prep func(*lab) func(*Setting, *Call)
	act  string // a script; see prelude
	// ro and ww are what the acts end with in the two modes, "NAME END" each,
	// parted by semicolons; an end may be several, parted by slashes. An empty ww
	// is the same as ro.
	ro, ww string
	// made are the paths of the lab that the acts change in workspace-write, and
	// all that they change.
	made []string
	// after looks at the host once more.
	after func(*testing.T, *lab)
}

// prelude defines `try NAME COMMAND`, which says what became of the command: ok,
// the name of the error it ended with, or no; $TRY is this program, for the acts
// that a shell has no word for.
const prelude = `
try() {
	local said
	if said=$( (eval "$2") 2>&1 ); then echo "$1 ok"; return; fi
	case $said in
	*"Read-only file system"*) echo "$1 EROFS" ;;
	*"esource busy"*) echo "$1 EBUSY" ;;
	*"nvalid cross-device link"*) echo "$1 EXDEV" ;;
	*"ermission denied"*) echo "$1 EACCES" ;;
	*"peration not permitted"*) echo "$1 EPERM" ;;
	*"No such file or directory"*) echo "$1 ENOENT" ;;
	*"No such process"*) echo "$1 ESRCH" ;;
	*"No such device or address"*) echo "$1 ENXIO" ;;
	*"ile exists"*) echo "$1 EEXIST" ;;
	*"nvalid argument"*) echo "$1 EINVAL" ;;
	E*[!A-Z0-9]*) echo "$1 no: $said" ;;
	E*) echo "$1 $said" ;;
	"") echo "$1 no" ;;
	*) echo "$1 no: $said" ;;
	esac
}
`

// socketLab is a lab whose paths are short enough for sockets.
func socketLab(t *testing.T) *lab {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		exec.Command("chmod", "-R", "u+rwx", dir).Run()
		os.RemoveAll(dir)
	})
	return newLabIn(t, dir)
}

// ours leaves the lab's folders alone and changes the setting.
func ours(change func(*Setting, *Call)) func(*lab) func(*Setting, *Call) {
	return func(*lab) func(*Setting, *Call) { return change }
}

func online(s *Setting, _ *Call) { s.Network = true }

// git runs git in a folder of the lab, on the host.
func (l *lab) git(rel string, args ...string) {
	l.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", l.path(rel)}, args...)...)
	cmd.Env = l.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// repository makes one with two commits.
func (l *lab) repository(rel string) {
	l.mkdir(rel)
	l.git(rel, "init", "-q", "-b", "main")
	for _, text := range []string{"one\n", "two\n"} {
		l.write(rel+"/f", text)
		l.git(rel, "add", "f")
		l.git(rel, "commit", "-q", "-m", text)
	}
}

// listen serves a socket of the host.
func (l *lab) listen(address string) {
	l.t.Helper()
	if filepath.IsAbs(address) {
		l.mkdir(strings.TrimPrefix(filepath.Dir(address), l.dir))
	}
	listener, err := net.Listen("unix", address)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { listener.Close() })
}

// sockets are those of the daemon, of the bot, of another bot, of a walled folder
// and of a program of the host.
func sockets(change func(*Setting, *Call)) func(*lab) func(*Setting, *Call) {
	return func(l *lab) func(*Setting, *Call) {
		l.world.FallbackDir = l.mkdir("tmp/agent-1")
		for _, path := range []string{
			l.world.Socket, l.world.SocketDir + "/7", l.world.SocketDir + "/8", l.world.FallbackDir + "/v1-x.sock",
			l.path("home/.agent/run/x.sock"), l.path("docker.sock"),
		} {
			l.listen(path)
		}
		return func(s *Setting, c *Call) {
			c.BotSocket = l.world.SocketDir + "/7"
			if change != nil {
				change(s, c)
			}
		}
	}
}

const connects = `
try daemon '$TRY connect ~/.agent/state.sqlite.sock'
try own '$TRY connect ~/.agent/state.sqlite.sock.d/7'
try other '$TRY connect ~/.agent/state.sqlite.sock.d/8'
try fallback '$TRY connect $LAB/tmp/agent-1/v1-x.sock'
try walled '$TRY connect ~/.agent/run/x.sock'
try docker '$TRY connect $LAB/docker.sock'`

// granted is a repository in the workspace whose git folder the bot may commit
// to.
func granted(l *lab) func(*Setting, *Call) {
	l.repository("home/ws")
	return roots(l.path("home/ws/.git"))
}

// bare is a root that is a git folder, noted as the engine does.
func bare(_ *lab, root string) func(*Setting, *Call) {
	return func(s *Setting, _ *Call) {
		s.Roots = []string{root}
		s.NoteGit(nil)
	}
}

// wholeHome makes the home a root.
func wholeHome(l *lab) func(*Setting, *Call) { return roots(l.path("home")) }

// below is a workspace in a folder below a root.
func deepWorkspace(l *lab) func(*Setting, *Call) {
	l.ws = l.mkdir("tmp/a/b/ws")
	l.mkdir("tmp/a/b/ws/.git")
	return nil
}

// linked is a workspace that is a linked worktree of home/main.
func linked(l *lab) {
	l.repository("home/main")
	os.Remove(l.ws)
	l.git("home/main", "worktree", "add", "-q", l.ws)
}

var threats = []threat{
	{
		name: "SB-1 write a file in the workspace",
		act:  `try write 'echo x > f'; try folder 'mkdir -p d/e'`,
		ro:   "write EROFS; folder EROFS", ww: "write ok; folder ok",
		made: []string{"home/ws/f", "home/ws/d"},
	},
	{
		name: "SB-2 write outside the workspace",
		prep: func(l *lab) func(*Setting, *Call) { l.write("home/.bashrc", "x"); l.mkdir("home/sibling"); return nil },
		act: `try bashrc 'echo x >> ~/.bashrc'; try new 'echo x > ~/new'; try sibling 'echo x > ../sibling/f'
			try etc 'echo x > /etc/agent-sandbox-test'; try passwd '$TRY open /etc/passwd'; try tmp 'echo x > /tmp/agent-sandbox-test'`,
		ro: "bashrc EROFS; new EROFS; sibling EROFS; etc EROFS; passwd EROFS/EACCES; tmp EROFS",
		after: func(t *testing.T, _ *lab) {
			if exists("/etc/agent-sandbox-test") || exists("/tmp/agent-sandbox-test") {
				t.Error("a file was made outside")
			}
		},
	},
	{
		name: "SB-3 write through a link to a file outside",
		prep: func(l *lab) func(*Setting, *Call) {
			l.link(l.write("home/target", "x"), "home/ws/out")
			l.link(l.path("home/new"), "home/ws/dangling")
			return nil
		},
		act: `try link 'echo x > out'; try dangling 'echo x > dangling'`,
		ro:  "link EROFS; dangling EROFS",
	},
	{
		name: "SB-4 write what is in .git",
		prep: func(l *lab) func(*Setting, *Call) { l.repository("home/ws"); return nil },
		act:  `try config 'echo x > .git/config'; try hook 'echo x > .git/hooks/pre-commit'; try new 'echo x > .git/new'; try mode 'chmod 777 .git/config'`,
		ro:   "config EROFS; hook EROFS; new EROFS; mode EROFS",
	},
	{
		name: "SB-5 git init where there is no .git",
		act:  `try init 'git init'; try pointer 'echo gitdir: /x > .git'`,
		ro:   "init EROFS; pointer EROFS", ww: "init EROFS; pointer no",
	},
	{
		name: "SB-6 make .agents or .codex",
		act:  `try agents 'mkdir -p .agents/skills'; try codex 'mkdir .codex'; try tmp 'mkdir -p $LAB/tmp/.git/hooks'`,
		ro:   "agents EROFS; codex EROFS; tmp EROFS", ww: "agents EROFS; codex EEXIST; tmp EROFS",
	},
	{
		name: "SB-7 remove, move or exchange .git or a mask",
		prep: func(l *lab) func(*Setting, *Call) { l.repository("home/ws"); l.mkdir("home/ws/d"); return nil },
		act: `try rmdir 'rmdir .git'; try mv 'mv .git x'; try exchange '$TRY exchange $PWD/.git $PWD/d'; try rm 'rm -rf .git'
			try rmdir-mask 'rmdir .agents'; try mv-mask 'mv .agents x'; try exchange-mask '$TRY exchange $PWD/.agents $PWD/d'`,
		ro: "rmdir EROFS; mv EROFS; exchange EROFS; rm EROFS; rmdir-mask EROFS/ENOENT; mv-mask ENOENT; exchange-mask EROFS/ENOENT",
		ww: "rmdir EBUSY; mv EBUSY; exchange EBUSY; rm EROFS/EBUSY; rmdir-mask EBUSY; mv-mask EBUSY; exchange-mask EBUSY",
	},
	{
		name: "SB-8 a link in place of .codex",
		act:  `try inside 'ln -s /tmp/x .codex'; try instead 'ln -sT /tmp/x .codex'; try force 'ln -sfT /tmp/x .codex'`,
		ro:   "inside EROFS; instead EROFS; force EROFS", ww: "inside EROFS; instead EEXIST; force no",
	},
	{
		name: "SB-10 .aws where it is",
		prep: func(l *lab) func(*Setting, *Call) { l.write("home/ws/.aws/config", "x"); return nil },
		act:  `try write 'echo x > .aws/config'; try add 'echo x > .aws/credentials'; try mv 'mv .aws x'`,
		ro:   "write EROFS; add EROFS; mv EROFS", ww: "write EROFS; add EROFS; mv EBUSY",
	},
	{
		name: "SB-10 .aws where it is not",
		act:  `try make 'mkdir .aws'; try write 'echo x > .aws/config'`,
		ro:   "make EROFS; write ENOENT", ww: "make ok; write ok",
		made: []string{"home/ws/.aws"},
	},
	{
		name: "SB-11 move a parent of the workspace away and build the path anew",
		prep: deepWorkspace,
		act: `try parent 'mv $LAB/tmp/a $LAB/tmp/x && mkdir -p $LAB/tmp/a/b/ws/.git/hooks'; try middle 'mv $LAB/tmp/a/b $LAB/tmp/a/x'
			mkdir -p $LAB/tmp/d 2>/dev/null; try exchange '$TRY exchange $LAB/tmp/a $LAB/tmp/d'; try rm 'rm -rf $LAB/tmp/a'; try beside 'echo x > $LAB/tmp/a/f'`,
		ro: "parent EROFS; middle EROFS; exchange EROFS/ENOENT; rm EROFS; beside EROFS", ww: "parent EBUSY; middle EBUSY; exchange EBUSY; rm EBUSY/EROFS; beside ok",
		made: []string{"tmp/d", "tmp/a/f"},
	},
	{
		name: "SB-12 rename the workspace",
		act:  `try mv 'mv $PWD ../x'`, ro: "mv EROFS", ww: "mv EBUSY/EROFS",
	},
	{
		name: "SB-12 rename the workspace in a root",
		prep: wholeHome,
		act:  `try mv 'mv $PWD ../x'; try rmdir 'rmdir $PWD'`, ro: "mv EROFS; rmdir EROFS", ww: "mv EBUSY; rmdir EBUSY",
	},
	{
		name: "SB-13 a granted git folder: commit, branch, rebase",
		prep: granted,
		act: `try commit 'echo x > f && git commit -qam three'; try branch 'git branch b && git tag t'
			try rebase 'git checkout -q -b topic HEAD~1 && echo y > g && git add g && git commit -qm topic && git rebase -q main'
			try merge 'git checkout -q main && git merge -q --no-ff -m merge topic'
			try pick 'git checkout -q b && git cherry-pick topic'; try stash 'echo z > f && git stash -q && git stash pop -q && git checkout -q f && git checkout -q main'`,
		ro:   "commit EROFS; branch EROFS; rebase EROFS; merge EROFS/no; pick EROFS/no; stash EROFS",
		ww:   "commit ok; branch ok; rebase ok; merge ok; pick ok; stash ok",
		made: []string{"home/ws/f", "home/ws/g", "home/ws/.git/objects", "home/ws/.git/refs", "home/ws/.git/logs", "home/ws/.git/index", "home/ws/.git/COMMIT_EDITMSG", "home/ws/.git/ORIG_HEAD"},
	},
	{
		name: "SB-14 a granted git folder: its hooks and config",
		prep: granted,
		act: `try config 'git config core.hooksPath x'; try hook 'echo x > .git/hooks/x'; try mv 'mv .git/hooks .git/x'; try replace 'echo x > .git/y && mv -f .git/y .git/config; rm .git/y; false'
			try over 'git config -f .git/y a.b c && mv -fT .git/y .git/config'; rm -f .git/y; try rm 'rm .git/config'; try folder 'mv .git x'`,
		ro: "config EROFS; hook EROFS; mv EROFS; replace EROFS; over EROFS; rm EROFS; folder EROFS",
		ww: "config EBUSY; hook EROFS; mv EBUSY; replace EBUSY; over EBUSY; rm EBUSY; folder EBUSY",
	},
	{
		name: "SB-15 a granted git folder: a commondir that leads elsewhere",
		prep: granted,
		act:  `try write 'echo ../evil > .git/commondir'; try mv 'echo ../evil > .git/y && mv -fT .git/y .git/commondir'; rm -f .git/y; try rm 'rm .git/commondir'`,
		ro:   "write EROFS; mv EROFS; rm EROFS/ENOENT", ww: "write EROFS; mv EBUSY; rm EBUSY",
	},
	{
		name: "SB-16 a granted git folder: config.worktree",
		prep: granted,
		act:  `try write 'echo "[core]" > .git/config.worktree'; try sparse 'git sparse-checkout init'`,
		ro:   "write EROFS; sparse EROFS", ww: "write EROFS; sparse EBUSY",
	},
	{
		name: "SB-16 the same with worktree config on",
		prep: func(l *lab) func(*Setting, *Call) {
			change := granted(l)
			l.git("home/ws", "config", "extensions.worktreeConfig", "true")
			return change
		},
		act: `try write 'echo "[core]" > .git/config.worktree'; try config 'git config --worktree core.hooksPath x'`,
		ro:  "write EROFS; config EROFS", ww: "write EROFS; config EBUSY",
	},
	{
		name: "SB-17 a granted git folder: modules",
		prep: func(l *lab) func(*Setting, *Call) {
			l.write("home/ws/.git/modules/m/hooks/x", "x")
			return granted(l)
		},
		act: `try hook 'echo x > .git/modules/m/hooks/post-checkout'; try new 'mkdir .git/modules/n'; try mv 'mv .git/modules .git/x'`,
		ro:  "hook EROFS; new EROFS; mv EROFS", ww: "hook EROFS; new EROFS; mv EBUSY",
	},
	{
		name: "SB-17 the same where there are none",
		prep: granted,
		act:  `try new 'mkdir -p .git/modules/m/hooks'; try worktrees 'mkdir -p .git/worktrees/x'`, ro: "new EROFS; worktrees EROFS",
	},
	{
		name: "SB-14 a granted git folder that was made to look like none",
		prep: granted,
		act:  `mv .git/HEAD .git/H 2>/dev/null`, ro: "", ww: "",
		made: []string{"home/ws/.git/HEAD", "home/ws/.git/H"},
		after: func(t *testing.T, l *lab) {
			l.again(t, `try config 'echo x >> .git/config'; try hook 'echo x > .git/hooks/x'; try commondir 'echo ../evil > .git/commondir'`,
				"config EROFS; hook EROFS; commondir EROFS", roots(l.path("home/ws/.git")))
		},
	},
	{
		name: "SB-14 a granted bare repository that was made to look like none",
		prep: func(l *lab) func(*Setting, *Call) { return bare(l, l.gitFolder("home/bare")) },
		act:  `mv ~/bare/HEAD ~/bare/H 2>/dev/null`, ro: "", ww: "",
		made: []string{"home/bare/HEAD", "home/bare/H"},
		after: func(t *testing.T, l *lab) {
			l.again(t, `try config 'echo x >> ~/bare/config'; try hook 'echo x > ~/bare/hooks/x'; try commondir 'echo ../evil > ~/bare/commondir'`,
				"config EROFS; hook EROFS; commondir EROFS", func(s *Setting, _ *Call) {
					s.Roots, s.Git = []string{l.path("home/bare")}, []string{l.path("home/bare")}
				})
		},
	},
	{
		name: "SB-5 a workspace that was made to look like a git folder",
		act:  `(mkdir -p objects refs; echo 'ref: refs/heads/main' > HEAD) 2>/dev/null`, ro: "", ww: "",
		made: []string{"home/ws/HEAD", "home/ws/objects", "home/ws/refs"},
		after: func(t *testing.T, l *lab) {
			l.again(t, `try git 'mkdir -p .git/hooks'; try agents 'mkdir -p .agents/skills'; try codex 'mkdir -p .codex/x'`,
				"git EROFS; agents EROFS; codex EROFS", nil)
		},
	},
	{
		name: "SB-18 rewrite the .git file of a worktree",
		prep: func(l *lab) func(*Setting, *Call) { linked(l); return nil },
		act:  `try write 'echo gitdir: /x > .git'; try mv 'mv .git x'; try rm 'rm -f .git'`,
		ro:   "write EROFS; mv EROFS; rm EROFS", ww: "write EROFS; mv EBUSY; rm EBUSY",
	},
	{
		name: "SB-19 the git folder of a worktree below another root",
		prep: func(l *lab) func(*Setting, *Call) { linked(l); return roots(l.path("home/main")) },
		act: `try config 'echo x >> $LAB/home/main/.git/config'; try own 'echo x > $LAB/home/main/.git/worktrees/ws/config.worktree'
			try commit 'echo x > f && git commit -qam x'; try beside 'echo x > $LAB/home/main/g'`,
		ro: "config EROFS; own EROFS; commit EROFS; beside EROFS", ww: "config EROFS; own EROFS; commit EROFS; beside ok",
		made: []string{"home/ws/f", "home/main/g"},
	},
	{
		name: "SB-19 the same deep below a root",
		prep: func(l *lab) func(*Setting, *Call) { linked(l); return wholeHome(l) },
		act:  `try config 'echo x >> $LAB/home/main/.git/config'; try hook 'echo x > $LAB/home/main/.git/hooks/x'; try mv 'mv $LAB/home/main $LAB/home/x'`,
		ro:   "config EROFS; hook EROFS; mv EROFS", ww: "config EROFS; hook EROFS; mv EBUSY",
	},
	{
		name: "SB-20 clone into the workspace and commit there",
		prep: func(l *lab) func(*Setting, *Call) { l.repository("home/other"); return nil },
		act:  `try clone 'git clone -q $LAB/home/other sub && cd sub && echo x > f && git commit -qam x && git config a.b c'`,
		ro:   "clone EROFS", ww: "clone ok", made: []string{"home/ws/sub"},
	},
	{
		name: "SB-21 SB-22 hard links to what is protected, and to what is outside",
		prep: func(l *lab) func(*Setting, *Call) {
			l.repository("home/ws")
			l.write("home/outside", "x")
			return nil
		},
		act: `try git 'ln .git/config l && echo x > l'; try store 'ln ~/.agent/state.sqlite l && echo x > l'; try outside 'ln ~/outside l && echo x > l'`,
		ro:  "git EROFS; store EROFS; outside EROFS", ww: "git EXDEV; store EXDEV; outside EXDEV",
	},
	{
		name: "SB-23 ways round through /proc",
		act:  `try root 'echo x > /proc/self/root$LAB/home/x'; try cwd 'echo x > /proc/self/cwd/../x'; try etc 'echo x > /proc/self/root/etc/agent-sandbox-test'; exec 3< .; try fd 'echo x > /proc/self/fd/3/../x'`,
		ro:   "root EROFS; cwd EROFS; etc EROFS; fd EROFS",
	},
	{
		name: "SB-24 SB-34 SB-35 other processes",
		act: `try first 'echo x > /proc/1/root$LAB/home/x'; try daemon '[ -e /proc/$DAEMON ]'; try environ 'cat /proc/$DAEMON/environ'; try mem '$TRY open /proc/$DAEMON/mem'
			try few '[ $(ls -d /proc/[0-9]* | wc -l) -lt 8 ]'; try ptrace '$TRY ptrace $DAEMON'; try vm '$TRY vmwrite $DAEMON'; try kill '$TRY kill $DAEMON'
			$TRY kill 1; try alive 'kill -0 1'`,
		ro: "first EROFS/EACCES; daemon no; environ ENOENT; mem ENOENT; few ok; ptrace ESRCH; vm ESRCH; kill ESRCH; alive ok",
	},
	{
		name: "SB-25 SB-98 files of the kernel",
		act: `try core '$TRY open /proc/sys/kernel/core_pattern'; try sysrq '$TRY open /proc/sysrq-trigger'
			try cgroup 'mkdir /sys/fs/cgroup/agent-sandbox-test'; try sys '$TRY openall /sys'; try proc-sys '$TRY openall /proc/sys'; try proc '$TRY openall /proc'`,
		ro: "core EROFS/EACCES; sysrq EROFS/EACCES/ENOENT; cgroup EROFS/EPERM/EACCES; sys ok; proc-sys ok; proc ok",
	},
	{
		name: "SB-26 take a mask away",
		prep: func(l *lab) func(*Setting, *Call) { l.repository("home/ws"); return nil },
		act: `try umount '$TRY umount $PWD/.git'; try remount '$TRY remount $PWD/.git'; try mask '$TRY umount $PWD/.agents'; try root '$TRY remount /'
			try proc '$TRY umount /proc/sys'; try bind '$TRY bind $PWD /dev/shm'`,
		ro: "umount EPERM; remount EPERM; mask EPERM/ENOENT; root EPERM; proc EPERM; bind EPERM",
	},
	{
		name: "SB-27 SB-28 SB-29 SB-30 mounts in a user namespace of its own",
		prep: func(l *lab) func(*Setting, *Call) { l.repository("home/ws"); return nil },
		act: `mkdir -p /dev/shm/t
			try usable '$NS true'
			try umount '$NS $TRY umount $PWD/.git'; try remount '$NS $TRY remount $PWD/.git'; try root '$NS $TRY remount /'
			try wall '$NS $TRY umount ~/.agent/run'
			try bind '$NS sh -c "$TRY bind $LAB/home /dev/shm/t && echo x > /dev/shm/t/x"'
			try bind-git '$NS sh -c "$TRY rbind $PWD /dev/shm/t && echo x > /dev/shm/t/.git/x"'
			try bind-root '$NS sh -c "$TRY rbind / /dev/shm/t && $TRY remount /dev/shm/t && echo x > /dev/shm/t$LAB/home/x"'
			try over '$NS sh -c "$TRY mount tmpfs $PWD/.git && echo x > .git/x"'
			try setns '$TRY setns /proc/1/ns/mnt'; try setns-root '$NS $TRY setns /proc/1/ns/mnt'; try setns-user '$TRY setns /proc/1/ns/user'
			try enter 'nsenter -t $DAEMON -m true'`,
		ro: "usable ok; umount EINVAL; remount EPERM/EINVAL; root EPERM; wall EINVAL; bind EROFS/EINVAL; bind-git EROFS; bind-root EPERM; over ok/no; setns EACCES/EPERM; setns-root EACCES/EPERM; setns-user EACCES/EPERM/EINVAL; enter ENOENT",
	},
	{
		name: "SB-31 SB-33 what only root may",
		act: `try chroot '$TRY chroot $PWD'; try pivot '$TRY pivot $PWD'; try mknod '$TRY mknod $PWD/d'; try mknod-shm '$TRY mknod /dev/shm/d'
			try mknod-own '$NS $TRY mknod /dev/shm/d'; try caps '[ $(grep -c "^Cap.*:[[:space:]]0*$" /proc/self/status) = 5 ]'`,
		ro: "chroot EPERM; pivot EPERM; mknod EPERM/EROFS; mknod-shm EPERM; mknod-own EPERM; caps ok",
	},
	{
		name: "PO-40 PO-41 SB-36 SB-37 SB-38 SB-41 sockets, network on",
		prep: sockets(online), act: connects,
		ro: "daemon ECONNREFUSED/ENOTSOCK; own ok; other ENOENT; fallback ENOENT; walled EACCES/ENOENT; docker ok",
	},
	{
		name: "PO-39 SB-39 SB-40 sockets, network off",
		prep: sockets(nil), act: connects,
		ro: "daemon EPERM; own EPERM; other EPERM; fallback EPERM; walled EPERM; docker EPERM",
	},
	{
		name: "SB-40 sockets, unix_sockets",
		prep: sockets(func(s *Setting, _ *Call) { s.UnixSockets = []string{"/docker.sock"} }), act: connects,
		ro: "daemon ECONNREFUSED/ENOTSOCK; own ok; other ENOENT; fallback ENOENT; walled EACCES/ENOENT; docker ok",
	},
	{
		name: "SB-41 the same with the home a root",
		prep: func(l *lab) func(*Setting, *Call) {
			return sockets(func(s *Setting, _ *Call) { s.Network, s.Roots = true, []string{l.path("home")} })(l)
		},
		act: connects,
		ro:  "daemon ECONNREFUSED/ENOTSOCK; own ok; other ENOENT; fallback ENOENT; walled EACCES/ENOENT; docker ok",
	},
	{
		name: "SB-42 a walled folder",
		prep: func(l *lab) func(*Setting, *Call) { l.write("home/.agent/run/secret", "x"); return nil },
		act:  `try list 'ls ~/.agent/run'; try read 'cat ~/.agent/run/secret'; try write 'echo x > ~/.agent/run/f'; try rmdir 'rmdir ~/.agent/run'; try chmod 'chmod 700 ~/.agent/run'`,
		ro:   "list EACCES; read EACCES; write EACCES/EROFS; rmdir EBUSY/EROFS; chmod EROFS",
	},
	{
		name: "SB-42 a walled folder in a root",
		prep: func(l *lab) func(*Setting, *Call) {
			l.world.Walls = append(l.world.Walls, l.mkdir("home/w/hidden"))
			l.write("home/w/hidden/secret", "x")
			return wholeHome(l)
		},
		act: `try list 'ls ~/w/hidden'; try read 'cat ~/w/hidden/secret'; try write 'echo x > ~/w/hidden/f'; try rmdir 'rmdir ~/w/hidden'; try mv 'mv ~/w ~/x'; try chmod 'chmod 700 ~/w/hidden'`,
		ro:  "list EACCES; read EACCES; write EACCES/EROFS; rmdir EBUSY/EROFS; mv EROFS; chmod EROFS", ww: "list EACCES; read EACCES; write EACCES/EROFS; rmdir EBUSY; mv EBUSY; chmod EROFS",
	},
	{
		name: "SB-43 an abstract socket, network off",
		prep: func(l *lab) func(*Setting, *Call) { l.listen("@" + l.dir); return nil },
		act:  `try connect '$TRY abstract $LAB'`, ro: "connect EPERM",
	},
	{
		name: "SB-43 an abstract socket, unix_sockets",
		prep: func(l *lab) func(*Setting, *Call) {
			l.listen("@" + l.dir)
			return func(s *Setting, _ *Call) { s.UnixSockets = []string{"/x"} }
		},
		act: `try connect '$TRY abstract $LAB'`, ro: "connect ECONNREFUSED",
	},
	{
		name: "SB-43 an abstract socket, network on",
		prep: func(l *lab) func(*Setting, *Call) { l.listen("@" + l.dir); return online },
		act:  `try connect '$TRY abstract $LAB'`, ro: "connect ok",
	},
	{
		name: "SB-44 SB-45 pairs of sockets",
		prep: func(l *lab) func(*Setting, *Call) {
			c, err := net.ListenPacket("unixgram", l.path("d.sock"))
			if err != nil {
				l.t.Fatal(err)
			}
			l.t.Cleanup(func() { c.Close() })
			return nil
		},
		act: `try datagram '$TRY pair-dgram $LAB/d.sock'; try stream '$TRY pair'`, ro: "datagram EPERM; stream ok",
	},
	{
		name: "SB-46 a listener in place of another bot's",
		prep: func(l *lab) func(*Setting, *Call) {
			return sockets(func(s *Setting, _ *Call) { s.Network, s.Roots = true, []string{l.path("home")} })(l)
		},
		act: `try new '$TRY listen ~/.agent/state.sqlite.sock.d/9'; try other '$TRY listen ~/.agent/state.sqlite.sock.d/8'; try rm 'rm ~/.agent/state.sqlite.sock.d/7'
			try daemon 'rm ~/.agent/state.sqlite.sock'; try fallback '$TRY listen $LAB/tmp/agent-1/y'; try mv 'mv $LAB/tmp/agent-1 $LAB/tmp/x'`,
		ro: "new EROFS; other EROFS; rm EBUSY/EROFS; daemon EBUSY/EROFS; fallback EROFS; mv EROFS/EBUSY",
	},
	{
		name: "SB-47 SB-100 the network, off",
		prep: func(l *lab) func(*Setting, *Call) { l.hostPort(); return nil },
		act: `try loopback '$TRY tcp $(cat $LAB/port)'; try internet '$TRY tcp 192.0.2.1:80'; try local '$TRY tcp 169.254.169.254:80'; try udp '$TRY udp 192.0.2.1:53'; try six '$TRY tcp [2001:db8::1]:80'
			try ping '$TRY echo 2'; try raw '$TRY echo 3'; try name '$TRY resolve host.invalid >/dev/null'; try own '$TRY loopback'`,
		ro: "loopback ECONNREFUSED; internet ENETUNREACH; local ENETUNREACH; udp ENETUNREACH; six ENETUNREACH/EADDRNOTAVAIL/EAFNOSUPPORT; ping ENETUNREACH/EACCES; raw EPERM; name no; own ok",
	},
	{
		name: "SB-47 the network, on",
		prep: func(l *lab) func(*Setting, *Call) { l.hostPort(); return online },
		act:  `try loopback '$TRY tcp $(cat $LAB/port)'`, ro: "loopback ok",
	},
	{
		name: "SB-48 SB-49 other families of sockets, network off",
		act:  `try netlink '$TRY socket 16 3'; try packet '$TRY socket 17 3'; try vsock '$TRY socket 40 1'; try alg '$TRY socket 38 5'`,
		ro:   "netlink EPERM; packet EPERM; vsock EPERM; alg EPERM",
	},
	{
		name: "SB-49 vsock, network on",
		prep: ours(online), act: `try vsock '$TRY socket 40 1'; try netlink '$TRY socket 16 3'; try packet '$TRY socket 17 3'`, ro: "vsock EPERM; netlink ok; packet EPERM",
	},
	{name: "SB-50 SB-53 SB-55 SB-99 system calls", act: systemCalls, ro: systemCallEnds},
	{name: "SB-50 SB-53 SB-55 SB-99 the same, network on", prep: ours(online), act: systemCalls, ro: systemCallEnds},
	{
		name: "SB-50 SB-53 SB-55 SB-99 the same, unix_sockets", act: systemCalls, ro: systemCallEnds,
		prep: ours(func(s *Setting, _ *Call) { s.UnixSockets = []string{"/x"} }),
	},
	{
		name: "SB-54 terminals",
		prep: func(l *lab) func(*Setting, *Call) { l.write("pts", l.hostTerminal()); return nil },
		act:  `try tty '$TRY open /dev/tty'; try other '$TRY open $(cat $LAB/pts)'; try own 'exec 3<>/dev/ptmx'`,
		ro:   "tty ENXIO; other ENOENT; own ok",
	},
	{
		name: "SB-61 reads are open",
		prep: func(l *lab) func(*Setting, *Call) { l.write("home/.agent/env", "KEY=x"); return nil },
		act:  `try store 'cat ~/.agent/state.sqlite'; try env 'cat ~/.agent/env'; try etc 'cat /etc/passwd'`, ro: "store ok; env ok; etc ok",
	},
	{
		name: "SB-62 SB-63 SB-112 the daemon's own files in a root",
		prep: func(l *lab) func(*Setting, *Call) {
			l.write("home/.agent/state.sqlite-wal", "x")
			l.write("home/.agent/state.sqlite.log", "x")
			l.world.Protect = []string{l.mkdir("home/rules")}
			l.write("home/rules/a.rules", "x")
			return wholeHome(l)
		},
		act: `for f in state.sqlite state.sqlite-wal state.sqlite-shm state.sqlite-journal state.sqlite.log state.sqlite.placeholders config.toml env; do try $f "echo x >> ~/.agent/$f"; done
			try mv 'mv ~/.agent ~/x'; try rule 'echo x >> ~/rules/a.rules'; try new-rule 'echo x > ~/rules/b.rules'; try mv-rules 'mv ~/rules ~/x'; try home 'echo x > ~/f'`,
		ro:   "state.sqlite EROFS; state.sqlite-wal EROFS; state.sqlite-shm EROFS; state.sqlite-journal EROFS; state.sqlite.log EROFS; state.sqlite.placeholders EROFS; config.toml EROFS; env EROFS; mv EROFS; rule EROFS; new-rule EROFS; mv-rules EROFS; home EROFS",
		ww:   "state.sqlite EROFS; state.sqlite-wal EROFS; state.sqlite-shm EROFS; state.sqlite-journal EROFS; state.sqlite.log EROFS; state.sqlite.placeholders EROFS; config.toml EROFS; env EROFS; mv EBUSY; rule EROFS; new-rule EROFS; mv-rules EBUSY; home ok",
		made: []string{"home/f"},
	},
	{
		name: "SB-62 SB-112 a store that lies loose in a root",
		prep: func(l *lab) func(*Setting, *Call) {
			l.world.Store = l.write("home/s.sqlite", "x")
			l.write("home/s.sqlite-wal", "x")
			l.write("home/.agent/config.toml", "x")
			l.mkdir("home/s.sqlite.companions")
			return wholeHome(l)
		},
		act: `for f in s.sqlite s.sqlite-wal s.sqlite-shm s.sqlite-journal s.sqlite.log s.sqlite.owner-lock s.sqlite.placeholders s.sqlite.companions/x .agent/config.toml .agent/env; do try $f "echo x >> ~/$f"; done
			try rm 'rm ~/s.sqlite-wal'; try mv 'echo x > ~/f; mv -f ~/f ~/s.sqlite-journal'; rm -f ~/f`,
		ro: "s.sqlite EROFS; s.sqlite-wal EROFS; s.sqlite-shm EROFS; s.sqlite-journal EROFS; s.sqlite.log EROFS; s.sqlite.owner-lock EROFS; s.sqlite.placeholders EROFS; s.sqlite.companions/x EROFS; .agent/config.toml EROFS; .agent/env EROFS; rm EROFS; mv EROFS",
		ww: "s.sqlite EROFS; s.sqlite-wal EROFS; s.sqlite-shm EROFS; s.sqlite-journal EROFS; s.sqlite.log EROFS; s.sqlite.owner-lock EROFS; s.sqlite.placeholders EROFS; s.sqlite.companions/x EROFS; .agent/config.toml EROFS; .agent/env EROFS; rm EBUSY; mv EBUSY",
	},
	{
		name: "SB-83 TMPDIR set in the command",
		act:  `export TMPDIR=$HOME; try mktemp 'mktemp'`, ro: "mktemp EROFS",
	},
	{
		name: "SB-86 shared memory and queues of the host",
		prep: func(l *lab) func(*Setting, *Call) { l.sysv(); return nil },
		act:  `try memory '$TRY sysv shm $(cat $LAB/key)'; try queue '$TRY sysv msg $(cat $LAB/key)'`, ro: "memory ENOENT; queue ENOENT",
	},
	{
		name: "SB-88 devices",
		act: `try new 'echo x > /dev/newfile'; try rm 'rm -f /dev/null'; try mknod '$TRY mknod /dev/sda'; try null 'echo x > /dev/null'; try zero 'head -c1 /dev/zero >/dev/null'; try random 'head -c1 /dev/urandom >/dev/null'
			try shm 'echo x > /dev/shm/f'; try helper 'ls /dev/.agent-helper'; try kmsg '$TRY open /dev/kmsg'`,
		ro: "new EROFS; rm EBUSY/EROFS; mknod EROFS/EPERM; null ok; zero ok; random ok; shm ok; helper ENOENT; kmsg ENOENT",
	},
	{name: "SB-91 nothing is left", act: `true`, ro: ""},
	{
		name: "SB-95 without /tmp and $TMPDIR",
		prep: func(l *lab) func(*Setting, *Call) {
			l.world.Tmpdir = l.mkdir("scratch")
			return func(s *Setting, _ *Call) { s.NoSlashTmp, s.NoTmpdir = true, true }
		},
		act: `try tmp 'echo x > $LAB/tmp/f'; try tmpdir 'echo x > $LAB/scratch/f'`, ro: "tmp EROFS; tmpdir EROFS",
	},
	{
		name: "SB-95 with both",
		prep: func(l *lab) func(*Setting, *Call) { l.world.Tmpdir = l.mkdir("scratch"); return nil },
		act:  `try tmp 'echo x > $LAB/tmp/f'; try tmpdir 'echo x > $LAB/scratch/f'`, ro: "tmp EROFS; tmpdir EROFS", ww: "tmp ok; tmpdir ok",
		made: []string{"tmp/f", "scratch/f"},
	},
	{
		name: "SB-101 tracing its own processes",
		act:  `try trace '$TRY trace'`, ro: "trace ok",
	},
	{
		name: "SB-103 a granted git folder: the worktrees of others",
		prep: func(l *lab) func(*Setting, *Call) {
			change := granted(l)
			l.git("home/ws", "worktree", "add", "-q", l.path("home/wt"))
			return change
		},
		act: `try config 'echo x > .git/worktrees/wt/config.worktree'; try head 'echo x > .git/worktrees/wt/HEAD'; try new 'mkdir .git/worktrees/y'; try commit 'echo x > f && git commit -qam x'`,
		ro:  "config EROFS; head EROFS; new EROFS; commit EROFS", ww: "config EROFS; head EROFS; new EROFS; commit ok",
		made: []string{"home/ws/f", "home/ws/.git/objects", "home/ws/.git/refs", "home/ws/.git/logs", "home/ws/.git/index", "home/ws/.git/COMMIT_EDITMSG"},
	},
	{
		name: "SB-104 a granted git folder: a command that outlives its call",
		prep: func(l *lab) func(*Setting, *Call) {
			grant := granted(l)
			return func(s *Setting, c *Call) { grant(s, c); c.Beyond = true }
		},
		act: `try commit 'git commit --allow-empty -qm x'; try config 'echo x > .git/config'`, ro: "commit EROFS; config EROFS",
	},
	{
		name: "SB-105 what the creator's folders protect",
		prep: func(l *lab) func(*Setting, *Call) {
			l.repository("home/ws")
			bare := l.gitFolder("home/bare")
			creator := l.ws
			l.ws = l.path("home")
			return func(s *Setting, _ *Call) { s.Above = []string{creator, creator + "/.git", bare} }
		},
		act: `try hook 'echo x > ws/.git/hooks/x'; try config 'echo x >> ws/.git/config'; try agents 'mkdir -p ws/.agents/x'; try mv 'mv ws x'; try bare-hook 'echo x > bare/hooks/x'; try bare-config 'echo x >> bare/config'`,
		ro:  "hook EROFS; config EROFS; agents EROFS; mv EROFS; bare-hook EROFS; bare-config EROFS", ww: "hook EROFS; config EROFS; agents EROFS; mv EBUSY; bare-hook EROFS; bare-config EROFS",
	},
}

const systemCalls = `try uring '$TRY io_uring'; try sti '$TRY sti low'; try sti-high '$TRY sti high'; try key '$TRY keys add'; try request '$TRY keys request'; try keyring '$TRY keys get'
	try clone3 '$TRY clone3'; try cgroups '$TRY cgroups'; try unshare 'unshare -UC true'
	mkdir -p /dev/shm/c; try mount '$NS sh -c "$TRY mount cgroup2 /dev/shm/c && mkdir /dev/shm/c/agent-sandbox-test && rmdir /dev/shm/c/agent-sandbox-test"'`

const systemCallEnds = "uring EPERM; sti EPERM; sti-high EPERM; key EPERM; request EPERM; keyring EPERM; clone3 ENOSYS; cgroups EPERM; unshare EPERM; mount EPERM/EACCES"

func TestThreats(t *testing.T) {
	launch := launcher(t)
	for _, row := range threats {
		for _, mode := range []string{protocol.SandboxReadOnly, protocol.SandboxWorkspace} {
			t.Run(row.name+", "+mode, func(t *testing.T) {
				t.Parallel()
				row.run(t, launch, mode)
			})
		}
	}
}

func (row *threat) run(t *testing.T, launch *Launcher, mode string) {
	l := socketLab(t)
	var change func(*Setting, *Call)
	if row.prep != nil {
		change = row.prep(l)
	}
	p, err := l.plan(func(s *Setting, c *Call) {
		if change != nil {
			change(s, c)
		}
		s.Mode = mode
	})
	if err != nil {
		t.Fatal(err)
	}
	l.placeholders()
	before := l.host()
	want, made := row.ro, []string(nil)
	if mode == protocol.SandboxWorkspace {
		made = row.made
		if row.ww != "" {
			want = row.ww
		}
	}
	compareEnds(t, l.run(launch, p, l.script(row.act)), want)
	compareHosts(t, before, l.host(), made)
	if row.after != nil && mode == protocol.SandboxWorkspace {
		row.after(t, l)
	}
}

// again is a later call of a workspace-write bot.
func (l *lab) again(t *testing.T, act, want string, change func(*Setting, *Call)) {
	t.Helper()
	p, err := l.plan(change)
	if err != nil {
		t.Fatal(err)
	}
	before := l.host()
	compareEnds(t, l.run(launcher(t), p, l.script(act)), want)
	compareHosts(t, before, l.host(), nil)
}

func (l *lab) script(act string) string {
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	ns := "unshare -Urm"
	if os.Geteuid() == 0 {
		ns = "unshare -Um --keep-caps" // without its capabilities root may not map itself
	}
	return fmt.Sprintf("export NS=%q TRY=%q DAEMON=%d\n%s\n%s", ns, self+" "+tryVerb, os.Getpid(), prelude, act)
}

// compareEnds holds what the acts ended with against what they must.
func compareEnds(t *testing.T, e ended, want string) {
	t.Helper()
	got := strings.Split(strings.TrimSpace(e.out), "\n")
	wants := strings.Split(want, "; ")
	bad := !e.ran || len(got) != len(wants)
	for i := 0; !bad && i < len(got); i++ {
		name, ends, _ := strings.Cut(wants[i], " ")
		ok := got[i] == wants[i]
		for _, end := range strings.Split(ends, "/") {
			ok = ok || got[i] == name+" "+end || end == "no" && strings.HasPrefix(got[i], name+" no: ")
		}
		bad = !ok
	}
	if bad {
		t.Errorf("exit %d\ngot  %s\nwant %s", e.code, strings.Join(got, "; "), want)
	}
}

// compareHosts allows changes of the paths made alone, and asks for each.
func compareHosts(t *testing.T, before, after string, made []string) {
	t.Helper()
	changed := map[string]int{}
	for _, line := range strings.Split(before, "\n") {
		changed[line]--
	}
	for _, line := range strings.Split(after, "\n") {
		changed[line]++
	}
	seen := map[string]bool{}
	for line, n := range changed {
		if n == 0 {
			continue
		}
		allowed := false
		for _, path := range made {
			if strings.Contains(line, " ./"+path) {
				allowed, seen[path] = true, true
			}
		}
		if !allowed {
			t.Errorf("the host has changed (%+d): %s", n, line)
		}
	}
	for _, path := range made {
		if !seen[path] {
			t.Errorf("%s has not changed", path)
		}
	}
}

// hostPort listens on the host's loopback.
func (l *lab) hostPort() {
	l.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { listener.Close() })
	l.write("port", listener.Addr().String())
}

// hostTerminal opens a terminal on the host with a number that is free inside,
// and gives its path.
func (l *lab) hostTerminal() string {
	l.t.Helper()
	for range 10 {
		f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { f.Close() })
		n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPTN)
		if err != nil {
			l.t.Fatal(err)
		}
		if path := fmt.Sprintf("/dev/pts/%d", n); n > 2 {
			return path
		}
	}
	l.t.Fatal("there is no terminal")
	return ""
}

// sysv makes shared memory and a queue on the host.
func (l *lab) sysv() {
	l.t.Helper()
	key := 0x5b000000 | os.Getpid()&0xffff<<4 | len(l.t.Name())&0xf
	shm, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })
	queue, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(key), unix.IPC_CREAT|unix.IPC_EXCL|0o666, 0)
	if errno != 0 {
		l.t.Fatal(errno)
	}
	l.t.Cleanup(func() { unix.Syscall(unix.SYS_MSGCTL, queue, unix.IPC_RMID, 0) })
	l.write("key", fmt.Sprint(key))
}
