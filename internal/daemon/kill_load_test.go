package daemon_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The roles of the soak (runtime.md 32, W11). Each is one client with bots of
// its own that goes round until it is told to stop; rnd chooses.
type role struct {
	name string
	make func(h *hand, name string)
	turn func(h *hand, name, id string, rnd *rand.Rand)
}

var roles = []role{
	{"plain", plainBot, func(h *hand, name, id string, rnd *rand.Rand) {
		h.ended(h.submit(name, id, program(id, fmt.Sprint("sh ", rnd.IntN(3))), ""))
	}},
	{"long", func(h *hand, name string) {
		h.create(name, `,"compaction_instructions":"Summarize.","settings":{"context_bytes":24576}`)
	}, func(h *hand, name, id string, rnd *rand.Rand) {
		h.ended(h.submit(name, id, program(id, fmt.Sprint("say ", 500+rnd.IntN(3000)), "sh 1"), ""))
	}},
	{"noisy", plainBot, func(h *hand, name, id string, rnd *rand.Rand) {
		h.ended(h.submit(name, id, program(id, fmt.Sprint("noisy ", 1000+rnd.IntN(200_000))), ""))
	}},
	{"burst", plainBot, func(h *hand, name, id string, _ *rand.Rand) {
		h.ended(h.submit(name, id, program(id, "bg", "bg", "bg", "last"), ""))
	}},
	{"parent", func(h *hand, name string) {
		plainBot(h, name)
		plainBot(h, name+"-child")
	}, func(h *hand, name, id string, _ *rand.Rand) {
		one := h.submit(name+"-child", id+"a", program(id+"a", "sh 1"), "")
		two := h.submit(name+"-child", id+"b", program(id+"b", "bg", "last"), "")
		h.ended(h.submit(name, id, program(id, fmt.Sprintf("wait turn:%s-child/%d turn:%s-child/%d", name, one, name, two), "sh 1"), ""), one, two)
	}},
	{"flaky", plainBot, func(h *hand, name, id string, rnd *rand.Rand) {
		first := []string{"fail", "fail", "cut", "cut", "busy"}[rnd.IntN(5)]
		h.ended(h.submit(name, id, program(id, first, "sh 1"), ""))
	}},
	{"crowd", plainBot, func(h *hand, name, id string, rnd *rand.Rand) {
		var turns []int64
		for i := range 2 + rnd.IntN(4) {
			delivery := []string{"queue", "steer"}[rnd.IntN(2)]
			part := fmt.Sprint(id, "-", i)
			turns = append(turns, h.submit(name, part, program(part, "sh 1", "sh 1"), fmt.Sprintf(`"delivery":%q`, delivery)))
		}
		if rnd.IntN(2) == 0 {
			h.interrupt(name, turns[rnd.IntN(len(turns))])
		}
		h.ended(turns...)
	}},
	{"forks", plainBot, func(h *hand, name, id string, _ *rand.Rand) {
		turn := h.submit(name, id, program(id, "sh 1", "sh 1"), "")
		fork := name + "." + id
		h.fork(name, fork)
		h.ended(turn, h.submit(fork, id, program(id+"-fork", "sh 1"), fmt.Sprintf(`"model":"f/%s"`, fork)))
		h.remove(fork)
	}},
}

func plainBot(h *hand, name string) { h.create(name, "") }

// clients makes n clients of each role, which go round until stop says so.
func clients(n int, seed uint64, stop func() bool) (all []func(*hand)) {
	for i, r := range roles {
		for j := range n {
			name, rnd := fmt.Sprint(r.name, j), rand.New(rand.NewPCG(seed, uint64(i*1000+j)))
			all = append(all, func(h *hand) {
				r.make(h, name)
				for round := 0; !stop(); round++ {
					r.turn(h, name, fmt.Sprint(name, "-", round), rnd)
				}
			})
		}
	}
	return all
}

// TestKillUnderLoad kills the daemon again and again at random instants, with
// every role at work.
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	for seed := range uint64(loadSeeds) {
		t.Run(fmt.Sprintf("RT-91 RT-95 kills at random instants under load lose nothing and repeat nothing, seed %d", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fmt.Sprint("seed ", seed))
			rnd := rand.New(rand.NewPCG(seed, 3))
			var plans []faultPlan
			for range loadKills {
				plans = append(plans, faultPlan{Points: aroundCommits, After: time.Duration(20+rnd.IntN(400)) * time.Millisecond})
			}
			w.live(plans, clients(1, seed, func() bool { return w.lives() >= loadKills })...)
			t.Logf("%d submissions, %d events, %d kills", len(w.acked), len(w.record), w.kills)
		})
	}
}
