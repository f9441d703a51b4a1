package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agent/internal/fakemodel"
)

// modelWord, as the first argument, makes this program the model server.
const modelWord = "fakemodel"

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case modelWord:
			os.Exit(fakemodel.Main(os.Args[2:]))
		case probedWord:
			os.Exit(probed(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		case noiseWord:
			os.Exit(noise(os.Args[2:], os.Stdout))
		case peerWord:
			os.Exit(peerMain(os.Stdin, os.Stdout, os.Stderr))
		case playWord:
			os.Exit(play(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// workload is one of the things that can be measured. run is called once for
// each fresh-process run.
type workload struct {
	id   string
	run  func(*bench, context.Context) error
	long bool // takes many minutes, or needs what few have: only when named, and then once
}

var workloads = []workload{
	{id: "W1", run: (*bench).stream},
	{id: "W2", run: (*bench).lifecycle},
	{id: "W3", run: (*bench).socketLifecycle},
	{id: "W4", run: (*bench).smallTurns},
	{id: "W5", run: (*bench).longHistory},
	{id: "W6", run: (*bench).fleet},
	{id: "W7", run: (*bench).sustained, long: true},
	{id: "W8", run: (*bench).growth},
	{id: "W9", run: (*bench).bursts},
	{id: "W10", run: (*bench).slowDisk},
	{id: "W11", run: (*bench).soak, long: true},
	{id: "W12", run: (*bench).longTurn},
	{id: "interrupts", run: (*bench).interrupts},
	{id: "small", run: (*bench).small},
	{id: "start", run: (*bench).startUp},
	{id: "sonny", run: (*bench).screen},
	{id: "peers", run: (*bench).comparison, long: true},
}

// usual are the ids of all that run when none is named.
func usual() string {
	var ids []string
	for _, w := range workloads {
		if !w.long {
			ids = append(ids, w.id)
		}
	}
	return strings.Join(ids, ",")
}

// bench is one invocation.
type bench struct {
	agent  string // the binary that is measured
	sonny  string // the other one
	self   string // this program, which also plays the model server
	dir    string // everything it makes
	family string
	quick  bool

	sustain time.Duration // W7
	soakFor time.Duration // W11

	peers []peer // what ours is compared with

	report *report
	log    io.Writer
	stores map[string]string // filled stores by what they hold
}

// run is the program. Its status is 0, 1 for a workload that failed or, with
// -check, for a missed target, and 2 for a wrong line.
func run(ctx context.Context, args []string, out, log io.Writer) int {
	b := &bench{log: log, report: &report{}, stores: map[string]string{}, peers: knownPeers}
	var names, jsonFile, dir string
	var runs int
	var check, keep bool
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(log)
	f.StringVar(&names, "w", usual(), "`workloads` to run, with commas between; W7, W11 and peers run only when they are named")
	f.IntVar(&runs, "runs", 3, "fresh-process runs of each but W7, W11 and peers; the table shows their medians")
	f.StringVar(&b.family, "family", "responses", "what the provider speaks: responses, responses-ws, anthropic or chat")
	f.StringVar(&b.agent, "agent", "", "the agent `binary` to measure; built from this module by default")
	f.StringVar(&b.sonny, "sonny", "", "the sonny `binary` to measure; built from this module by default")
	f.StringVar(&jsonFile, "json", "", "`file` for every figure of every run")
	f.StringVar(&dir, "dir", "", "`folder` for the stores, on the disk that is to be measured; default a temporary one")
	f.DurationVar(&b.sustain, "sustain", 5*time.Minute, "how long W7 runs with nothing pruned; a third of it more with eight kept turns")
	f.DurationVar(&b.soakFor, "soak", time.Hour, "how long W11 runs")
	f.BoolVar(&check, "check", false, "end with status 1 when a target is missed")
	f.BoolVar(&b.quick, "quick", false, "small workloads, to see that the program works; compared with nothing")
	f.BoolVar(&keep, "keep", false, "leave the stores and logs in the folder")
	if err := f.Parse(args); err != nil {
		return 2
	}
	chosen, err := choose(names)
	if err == nil && (runs < 1 || f.NArg() > 0 || !slices.Contains([]string{"responses", "responses-ws", "anthropic", "chat"}, b.family)) {
		err = fmt.Errorf("a wrong number of runs, an unknown family or an argument too many; see -help")
	}
	if err != nil {
		fmt.Fprintln(log, "bench:", err)
		return 2
	}
	if err := b.place(dir); err != nil {
		fmt.Fprintln(log, "bench:", err)
		return 1
	}
	if !keep {
		defer os.RemoveAll(b.dir)
	}
	if err := b.measure(ctx, chosen, runs); err != nil {
		fmt.Fprintln(log, "bench:", err)
		return 1
	}
	return b.finish(out, jsonFile, check)
}

// place settles where everything is, by absolute paths: the programs that are
// measured run in folders of their own.
func (b *bench) place(dir string) (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	for _, binary := range []*string{&b.agent, &b.sonny} {
		if *binary == "" {
			continue
		}
		if *binary, err = filepath.Abs(*binary); err != nil {
			return err
		}
	}
	if b.dir, err = os.MkdirTemp(dir, "agent-bench-"); err != nil {
		return err
	}
	b.dir, err = filepath.Abs(b.dir)
	return err
}

// choose finds workloads by their ids.
func choose(names string) ([]workload, error) {
	var chosen []workload
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(workloads, func(w workload) bool { return strings.EqualFold(w.id, strings.TrimSpace(name)) })
		if i < 0 {
			return nil, fmt.Errorf("there is no workload %q", name)
		}
		chosen = append(chosen, workloads[i])
	}
	return chosen, nil
}

// measure runs the workloads. A run that fails ends everything: what is left
// would be no comparison.
func (b *bench) measure(ctx context.Context, chosen []workload, runs int) error {
	if b.agent == "" {
		b.agent = b.dir + "/agent"
		if err := build(ctx, b.agent, "agent/cmd/agent"); err != nil {
			return err
		}
	}
	b.report.Runs, b.report.Family = runs, b.family
	if err := b.report.describe(ctx, b.agent, b.dir); err != nil {
		return err
	}
	for _, w := range chosen {
		if w.long {
			runs = 1
		}
		for n := range runs {
			fmt.Fprintf(b.log, "%s: run %d of %d\n", w.id, n+1, runs)
			if err := w.run(b, ctx); err != nil {
				return fmt.Errorf("%s, run %d: %w", w.id, n+1, err)
			}
		}
	}
	return nil
}

// finish prints the table and writes the file.
func (b *bench) finish(out io.Writer, jsonFile string, check bool) int {
	if !b.quick {
		if err := errors.Join(b.report.compare(targets), b.report.refer(references)); err != nil {
			fmt.Fprintln(b.log, "bench:", err)
			return 1
		}
	}
	b.report.print(out)
	if jsonFile != "" {
		if err := b.report.write(jsonFile); err != nil {
			fmt.Fprintln(b.log, "bench:", err)
			return 1
		}
	}
	if check && b.report.missed() > 0 {
		return 1
	}
	return 0
}
