package cli

import (
	"fmt"
	"os"
	"slices"

	"agent/client/envfile"
	"agent/internal/sonny/config"

	"github.com/spf13/cobra"
)

// envVerb is sonny env: the person's hand on ~/.agent/env (sonny.md 21). No value of
// the file is ever printed.
func (a *app) envVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "env", Short: "Names and values of ~/.agent/env, where keys live",
		Args: cobra.NoArgs, RunE: needsOne,
	}
	list := &cobra.Command{
		Use: "list", Short: "List the names", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.envList() },
	}
	list.Flags().BoolVar(&a.json, "json", false, "one JSON list")
	cmd.AddCommand(
		list,
		&cobra.Command{
			Use: "set NAME", Short: "Give a name a value, typed unseen or read from standard input", Args: cobra.ExactArgs(1),
			RunE: personal(func(_ *cobra.Command, args []string) error { return a.envSet(args[0]) }),
		},
		&cobra.Command{
			Use: "unset NAME", Short: "Take a name out", Args: cobra.ExactArgs(1),
			RunE: personal(func(_ *cobra.Command, args []string) error { return a.envUnset(args[0]) }),
		},
	)
	return cmd
}

func (a *app) envList() error {
	path, err := envfile.DefaultPath()
	if err != nil {
		return err
	}
	vars, err := envfile.Read(path)
	if err != nil {
		return err
	}
	hidden := config.HiddenEnv(vars, os.Environ())
	if a.json {
		list := make([]shownName, len(vars))
		for i, v := range vars {
			list[i] = shownName{v.Name, slices.Contains(hidden, v.Name)}
		}
		return a.printJSON(list)
	}
	for _, v := range vars {
		line := v.Name
		if slices.Contains(hidden, v.Name) {
			line += "  (the environment has another value, which holds)"
		}
		fmt.Fprintln(a.stdout, line)
	}
	return nil
}

// shownName is one name of env list --json.
type shownName struct {
	Name   string `json:"name"`
	Hidden bool   `json:"hidden"` // the environment has another value, which holds
}

func (a *app) envSet(name string) error {
	path, err := envfile.DefaultPath()
	if err != nil {
		return err
	}
	if !envfile.ValidName(name) {
		return usagef("%q is no name of a variable", name)
	}
	value, err := a.unseen(name)
	if err != nil {
		return err
	}
	if err := config.SetEnv(path, name, value); err != nil {
		return err
	}
	return a.afterEnv()
}

func (a *app) envUnset(name string) error {
	path, err := envfile.DefaultPath()
	if err != nil {
		return err
	}
	there, err := config.UnsetEnv(path, name)
	switch {
	case err != nil:
		return err
	case !there:
		a.notice(name + " is not in " + path)
		return nil
	}
	return a.afterEnv()
}

// afterEnv says when the change counts.
func (a *app) afterEnv() error {
	a.notice("a daemon that runs keeps what it was started with; agent shutdown ends it, and the next one has the change")
	return nil
}
