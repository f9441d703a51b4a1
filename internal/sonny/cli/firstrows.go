package cli

import (
	"cmp"
	"context"
	"path/filepath"

	"agent/internal/sonny/config"
	"agent/internal/sonny/doctor"
	"agent/internal/sonny/fault"
	"agent/internal/sonny/lead"
	"agent/internal/sonny/notify"
	"agent/internal/sonny/screen"
	"agent/internal/sonny/screen/ahead"
	"agent/internal/sonny/screen/human"
)

// passthrough is what lets sequences through tmux.
const passthrough = "set -g allow-passthrough on"

// firstRows fills in what the first-run screen shows besides the provider: what is set
// already, and how each is changed (sonny.md 19.1, 2 to 6).
func (a *app) firstRows(w *around, f *ahead.FirstRun, told notify.Terminal) error {
	list, err := models()
	if err != nil {
		return err
	}
	f.Models, f.Efforts = list, config.Words("effort")
	f.Suggest = func(models []string) string { return lead.Suggest(models, nil) }
	f.Choice = ahead.Choice{Model: w.config.Model, Effort: w.config.Effort, Always: true}
	if f.Choice.Model == "" {
		f.Choice.Model = cmp.Or(w.state.Model, f.Suggest(list))
	}
	f.KeepModel, f.TourModel = w.keepChoice, tourModel
	f.Folder = firstFolder(w)
	for _, row := range config.Words("row") {
		f.Rows = append(f.Rows, ahead.Fact{Name: row, Value: screen.Asks(row)})
	}
	f.Sandbox, f.Mend = a.sandboxChecks(w), doctor.SandboxCommand
	f.Set = func(key, value string) error {
		if err := config.Set(w.path, key, value, reads); err != nil {
			return err
		}
		return a.settings(w)
	}
	f.Held = func() (string, ahead.Extras) { return w.config.Row, w.extras() }
	f.TestNotify = func() (string, func(context.Context) error, error) { return w.testNotify(told) }
	return nil
}

// firstFolder is what the folder is, in a line.
func firstFolder(w *around) string {
	folder := human.Path(w.folder.Path)
	if w.folder.Repo.There() {
		folder += " · git"
	}
	return folder
}

// keepChoice keeps the model and the effort that were taken: in the settings for new folders,
// else what is remembered for the next lead.
func (w *around) keepChoice(c ahead.Choice) error {
	if !c.Always {
		w.state.Model, w.state.Effort = c.Model, c.Effort
		_, err := config.ChangeState(filepath.Join(w.sonny, "state.json"), func(s *config.State) { s.Model, s.Effort = c.Model, c.Effort })
		return err
	}
	if err := config.Set(w.path, "model", c.Model, nil); err != nil {
		return err
	}
	if c.Effort == "" {
		return nil
	}
	return config.Set(w.path, "effort", c.Effort, nil)
}

// sandboxChecks makes doctor's checks of the sandbox. They take up to a minute.
func (a *app) sandboxChecks(w *around) func(context.Context) []doctor.Check {
	folder := w.folder.Path
	return func(ctx context.Context) []doctor.Check {
		var o doctor.Options
		if err := a.examined(ctx, &o, folder); err != nil {
			return []doctor.Check{{ID: "sandbox.run", Status: doctor.Warn, Summary: "it could not be tried: " + fault.Verb.Told(err).Detail, Remedy: "sonny doctor tries it again"}}
		}
		return doctor.Sandbox(ctx, o)
	}
}

// extras are those that are on.
func (w *around) extras() ahead.Extras {
	n := notifications(&w.config.Notifications, w.tmux)
	e := ahead.Extras{Memory: w.config.Memory.Enabled, Notify: n.When != "never" && n.Route != notify.None, Route: string(n.Route)}
	if w.tmux.Inside && !w.tmux.Passthrough {
		e.Tmux = passthrough
	}
	return e
}

// testNotify sends a notification to try.
func (w *around) testNotify(told notify.Terminal) (said string, run func(context.Context) error, err error) {
	n := notifications(&w.config.Notifications, w.tmux)
	note, err := notify.Test(n.Route, n.Command)
	if err != nil {
		return "", nil, err
	}
	notify.Tell(told, note, n.Route, n.Sound)
	if n.Route.Program() {
		run = func(ctx context.Context) error { return note.Run(ctx, n.Route, n.Command) }
	}
	return "sent by " + string(n.Route), run, nil
}
