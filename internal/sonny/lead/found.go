package lead

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"agent/internal/git"
	"agent/internal/place"
	"agent/internal/sonny/repo"
	"agent/protocol"
)

// Found is a session with its bot, as a list shows it. Bot is nil for one that is
// gone: its id is no more, or its name is another identity's.
type Found struct {
	Session
	Record *protocol.Bot
}

// Gone reports whether the bot is no more.
func (f *Found) Gone() bool { return f.Record == nil }

// WorksIn reports whether the session is one of a folder's: by what was kept of it and,
// where its bot is there, by the bot's own workspace.
func (f *Found) WorksIn(folder string) bool {
	return f.Folder == folder && (f.Gone() || worksIn(f.Record, folder))
}

// FolderLost says of a bot whose folder is not there any more that it is:
// workspace_unavailable. Nothing can be done there until it is back.
func FolderLost(b *protocol.Bot) error {
	if b.Workspace == nil {
		return nil
	}
	return Lost(*b.Workspace, repo.Repo{})
}

// Lost says of a folder, and of the checkout that it was found in, that they are not there
// any more, or by way of a link alone, which no bot works in: workspace_unavailable. A
// folder is a real path; of "" nothing is said.
func Lost(folder string, checkout repo.Repo) error {
	if err := git.IsFolder(folder); err != nil {
		return err
	}
	if real := place.Real(folder); folder != "" && real != folder {
		return protocol.Fail(protocol.WorkspaceUnavailable, fmt.Sprintf(
			"the folder %s is a link now, or below one, and leads to %s: a bot works in no link; take the link away and put the folder itself back there, or begin a new session in %[2]s",
			folder, real))
	}
	return checkout.Lost()
}

// Leads are the leads that work in a folder, the newest used first, archived ones left
// out (sonny.md 3.2). A lead that no session was kept for is found by its name and its
// folder, so that a lost book loses none. None is a bot that a bot made, whatever it is
// called.
func Leads(folder string, store string, page *Page, bots []protocol.Bot) []Found {
	var out []Found
	for _, f := range Sessions(store, page, bots) {
		if f.WorksIn(folder) && !f.Archived && (f.Kind == KindLead || f.Kind == KindFork) {
			out = append(out, f)
		}
	}
	return out
}

// Sessions are all of a store, the newest used first, with bots that look like leads
// and have no session.
func Sessions(store string, page *Page, bots []protocol.Bot) []Found {
	byID := make(map[int64]*protocol.Bot, len(bots))
	for i := range bots {
		byID[bots[i].ID] = &bots[i]
	}
	var out []Found
	for _, s := range page.Sessions {
		if s.Store != store || s.Kind == KindTask {
			continue
		}
		f := Found{Session: s, Record: byID[s.BotID]}
		if !f.Gone() && (s.Kind == KindLead || s.Kind == KindHome) && MadeByBot(f.Record) {
			f.Kind = KindTask
		}
		out = append(out, f)
		delete(byID, s.BotID)
	}
	for i := range bots {
		if b := &bots[i]; byID[b.ID] != nil && looksLikeLead(b) {
			out = append(out, Found{Record: b, Session: Session{
				Store: store, BotID: b.ID, Bot: b.Name, Folder: *b.Workspace, Project: ProjectOf(b.Name), Kind: KindLead,
			}})
		}
	}
	slices.SortStableFunc(out, func(a, b Found) int {
		if c := b.Opened.Compare(a.Opened); c != 0 {
			return c
		}
		return int(b.BotID - a.BotID)
	})
	return out
}

// Hidden are the bots that are sessions of their own, by their ids, and so no tasks of
// another.
func Hidden(sessions []Found) map[int64]bool {
	own := map[int64]bool{}
	for i := range sessions {
		if sessions[i].Kind != KindTask {
			own[sessions[i].BotID] = true
		}
	}
	return own
}

// looksLikeLead reports whether a bot that nothing is known of is somebody's lead.
func looksLikeLead(b *protocol.Bot) bool {
	return !MadeByBot(b) && !b.Closed && b.Workspace != nil && isLeadOf(b.Name, ProjectOf(b.Name))
}

// MadeByBot reports whether a bot made this one, or one that it was forked from: then its
// name, its folder and its instructions may be a bot's choice, and tell nothing of whose
// it is.
func MadeByBot(b *protocol.Bot) bool { return b.CreatedByID != nil || b.BotMade }

func worksIn(b *protocol.Bot, folder string) bool {
	return b.Workspace != nil && *b.Workspace == folder
}

// KindOf is what a bot is that no session was kept for: one that a bot made, or a root
// that is named as a project's, is a task, and a run without a screen is an exec. home is the person's home folder, a real path.
func KindOf(b *protocol.Bot, home string) Kind {
	project := ProjectOf(b.Name)
	switch {
	case Headless(b):
		return KindExec
	case MadeByBot(b), strings.HasPrefix(b.Name, project+".") && !isLeadOf(b.Name, project):
		return KindTask
	case b.Name == HomeBot && CheckHome(b, home) == nil:
		return KindHome
	}
	return KindLead
}

// CheckHome refuses a bot of the name home that is not the person's own agent: one that a
// bot made, or that works elsewhere than in the home folder, a real path. bot_exists,
// which says how to go on.
func CheckHome(b *protocol.Bot, home string) error {
	why := ""
	switch {
	case b.CreatedBy != nil:
		why = *b.CreatedBy + " made it"
	case MadeByBot(b):
		why = "a bot made it, or what it was forked from"
	case b.Workspace == nil:
		why = "it works in no folder"
	case *b.Workspace != home:
		why = "it works in " + *b.Workspace
	case b.Closed:
		why = "a program keeps it to itself"
	default:
		return nil
	}
	return protocol.Fail(protocol.BotExists, fmt.Sprintf("the bot %s is not your own agent: %s; look at it (agent show --bot %[1]s), remove it (agent rm --bot %[1]s), and open sonny home again", HomeBot, why))
}

// Head is a bot at the top of a family, with the project whose tasks are its own.
type Head struct {
	Bot     *protocol.Bot
	Project string
}

// Child is a bot under a head: how deep, 1 for the head's own, and whether it is the last
// of its siblings.
type Child struct {
	Bot   *protocol.Bot
	Depth int
	Last  bool
}

// Tasks are the bots under a lead, by name: those that it created, at any depth, and
// roots that are named as its project's (sonny.md 5.3). Runs without a screen are none:
// tasks are what a lead, or the person under one, started as such. hidden are the ids
// that are sessions of their own, such as forks and side chats.
func Tasks(lead *protocol.Bot, project string, bots []protocol.Bot, hidden map[int64]bool) []*protocol.Bot {
	var out []*protocol.Bot
	for _, c := range Families([]Head{{lead, project}}, bots, hidden)[lead.ID] {
		out = append(out, c.Bot)
	}
	slices.SortFunc(out, func(a, b *protocol.Bot) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Families are the tasks of several heads at once, by the head's id: each below its
// maker, siblings by name. A bot is under one head alone: roots that are named as a
// project's are under the first of its heads. It takes one pass over the bots.
func Families(heads []Head, bots []protocol.Bot, hidden map[int64]bool) map[int64][]Child {
	f := family{made: map[int64][]*protocol.Bot{}, under: map[int64]bool{}, out: map[int64][]Child{}}
	named := map[string][]*protocol.Bot{}
	for _, h := range heads {
		f.under[h.Bot.ID] = true
		named[h.Project] = nil
	}
	for i := range bots {
		b := &bots[i]
		switch {
		case hidden[b.ID] || f.under[b.ID] || Judge(b) || Headless(b):
		case b.CreatedByID != nil:
			f.made[*b.CreatedByID] = append(f.made[*b.CreatedByID], b)
		default:
			for project := range prefixes(b.Name) {
				if list, wanted := named[project]; wanted && !isLeadOf(b.Name, project) {
					named[project] = append(list, b)
				}
			}
		}
	}
	for _, h := range heads {
		f.below(h.Bot.ID, append(f.made[h.Bot.ID], named[h.Project]...), 1)
		delete(named, h.Project)
	}
	return f.out
}

// family is what Families goes by.
type family struct {
	made  map[int64][]*protocol.Bot // by the maker's id
	under map[int64]bool            // those that have a place
	out   map[int64][]Child
}

// below puts bots, and what they made, under a head.
func (f *family) below(head int64, list []*protocol.Bot, depth int) {
	list = slices.DeleteFunc(list, func(b *protocol.Bot) bool { return f.under[b.ID] })
	slices.SortFunc(list, func(a, b *protocol.Bot) int { return strings.Compare(a.Name, b.Name) })
	for _, b := range list {
		f.under[b.ID] = true
	}
	for i, b := range list {
		f.out[head] = append(f.out[head], Child{b, depth, i == len(list)-1})
		f.below(head, f.made[b.ID], depth+1)
	}
}

// prefixes yields what of a name stands before each of its dots.
func prefixes(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range name {
			if name[i] == '.' && !yield(name[:i]) {
				return
			}
		}
	}
}

// headlessName is what of a run's name stands behind its project.
const headlessName = "exec-"

// HeadlessName is a name for a run of a project without a screen. suffix tells it from
// others: 6 of a-z 2-7.
func HeadlessName(project, suffix string) string { return project + "." + headlessName + suffix }

// Headless reports whether a bot is a run without a screen, by its name and by being
// nobody's: one that a bot made is a task whatever it is called.
func Headless(b *protocol.Bot) bool {
	last := b.Name[strings.LastIndexByte(b.Name, '.')+1:]
	suffix, ok := strings.CutPrefix(last, headlessName)
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '2' || r > '7') }
	return ok && len(last) < len(b.Name) && !MadeByBot(b) && len(suffix) == 6 && !strings.ContainsFunc(suffix, odd)
}

// Judge reports whether a bot is one that the automatic approver judges by. The name
// alone is open to any bot and hides nothing (sonny.md 5.3).
func Judge(b *protocol.Bot) bool {
	return b.Closed && len(b.Tools) == 0 && b.CreatedByID == nil && strings.HasPrefix(b.Name, "approver.")
}
