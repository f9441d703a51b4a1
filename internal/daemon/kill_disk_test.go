package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agent/protocol"
)

// disk is where a store lies that runs out of room.
type disk interface {
	folder() string
	fill()
	free()
}

// faultyDisk is a disk by faults of the store alone, for systems where a test
// may not mount one.
type faultyDisk struct{ dir, mark string }

func newFaultyDisk(t *testing.T) *faultyDisk {
	dir := t.TempDir()
	return &faultyDisk{dir: dir, mark: filepath.Join(dir, "full")}
}

func (d *faultyDisk) folder() string { return d.dir }
func (d *faultyDisk) fill()          { os.WriteFile(d.mark, nil, 0o600) }
func (d *faultyDisk) free()          { os.Remove(d.mark) }

func TestFullDiskAtWork(t *testing.T) {
	t.Parallel()
	t.Run("RT-92 RT-93 a daemon whose store has no room goes on when there is some, and loses nothing", func(t *testing.T) {
		fullDisk(t, newFaultyDisk(t))
	})
	t.Run("RT-93 a start without room says so and leaves no store", func(t *testing.T) {
		refusedStart(t, newFaultyDisk(t))
	})
}

// fullDisk fills the disk under a daemon at work and frees it again, twice: the
// daemon goes on without a restart; killed meanwhile, it does not start and says
// why, and starts when there is room.
func fullDisk(t *testing.T, d disk) {
	w := newWorld(t, fmt.Sprintf("%T", d))
	w.faulty = true
	w.set.Store = filepath.Join(d.folder(), "state.sqlite")
	// The store fails at every point while the mark is there; on a real disk
	// nothing makes that file.
	plan := faultPlan{Points: []string{"begin", "wrote:", "commit"}, Full: filepath.Join(d.folder(), "full")}
	plans := make([]faultPlan, 100)
	for i := range plans {
		plans[i] = plan
	}
	w.live(plans, func(h *hand) {
		for _, name := range []string{"D", "E", "P"} {
			h.create(name, "")
		}
		h.ended(h.submit("D", "d1", program("d1", "sh 1"), ""))
		held := h.submit("E", "e1", program("e1", "sh 1", "hold"), "")
		h.held("e1", held)
		behind := h.submit("E", "e2", program("e2", "sh 1"), "")
		parked := h.submit("P", "p1", program("p1", fmt.Sprintf("wait turn:E/%d turn:E/%d", held, behind), "sh 1"), "")
		h.waiting(parked)

		d.fill()
		last, turns := h.untilRefused("D", "full")
		for _, members := range []string{
			`"op":"create","bot":"N","model":"f/N","instructions":"","tools":[]`, `"op":"fork","source":"D","bot":"M"`, `"op":"configure","bot":"D","budget_tokens":5000000`,
		} {
			op, rest, _ := strings.Cut(strings.TrimPrefix(members, `"op":"`), `",`)
			if _, err := h.ask(nil, op, rest); protocol.CodeOf(err) != protocol.StorageError {
				w.fail("%s on a full disk gives %v", members, err)
			}
		}
		w.actor.gate("e1").Release()
		h.refusals(3) // of the turn's reply and its end
		h.must(nil, "inspect", `"bot":"E"`)
		d.free()
		turns = append(turns, h.submit("D", last, program(last, "sh 1"), ""))
		h.ended(append(turns, held, behind, parked)...)
		h.create("N", "")
		h.fork("D", "M")
		h.configure("D", 5_000_000)

		held = h.submit("E", "e3", program("e3", "hold"), "")
		h.held("e3", held)
		behind = h.submit("E", "e4", program("e4", "sh 1"), "")
		parked = h.submit("P", "p2", program("p2", fmt.Sprintf("wait turn:E/%d", behind), "sh 1"), "")
		h.waiting(parked)
		d.fill()
		w.full.Store(true)
		w.mu.Lock()
		p := w.p
		w.mu.Unlock()
		p.cmd.Process.Kill()
		w.await("a start that is refused", func() bool { return w.kills >= 3 })
		d.free()
		h.ended(held, behind, parked)
		h.ended(h.submit("D", "last", program("last", "sh 1"), ""))
	})
	t.Logf("%d starts refused or killed, %d submissions, %d events", w.kills, len(w.acked), len(w.record))
}

// waiting waits until a turn is parked.
func (h *hand) waiting(turn int64) {
	h.w.await(fmt.Sprint("the park of turn ", turn), func() bool { return h.w.parked[turn] })
}

// untilRefused submits until the disk holds no more, and gives the request that
// was refused and the turns that were taken.
func (h *hand) untilRefused(bot, prefix string) (refused string, turns []int64) {
	for i := 0; ; i++ {
		id := fmt.Sprint(prefix, i)
		s := sent{bot: bot, request: id, prompt: program(id, "sh 1"), more: `"delivery":"queue"`}
		var got protocol.Submitted
		_, err := h.ask(&got, "submit", submission(s.bot, s.request, s.prompt, s.more))
		if protocol.CodeOf(err) == protocol.StorageError {
			return id, turns
		}
		if err != nil || i > 10_000 {
			h.w.fail("submission %s: %v", id, err)
			panic(errOver)
		}
		s.turn = got.Turn
		h.w.mu.Lock()
		h.w.acked[bot+"/"+id] = s
		h.w.mu.Unlock()
		turns = append(turns, got.Turn)
	}
}

// refusals waits until the store has refused n more jobs.
func (h *hand) refusals(n int64) {
	var before, now protocol.Stats
	for h.must(&before, "stats", ""); now.Store.StorageErrors < before.Store.StorageErrors+n; {
		h.must(&now, "stats", "")
	}
}

// refusedStart starts a daemon on a full disk where no store is yet.
func refusedStart(t *testing.T, d disk) {
	h := newHost(t, "")
	h.set.Store = filepath.Join(d.folder(), "new.sqlite")
	plan, _ := json.Marshal(faultPlan{Points: []string{"migrate"}, Full: filepath.Join(d.folder(), "full")})
	h.env = append(h.env, planVar+"="+string(plan))
	d.fill()
	p := h.launch()
	if code := exitOf(t, p); code != 1 || !strings.Contains(p.stderr.String(), "is full; make room and start again") {
		t.Errorf("exit %d: %s", code, p.stderr.String())
	}
	if left, _ := filepath.Glob(h.set.Store + "*"); len(left) != 1 || !strings.HasSuffix(left[0], ".owner-lock") {
		t.Errorf("what is left: %v", left)
	}
	d.free()
	h.start().kill()
}
