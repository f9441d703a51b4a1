package host

import (
	"context"
	"fmt"
	"strings"

	"agent/internal/sonny/host/plans"
)

// planTool replaces or clears the plan that Sonny shows of the bot (sonny.md 29).
func planTool(c *Call) (any, error) {
	var a struct {
		Steps *[]plans.Step `json:"steps"`
		Clear bool          `json:"clear"`
	}
	if err := c.decode(&a); err != nil {
		return nil, err
	}
	if (a.Steps != nil) == a.Clear {
		return nil, invalid("steps", "give the steps, or clear true, and not both")
	}
	if a.Clear {
		return struct {
			Cleared bool `json:"cleared"`
		}{true}, plans.Clear(c.h.Store, c.BotID)
	}
	if len(*a.Steps) == 0 || len(*a.Steps) > plans.MaxSteps {
		return nil, invalid("steps", fmt.Sprintf("1 to %d", plans.MaxSteps))
	}
	for _, s := range *a.Steps {
		if strings.TrimSpace(s.Text) == "" || len(s.Text) > plans.MaxText {
			return nil, invalid("steps.text", fmt.Sprintf("1 to %d bytes", plans.MaxText))
		}
		if s.State != plans.Todo && s.State != plans.Doing && s.State != plans.Done {
			return nil, invalid("steps.state", "todo, doing or done")
		}
	}
	return struct {
		Steps int `json:"steps"`
	}{len(*a.Steps)}, plans.Write(c.h.Store, c.BotID, *a.Steps)
}

// sweepPlans takes the plans away of bots that are gone.
func (h *host) sweepPlans(ctx context.Context) error {
	there := map[int64]bool{}
	for b, err := range h.Client.Bots(ctx) {
		if err != nil {
			return err
		}
		there[b.ID] = true
	}
	return plans.Sweep(h.Store, func(bot int64) bool { return there[bot] })
}
