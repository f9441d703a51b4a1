package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
)

// report is everything that was found, and what the file holds.
type report struct {
	Time    time.Time `json:"time"`
	Machine host      `json:"machine"`
	Agent   string    `json:"agent"`  // its version
	Commit  string    `json:"commit"` // of the folder bench ran in, "" when unknown
	Go      string    `json:"go"`
	Family  string    `json:"family"`
	Runs    int       `json:"runs"`
	Figures []*figure `json:"figures"`
	Notes   []string  `json:"notes,omitempty"` // versions of peers, and what could not be measured of them
}

// host is where it was measured.
type host struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel"`
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"`
	Memory int64  `json:"memory_bytes"`
	Disk   string `json:"disk"` // kind of file system the stores are on
}

// figure is one number, with what each run found.
type figure struct {
	Workload  string    `json:"workload"`
	Case      string    `json:"case"`
	Name      string    `json:"figure"`
	Unit      string    `json:"unit"`
	Values    []float64 `json:"values"`
	Median    float64   `json:"median"`
	Reference string    `json:"reference,omitempty"` // what the runtime document measured
	Target    string    `json:"target,omitempty"`
	Verdict   string    `json:"verdict,omitempty"` // OK or MISS
}

// describe fills in what does not change from run to run.
func (r *report) describe(ctx context.Context, agent, dir string) error {
	version, err := exec.CommandContext(ctx, agent, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", agent, err)
	}
	r.Time, r.Go = time.Now().UTC().Truncate(time.Second), runtime.Version()
	r.Agent = strings.TrimSpace(string(version))
	if commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		r.Commit = strings.TrimSpace(string(commit))
	}
	r.Machine = host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Disk: diskOf(dir)}
	r.Machine.CPU, r.Machine.Memory = machine()
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		r.Machine.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	return nil
}

// diskOf names the file system of a folder by its type's number, or its name
// where the system has one.
func diskOf(dir string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return ""
	}
	return diskName(&fs)
}

// add takes one run's number.
func (r *report) add(workload, kase, name, unit string, value float64) {
	for _, f := range r.Figures {
		if f.Workload == workload && f.Case == kase && f.Name == name {
			f.Values = append(f.Values, value)
			f.Median = median(f.Values)
			return
		}
	}
	r.Figures = append(r.Figures, &figure{
		Workload: workload, Case: kase, Name: name, Unit: unit,
		Values: []float64{value}, Median: value,
	})
}

// compare gives each figure that has a target its verdict, by the median. A
// target of a workload that ran, for which there is no figure, is an error: it
// would be met by silence.
func (r *report) compare(targets []target) error {
	for _, t := range targets {
		ran, found := false, false
		for _, f := range r.Figures {
			ran = ran || f.Workload == t.workload
			if t.workload != f.Workload || t.kase != f.Case || t.name != f.Name {
				continue
			}
			found = true
			f.Target, f.Verdict = t.String(), "OK"
			if !t.met(f.Median) {
				f.Verdict = "MISS"
			}
		}
		if ran && !found {
			return fmt.Errorf("%s, %s: no %s was measured, which has a target", t.workload, t.kase, t.name)
		}
	}
	return nil
}

// note takes a line for below the table.
func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// missed counts the targets that were not met.
func (r *report) missed() (n int) {
	for _, f := range r.Figures {
		if f.Verdict == "MISS" {
			n++
		}
	}
	return n
}

// print writes the table.
func (r *report) print(out io.Writer) {
	m := r.Machine
	fmt.Fprintf(out, "%s, %s %s, %s, %d CPUs (%s), %.1f GiB, %s; family %s; medians of %d runs\n\n", r.Agent, m.OS, m.Arch,
		m.Kernel, m.CPUs, m.CPU, float64(m.Memory)/(1<<30), m.Disk, r.Family, r.Runs)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WORKLOAD\tCASE\tFIGURE\tMEDIAN\tUNIT\tLOWEST\tHIGHEST\tREFERENCE\tTARGET\tVERDICT")
	for _, f := range r.Figures {
		low, high := f.Values[0], f.Values[0]
		for _, v := range f.Values {
			low, high = min(low, v), max(high, v)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Workload, f.Case, f.Name,
			number(f.Median), f.Unit, number(low), number(high), f.Reference, f.Target, f.Verdict)
	}
	t.Flush()
	for i, note := range r.Notes {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, note)
	}
	if n := r.missed(); n > 0 {
		fmt.Fprintf(out, "\n%d missed\n", n)
	}
}

// write puts the report into a file.
func (r *report) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// number prints a value with three digits or so.
func number(v float64) string {
	switch {
	case v == float64(int64(v)):
		return fmt.Sprintf("%d", int64(v))
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
