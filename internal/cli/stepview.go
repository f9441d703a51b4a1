package cli

import (
	"strings"

	"agent/client/termsafe"
	"agent/protocol"
)

// toolRequested shows a call that was handed to the program which serves it, as
// toolStarted does one that the daemon runs. A call that is handed over again
// was shown before.
func (p *pretty) toolRequested(e *protocol.Event) error {
	var t protocol.ToolRequested
	if err := e.Decode(&t); err != nil {
		return err
	}
	c := p.calls(e.Turn)
	line, first := c.planned[t.CallID]
	if !first {
		return nil
	}
	delete(c.planned, t.CallID)
	c.open++
	return p.dimLine(line)
}

// stepDecided shows what became of a step inside a served call, and who said so.
func (p *pretty) stepDecided(e *protocol.Event) error {
	var s protocol.StepDecided
	if err := e.Decode(&s); err != nil {
		return err
	}
	return p.dimLine("▸ " + stepName(s.Name, s.Step) + ": " + termsafe.OneLine(cutRunes(decided(&s), resultRunes)))
}

// decided is a decision in words.
func decided(s *protocol.StepDecided) string {
	text := s.Decision
	switch s.Decision {
	case protocol.Allow:
		text = "allowed"
	case protocol.Deny:
		text = "denied"
	}
	if s.OverturnedBy != nil {
		return text + ", a denial overturned by " + *s.OverturnedBy
	}
	var who, why []string
	for _, v := range s.Approvals {
		if v.By != nil {
			who = append(who, *v.By)
		}
		if v.Reason != "" {
			why = append(why, v.Reason)
		}
	}
	if len(who) > 0 {
		text += " by " + strings.Join(who, ", ")
	}
	if len(why) > 0 {
		text += ": " + strings.Join(why, "; ")
	}
	return text
}

// stepCompleted shows what the serving program says that a step came to.
func (p *pretty) stepCompleted(e *protocol.Event) error {
	var s protocol.StepCompleted
	if err := e.Decode(&s); err != nil {
		return err
	}
	text := stepName(s.Name, s.Step) + " done"
	if !s.OK {
		text = "[error] " + stepName(s.Name, s.Step) + " failed"
	}
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return p.line(indented(text))
}

// stepName is an action with the step of its call, for a line of its own.
func stepName(name, step string) string {
	return termsafe.OneLine(name) + " (step " + termsafe.OneLine(step) + ")"
}
