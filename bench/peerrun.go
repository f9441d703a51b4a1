package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// peerWord, as the first argument, makes this program a measuring process: it
// plays the model server, runs one program and looks at everything below
// itself. What it needs for that is above the tree, and so not counted.
const peerWord = "peer"

// peerLimit bounds each measuring process.
const peerLimit = 4 * time.Minute

// peerMain is the measuring process.
func peerMain(in io.Reader, out, errs io.Writer) int {
	var job peerJob
	err := json.NewDecoder(in).Decode(&job)
	if err == nil && job.Alone {
		err = alone()
	}
	if err == nil && !job.Probe {
		err = job.measure(out)
	}
	if err != nil {
		fmt.Fprintln(errs, err)
		return 1
	}
	return 0
}

// peerStage is a program that is measured, in its home.
type peerStage struct {
	peer  peer
	home  string
	dir   string
	model *peerModel
	runs  int
}

func (j peerJob) measure(out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), peerLimit)
	defer cancel()
	if err := adoptOrphans(); err != nil {
		return err
	}
	model, err := newPeerModel()
	if err != nil {
		return err
	}
	defer model.close()
	s := &peerStage{home: filepath.Join(j.Dir, "home"), dir: j.Dir, model: model}
	if err := os.Mkdir(s.home, 0o700); err != nil {
		return err
	}
	if s.peer, err = j.Peer.configured(s.home, model.url); err != nil {
		return err
	}
	defer killBelow()
	var figures []peerFigure
	switch {
	case j.Streams > 0:
		figures, err = s.streams(ctx, j.Streams)
	case j.Rounds > 0:
		figures, err = s.rounds(ctx, j.Rounds)
	default:
		figures, err = s.starts(ctx, j.Repeats)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(figures)
}

// once runs the program with one prompt to its end, in a workspace of its own.
func (s *peerStage) once(ctx context.Context, n int) error {
	workspace := filepath.Join(s.dir, fmt.Sprintf("w%d", n))
	if err := os.Mkdir(workspace, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.peer.Program, append(append([]string{}, s.peer.Args...), "Do what is to be done.")...)
	cmd.Dir, cmd.Env = workspace, environment(s.home, s.peer.Env...)
	cmd.WaitDelay = time.Second
	var stray bytes.Buffer
	cmd.Stderr = &stray
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", s.peer.Name, errors.Join(ctx.Err(), err), tail(stray.String()+string(text)))
	}
	if !strings.Contains(string(text), donePhrase) {
		return fmt.Errorf("%s did not print the answer: %s", s.peer.Name, tail(stray.String()+string(text)))
	}
	return nil
}

// tail is the end of what a program said.
func tail(s string) string {
	s = strings.TrimSpace(s)
	return s[max(0, len(s)-400):]
}

// several runs the program so many times at once.
func (s *peerStage) several(ctx context.Context, count int) error {
	errs := make([]error, count)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	for i := range count {
		n := s.runs
		s.runs++
		wait.Go(func() {
			if errs[i] = s.once(ctx, n); errs[i] != nil {
				cancel() // the others would wait for its stream
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return few(errs)
}

// warm makes what only the first run in a home makes: stores, caches, a daemon.
func (s *peerStage) warm(ctx context.Context) error {
	s.model.expect(0, 0)
	return s.several(ctx, 1)
}

// starts measures a prompt and its answer: in a fresh home, and again.
func (s *peerStage) starts(ctx context.Context, repeats int) (figures []peerFigure, err error) {
	var asked, walls []time.Duration
	var cpus []float64
	for range repeats + 1 {
		s.model.expect(0, 0)
		before, began := cpuBelow(), time.Now()
		if err := s.several(ctx, 1); err != nil {
			return nil, err
		}
		walls, cpus = append(walls, time.Since(began)), append(cpus, cpuBelow()-before)
		first, err := s.model.seen()
		if err != nil {
			return nil, err
		}
		asked = append(asked, first.Sub(began))
	}
	return []peerFigure{
		{"wall, fresh home", "ms", millis(walls[0])},
		{"cpu, fresh home", "s", cpus[0]},
		{"wall", "ms", percentile(walls[1:], 50)},
		{"of it until the model is asked", "ms", percentile(asked[1:], 50)},
		{"cpu", "s", median(cpus[1:])},
	}, nil
}

// streams measures so many answers that are open at the same moment.
func (s *peerStage) streams(ctx context.Context, count int) ([]peerFigure, error) {
	if err := s.warm(ctx); err != nil {
		return nil, err
	}
	met, release := s.model.expect(count, 0)
	defer release()
	look := startPeerSampler()
	before, began := cpuBelow(), time.Now()
	ended := make(chan error, 1)
	go func() { ended <- s.several(ctx, count) }()
	var open time.Duration
	select {
	case <-met:
		open = time.Since(began)
		look.look() // with all of them open, whatever the sampler's pace
		release()
	case err := <-ended:
		look.stop()
		return nil, errors.Join(errors.New("it ended before all streams were open"), err)
	}
	err := <-ended
	cpu := cpuBelow() - before
	rss, pss := look.stop()
	if _, seen := s.model.seen(); err != nil || seen != nil {
		return nil, errors.Join(err, seen)
	}
	return []peerFigure{
		{"all streams open", "ms", millis(open)},
		{"cpu", "s", cpu},
		{"peak RSS, summed", "MiB", inMiB(rss)},
		{"peak PSS", "MiB", inMiB(pss)},
	}, nil
}

// rounds measures one turn with so many commands, one after another.
func (s *peerStage) rounds(ctx context.Context, count int) ([]peerFigure, error) {
	if err := s.warm(ctx); err != nil {
		return nil, err
	}
	s.model.expect(0, count)
	look := startPeerSampler()
	before, began := cpuBelow(), time.Now()
	err := s.several(ctx, 1)
	wall, cpu := time.Since(began), cpuBelow()-before
	rss, pss := look.stop()
	if _, seen := s.model.seen(); err != nil || seen != nil {
		return nil, errors.Join(err, seen)
	}
	return []peerFigure{
		{"wall", "ms", millis(wall)},
		{"cpu", "s", cpu},
		{"peak RSS, summed", "MiB", inMiB(rss)},
		{"peak PSS", "MiB", inMiB(pss)},
	}, nil
}

// peerSampler looks at everything below this process until it is stopped.
type peerSampler struct {
	quit, done chan struct{}
	mu         sync.Mutex
	rss, pss   int64 // most seen
}

func startPeerSampler() *peerSampler {
	p := &peerSampler{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			p.look()
			select {
			case <-tick.C:
			case <-p.quit:
				return
			}
		}
	}()
	return p
}

func (p *peerSampler) look() {
	rss, pss := sizeBelow()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rss, p.pss = max(p.rss, rss), max(p.pss, pss)
}

func (p *peerSampler) stop() (rss, pss int64) {
	close(p.quit)
	<-p.done
	return p.rss, p.pss
}
