package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agent/internal/daemon"
	"agent/internal/fakemodel"
	"agent/internal/store"
	"agent/protocol"
)

// startHere runs the daemon in this process with a store that can be made to
// fail.
func (h *host) startHere(faults *store.Faults) *process {
	h.t.Helper()
	h.set.Config = filepath.Join(h.dir, "none.toml")
	for _, v := range h.env {
		name, value, _ := strings.Cut(v, "=")
		h.t.Setenv(name, value)
	}
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.ServeFaulty(ctx, h.set, faults, nil, w, os.Stderr) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Errorf("the daemon ended with %v", err)
		}
	})
	if _, err := bufio.NewReaderSize(r, 64<<10).ReadBytes('\n'); err != nil {
		h.t.Fatal(err)
	}
	return &process{t: h.t, h: h}
}

// breaks makes a fault point fail while on is set.
func breaks(f *store.Faults, point string, on *atomic.Bool, err error) {
	f.At(point, func() error {
		if on.Load() {
			return err
		}
		return nil
	})
}

func TestFullDisk(t *testing.T) {
	h := newHost(t, waitScript)
	var faults store.Faults
	var submit, start, appendOn, finish, end atomic.Bool
	breaks(&faults, "wrote:submit", &submit, store.FaultFull)
	breaks(&faults, "wrote:call_start", &start, store.FaultFull)
	breaks(&faults, "wrote:append", &appendOn, store.FaultFull)
	breaks(&faults, "wrote:call_finish", &finish, store.FaultFull)
	breaks(&faults, "wrote:end_turn", &end, store.FaultFull)
	p := h.startHere(&faults)
	k := p.dial()
	k.bot("Ada", h.workspace, "shell")
	k.bot("Bob", h.workspace, "shell")
	k.follow("Ada", 0)
	t.Run("RT-93 a full disk at submission leaves no turn and no taken slot", func(t *testing.T) {
		submit.Store(true)
		l := k.refused(protocol.StorageError, "submit", submission("Ada", "r1", "x", ""))
		if !strings.HasPrefix(l.str("detail"), "sqlite_primary=13 ") {
			t.Errorf("detail %s", l.raw)
		}
		submit.Store(false)
		var st protocol.Stats
		k.ask(&st, "stats", "")
		var page protocol.TurnPage
		k.ask(&page, "turns", `"bot":"Ada"`)
		if st.ActiveTurns != 0 || len(page.Turns) != 0 || st.Store.StorageErrors == 0 {
			t.Errorf("%d turns run, %d are stored, %d errors", st.ActiveTurns, len(page.Turns), st.Store.StorageErrors)
		}
		if s := k.submit("Ada", "r1", "x", ""); s.Duplicate {
			t.Error("the refused request was kept")
		} else {
			k.until("turn_finished", s.Turn)
		}
	})
	t.Run("RT-92 a full disk at a completion keeps the bot busy until there is room, and others answer", func(t *testing.T) {
		end.Store(true)
		s := k.submit("Ada", "r2", "x", "")
		k.until("message", s.Turn)
		var st protocol.Stats
		for st.Store.Operations["end_turn"].StorageErrors < 3 {
			k.ask(&st, "stats", "")
		}
		k.refused(protocol.BotBusy, "submit", submission("Ada", "r3", "x", ""))
		k.ask(nil, "inspect", `"bot":"Bob"`)
		end.Store(false)
		k.until("turn_finished", s.Turn)
		if o := k.result("Ada", s.Turn); o.Status != "completed" {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("an interrupt while the end is refused turns it into one", func(t *testing.T) {
		end.Store(true)
		s := k.submit("Ada", "r4", "x", "")
		k.until("message", s.Turn)
		k.ask(nil, "interrupt", fmt.Sprintf(`"bot":"Ada","turn":%d`, s.Turn))
		end.Store(false)
		k.until("turn_finished", s.Turn)
		if o := k.result("Ada", s.Turn); o.Status != "interrupted" {
			t.Errorf("outcome %+v", o)
		}
	})
	for i, tt := range []struct {
		name   string
		on     *atomic.Bool
		ran    bool
		result string
	}{
		{"a full disk at an answer of the model fails the turn before anything runs", &appendOn, false, ""},
		{"a full disk at a call's start fails the turn before the tool runs", &start, false, "cancelled"},
		{"a full disk at a call's end makes its outcome unknown", &finish, true, "tool_outcome_unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h.holdAgain()
			os.Remove(filepath.Join(h.workspace, "began"))
			tt.on.Store(true)
			s := k.submit("Ada", fmt.Sprint("full-", i), "wait", "")
			h.letGo()
			seen := k.until("turn_finished", s.Turn)
			tt.on.Store(false)
			o := k.result("Ada", s.Turn)
			if o.Status != "failed" || *o.Error != protocol.StorageError {
				t.Errorf("outcome %+v", o)
			}
			_, err := os.Stat(filepath.Join(h.workspace, "began"))
			if ran := err == nil; ran != tt.ran {
				t.Errorf("the tool ran: %v", ran)
			}
			if tt.result != "" {
				var c protocol.ToolCompleted
				for _, l := range seen {
					if l.str("event") == "tool_completed" {
						l.data(&c)
					}
				}
				if item := k.item("Ada", c.Node); !strings.Contains(item, tt.result) {
					t.Errorf("the result %s", item)
				}
			}
		})
	}
	t.Run("the bot takes its next turn", func(t *testing.T) {
		if o := k.run("Ada", "last", "hello"); o.Status != "completed" {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestStoreFailsInABody(t *testing.T) {
	h := newHost(t, "")
	s := h.fake("anthropic", fakemodel.Options{Lost: true, Window: true})
	var faults store.Faults
	var items atomic.Bool
	breaks(&faults, "read:items", &items, store.FaultSync)
	p := h.startHere(&faults)
	k := p.dial()
	k.fbot("Ada", h.workspace, "")
	t.Run("RT-129 a store that fails in a request's body fails the turn, and no second request is made", func(t *testing.T) {
		items.Store(true)
		o := k.run("Ada", "r1", "x")
		if o.Status != "failed" || *o.Error != protocol.StorageError {
			t.Errorf("outcome %+v", o)
		}
		if st := s.Stats(); st.Requests != 0 || st.Abandoned > 1 {
			t.Errorf("the provider saw %+v", st)
		}
		items.Store(false)
		s.Queue(fakemodel.Say("fine"))
		if o := k.run("Ada", "r2", "x"); o.Status != "completed" {
			t.Errorf("the next %+v", o)
		}
	})
	s.Verify(t)
}

func TestSlowSync(t *testing.T) {
	h := newHost(t, echoScript)
	var faults store.Faults
	faults.At("commit", func() error { time.Sleep(5 * time.Millisecond); return nil })
	p := h.startHere(&faults)
	k := p.dial()
	t.Run("RT-10 sessions that submit at once share commits", func(t *testing.T) {
		const n = 32
		var conns []*conn
		for i := range n {
			k.bot(fmt.Sprint("b", i), h.workspace, "")
			conns = append(conns, p.dial())
		}
		done := make(chan bool, n)
		for i, c := range conns {
			go func() {
				fmt.Fprintf(c.c, `{"id":1,"op":"submit",%s}`+"\n", submission(fmt.Sprint("b", i), "r", "x", ""))
				l, err := c.tryRead()
				done <- err == nil && l.fields["result"] != nil
			}()
		}
		for range n {
			if !<-done {
				t.Error("a submission was refused")
			}
		}
		var st protocol.Stats
		k.ask(&st, "stats", "")
		shared := int64(0)
		for _, n := range st.Store.Groups.Sizes[1:] {
			shared += n
		}
		if shared == 0 {
			t.Errorf("no commit was shared: %+v", st.Store.Groups)
		}
	})
}

func TestStdio(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (*host, *process) {
		h := newHost(t, echoScript)
		h.set.Socket = ""
		return h, h.start()
	}
	next := func(t *testing.T, p *process) (l line) {
		t.Helper()
		raw, err := p.stdout.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%v: %s", err, p.stderr.String())
		}
		l.raw = raw
		json.Unmarshal(raw, &l.fields)
		return l
	}
	t.Run("PR-72 an owner sees every bot's events without a follow", func(t *testing.T) {
		t.Parallel()
		h, p := open(t)
		for _, name := range []string{"a", "b"} {
			fmt.Fprintf(p.stdin, `{"id":1,"op":"create","bot":%q,"model":"s/m","instructions":"","tools":[],"workspace":%q}`+"\n", name, h.workspace)
			fmt.Fprintf(p.stdin, `{"id":2,"op":"submit",%s}`+"\n", submission(name, "r", "hello", ""))
		}
		ends, deltas := 0, 0
		for ends < 2 {
			switch l := next(t, p); l.str("event") {
			case "turn_finished":
				ends++
			case "text_delta":
				deltas++
			}
		}
		if deltas == 0 {
			t.Error("no deltas came")
		}
		if entries, _ := filepath.Glob(filepath.Join(h.dir, "*sock*")); len(entries) > 0 {
			t.Errorf("sockets %v", entries)
		}
	})
	t.Run("PR-71 when its input ends the daemon exits 0", func(t *testing.T) {
		t.Parallel()
		_, p := open(t)
		p.stdin.Close()
		io.Copy(io.Discard, p.stdout)
		p.cmd.Wait()
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit %d: %s", code, p.stderr.String())
		}
	})
	t.Run("PR-71 an owner that stops reading while answers pile up ends the daemon with 1", func(t *testing.T) {
		t.Parallel()
		h, p := open(t)
		fmt.Fprintf(p.stdin, `{"id":1,"op":"create","bot":"a","model":"s/m","instructions":%q,"tools":[],"workspace":%q}`+"\n", strings.Repeat("x", 60<<10), h.workspace)
		go func() {
			for i := range 300 {
				if _, err := fmt.Fprintf(p.stdin, `{"id":%d,"op":"inspect","bot":"a"}`+"\n", i); err != nil {
					return
				}
			}
		}()
		ended := make(chan struct{})
		go func() { p.cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(25 * time.Second):
			t.Fatal("the daemon goes on")
		}
		if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.stderr.String(), "output_closed") {
			t.Errorf("exit %d: %s", code, p.stderr.String())
		}
	})
}

func TestStopReading(t *testing.T) {
	t.Parallel()
	h := newHost(t, `[{"match":{"any":true},"steps":[{"text":"done","calls":[{"tool":"echo","arguments":{"text":"x"}}]},{"text":"done"}]}]`)
	p := h.start()
	k := p.dial()
	folder := filepath.Join(h.workspace, strings.Repeat(strings.Repeat("d", 200)+"/", 15))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	k.bot("Ada", folder, "echo")
	t.Run("RT-96 PO-49 only the follower that stops reading is closed, and turns go on", func(t *testing.T) {
		lazy := p.dial()
		lazy.request("follow", `"bot":"*","after":0`)
		k.follow("Ada", 0)
		more := func(from, to int) {
			for i := from; i < to; i++ {
				s := k.submit("Ada", fmt.Sprint("r", i), strings.Repeat("y", 200), "")
				k.until("turn_finished", s.Turn)
				k.notes = nil
			}
		}
		const full = 100 // turns whose events, with such a folder, are more than a socket holds
		more(0, full)
		lazy.hungUp()
		more(full, full+1)
	})
}
