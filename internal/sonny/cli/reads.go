package cli

import (
	"agent/internal/place"
	"agent/internal/sonny/config"
	"agent/internal/sonny/screen/keys"
	"agent/internal/sonny/screen/theme"
	"agent/protocol"
)

// reads says what is wrong with settings that are not known to be right until something
// of theirs is read: a theme, the key map, texts for bots.
func reads(c *config.Config) (faults []*protocol.Error) {
	home, err := place.Home()
	if err != nil {
		return []*protocol.Error{coded(err)}
	}
	if fault := theme.Check(c.TUI.Theme, themesDir(home)); fault != nil {
		faults = append(faults, fault)
	}
	_, wrong := keys.New(c.TUI.Keys)
	faults = append(faults, wrong...)
	if _, err := compaction(c.Compaction); err != nil {
		faults = append(faults, unread("compaction", err))
	}
	if _, err := judgeNote(c.JudgeNote); err != nil {
		faults = append(faults, unread("judge_note", err))
	}
	return faults
}

// unread is the fault of a setting that names a file.
func unread(key string, err error) *protocol.Error {
	return protocol.Fail(protocol.ConfigInvalid, key+": "+coded(err).Detail)
}
