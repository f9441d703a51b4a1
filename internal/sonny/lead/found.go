package lead

import (
	"fmt"
	"slices"
	"strings"

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
		if s.Store != store {
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

// KindOf is what a bot is that no session was kept for. home is the person's home folder,
// a real path.
func KindOf(b *protocol.Bot, home string) Kind {
	switch {
	case MadeByBot(b):
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

// Tasks are the bots under a lead: those that it created, at any depth, and roots that
// are named as its project's (sonny.md 5.3). hidden are the ids that are sessions of
// their own: forks and side chats.
func Tasks(lead *protocol.Bot, project string, bots []protocol.Bot, hidden map[int64]bool) []*protocol.Bot {
	under := map[int64]bool{lead.ID: true}
	var out []*protocol.Bot
	for changed := true; changed; {
		changed = false
		for i := range bots {
			b := &bots[i]
			if under[b.ID] || hidden[b.ID] || Judge(b) {
				continue
			}
			made := b.CreatedByID != nil && under[*b.CreatedByID]
			named := b.CreatedByID == nil && strings.HasPrefix(b.Name, project+".") && !isLeadOf(b.Name, project)
			if made || named {
				under[b.ID], changed = true, true
				out = append(out, b)
			}
		}
	}
	slices.SortFunc(out, func(a, b *protocol.Bot) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Judge reports whether a bot is one that the automatic approver judges by. The name
// alone is open to any bot and hides nothing (sonny.md 5.3).
func Judge(b *protocol.Bot) bool {
	return b.Closed && len(b.Tools) == 0 && b.CreatedByID == nil && strings.HasPrefix(b.Name, "approver.")
}
