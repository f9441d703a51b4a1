package cli

import (
	"fmt"
	"strings"

	"agent/internal/place"
	"agent/internal/sonny/config"
	"agent/internal/sonny/skill"

	"github.com/spf13/cobra"
)

// skillsVerb is sonny skills: what bots are told how to do (sonny.md 23).
func (a *app) skillsVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use: "skills", Short: "What bots are told how to do, and the skills that come with Sonny",
		Args: cobra.NoArgs, RunE: needsOne,
	}
	list := &cobra.Command{
		Use: "list", Short: "List the skills that concern this folder", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.skillsList(cmd) },
	}
	update := &cobra.Command{
		Use: "update", Short: "Bring those that come with Sonny up to date; what you changed stays yours", Args: cobra.NoArgs,
		RunE: personal(func(cmd *cobra.Command, _ []string) error { return a.skillsUpdate(cmd) }),
	}
	restore := &cobra.Command{
		Use: "restore NAME", Short: "Make a skill as Sonny ships it; what stood there is kept aside", Args: cobra.ExactArgs(1),
		RunE: personal(func(_ *cobra.Command, args []string) error { return a.skillsRestore(args[0]) }),
	}
	for _, sub := range []*cobra.Command{list, update, restore} {
		sub.Flags().BoolVar(&a.json, "json", false, "JSON")
	}
	cmd.AddCommand(list, update, restore, &cobra.Command{
		Use: "diff NAME", Short: "Show how yours differs from what Sonny ships", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.skillsDiff(args[0]) },
	})
	return cmd
}

func skills() (*skill.Skills, error) {
	home, err := place.Home()
	return skill.Open(home), err
}

func (a *app) skillsList(cmd *cobra.Command) error {
	w, err := a.lookToShow(cmd)
	if err != nil {
		return err
	}
	k, err := skills()
	if err != nil {
		return err
	}
	rows, err := k.List(w.folder.Path, w.config.Skills.Disabled)
	if err != nil || a.json {
		return a.orJSON(rows, err)
	}
	for _, r := range rows {
		a.say("%-16s %-8s %s", r.Name, r.From, skillLine(r))
	}
	return nil
}

// skillLine is what is worth saying of a skill.
func skillLine(r skill.Row) string {
	switch {
	case r.Error != "":
		return r.Error
	case r.Path == "" && r.State == skill.Yours:
		return "not there: you removed it; sonny skills restore " + r.Name + " brings it back"
	case r.Path == "":
		return "not there yet: sonny skills update"
	}
	var notes []string
	if r.State == skill.Yours {
		notes = append(notes, "yours")
	}
	if !r.InIndex {
		notes = append(notes, "not in the index")
	}
	if !skill.PlainName(r.Name) {
		notes = append(notes, "its name should be a-z 0-9 -")
	}
	if len(notes) == 0 {
		return r.Description
	}
	return "(" + strings.Join(notes, ", ") + ") " + r.Description
}

func (a *app) skillsUpdate(cmd *cobra.Command) error {
	w, err := a.lookToShow(cmd)
	if err != nil {
		return err
	}
	k, err := skills()
	if err != nil {
		return err
	}
	all, err := k.Update(w.config.Skills.Shipped)
	if err != nil || a.json {
		return a.orJSON(all, err)
	}
	for _, o := range all {
		a.say("%-16s %s", o.Name, strings.Join(append([]string{string(o.State)}, o.Paths...), ": "))
	}
	return nil
}

func (a *app) skillsRestore(name string) error {
	k, err := skills()
	if err != nil {
		return err
	}
	o, err := k.Restore(name)
	if err != nil || a.json {
		return a.orJSON(o, err)
	}
	a.say("%s is as Sonny ships it", name)
	for _, path := range o.Paths {
		a.say("what stood there: %s", path)
	}
	return nil
}

func (a *app) skillsDiff(name string) error {
	k, err := skills()
	if err != nil {
		return err
	}
	diff, err := k.Diff(name)
	if err == nil && diff != "" {
		a.lines(diff)
	}
	return err
}

// freshSkills brings the shipped skills up to date, as a start does. What keeps one
// from it is a notice and stops nothing.
func freshSkills(w *around) {
	k, err := skills()
	var all []skill.Outcome
	if err == nil {
		all, err = k.Update(w.config.Skills.Shipped)
	}
	if err != nil {
		w.notices = append(w.notices, config.Notice{Text: "the skills were not updated: " + coded(err).Error()})
	}
	for _, o := range all {
		if o.State == skill.Left {
			w.notices = append(w.notices, config.Notice{Text: fmt.Sprintf("the skill %s is left as it is: %s", o.Name, strings.Join(o.Paths, "; "))})
		}
	}
}
