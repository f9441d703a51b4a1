package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"agent/internal/sonny/config"
	"agent/internal/sonny/connect"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/screen"
)

// planTask resolves a task that the person starts (sonny.md 10.1). What it says is what
// the person has to have seen: a setup, which runs without any sandbox.
func (a *app) planTask(w *around, link *connect.Link, kind lead.Kind) func(context.Context, string, string, string) (*screen.TaskPlan, error) {
	return func(ctx context.Context, bot, name, brief string) (*screen.TaskPlan, error) {
		record, err := link.Client.Inspect(ctx, bot)
		if err != nil {
			return nil, err
		}
		if err := lead.FolderLost(record); err != nil {
			return nil, err
		}
		now, err := a.newLead(w, kind)
		if err != nil {
			return nil, err
		}
		s := &lead.TaskStarter{
			Client: link.Client, Store: w.target.Store, Sonny: w.sonny, Lead: record, Project: lead.ProjectOf(bot),
			Settings: now.Settings, Compose: lead.TaskComposer(filepath.Dir(w.agent), texts(w.config)),
			Keys: lead.KeyVariables(link.Ready),
		}
		if record.Workspace != nil {
			if s.NoFolderFiles, err = config.OpenedWithout(w.trustFile(), *record.Workspace); err != nil {
				return nil, err
			}
		}
		s.Repo = w.folder.Repo
		start, err := s.Resolve(ctx, lead.TaskRequest{Name: name, Brief: brief})
		if err != nil {
			return nil, err
		}
		plan := &screen.TaskPlan{Bot: start.Bot, Do: func(ctx context.Context) error { _, err := start.Do(ctx); return err }}
		if start.Setup != nil {
			plan.Says = []string{fmt.Sprintf("%s runs first, as you and in no sandbox:", start.Setup.Path), ""}
			plan.Setup = string(start.Setup.Text)
		}
		return plan, nil
	}
}
