package lead

import (
	"fmt"
	"slices"

	"agent/protocol"
)

// Row is a named preset of who is asked (sonny.md 4).
type Row string

// The rows. Deny is of headless runs alone: a sandbox without a gate.
const (
	Auto   Row = "auto"
	Manual Row = "manual"
	Look   Row = "look"
	Full   Row = "full"
	Deny   Row = "deny"
)

// Rows are those of the screen, in the order that Shift+Tab steps through them; full
// comes by its name alone.
func Rows() []Row { return []Row{Auto, Manual, Look, Full} }

// Next is the row that Shift+Tab steps to.
func (r Row) Next() Row {
	switch r {
	case Auto:
		return Manual
	case Manual:
		return Look
	}
	return Auto
}

// Gated reports whether calls that leave the sandbox wait for a verdict, and Tag who
// gives it.
func (r Row) Gated() bool { return r == Auto || r == Manual }

// Tag is the gate's tag: the row's name.
func (r Row) Tag() string { return string(r) }

// Sandbox is the mode that goes with the row where none is named.
func (r Row) Sandbox() string {
	switch r {
	case Look:
		return protocol.SandboxReadOnly
	case Full:
		return protocol.SandboxFull
	}
	return protocol.SandboxWorkspace
}

// ParseRow reads a row's name.
func ParseRow(name string) (Row, error) {
	if r := Row(name); slices.Contains(Rows(), r) {
		return r, nil
	}
	return "", protocol.Fail(protocol.UsageError, fmt.Sprintf("%q is no row: auto, manual, look or full", name))
}

// OpenWord is what the person types on the screen before nothing is confined any more
// (sonny.md 4).
const OpenWord = "full"

// OpenWarning is what the person is told before OpenWord is asked for: of a row, or of a
// sandbox, that confines nothing. "" where both confine or are "", and no word is needed.
func OpenWarning(row Row, sandbox string) string {
	switch {
	case row == Full:
		return "Row full: nothing is confined and nobody is asked. Type " + OpenWord + " to take it."
	case sandbox == protocol.SandboxFull:
		return sandbox + ": its commands run with all your permissions. Type " + OpenWord + " to take it."
	}
	return ""
}

// Confinement is who is asked about a bot's calls and what its sandbox allows: what
// the footer shows, whoever made the bot and however.
type Confinement struct {
	Gate    Row    // Auto or Manual; "" without a gate
	Other   string // the tags of gates that are no row's, joined; "" for none
	Sandbox string
	Network bool
	Sockets []string // reachable with the network off
}

// Confined reads a bot's record.
func Confined(b *protocol.Bot) Confinement {
	c := Confinement{Sandbox: b.Sandbox, Network: b.Network, Sockets: b.UnixSockets}
	if c.Sandbox == "" {
		c.Sandbox = protocol.SandboxFull
	}
	for _, gate := range b.Gates {
		switch row := Row(gate.Tag); {
		case row.Gated() && c.Gate == "":
			c.Gate = row
		case c.Other == "":
			c.Other = gate.Tag
		default:
			c.Other += "+" + gate.Tag
		}
	}
	return c
}

// Confinement is what the lead will have.
func (p *Plan) Confinement() Confinement {
	c := Confinement{Sandbox: p.Sandbox(), Network: p.Settings.Network, Sockets: p.Settings.UnixSockets}
	if p.Settings.Row.Gated() {
		c.Gate = p.Settings.Row
	}
	return c
}

// Open reports whether commands run in no sandbox.
func (c Confinement) Open() bool { return c.Sandbox == protocol.SandboxFull }

// Row is the row that this is, as far as it is one of them: "" for parts that were set
// apart.
func (c Confinement) Row() Row {
	switch {
	case c.Other != "":
		return ""
	case c.Gate != "" && c.Sandbox == protocol.SandboxWorkspace:
		return c.Gate
	case c.Gate == "" && c.Sandbox == protocol.SandboxReadOnly:
		return Look
	case c.Gate == "" && c.Open():
		return Full
	}
	return ""
}

// Words are the footer's, from the left: who is asked, the sandbox, the network.
// Warn tells that nothing confines the bot.
func (c Confinement) Words() (words []string, warn bool) {
	asks := string(c.Gate)
	switch {
	case c.Other != "" && asks != "":
		asks += "+" + c.Other
	case c.Other != "":
		asks = c.Other
	case c.Gate == Manual && c.Open():
		asks = "asks everything"
	case c.Row() == Look:
		asks = "look"
	case c.Row() == Full:
		asks = "full"
	case asks == "":
		asks = "no gate"
	}
	if c.Open() {
		return []string{asks, "no sandbox"}, true
	}
	words = []string{asks, c.Sandbox}
	switch {
	case c.Network:
		words = append(words, "net on")
	case len(c.Sockets) > 0:
		words = append(words, fmt.Sprintf("net off, %d sockets", len(c.Sockets)))
	default:
		words = append(words, "net off")
	}
	return words, false
}

// ungated are the tools whose calls wait for nobody (sonny.md 4).
var ungated = []string{
	"read", "history", "wait", "note", "web_fetch", "web_search",
	"memory", "show_agent", "ask_person", "plan", "pause",
}

// gatedTools are those of a bot's tools that its gate names.
func gatedTools(tools []string) []string {
	return slices.DeleteFunc(slices.Clone(tools), func(name string) bool { return slices.Contains(ungated, name) })
}

// Gates are those of a row for a bot with these tools.
func (r Row) Gates(tools []string, s *Settings) []protocol.Gate {
	if !r.Gated() {
		return []protocol.Gate{}
	}
	gate := protocol.Gate{Tag: r.Tag(), Tools: gatedTools(tools)}
	if ms := s.expiryMS(r); ms > 0 {
		gate.ExpireMS = &ms
	}
	if len(gate.Tools) == 0 {
		return []protocol.Gate{}
	}
	return []protocol.Gate{gate}
}
