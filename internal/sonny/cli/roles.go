package cli

import (
	"cmp"
	"os"
	"path/filepath"

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
		Use: "edit NAME", Short: "Open your file of a role; one of Sonny's own becomes yours once it is changed", Args: cobra.ExactArgs(1),
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

// rolesEdit opens the person's file of a role. For one of Sonny's own the editor gets a
// copy, which becomes the person's when something in it was changed.
func (a *app) rolesEdit(cmd *cobra.Command, name string) error {
	home, err := place.Home()
	if err != nil {
		return err
	}
	path, text, err := skill.EditableRole(home, name)
	if err != nil {
		return err
	}
	if text == "" {
		return a.edit(cmd, path)
	}
	now, err := a.editCopy(cmd, name+".md", text)
	if err != nil {
		return err
	}
	if now == text {
		a.say("nothing was changed: the role %s stays Sonny's own", name)
		return nil
	}
	if err := skill.KeepRole(home, name, now); err != nil {
		return err
	}
	a.say("%s is yours from now on, in the place of Sonny's own role", path)
	return nil
}

// maxRole bounds what is taken of an edited role, in bytes.
const maxRole = 1 << 20

// editCopy lets the person's editor at a copy of a text, in a private folder, and gives
// what the copy holds then.
func (a *app) editCopy(cmd *cobra.Command, name, text string) (string, error) {
	agent, err := place.MakeAgentDir()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(agent, "edit-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, name)
	if err := place.CreatePrivate(path, []byte(text)); err != nil {
		return "", err
	}
	if err := a.edit(cmd, path); err != nil {
		return "", err
	}
	now, _, err := place.ReadOwn(path, maxRole)
	return string(now), err
}
