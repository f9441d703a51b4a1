package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// peer is a program that is compared with ours, in its one-shot form: a process
// for each prompt, which prints the answer and ends.
type peer struct {
	Name    string
	Program string            // as it is looked for on PATH
	Version []string          // arguments that make it print its version
	Args    []string          // arguments before the prompt
	Env     []string          // beyond HOME, PATH and LANG
	Files   map[string]string // its configuration, below HOME
}

// inModelURL is where a peer's arguments, variables and files get the model
// server's address.
const inModelURL = "{URL}"

// knownPeers are looked for on PATH.
var knownPeers = []peer{
	{
		Name: "codex", Program: "codex", Version: []string{"--version"},
		Args: []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"},
		Files: map[string]string{".codex/config.toml": `model = "fake"
model_provider = "bench"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.bench]
name = "bench"
base_url = "{URL}"
wire_api = "responses"
`},
	},
	{
		Name: "opencode", Program: "opencode", Version: []string{"--version"},
		Args: []string{"run", "--auto", "--model", "bench/fake"},
		Env:  []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
		Files: map[string]string{".config/opencode/opencode.json": `{"autoupdate":false,"share":"disabled",
"model":"bench/fake","small_model":"bench/fake","provider":{"bench":{"npm":"@ai-sdk/openai-compatible","name":"bench",
"options":{"baseURL":"{URL}","apiKey":"none"},"models":{"fake":{"name":"fake","limit":{"context":200000,"output":8000}}}}}}`},
	},
	{
		Name: "pi", Program: "pi", Version: []string{"--version"},
		Args: []string{"--offline", "--provider", "bench", "--model", "fake", "--print"},
		Env:  []string{"PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"},
		Files: map[string]string{".pi/agent/models.json": `{"providers":{"bench":{"baseUrl":"{URL}",
"api":"openai-completions","apiKey":"none","models":[{"id":"fake","contextWindow":200000}]}}}`},
	},
	{
		Name: "crush", Program: "crush", Version: []string{"--version"},
		Args: []string{"run", "--quiet"},
		Env:  []string{"CRUSH_DISABLE_PROVIDER_AUTO_UPDATE=1", "CRUSH_DISABLE_METRICS=1", "DO_NOT_TRACK=1"},
		Files: map[string]string{".config/crush/crush.json": `{"options":{"disable_provider_auto_update":true,"disable_metrics":true},
"models":{"large":{"provider":"bench","model":"fake"},"small":{"provider":"bench","model":"fake"}},
"providers":{"bench":{"type":"openai-compat","base_url":"{URL}","api_key":"none",
"models":[{"id":"fake","name":"fake","context_window":200000,"default_max_tokens":8000}]}}}`},
	},
}

// ours is the agent command in the same form: the first call starts the
// daemon, the others find it there.
func ours(agent string) peer {
	return peer{
		Name: "agent", Program: agent,
		Args: []string{"run", "--pretty", "--model", "bench/fake"},
		Env:  []string{"AGENT_PROVIDER=bench=responses," + inModelURL},
	}
}

// peerJob is what a measuring process is told: one program and one case.
type peerJob struct {
	Peer    peer
	Dir     string // an empty folder for homes and workspaces
	Streams int    // so many processes at once, whose answers wait for one another
	Rounds  int    // or so many rounds of one command in one process
	Repeats int    // or so many runs after the first, of a prompt and its answer
	Alone   bool   // it must find itself without any network but the loopback
	Probe   bool   // find out only whether it is alone
}

// caseName names the case in the table.
func (j peerJob) caseName() string {
	switch {
	case j.Streams > 0:
		return fmt.Sprintf("%s, %d streams", j.Peer.Name, j.Streams)
	case j.Rounds > 0:
		return fmt.Sprintf("%s, %d tool rounds", j.Peer.Name, j.Rounds)
	}
	return j.Peer.Name + ", start to answer"
}

// peerFigure is one number of a measuring process.
type peerFigure struct {
	Name, Unit string
	Value      float64
}

// peerCases are what is measured of each program.
func (b *bench) peerCases(p peer, alone bool) []peerJob {
	jobs := []peerJob{{Repeats: 5}, {Streams: 8}, {Streams: 32}, {Rounds: 20}}
	if b.quick {
		jobs = []peerJob{{Repeats: 1}, {Streams: 2}, {Rounds: 2}}
	}
	for i := range jobs {
		jobs[i].Peer, jobs[i].Alone = p, alone
	}
	return jobs
}

// comparison measures ours and the peers that are on PATH. A failure of ours is
// an error; one of a peer is a note in its place, and no figure.
func (b *bench) comparison(ctx context.Context) error {
	_, lonely := b.peerRun(ctx, peerJob{Probe: true, Alone: true})
	if len(b.peers) > 0 && lonely != nil {
		b.report.note("peers are not measured: no network namespace of their own can be had, so that they could reach other machines: %v", lonely)
	}
	for _, job := range b.peerCases(ours(b.agent), lonely == nil) {
		if err := b.peerMeasured(ctx, job); err != nil {
			return fmt.Errorf("%s: %w", job.caseName(), err)
		}
	}
	for _, p := range b.peers {
		program, err := exec.LookPath(p.Program)
		if err != nil {
			b.report.note("%s: not installed (no %s on PATH)", p.Name, p.Program)
			continue
		}
		if lonely == nil {
			p.Program = program
			b.peerCompared(ctx, p)
		}
	}
	return ctx.Err()
}

// peerCompared measures one peer.
func (b *bench) peerCompared(ctx context.Context, p peer) {
	version, err := b.peerVersion(ctx, p)
	if err != nil {
		b.report.note("%s: no figures: its version: %v", p.Name, err)
		return
	}
	b.report.note("%s: %s", p.Name, version)
	for _, job := range b.peerCases(p, true) {
		if err := b.peerMeasured(ctx, job); err != nil {
			b.report.note("%s: no figures: %v", job.caseName(), err)
		}
	}
}

// peerMeasured measures one case in a process of its own.
func (b *bench) peerMeasured(ctx context.Context, job peerJob) (err error) {
	fmt.Fprintln(b.log, "peers:", job.caseName())
	if job.Dir, err = os.MkdirTemp(b.dir, "peer-"); err != nil {
		return err
	}
	out, err := b.peerRun(ctx, job)
	if err != nil {
		return err
	}
	var figures []peerFigure
	if err := json.Unmarshal(out, &figures); err != nil {
		return err
	}
	for _, f := range figures {
		b.report.add("peers", job.caseName(), f.Name, f.Unit, f.Value)
	}
	return nil
}

// peerVersion asks a peer for its version, which is one of the things that
// make it call home.
func (b *bench) peerVersion(ctx context.Context, p peer) (string, error) {
	home, err := os.MkdirTemp(b.dir, "peer-")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, p.Program, p.Version...)
	cmd.Dir, cmd.Env = home, environment(home, p.Env...)
	isolate(cmd)
	var stray bytes.Buffer
	cmd.Stderr = &stray
	out, err := cmd.Output()
	text := strings.TrimSpace(string(out))
	if text == "" {
		text = strings.TrimSpace(stray.String()) // pi prints it there
	}
	if err == nil && text == "" {
		err = errors.New("it printed nothing")
	}
	line, _, _ := strings.Cut(text, "\n")
	return line, err
}

// peerRun starts a measuring process and gives what it printed.
func (b *bench) peerRun(ctx context.Context, job peerJob) ([]byte, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.self, peerWord)
	cmd.Stdin = bytes.NewReader(text)
	if job.Alone {
		isolate(cmd)
	}
	var stray bytes.Buffer
	cmd.Stderr = &stray
	out, err := cmd.Output()
	if err != nil && stray.Len() > 0 {
		err = errors.New(strings.TrimSpace(stray.String()))
	}
	return out, err
}

// configured writes a peer's files into a home and gives it with the address
// of the model server in its place.
func (p peer) configured(home, url string) (peer, error) {
	in := func(s string) string { return strings.ReplaceAll(s, inModelURL, url) }
	all := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, in(s))
		}
		return out
	}
	for name, text := range p.Files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return p, err
		}
		if err := os.WriteFile(path, []byte(in(text)), 0o600); err != nil {
			return p, err
		}
	}
	p.Args, p.Env = all(p.Args), all(p.Env)
	return p, nil
}
