package doctor

import (
	"context"
	"fmt"
	"path/filepath"

	"agent/internal/sonny/lead"
	"agent/protocol"
)

// sessions looks whether the folders that sessions and their tasks work in are there.
// Archived sessions are left out: nobody means to go on with them.
func (d *Doctor) sessions(ctx context.Context) finding {
	if d.link == nil {
		return d.noDaemon()
	}
	page, _, err := lead.BookIn(filepath.Join(d.agentDir(), "sonny")).Read()
	if err != nil {
		return faultOf(Fail, err, "see to it that ~/.agent/sonny is yours")
	}
	n := 0
	var lost []string
	for b, err := range d.link.Bots(ctx) {
		if err != nil {
			return faultOf(Fail, err, "")
		}
		if kept := page.Of(d.link.Ready.Store.Identity, b.ID); lead.Judge(b) || b.Workspace == nil || kept != nil && kept.Archived {
			continue
		}
		n++
		if protocol.CodeOf(lead.FolderLost(b)) == protocol.WorkspaceUnavailable {
			lost = append(lost, fmt.Sprintf("%s (%s)", b.Name, *b.Workspace))
		}
	}
	if len(lost) == 0 {
		return okf("%s, each with its folder", counted(n, "agent"))
	}
	return warn(counted(len(lost), "agent")+" whose folder is not there any more: it was moved or deleted",
		"put the folder back; else sonny sessions rm NAME, or sonny tasks rm NAME, forgets the agent").with(listed(lost))
}
