package cli

import (
	"fmt"
	"maps"
	"slices"

	"agent/client/modelsfile"
	"agent/client/termsafe"
	"agent/internal/place"
	"agent/internal/sonny/connect"

	"github.com/spf13/cobra"
)

// modelsVerb is sonny models: the models file, which agent shares (sonny.md 21).
func (a *app) modelsVerb() *cobra.Command {
	discover := false
	cmd := &cobra.Command{
		Use: "models", Short: "The models that can be picked; --discover asks the providers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if discover {
				return a.discoverModels(cmd)
			}
			return a.listModels()
		},
	}
	cmd.Flags().BoolVar(&discover, "discover", false, "ask every provider, and write ~/.agent/models anew")
	cmd.Flags().BoolVar(&a.json, "json", false, "JSON")
	return cmd
}

func (a *app) listModels() error {
	path, err := modelsfile.DefaultPath()
	if err != nil {
		return err
	}
	list, there, err := modelsfile.Read(path)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(append([]modelsfile.Model{}, list...))
	}
	if !there {
		a.notice("there is no " + path + ": sonny models --discover writes it")
	}
	rows := make([][]string, len(list))
	for i, m := range list {
		rows[i] = []string{m.ID, m.Note}
	}
	a.table([]string{"MODEL", "NOTE"}, rows)
	return nil
}

// shownDiscovered is what came of one provider.
type shownDiscovered struct {
	Provider string `json:"provider"`
	Models   int    `json:"models"`
	Error    string `json:"error,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// discoverModels writes the list anew. The file is read first: one that cannot be read
// is a person's work, and is not replaced.
func (a *app) discoverModels(cmd *cobra.Command) error {
	path, err := modelsfile.DefaultPath()
	if err != nil {
		return err
	}
	old, _, err := modelsfile.Read(path)
	if err != nil {
		return err
	}
	w, err := a.lookToShow(cmd)
	if err != nil {
		return err
	}
	link, err := connect.Open(cmd.Context(), w.link())
	if err != nil {
		return err
	}
	defer link.Close()
	lists, err := link.ProviderModels(cmd.Context())
	if err != nil {
		return err
	}
	text, results, err := modelsfile.Discover(old, lists.Providers)
	if err != nil {
		return err
	}
	if _, err := place.MakeAgentDir(); err != nil {
		return err
	}
	if err := modelsfile.Write(path, text); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	out := []shownDiscovered{}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		out = append(out, shownDiscovered{name, r.Models, string(r.Error), r.Detail})
		says := fmt.Sprintf("%d models", r.Models)
		if r.Error != "" {
			says = "its lines stay: " + string(r.Error) + " " + r.Detail
		}
		rows = append(rows, []string{name, says})
	}
	if a.json {
		return a.printJSON(out)
	}
	a.table([]string{"PROVIDER", ""}, rows)
	a.notice("written: " + termsafe.OneLine(path))
	return nil
}
