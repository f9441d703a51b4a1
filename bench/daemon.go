package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"agent/client"
	"agent/protocol"
)

// daemon is a running agent serve and the one session that drives it.
type daemon struct {
	cmd     *exec.Cmd
	stray   bytes.Buffer
	ready   time.Duration // from its start to its ready line
	pipes   *pipes        // nil: it is on a socket
	control *pipes        // the standard input and output of one on a socket
	client  *client.Client
	session *client.Session
	watch   *watch
	sampler *sampler

	delivery protocol.Delivery // of what is submitted
}

// serveOptions say how a daemon is started.
type serveOptions struct {
	agent  string
	dir    string // its home, and where its socket goes
	store  string
	socket bool // else standard input and output
	flags  []string
	looks  looks

	env      []string // beyond its home and PATH
	provider string
	probed   *probedSpec // a probed daemon on a socket; flags do not count
	self     string      // the program that plays it
}

// environment is what the measured programs see: none of the caller's
// settings, so that figures compare.
func environment(home string, more ...string) []string {
	return append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C"}, more...)
}

// serve starts a daemon and waits for its ready line.
func serve(ctx context.Context, o serveOptions) (*daemon, error) {
	name, args := o.agent, append([]string{"serve", "--store", o.store, "--provider", o.provider}, o.flags...)
	socket := filepath.Join(o.dir, "sock")
	if o.socket {
		args = append(args, "--socket", socket)
	}
	if o.probed != nil {
		name, args = o.probed.command(o.self, o, socket)
	}
	d := &daemon{cmd: exec.Command(name, args...)}
	d.cmd.Env = environment(o.dir, o.env...)
	d.cmd.Stderr = &d.stray
	end, err := newPipes(d.cmd)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	end.started()
	d.client = &client.Client{Target: client.Target{Store: o.store, Socket: socket}, ReadyTimeout: time.Minute}
	if !o.socket {
		d.pipes = end
		d.client.Dial = func(context.Context, string) (net.Conn, error) { return end, nil }
	} else if d.control = end; end.line() != nil {
		return nil, d.failed(errors.New("it printed no ready line"))
	}
	if d.session, err = d.client.Session(ctx); err != nil {
		return nil, d.failed(err)
	}
	d.ready = time.Since(began)
	if got := d.session.Ready().Durability; got != "sqlite_full" {
		return nil, d.failed(fmt.Errorf("its durability is %q: no figure", got))
	}
	d.sampler = startSampler(d.cmd.Process.Pid, o.looks)
	return d, nil
}

// failed ends a daemon that could not be used and adds what it said.
func (d *daemon) failed(err error) error {
	d.cmd.Process.Kill()
	d.cmd.Wait()
	return fmt.Errorf("%w; the daemon said: %s", err, bytes.TrimSpace(d.stray.Bytes()))
}

// stop ends the daemon in good order, as its owner does by closing its input
// or as a signal does, and gives what was sampled of it.
func (d *daemon) stop() (usage, error) {
	u, err := d.sampler.stop()
	if d.watch != nil {
		err = errors.Join(err, d.watch.failure())
	}
	if d.pipes != nil {
		d.pipes.in.Close()
	} else {
		d.cmd.Process.Signal(os.Interrupt)
	}
	end := d.cmd.Wait()
	if d.control != nil {
		d.control.Close()
	}
	d.session.Close()
	d.client.Close()
	if end != nil {
		return u, errors.Join(err, fmt.Errorf("the daemon ended with %w: %s", end, d.stray.Bytes()))
	}
	return u, err
}

// kill ends the daemon with nothing done and gives what was sampled of it.
func (d *daemon) kill() (usage, error) {
	u, err := d.sampler.stop()
	d.cmd.Process.Kill()
	d.cmd.Wait() // its status is the signal's
	if d.control != nil {
		d.control.Close()
	}
	d.session.Close()
	d.client.Close()
	<-d.watch.ended
	return u, err
}

// stats reads the daemon's own counts.
func (d *daemon) stats(ctx context.Context) (s protocol.Stats, err error) {
	err = d.session.Do(ctx, "stats", &protocol.StatsRequest{}, &s)
	return s, err
}

// create makes a bot whose model is its name, so that the model server tells
// bots apart.
func (d *daemon) create(ctx context.Context, name, workspace string, tools ...string) error {
	return d.session.Do(ctx, "create", &protocol.Create{
		Bot: name, Model: "fake/" + name, Instructions: "Be brief.", Tools: tools, Workspace: workspace,
	}, nil)
}

// createMany makes the bots from one number up to another, as many at once as
// the daemon admits.
func (d *daemon) createMany(ctx context.Context, from, to int, workspace string, tools ...string) error {
	return some(from, to, func(n int) error { return d.create(ctx, botName(n), workspace, tools...) })
}

// turn is one finished turn as its client saw it.
type turn struct {
	first time.Duration // to the first text
	whole time.Duration // to turn_finished
}

// submit begins a bot's turn that plays a part; whoever wants to know of its
// end expects it first.
func (d *daemon) submit(ctx context.Context, bot, turn int, p part) (s protocol.Submitted, err error) {
	err = d.session.Do(ctx, "submit", &protocol.Submit{
		Bot: botName(bot), RequestID: requestOf(turn), Prompt: p.prompt(bot, turn, 0), Delivery: d.delivery,
	}, &s)
	return s, err
}

// completed waits for turns that are watched and makes sure of their ends.
func (d *daemon) completed(ctx context.Context, turns []*watched) error {
	return d.ended(ctx, turns, "completed")
}

func (d *daemon) ended(ctx context.Context, turns []*watched, status string) error {
	for _, t := range turns {
		select {
		case <-t.done:
		case <-d.watch.ended:
			return fmt.Errorf("the session ended during a turn: %w", d.watch.failure())
		case <-ctx.Done():
			return ctx.Err()
		}
		if t.end.Status != status {
			return fmt.Errorf("a turn ended %s, not %s: %s", t.end.Status, status, t.why)
		}
	}
	return nil
}

// run submits a prompt and waits for the end of its turn.
func (d *daemon) run(ctx context.Context, bot, request, prompt string) (turn, error) {
	return d.runSeen(ctx, d.watch.expect(bot), bot, request, prompt)
}

// runSeen is run for a turn that is watched already.
func (d *daemon) runSeen(ctx context.Context, w *watched, bot, request, prompt string) (turn, error) {
	began := time.Now()
	var s protocol.Submitted
	if err := d.session.Do(ctx, "submit", &protocol.Submit{Bot: bot, RequestID: request, Prompt: prompt, Delivery: d.delivery}, &s); err != nil {
		return turn{}, err
	}
	select {
	case <-w.done:
	case <-d.watch.ended:
		return turn{}, fmt.Errorf("the session ended during a turn: %w", d.watch.failure())
	case <-ctx.Done():
		return turn{}, ctx.Err()
	}
	if w.end.Status != "completed" {
		return turn{}, fmt.Errorf("turn %d of %s ended %s: %s", s.Turn, bot, w.end.Status, w.why)
	}
	t := turn{whole: w.finished.Sub(began)}
	if !w.first.IsZero() {
		t.first = w.first.Sub(began)
	}
	return t, nil
}
