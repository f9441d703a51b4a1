package cli

import (
	"os"

	"agent/client"
	"agent/protocol"
)

// The guards of a bot's shell (section 16). They stop accidents; the boundary
// is the bot's socket.

// inside reports that a bot's shell runs this command.
func inside() bool { return inShell() || os.Getenv("AGENT_BOT") != "" }

func inShell() bool { return os.Getenv("AGENT_SHELL_CONTEXT") == "1" }

// refuseBlocking refuses a verb that waits: it would hold a process slot for
// as long as what it waits for.
func refuseBlocking(verb string) error {
	if !inShell() {
		return nil
	}
	return protocol.Fail(protocol.BlockingToolClient, verb+" would wait inside a bot's shell and hold a process slot; "+
		"use run --detach, and collect the result with the wait tool")
}

// creator is the bot that a create declares, or nil outside one.
func creator() (*client.BotEnv, error) { return client.FromBotEnv() }

// author is the bot whose turn a submit declares, or nil. Half an identity is
// enough for it: no id travels with a submission.
func author() (*client.BotEnv, error) {
	b, err := client.FromBotEnv()
	if err == nil || os.Getenv("AGENT_BOT_ID") != "" {
		return b, err
	}
	turn, ok := digits(os.Getenv("AGENT_TURN"))
	if !ok || turn < 1 || turn > mostInteger {
		return nil, nil
	}
	return &client.BotEnv{Bot: os.Getenv("AGENT_BOT"), Turn: turn}, nil
}
