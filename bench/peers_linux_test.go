package main

import (
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// peerBench builds what a comparison needs; the peer is a program of the test's.
func peerBench(t *testing.T) (*bench, peer) {
	t.Helper()
	b := guard(t)
	b.quick = true
	program := filepath.Join(b.dir, "standin")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/standin").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return b, peer{Name: "standin", Program: program, Version: []string{"--version"}, Args: []string{"-"}, Files: map[string]string{"url": inModelURL}}
}

// TestPeers compares ours with a small program, and sees what becomes of a
// program that does not do what is measured.
func TestPeers(t *testing.T) {
	b, standin := peerBench(t)
	_, lonely := b.peerRun(t.Context(), peerJob{Probe: true, Alone: true})
	t.Run("figures of both, or a refusal where nothing keeps a peer from other machines", func(t *testing.T) {
		b.report, b.peers = &report{Runs: 1}, []peer{standin, {Name: "ghost", Program: "no-such-program-here"}}
		if err := b.comparison(t.Context()); err != nil {
			t.Fatal(err)
		}
		notes, cases := strings.Join(b.report.Notes, "\n"), map[string]float64{}
		for _, f := range b.report.Figures {
			cases[f.Case+": "+f.Name] = f.Median
		}
		if !strings.Contains(notes, "ghost: not installed") || strings.Contains(notes, "no figures") {
			t.Errorf("the notes are: %s", notes)
		}
		names := []string{"agent"}
		if lonely == nil {
			names = append(names, "standin")
			if !strings.Contains(notes, "standin: standin 7") {
				t.Errorf("the version is not in the notes: %s", notes)
			}
		} else if !strings.Contains(notes, "peers are not measured") {
			t.Errorf("nothing says why there are no peers: %s", notes)
		}
		for _, name := range names {
			for _, figure := range []string{"start to answer: wall", "2 streams: peak RSS, summed", "2 streams: peak PSS", "2 tool rounds: wall"} {
				if cases[name+", "+figure] <= 0 {
					t.Errorf("%s, %s is %v", name, figure, cases[name+", "+figure])
				}
			}
		}
		if lonely != nil && len(cases) != len(names)*13 {
			t.Errorf("there are %d figures, not those of ours alone", len(cases))
		}
	})
	for _, c := range []struct {
		name, how string
		job       peerJob
		want      string
	}{
		{"a program that does not print the answer has no figure", "--silent", peerJob{Repeats: 1}, "did not print the answer"},
		{"one that runs no command has none", "--no-tools", peerJob{Rounds: 2}, "did not print the answer"},
		{"one that offers no command has none", "--odd-tool", peerJob{Rounds: 2}, "Bad Request"},
		{"one that never stops asking is ended by the model server", "--forget", peerJob{Rounds: 2}, "too many calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.report, c.job.Peer = &report{Runs: 1}, standin
			c.job.Peer.Args = []string{c.how}
			err := b.peerMeasured(t.Context(), c.job)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(b.report.Figures) > 0 {
				t.Errorf("%v and %d figures, want an error about %q", err, len(b.report.Figures), c.want)
			}
		})
	}
	t.Run("a peer cannot reach this machine's own loopback, let alone another machine", func(t *testing.T) {
		home, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer home.Close()
		caller := standin
		caller.Args, caller.Env = []string{"--call-home"}, []string{"HOME_ADDRESS=" + home.Addr().String()}
		b.report = &report{Runs: 1}
		open := b.peerMeasured(t.Context(), peerJob{Peer: caller, Repeats: 1})
		if open == nil || !strings.Contains(open.Error(), "it reached home") {
			t.Errorf("without a namespace it says %v: the test finds nothing", open)
		}
		if err := b.peerMeasured(t.Context(), peerJob{Peer: caller, Repeats: 1, Alone: true}); (err == nil) != (lonely == nil) {
			t.Errorf("in a namespace it says %v", err)
		}
	})
}

func TestCPUWithChildren(t *testing.T) {
	t.Parallel()
	stat := []byte("7 (a b) c) S 1 7 7 0 -1 0 0 0 0 0 150 50 30 20 20 0 1 0")
	if got := cpuWithChildren(stat); got != 2.5 {
		t.Errorf("%v seconds, want 2.5", got)
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	r := &report{}
	r.add("W1", "8 × 4 KiB", "peak", "MiB", 1)
	refs := []reference{{"W1", "8 × 4 KiB", "peak", "17.6"}, {"W4", "100 turns", "p50", "2.6"}}
	if err := r.refer(refs); err != nil || r.Figures[0].Reference != "17.6" {
		t.Errorf("%v, %+v", err, r.Figures[0])
	}
	if err := r.refer(append(refs, reference{"W1", "8 × 4 KiB", "cpu", "1"})); err == nil {
		t.Error("a reference without a figure was passed over")
	}
}
