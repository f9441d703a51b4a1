package daemon_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/internal/fakemodel"
	"agent/protocol"
)

// companionWord has this test program play a companion: it says who it is in
// dir/NAME and dir/NAME.env, in dir/NAME.twice when another of its name runs,
// and holds a session until that ends. A deaf one stays all the same.
const companionWord = "companion"

func playCompanion(how, dir string) {
	name := filepath.Join(dir, os.Getenv("AGENT_COMPANION"))
	lock, err := os.OpenFile(name+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		panic(err)
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		os.WriteFile(name+".twice", nil, 0o600)
	}
	fmt.Println("I run", os.Getenv("AGENT_COMPANION"))
	os.WriteFile(name+".env", []byte(strings.Join(os.Environ(), "\n")+"\n"), 0o600)
	c, err := net.Dial("unix", os.Getenv("AGENT_SOCKET"))
	if err != nil {
		panic(err)
	}
	buf := make([]byte, 1<<20)
	c.Read(buf)
	os.WriteFile(name+".tmp", fmt.Append(nil, os.Getpid()), 0o600)
	os.Rename(name+".tmp", name)
	for err == nil {
		_, err = c.Read(buf)
	}
	if how == "deaf" {
		select {}
	}
}

// companionsOf is a set that plays.
func (h *host) companionsOf(how string, names ...string) string {
	var set []protocol.CompanionSpec
	for _, name := range names {
		set = append(set, protocol.CompanionSpec{Name: name, Command: []string{h.bin, companionWord, how, h.workspace}})
	}
	text, _ := json.Marshal(set)
	return `"set":` + string(text)
}

// up waits until a companion of another process than before has its session.
func (h *host) up(name string, before int) int {
	h.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		text, _ := os.ReadFile(filepath.Join(h.workspace, name))
		pid := 0
		if fmt.Sscan(string(text), &pid); pid != 0 && pid != before {
			return pid
		}
	}
	h.t.Fatalf("%s never came", name)
	return 0
}

// companions are the records by name.
func (k *conn) companions(members string) map[string]protocol.Companion {
	k.t.Helper()
	var list protocol.Companions
	k.ask(&list, "companions", members)
	all := map[string]protocol.Companion{}
	for _, c := range list.Companions {
		all[c.Name] = c
	}
	return all
}

func (h *host) never(name string) {
	h.t.Helper()
	if _, err := os.Stat(filepath.Join(h.workspace, name)); err == nil {
		h.t.Errorf("%s is there", name)
	}
}

func TestCompanions(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	s := h.fake("responses", fakemodel.Options{})
	p := h.start()
	k := p.dial()
	log := h.set.Store + ".companions/one.log"
	var one, two int
	t.Run("RT-105 PO-85 they start at once, with the whole environment of the daemon, which a bot's shell does not get", func(t *testing.T) {
		all := k.companions(h.companionsOf("good", "one", "two"))
		one, two = h.up("one", 0), h.up("two", 0)
		if c := all["one"]; c.PID == nil || int(*c.PID) != one || c.Restarts != 0 || string(c.LastExit) != "null" || c.Log != log || c.SinceMS == 0 {
			t.Errorf("record %+v", c)
		}
		text, _ := os.ReadFile(filepath.Join(h.workspace, "one.env"))
		for _, v := range []string{"F_KEY=key-of-the-test-provider", "AGENT_SOCKET=" + h.set.Socket, "AGENT_STORE=" + h.set.Store, "AGENT_COMPANION=one", "HOME=" + h.dir} {
			if strings.Count("\n"+string(text), "\n"+v+"\n") != 1 {
				t.Errorf("%s is not in its environment once", v)
			}
		}
		k.fbot("Ada", h.workspace, "shell")
		if got := k.steps(s, "Ada", "r", shellCall("env", "")); strings.Contains(got[0], "F_KEY") || strings.Contains(got[0], "AGENT_COMPANION") {
			t.Errorf("a bot's shell has %s", got[0])
		}
		var st protocol.Stats
		if k.ask(&st, "stats", ""); len(st.Companions) != 2 || st.Companions[0].Name != "one" || st.RunningProcesses != 0 {
			t.Errorf("stats %+v", st.Companions)
		}
		if group, err := syscall.Getpgid(one); err != nil || group != one {
			t.Errorf("its group is %d", group)
		}
	})
	t.Run("RT-105 PO-101 its log is 0600 in a 0700 folder", func(t *testing.T) {
		h.holds(log, "I run one\n")
		for path, want := range map[string]os.FileMode{log: 0o600, filepath.Dir(log): 0o700 | os.ModeDir} {
			if info, err := os.Lstat(path); err != nil || info.Mode() != want {
				t.Errorf("%s: %v %v", path, info.Mode(), err)
			}
		}
	})
	t.Run("the same set again changes nothing; one left out ends, another command starts anew", func(t *testing.T) {
		all := k.companions(h.companionsOf("good", "one", "two"))
		if int(*all["one"].PID) != one || int(*all["two"].PID) != two {
			t.Errorf("records %+v", all)
		}
		all = k.companions(strings.Replace(h.companionsOf("good", "one"), "good", "better", 1))
		if len(all) != 1 || int(*all["one"].PID) == one || !gone(one) || !gone(two) {
			t.Errorf("records %+v", all)
		}
		one = h.up("one", one)
	})
	t.Run("restart gives it another process and leaves the others", func(t *testing.T) {
		all := k.companions(h.companionsOf("better", "one", "two") + `,"restart":["one"]`)
		two = h.up("two", two)
		if int(*all["one"].PID) == one || all["one"].Restarts != 1 || all["two"].Restarts != 0 {
			t.Errorf("records %+v", all)
		}
		one = h.up("one", one)
		all = k.companions(`"restart":["one"]`)
		if int(*all["one"].PID) == one || int(*all["two"].PID) != two {
			t.Errorf("records %+v", all)
		}
		one = h.up("one", one)
	})
	t.Run("a bad list changes nothing", func(t *testing.T) {
		many := make([]string, protocol.MaxCompanions+1)
		for i := range many {
			many[i] = fmt.Sprint("c", i)
		}
		for name, members := range map[string]string{
			"17 of them":            h.companionsOf("good", many...),
			"a name twice":          h.companionsOf("good", "x", "x"),
			"a bad name":            h.companionsOf("good", "a b"),
			"no command":            `"set":[{"name":"x","command":[]}]`,
			"a relative program":    `"set":[{"name":"x","command":["sh"]}]`,
			"a program that is not": `"set":[{"name":"x","command":["/does/not/exist"]}]`,
			"a folder":              `"set":[{"name":"x","command":["/"]}]`,
			"a file that no one runs": fmt.Sprintf(`"set":[{"name":"x","command":[%q]}]`,
				filepath.Join(h.workspace, "one.env")),
			"a NUL in an argument":          `"set":[{"name":"x","command":["/bin/sh","a\u0000b"]}]`,
			"restart of one it has not":     `"restart":["three"]`,
			"restart of one it has no more": h.companionsOf("good", "two") + `,"restart":["one"]`,
		} {
			t.Run(name, func(t *testing.T) { k.refused(protocol.InvalidCompanion, "companions", members) })
		}
		if all := k.companions(""); int(*all["one"].PID) != one || int(*all["two"].PID) != two {
			t.Errorf("records %+v", all)
		}
	})
	t.Run("AP-64 a pause leaves them running", func(t *testing.T) {
		k.ask(nil, "pause", "")
		if all := k.companions(""); int(*all["one"].PID) != one {
			t.Errorf("records %+v", all)
		}
		k.ask(nil, "resume", "")
	})
	t.Run("a shutdown ends them, and the next start has them again", func(t *testing.T) {
		p.cmd.Process.Signal(syscall.SIGTERM)
		if code := p.wait(); code != 0 || !gone(one) || !gone(two) {
			t.Errorf("exit %d", code)
		}
		p = h.start()
		k = p.dial()
		h.up("one", one)
		h.up("two", two)
		if all := k.companions(`"set":[]`); len(all) != 0 {
			t.Errorf("records %+v", all)
		}
	})
	h.never("one.twice")
	h.never("two.twice")
	s.Verify(t)
}

// holds waits until a file has a text in it.
func (h *host) holds(path, text string) {
	h.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		have, _ := os.ReadFile(path)
		if strings.Contains(string(have), text) {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("%s: %s", path, have)
		}
	}
}

func TestCompanionIsRestarted(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	k := h.start().dial()
	k.companions(h.companionsOf("good", "one"))
	pid := h.up("one", 0)
	for i, least := range []time.Duration{time.Second, 2 * time.Second} {
		t.Run(fmt.Sprintf("RT-105 killed for the %d. time it runs again after %v", i+1, least), func(t *testing.T) {
			began := time.Now()
			syscall.Kill(pid, syscall.SIGKILL)
			pid = h.up("one", pid)
			took := time.Since(began)
			if took < least || took > least+4*time.Second { // a busy machine takes its time; the delay itself is TestCompanionBackoff's
				t.Errorf("it took %v", took)
			}
			if c := k.companions("")["one"]; c.Restarts != int64(i+1) || !strings.Contains(string(c.LastExit), "SIGKILL") {
				t.Errorf("record %+v %s", c, c.LastExit)
			}
		})
	}
}

func TestCompanionProgramIsReplaced(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	k := h.start().dial()
	program := filepath.Join(h.dir, "program")
	write := func() {
		os.WriteFile(program+".new", []byte("#!/bin/sh\necho up >>"+program+".up\nexec sleep 600\n"), 0o700)
		os.Rename(program+".new", program)
	}
	write()
	set := fmt.Sprintf(`"set":[{"name":"a","command":[%q]},{"name":"b","command":["/bin/sleep","600"]}]`, program)
	before := k.companions(set)
	h.holds(program+".up", "up\n") // the shell has read it
	write()
	t.Run("PR-79 the same set again starts the one whose program was replaced, and leaves the other", func(t *testing.T) {
		after := k.companions(set)
		if *after["a"].PID == *before["a"].PID || !gone(int(*before["a"].PID)) || *after["b"].PID != *before["b"].PID {
			t.Errorf("before %+v, after %+v", before, after)
		}
	})
	t.Run("one whose program is gone is reported, and the daemon goes on", func(t *testing.T) {
		h.holds(program+".up", "up\nup\n")
		os.Remove(program)
		k.refused(protocol.InvalidCompanion, "companions", set)
		pid := int(*k.companions("")["a"].PID)
		syscall.Kill(pid, syscall.SIGKILL)
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			c := k.companions("")["a"]
			if c.PID == nil && strings.Contains(string(c.LastExit), "no such file") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("record %+v %s", c, c.LastExit)
			}
		}
		k.bot("Ada", h.workspace, "")
		if o := k.run("Ada", "r", "hello"); o.Text != "hello" {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestCompanionFolder(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, prepare func(folder string)) (*host, *conn) {
		t.Parallel()
		h := newHost(t, echoScript)
		p := h.start()
		p.dial().companions(h.companionsOf("good", "one"))
		before := h.up("one", 0)
		p.cmd.Process.Signal(syscall.SIGTERM)
		p.wait()
		prepare(h.set.Store + ".companions")
		plain := h.bin
		h.bin = filepath.Join(h.dir, "loose")
		os.WriteFile(h.bin, []byte("#!/bin/sh\numask 000\nexec "+plain+"\n"), 0o700)
		k := h.start().dial()
		h.bin = plain
		t.Cleanup(func() { h.never("one.twice") })
		_ = before
		return h, k
	}
	t.Run("AP-62 under umask 000 a loose folder is 0700, and logs made and kept are 0600", func(t *testing.T) {
		h, _ := start(t, func(folder string) {
			os.Chmod(folder, 0o755)
			os.Chmod(folder+"/one.log", 0o666)
			os.WriteFile(folder+"/one.log.1", nil, 0o666)
		})
		h.holds(h.set.Store+".companions/one.log", "I run one\nI run one\n")
		for name, want := range map[string]os.FileMode{"": 0o700 | os.ModeDir, "/one.log": 0o600, "/one.log.1": 0o600, "/one.pid": 0o600} {
			if info, err := os.Lstat(h.set.Store + ".companions" + name); err != nil || info.Mode() != want {
				t.Errorf("%s: %v %v", name, info, err)
			}
		}
	})
	for name, prepare := range map[string]func(folder string){
		"a folder that is a symlink": func(folder string) { os.Rename(folder, folder+"-"); os.Symlink(folder+"-", folder) },
		"a log that is a symlink": func(folder string) {
			os.Remove(folder + "/one.log")
			os.Symlink(folder+"/elsewhere", folder+"/one.log")
		},
	} {
		t.Run(name+" is refused, the companion says so, and the daemon works", func(t *testing.T) {
			h, k := start(t, prepare)
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
				c := k.companions("")["one"]
				if c.PID == nil && strings.Contains(string(c.LastExit), `"error"`) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("record %+v %s", c, c.LastExit)
				}
			}
			k.bot("Ada", h.workspace, "")
			if o := k.run("Ada", "r", "hello"); o.Text != "hello" {
				t.Errorf("outcome %+v", o)
			}
			h.never("../state.sqlite.companions/elsewhere")
		})
	}
}

func TestCompanionOfAKilledDaemon(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"good", "deaf"} {
		t.Run("RT-105 a kill -9 and a start at once: a "+how+" companion of the first daemon never stands beside the second's", func(t *testing.T) {
			t.Parallel()
			h := newHost(t, echoScript)
			p := h.start()
			p.dial().companions(h.companionsOf(how, "one"))
			pid := h.up("one", 0)
			for range 3 {
				p.kill()
				p = h.start()
				next := h.up("one", pid)
				if !gone(pid) {
					t.Errorf("%d lives beside %d", pid, next)
				}
				pid = next
			}
			if c := p.dial().companions("")["one"]; c.PID == nil || int(*c.PID) != pid {
				t.Errorf("record %+v", c)
			}
			h.never("one.twice")
		})
	}
}

func TestCompanionsAndIdleExit(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	seconds := int64(1)
	h.set.Limits.IdleExitSeconds = &seconds
	p := h.start()
	k := p.dial()
	k.companions(h.companionsOf("good", "one"))
	pid := h.up("one", 0)
	var st protocol.Stats
	if k.ask(&st, "stats", ""); st.Sessions != 2 {
		t.Errorf("%d sessions", st.Sessions)
	}
	k.c.Close()
	t.Run("RT-97 a companion's session keeps no idle daemon, which ends it before it goes", func(t *testing.T) {
		if code := p.wait(); code != 0 || !gone(pid) {
			t.Errorf("exit %d", code)
		}
		if _, err := os.Lstat(h.set.Socket); err == nil {
			t.Error("the socket is there")
		}
	})
}

func TestCompanionsOnStandardInput(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	p.dial().companions(h.companionsOf("good", "one"))
	pid := h.up("one", 0)
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.wait()
	t.Run("a daemon on standard input and output has none, whatever the store says", func(t *testing.T) {
		h.set.Socket = ""
		p := h.start()
		for n, members := range []string{"", `,"set":[]`, `,"restart":["one"]`} {
			fmt.Fprintf(p.stdin, `{"id":%d,"op":"companions"%s}`+"\n", n, members)
			if l, err := p.stdout.ReadString('\n'); err != nil || !strings.Contains(l, string(protocol.CompanionsUnavailable)) {
				t.Errorf("%s gives %s %v", members, l, err)
			}
		}
		fmt.Fprintln(p.stdin, `{"id":9,"op":"stats"}`)
		if l, err := p.stdout.ReadString('\n'); err != nil || !strings.Contains(l, `"companions":[]`) {
			t.Errorf("stats %s %v", l, err)
		}
		if text, _ := os.ReadFile(filepath.Join(h.workspace, "one")); string(text) != fmt.Sprint(pid) {
			t.Errorf("%s runs", text)
		}
	})
}
