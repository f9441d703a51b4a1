package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"agent/internal/sonny/screen/ahead"

	"agent/client"
	"agent/client/envfile"
	"agent/client/modelsfile"
	"agent/internal/sonny/config"
	"agent/internal/sonny/notify"
	"agent/internal/sonny/pen"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/term"
	"agent/internal/sonny/setup"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// setupVerb connects a provider: on the first-run screen, or by flags for scripts
// (sonny.md 2 and 19.1).
func (a *app) setupVerb() *cobra.Command {
	var provider, model, row string
	var stdin, yes bool
	cmd := &cobra.Command{
		Use: "setup", Short: "Connect a provider", Args: cobra.NoArgs,
		RunE: personal(func(cmd *cobra.Command, _ []string) error {
			w, err := a.look(cmd, "")
			if err != nil {
				return err
			}
			if provider == "" && model == "" && row == "" {
				return a.setupAlone(cmd.Context(), w)
			}
			return a.setupByFlags(cmd.Context(), w, provider, stdin, yes, map[string]string{"model": model, "row": row})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&provider, "provider", "", "anthropic, openai, openrouter or scripted")
	f.BoolVar(&stdin, "key-stdin", false, "read the provider's key from standard input")
	f.BoolVar(&yes, "yes", false, "keep a key that the provider refuses or could not be asked about")
	f.StringVar(&model, "model", "", "the `P/M` of new leads")
	f.Var(oneOf(&row, config.Words("row")...), "row", "who is asked: auto, manual, look, full")
	return cmd
}

// setupByFlags does what the flags say, and nothing when one is wrong.
func (a *app) setupByFlags(ctx context.Context, w *around, provider string, stdin, yes bool, set map[string]string) error {
	if model := set["model"]; model != "" {
		if err := config.Takes("model", model); err != nil {
			return err
		}
	}
	if provider != "" {
		if err := a.connectProvider(ctx, w, provider, stdin, yes); err != nil {
			return err
		}
	}
	for _, key := range []string{"model", "row"} {
		if set[key] == "" {
			continue
		}
		if err := config.Set(w.path, key, set[key], nil); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) connectProvider(ctx context.Context, w *around, name string, stdin, yes bool) error {
	if name == "scripted" {
		return w.tour()
	}
	p, ok := setup.ByName(name)
	if !ok {
		return usagef("no provider %q takes a key here: anthropic, openai, openrouter or scripted", name)
	}
	if !stdin {
		return usagef("--provider %s needs its key on standard input: --key-stdin", name)
	}
	typed, err := io.ReadAll(io.LimitReader(a.stdin, 8<<10))
	if err != nil {
		return err
	}
	key, err := setup.Clean(string(typed))
	if err != nil {
		return err
	}
	agent, err := agentProgram()
	if err != nil {
		return err
	}
	models, err := setup.Try(ctx, agent, pen.Scratch(w.sonny), p, key)
	if err != nil && !yes {
		return &protocol.Error{Code: coded(err).Code, Detail: coded(err).Detail + "; nothing was kept (--yes keeps the key all the same)", Cause: err}
	}
	if err := w.keep(p, key, models); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s: %d models\n", p.Name, len(models))
	return nil
}

// agentProgram is the agent beside this program, else the one that AGENT_BIN or PATH
// names.
func agentProgram() (string, error) {
	return (&client.Starter{}).Program()
}

// envPath is ~/.agent/env.
func (w *around) envPath() string { return filepath.Join(w.agent, "env") }

// keep writes a provider's key down, its models into the models file, and takes the tour
// out, which is for a home without a provider.
func (w *around) keep(p setup.Provider, key string, models []string) error {
	if err := config.SetEnv(w.envPath(), p.Variable, key); err != nil {
		return err
	}
	if err := w.endTour(); err != nil {
		return err
	}
	if len(models) > 0 {
		if err := keepModels(p.Name, models); err != nil {
			return err
		}
	}
	_, err := config.ChangeState(filepath.Join(w.sonny, "state.json"), func(s *config.State) { s.SetUp = true })
	if err != nil {
		return err
	}
	return nil
}

// keepModels replaces a provider's lines of the models file.
func keepModels(provider string, models []string) error {
	path, err := modelsfile.DefaultPath()
	if err != nil {
		return err
	}
	old, _, err := modelsfile.Read(path)
	if err != nil {
		return err
	}
	lists := map[string]protocol.ModelList{}
	for _, m := range append(idsOf(old), models...) {
		name, id, _ := strings.Cut(m, "/")
		if name == provider && !strings.HasPrefix(m, provider+"/") {
			continue
		}
		list := lists[name]
		list.Models = append(list.Models, protocol.ModelInfo{ID: id})
		lists[name] = list
	}
	text, _, err := modelsfile.Discover(old, lists)
	if err != nil {
		return err
	}
	return modelsfile.Write(path, text)
}

func idsOf(list []modelsfile.Model) (ids []string) {
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return ids
}

// scripted is the provider of the tour.
const (
	scripted  = "scripted"
	tourModel = "scripted/tour"
)

// tour sets the built-in tour up: words from a file, no model, no network.
func (w *around) tour() error {
	if err := config.SetEnv(w.envPath(), "AGENT_PROVIDER", scripted); err != nil {
		return err
	}
	return config.Set(w.path, "model", tourModel, nil)
}

// endTour takes it out again.
func (w *around) endTour() error {
	vars, err := envfile.Read(w.envPath())
	if err != nil {
		return err
	}
	for _, v := range vars {
		if v.Name != "AGENT_PROVIDER" || v.Value != scripted {
			continue
		}
		if _, err := config.UnsetEnv(w.envPath(), v.Name); err != nil {
			return err
		}
		if w.config.Model == tourModel {
			_, err := config.Unset(w.path, "model", nil)
			return err
		}
	}
	return nil
}

// hasProvider reports whether a daemon that is started now would have one.
func (w *around) hasProvider() (bool, error) {
	vars, err := envfile.Read(w.envPath())
	if err != nil {
		return false, err
	}
	return len(client.ImpliedProviders(envfile.Fill(os.Environ(), vars))) > 0, nil
}

// setupScreen shows the first-run screen. Leaving it without a provider is not_set_up. told is
// the terminal itself, by which a notification goes.
func (a *app) setupScreen(ctx context.Context, w *around, t ahead.Terminal, told notify.Terminal) error {
	agent, err := agentProgram()
	if err != nil {
		return err
	}
	m, _ := keys.New(w.config.TUI.Keys)
	first := &ahead.FirstRun{
		Term: t, Keys: m, Version: Version,
		Try: func(ctx context.Context, p setup.Provider, key string) ([]string, error) {
			return setup.Try(ctx, agent, pen.Scratch(w.sonny), p, key)
		},
		Keep:    w.keep,
		Bedrock: w.bedrock,
		Spec:    setup.Spec,
		Other:   w.other,
		Tour:    w.tour,
		SignIn:  func(ctx context.Context) error { return a.signIn(ctx, agent) },
	}
	if err := a.firstRows(w, first, told); err != nil {
		return err
	}
	done, err := first.Run(ctx)
	if err != nil || done {
		return err
	}
	if there, err := w.hasProvider(); err != nil || there {
		return err
	}
	return protocol.Fail("not_set_up", "no provider is connected; sonny setup asks again, and a key in the environment is taken too")
}

// setupAlone shows the first-run screen by itself.
func (a *app) setupAlone(ctx context.Context, w *around) error {
	if err := a.needsTerminal(); err != nil {
		return err
	}
	t, err := a.openTerminal(w)
	if err != nil {
		return err
	}
	defer w.guard.Watch()()
	defer w.guard.Catch()
	defer t.Close()
	a.looks(w, t, &w.config.TUI.Theme)(t.Background())
	asked, end := w.asking(t)
	defer end()
	w.tmux = term.AskTmux(ctx, os.Getenv)
	return a.setupScreen(ctx, w, asked, t)
}

// signIn runs agent login chatgpt on the terminal.
func (a *app) signIn(ctx context.Context, agent string) error {
	cmd := exec.CommandContext(ctx, agent, "login", "chatgpt")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// bedrock keeps the region of AWS credentials that the environment has.
func (w *around) bedrock(_, region string) error {
	if region == "" {
		return errors.New("the region is empty, such as eu-central-1")
	}
	if err := config.SetEnv(w.envPath(), "AWS_REGION", region); err != nil {
		return err
	}
	return w.addProvider("bedrock")
}

// other keeps an endpoint by its spec, and its key under the variable that it names.
func (w *around) other(spec, key string) error {
	if key != "" {
		variable, err := setup.Spec(spec)
		if err != nil {
			return err
		}
		if variable == "" {
			return errors.New("the spec names no variable for the key")
		}
		if err := config.SetEnv(w.envPath(), variable, key); err != nil {
			return err
		}
	}
	return w.addProvider(spec)
}

// addProvider adds a spec to AGENT_PROVIDER of the env file.
func (w *around) addProvider(spec string) error {
	if strings.ContainsAny(spec, " \t") || spec == "" {
		return errors.New("a spec is one word: NAME=FAMILY,URL,KEY_VARIABLE")
	}
	vars, err := envfile.Read(w.envPath())
	if err != nil {
		return err
	}
	specs := []string{}
	for _, v := range vars {
		if v.Name == "AGENT_PROVIDER" && v.Value != scripted {
			specs = strings.Fields(v.Value)
		}
	}
	return config.SetEnv(w.envPath(), "AGENT_PROVIDER", strings.Join(append(specs, spec), " "))
}
