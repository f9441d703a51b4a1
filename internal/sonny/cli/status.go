package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"agent/internal/sonny/connect"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/live"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// statusVerb is sonny status: how things stand, once. It starts no daemon and no turn.
func (a *app) statusVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "The daemon, sessions, approvals and plan, as they are now", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.status(cmd) },
	}
	cmd.Flags().BoolVar(&a.json, "json", false, "one JSON object")
	return cmd
}

// shownStatus is the answer with --json.
type shownStatus struct {
	Daemon    shownDaemon                `json:"daemon"`
	Sessions  shownCounts                `json:"sessions"`
	Approvals []shownApproval            `json:"approvals"`
	Plan      map[string]json.RawMessage `json:"plan"` // by provider

	explicit bool // the line or the environment names a socket
}

type shownDaemon struct {
	Running   bool                `json:"running"`
	PID       int                 `json:"pid,omitempty"`
	Version   string              `json:"version,omitempty"`
	Store     string              `json:"store"`
	Socket    string              `json:"socket"`
	Paused    *protocol.PauseInfo `json:"paused"`
	Sandbox   string              `json:"sandbox,omitempty"` // what confines; "" where nothing does
	Providers []string            `json:"providers"`
	Approvers []string            `json:"approvers"` // tags that are served
	Missing   []string            `json:"missing"`   // what it does not protect
}

type shownCounts struct {
	All      int `json:"all"`
	Working  int `json:"working"`
	Waiting  int `json:"waiting"`
	NeedsYou int `json:"needs_you"`
	Failed   int `json:"failed"`
}

type shownApproval struct {
	Bot    string   `json:"bot"`
	Turn   int64    `json:"turn"`
	CallID string   `json:"call_id"`
	Tool   string   `json:"tool"`
	Gates  []string `json:"gates"`
}

func (a *app) status(cmd *cobra.Command) error {
	w, link, err := a.reachRunning(cmd)
	if w == nil {
		return err
	}
	s := &shownStatus{
		Daemon:    shownDaemon{Store: w.target.Store, Socket: w.target.Socket, Providers: []string{}, Approvers: []string{}, Missing: []string{}},
		Approvals: []shownApproval{}, Plan: map[string]json.RawMessage{}, explicit: w.socket,
	}
	switch {
	case errors.Is(err, protocol.DaemonUnavailable):
	case err != nil:
		return err
	default:
		defer link.Close()
		if err := a.ask(cmd, w, link, s); err != nil {
			return err
		}
	}
	if a.json {
		return a.printWire(s)
	}
	a.sayStatus(s)
	return nil
}

// ask fills the status in.
func (a *app) ask(cmd *cobra.Command, w *around, link *connect.Link, s *shownStatus) error {
	stats, err := link.Stats(cmd.Context())
	if err != nil {
		return err
	}
	world, err := worldOf(cmd.Context(), link)
	if err != nil {
		return err
	}
	found, err := a.found(w, link, world)
	if err != nil {
		return err
	}
	d := &s.Daemon
	d.Running, d.PID, d.Version, d.Paused = true, link.Ready.PID, link.Ready.Version, stats.Paused
	if k := link.Ready.Sandbox.Kind; k != nil {
		d.Sandbox = *k
	}
	d.Providers = slices.Sorted(maps.Keys(link.Ready.Providers))
	d.Approvers = append(d.Approvers, stats.Approvers...)
	for _, m := range link.Missing {
		d.Missing = append(d.Missing, m.Path)
	}
	for name, p := range stats.Providers {
		if len(p.Plan) > 0 && string(p.Plan) != "null" {
			s.Plan[name] = p.Plan
		}
	}
	for call, err := range link.Approvals(cmd.Context(), everyApproval) {
		if err != nil {
			return err
		}
		s.Approvals = append(s.Approvals, shownApproval{call.Bot, call.Turn, call.CallID, call.Name, call.Gates})
	}
	s.Sessions = counted(found, world)
	return nil
}

func counted(found []lead.Found, world *live.World) (n shownCounts) {
	for i := range found {
		if found[i].Gone() || found[i].Archived {
			continue
		}
		n.All++
		switch b := world.Bot(found[i].Record.Name); b.State(false) {
		case live.Working, live.HeldUp:
			n.Working++
		case live.Waiting, live.Queued:
			n.Waiting++
		case live.NeedsYou:
			n.NeedsYou++
		case live.Failed:
			n.Failed++
		}
	}
	return n
}

func (a *app) sayStatus(s *shownStatus) {
	d := &s.Daemon
	line := func(name, value string) { a.say("%-10s %s", name, value) }
	if !d.Running && s.explicit {
		line("daemon", "none listens at the socket that is named, and none is started there; agent serve --socket starts one")
		line("socket", d.Socket)
		return
	}
	if !d.Running {
		line("daemon", "does not run; sonny starts it when it is needed")
		line("store", d.Store)
		return
	}
	line("daemon", fmt.Sprintf("runs, version %s, process %d", d.Version, d.PID))
	line("store", d.Store)
	if d.Paused != nil {
		line("paused", strings.TrimPrefix(fault.PausedBy(d.Paused), "paused ")+"; sonny unpause lifts it")
	}
	line("providers", strings.Join(d.Providers, ", "))
	n := s.Sessions
	line("sessions", fmt.Sprintf("%d: %d working, %d waiting, %d need you, %d failed", n.All, n.Working, n.Waiting, n.NeedsYou, n.Failed))
	line("approvals", strconv.Itoa(len(s.Approvals)))
	for _, c := range s.Approvals {
		line("", c.Bot+"  "+c.Tool+"  waits for "+strings.Join(c.Gates, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Plan)) {
		line("plan", name+"  "+string(s.Plan[name]))
	}
	for _, path := range d.Missing {
		line("warning", "the daemon does not protect "+path+"; end it with agent shutdown, and sonny starts it anew")
	}
}
