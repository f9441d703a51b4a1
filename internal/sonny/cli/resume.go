package cli

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"agent/internal/sonny/lead"
	"agent/protocol"

	"github.com/spf13/cobra"
)

// resumeVerb is sonny resume: a session by its name, or one that is picked.
func (a *app) resumeVerb() *cobra.Command {
	var last, all bool
	cmd := &cobra.Command{
		Use: "resume [SESSION]", Short: "Open a session: by title, bot name or id, or picked from a list", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.resume(cmd, args, last, all) },
	}
	cmd.Flags().BoolVar(&last, "last", false, "the one that was used last")
	cmd.Flags().BoolVar(&all, "all", false, "of every folder, archived ones too")
	return cmd
}

func (a *app) resume(cmd *cobra.Command, args []string, last, all bool) error {
	if err := person("the screen"); err != nil {
		return err
	}
	if len(args) > 0 && last {
		return usagef("a session and --last: one of them says which is opened")
	}
	o, kind, err := a.chosen(cmd, args, last, all)
	if err != nil {
		return err
	}
	return a.show(cmd, o, kind)
}

// chosen is the session that is opened, found before the screen is.
func (a *app) chosen(cmd *cobra.Command, args []string, last, all bool) (opening, lead.Kind, error) {
	w, err := a.lookOutside(cmd, "")
	if err != nil {
		return opening{}, "", err
	}
	link, err := w.reach(cmd.Context())
	if err != nil {
		return opening{}, "", err
	}
	if link == nil {
		return opening{}, "", protocol.Fail(protocol.BotNotFound, "there are no sessions yet; sonny makes one")
	}
	defer link.Close()
	world, err := worldOf(cmd.Context(), link)
	if err != nil {
		return opening{}, "", err
	}
	found, err := a.found(w, link, world)
	if err != nil {
		return opening{}, "", err
	}
	title := lead.Titles(cmd.Context(), link.Client)
	var candidates []lead.Found
	if len(args) > 0 {
		candidates = lead.Named(args[0], found, title)
	} else {
		for _, f := range found {
			if !f.Gone() && (all || f.Folder == w.folder.Path && !f.Archived) {
				candidates = append(candidates, f)
			}
		}
	}
	switch {
	case len(candidates) == 0 && len(args) > 0:
		_, err = lead.OneNamed(args[0], found, title)
	case len(candidates) == 0:
		err = protocol.Fail(protocol.BotNotFound, "no session works in "+w.folder.Path+"; sonny resume --all shows those of other folders")
	case len(candidates) > 1 && !last:
		candidates, err = a.pick(candidates, title)
	}
	if err != nil {
		return opening{}, "", err
	}
	return openingFor(&candidates[0], w.folder.Path, found, title)
}

// openingFor opens a session in its own folder.
func openingFor(f *lead.Found, here string, all []lead.Found, title func(*lead.Found) string) (opening, lead.Kind, error) {
	if f.Gone() {
		_, err := lead.OneNamed(strconv.FormatInt(f.BotID, 10), all, title)
		return opening{}, "", err
	}
	if err := lead.FolderLost(f.Record); err != nil {
		return opening{}, "", err
	}
	o := opening{folder: f.Folder, bot: f.Record.Name}
	if f.Folder != here {
		o.notice = "this session works in " + f.Folder
	}
	kind := f.Kind
	if kind != lead.KindHome {
		kind = lead.KindLead
	}
	return o, kind, nil
}

// pick lets the person choose by number.
func (a *app) pick(from []lead.Found, title func(*lead.Found) string) ([]lead.Found, error) {
	if err := a.needsTerminal(); err != nil {
		return nil, err
	}
	rows := make([][]string, len(from))
	for i := range from {
		f := &from[i]
		name := title(f)
		if name == "" {
			name = f.Bot
		}
		rows[i] = []string{strconv.Itoa(i + 1), name, f.Bot, f.Folder}
	}
	a.table([]string{"", "TITLE", "BOT", "FOLDER"}, rows)
	fmt.Fprint(a.stderr, "number: ")
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		return nil, protocol.Fail("interrupted", "nothing was picked")
	}
	n, err := strconv.Atoi(strings.TrimSpace(answer))
	if err != nil || n < 1 || n > len(from) {
		return nil, usagef("%q is no number of the list", strings.TrimSpace(answer))
	}
	return from[n-1 : n], nil
}
