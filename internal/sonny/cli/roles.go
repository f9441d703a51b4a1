package cli

import (
	"cmp"

	"agent/internal/place"
	"agent/internal/sonny/skill"

	"github.com/spf13/cobra"
)

// rolesVerb is sonny roles: what bots may be started as (sonny.md 24).
func (a *app) rolesVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "roles", Short: "What bots may be started as", Args: cobra.NoArgs, RunE: needsOne,
	}
	list := &cobra.Command{
		Use: "list", Short: "List the roles that concern this folder", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.rolesList(cmd) },
	}
	list.Flags().BoolVar(&a.json, "json", false, "one JSON list")
	cmd.AddCommand(list, &cobra.Command{
		Use: "edit NAME", Short: "Open your file of a role; for one of Sonny's own it is a copy the first time", Args: cobra.ExactArgs(1),
		RunE: personal(func(cmd *cobra.Command, args []string) error { return a.rolesEdit(cmd, args[0]) }),
	})
	return cmd
}

func (a *app) rolesList(cmd *cobra.Command) error {
	folder, err := a.locate(cmd.Context(), "")
	if err != nil {
		return err
	}
	home, err := place.Home()
	if err != nil {
		return err
	}
	rows, err := skill.Roles(folder.Path, home)
	if err != nil || a.json {
		return a.orJSON(rows, err)
	}
	for _, r := range rows {
		a.say("%-16s %-8s %s", r.Name, r.From, cmp.Or(r.Error, r.Description))
	}
	return nil
}

func (a *app) rolesEdit(cmd *cobra.Command, name string) error {
	home, err := place.Home()
	if err != nil {
		return err
	}
	path, made, err := skill.EditableRole(home, name)
	if err != nil {
		return err
	}
	if made {
		a.say("%s is a copy of Sonny's own role, and yours from now on", path)
	}
	return a.edit(cmd, path)
}
