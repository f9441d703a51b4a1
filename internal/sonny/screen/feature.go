package screen

import (
	"agent/internal/sonny/live"
	"agent/protocol"
)

// feature is a part of the screen: what it adds to the commands and the keys, and what
// it wants to hear. Its state is a field of App; the loop owns all of it. Any of these
// may be nil.
type feature struct {
	commands []slashCommand
	actions  map[string]func(a *App) // by the names of sonny.md 15

	// event hears each of the daemon's events, after the world has taken it; b is nil
	// for one that is of no bot.
	event func(a *App, b *live.Bot, e *protocol.Event)
	// opened hears of a session that came on screen, when its newest part is loaded.
	opened func(a *App, s *session)
	// sent hears of each message that was sent, or cleared away, as it was typed.
	sent func(a *App, text string)
}

// features are all parts of the screen. Each part's file says what it is.
func features() []feature {
	return []feature{
		basics,
		tasteWatch,
		rowCommands,
		ruleCommands,
		approvalCommands,
		questionWatch,
		judgeWatch,
		usageWatch,
		usageCommands,
		contextCommands,
		sinceWatch,
		lostFolder,
		modelCommands,
		noticeCommands,
		paneCommands,
		terminalPanes,
		railKeys,
		switchCommands,
		taskCommands,
		mergeCommands,
		reviewCommands,
		copyCommands,
		undoCommands,
		readerCommands,
		searchCommands,
		markCommands,
		forkCommands,
		rewindCommands,
		treeCommands,
		copyModeCommands,
		keyCommands,
		listingCommands,
		settingCommands,
		doctorCommands,
		screenCommands,
		setupCommands,
		sessionCommands,
		planCommands,
		mouseCommands,
		handoffCommands,
		notifying,
		startCommands,
		historyKeys,
		stashKeys,
		pasteKeys,
		pictureKeys,
		queueKeys,
		typedModes,
		commandsPanel,
		firstMessages,
		editorKeys,
	}
}

// assemble puts the features together once, when the screen is opened.
func (a *App) assemble() {
	a.actions = map[string]func(*App){}
	for _, f := range append(features(), testFeatures()...) {
		a.commands = append(a.commands, f.commands...)
		for name, do := range f.actions {
			if a.actions[name] != nil {
				panic("two features have the action " + name)
			}
			a.actions[name] = do
		}
		if f.event != nil {
			a.hear = append(a.hear, f.event)
		}
		if f.sent != nil {
			a.sent = append(a.sent, f.sent)
		}
		if f.opened != nil {
			a.greet = append(a.greet, f.opened)
		}
	}
}

// act does what an action's name says. It reports whether there is such an action.
func (a *App) act(name string) bool {
	do := a.actions[name]
	if do == nil {
		return false
	}
	if a.refusesGone(name) {
		return true
	}
	do(a)
	return true
}
