package daemon_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"agent/protocol"
)

// What an attacker and a careless operator found, each as a test of its kind.

func TestOwnerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	// stall fills a daemon's output until its producers wait.
	stall := func(t *testing.T) (*process, chan struct{}) {
		h := newHost(t, `[{"match":{"any":true},"repeat_last":true,"steps":[{"text":"x","calls":[{"tool":"echo","arguments":{"text":"${prompt}"}}]}]}]`)
		h.set.Socket = ""
		p := h.start()
		for i := range 4 {
			fmt.Fprintf(p.stdin, `{"id":1,"op":"create","bot":"b%d","model":"s/m","instructions":"","tools":["echo"],"workspace":%q}`+"\n", i, h.workspace)
			fmt.Fprintf(p.stdin, `{"id":2,"op":"submit",%s}`+"\n", submission(fmt.Sprint("b", i), "r", strings.Repeat("y", 2000), ""))
			for j := range 12 { // more work, since a turn ends after 200 rounds
				fmt.Fprintf(p.stdin, `{"id":3,"op":"submit",%s}`+"\n", submission(fmt.Sprint("b", i), fmt.Sprint("q", j), strings.Repeat("y", 2000), `"delivery":"queue"`))
			}
		}
		ended := make(chan struct{})
		go func() { p.cmd.Wait(); close(ended) }()
		return p, ended
	}
	within := func(t *testing.T, ended chan struct{}, d time.Duration) {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(d):
			t.Fatal("the daemon goes on")
		}
	}
	t.Run("SIGTERM ends the daemon though its owner takes nothing", func(t *testing.T) {
		t.Parallel()
		p, ended := stall(t)
		time.Sleep(500 * time.Millisecond) // the pipe and the queue fill; nothing tells when
		p.cmd.Process.Signal(syscall.SIGTERM)
		within(t, ended, 15*time.Second)
	})
	t.Run("the end of its input does, too", func(t *testing.T) {
		t.Parallel()
		p, ended := stall(t)
		time.Sleep(500 * time.Millisecond)
		p.stdin.Close()
		within(t, ended, 15*time.Second)
	})
	t.Run("an owner that closed the daemon's output ends it without a further word", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, echoScript)
		h.set.Socket = ""
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := h.launchWith(w)
		w.Close()
		buf := make([]byte, 1)
		r.Read(buf)
		r.Close()
		ended := make(chan struct{})
		go func() { p.cmd.Wait(); close(ended) }()
		fmt.Fprintln(p.stdin, `{"id":1,"op":"stats"}`)
		within(t, ended, 15*time.Second)
		if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.stderr.String(), "output_closed") {
			t.Errorf("exit %d: %s", code, p.stderr.String())
		}
	})
	t.Run("the owner gets the ends of its turns when its input ends", func(t *testing.T) {
		t.Parallel()
		h := newHost(t, waitScript)
		h.set.Socket = ""
		p := h.start()
		fmt.Fprintf(p.stdin, `{"id":1,"op":"create","bot":"a","model":"s/m","instructions":"","tools":[],"workspace":%q}`+"\n", h.workspace)
		fmt.Fprintf(p.stdin, `{"id":2,"op":"submit",%s}`+"\n", submission("a", "r", "hold", ""))
		for {
			raw, err := p.stdout.ReadString('\n')
			if err != nil || strings.Contains(raw, `"accepted"`) {
				break
			}
		}
		p.stdin.Close()
		rest, _ := io.ReadAll(p.stdout)
		if !strings.Contains(string(rest), `"turn_finished"`) || !strings.Contains(string(rest), "daemon_shutdown") {
			t.Errorf("the rest of the output: %s", rest)
		}
		p.cmd.Wait()
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit %d: %s", code, p.stderr.String())
		}
	})
}

func TestSteerBehindStaleOnes(t *testing.T) {
	t.Parallel()
	h := newHost(t, waitScript)
	k := h.start().dial()
	k.bot("Ada", h.workspace, "shell")
	k.follow("Ada", 0)
	t.Run("PR-27 a steer goes in past any number of strict ones for another turn", func(t *testing.T) {
		hold := k.submit("Ada", "h", "hold", "")
		next := k.submit("Ada", "n", "wait", `"delivery":"queue"`)
		for i := range 70 {
			k.submit("Ada", fmt.Sprint("s", i), "strict", fmt.Sprintf(`"delivery":"steer","expected_turn":%d`, hold.Turn))
		}
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, hold.Turn))
		h.began()
		plain := k.submit("Ada", "p", "plain", `"delivery":"steer"`)
		h.letGo()
		k.until("turn_finished", next.Turn)
		if o := k.result("Ada", plain.Turn); o.Status != "steered" || o.Into != next.Turn {
			t.Errorf("the plain steer %+v", o)
		}
	})
}

func TestSlotsAreNotHeldByRefusals(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	h.set.Limits.Active = 1
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "")
	k.bot("Bob", h.workspace, "")
	k.run("Ada", "r", "x")
	t.Run("PR-20 requests that need no slot take none from one that does", func(t *testing.T) {
		stop := make(chan struct{})
		for i := range 4 {
			c := p.dial()
			go func() {
				for j := 0; ; j++ {
					select {
					case <-stop:
						return
					default:
					}
					what := submission("Ada", "r", "x", "")
					if i%2 == 0 {
						what = submission("Nobody", "r", "x", "")
					}
					if _, err := fmt.Fprintf(c.c, `{"id":%d,"op":"submit",%s}`+"\n", j, what); err != nil {
						return
					}
					if _, err := c.tryRead(); err != nil {
						return
					}
				}
			}()
		}
		for i := range 100 {
			k.run("Bob", fmt.Sprint("b", i), "x")
		}
		close(stop)
	})
}

func TestSlowButSteady(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "")
	k.follow("Ada", 0)
	for i := range 300 {
		s := k.submit("Ada", fmt.Sprint("r", i), "x", "")
		k.until("turn_finished", s.Turn)
		k.notes = nil
	}
	t.Run("PR-82 a follower that reads slowly but steadily gets its whole replay", func(t *testing.T) {
		c := p.dial()
		c.c.(interface{ SetReadBuffer(int) error }).SetReadBuffer(4 << 10)
		c.request("follow", `"bot":"Ada","after":0`)
		buf, got := make([]byte, 16<<10), ""
		for end := time.Now().Add(40 * time.Second); !strings.Contains(got, "follow_live"); {
			n, err := c.c.Read(buf)
			if err != nil || time.Now().After(end) {
				t.Fatalf("after %d bytes: %v", len(got), err)
			}
			got += string(buf[:n])
			time.Sleep(250 * time.Millisecond) // 64 KiB a second
		}
	})
}

func TestSmallRefusals(t *testing.T) {
	t.Parallel()
	h := newHost(t, echoScript)
	p := h.start()
	k := p.dial()
	k.bot("Ada", h.workspace, "")
	t.Run("an interrupt of turn 0 interrupts nothing", func(t *testing.T) {
		k.refused(protocol.NoActiveTurn, "interrupt", `"bot":"Ada","turn":0`)
	})
	t.Run("an optional text given empty is refused by its own code", func(t *testing.T) {
		base := `"bot":"X","model":"s/m","instructions":"","tools":[]`
		for more, code := range map[string]protocol.Code{
			`"workspace":""`: protocol.WorkspaceMustExistAndBeAbsolute, `"sandbox":""`: protocol.InvalidSandbox,
			`"reasoning":""`: protocol.InvalidReasoningLevel, `"approver":""`: protocol.InvalidApprover,
			`"created_by":""`: protocol.InvalidCreator, `"compaction_model":""`: protocol.InvalidModel,
			`"approve_expire_ms":5`: protocol.InvalidApproveExpiry,
		} {
			k.refused(code, "create", base+","+more)
		}
		for more, code := range map[string]protocol.Code{
			`"workspace":""`: protocol.WorkspaceMustExistAndBeAbsolute, `"model":""`: protocol.InvalidModel,
			`"delivery":""`: protocol.InvalidDelivery, `"origin":""`: protocol.InvalidOrigin,
		} {
			k.refused(code, "submit", submission("Ada", "r", "x", more))
		}
	})
	t.Run("a name of a megabyte is not echoed whole", func(t *testing.T) {
		l := k.refused(protocol.BotNotFound, "inspect", fmt.Sprintf(`"bot":%q`, strings.Repeat("n", 1<<19)))
		if len(l.raw) > 1000 {
			t.Errorf("the refusal takes %d bytes", len(l.raw))
		}
	})
	t.Run("a store and a socket at one path are told apart from another daemon's", func(t *testing.T) {
		other := newHost(t, echoScript)
		other.set.Socket = other.set.Store
		q := other.launch()
		if code := exitOf(t, q); code != 1 || !strings.Contains(q.stderr.String(), "invalid_socket_path") {
			t.Errorf("exit %d: %s", code, q.stderr.String())
		}
	})
	t.Run("RT-94 damage met while recovering is called what it is", func(t *testing.T) {
		other := newHost(t, echoScript)
		q := other.start()
		c := q.dial()
		for i := range 30 {
			c.bot(fmt.Sprint("b", i), other.workspace, "")
		}
		c.ask(nil, "shutdown", "")
		q.wait()
		f, err := os.OpenFile(other.set.Store, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, _ := f.Stat()
		for at := int64(4096); at < info.Size(); at += 4096 {
			f.WriteAt([]byte(strings.Repeat("\xff", 4096)), at)
		}
		f.Close()
		q = other.launch()
		if code := exitOf(t, q); code != 1 || !strings.Contains(q.stderr.String(), "store_corrupt") {
			t.Errorf("exit %d: %s", code, q.stderr.String())
		}
	})
}
