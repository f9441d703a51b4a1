package client

import (
	"os"
	"strconv"

	"agent/protocol"
)

// BotEnv is what a bot's shell tells its commands about the bot (section 16).
// Turn, Parent and ParentID are zero where there is none.
type BotEnv struct {
	Bin, Store, Socket, Model string
	Bot                       string
	BotID, Turn               int64
	Parent                    string
	ParentID                  int64
}

// FromBotEnv reads the AGENT_* variables of a bot's shell. It returns nil and
// no error outside one, and creator_identity_required for half an identity or
// a number that is none.
func FromBotEnv() (*BotEnv, error) {
	b := &BotEnv{
		Bin: os.Getenv("AGENT_BIN"), Store: os.Getenv("AGENT_STORE"), Socket: os.Getenv("AGENT_SOCKET"),
		Model: os.Getenv("AGENT_MODEL"), Bot: os.Getenv("AGENT_BOT"), Parent: os.Getenv("AGENT_PARENT"),
	}
	id := os.Getenv("AGENT_BOT_ID")
	if b.Bot == "" && id == "" {
		return nil, nil
	}
	if b.Bot == "" || id == "" {
		return nil, protocol.Fail(protocol.CreatorIdentityRequired, "AGENT_BOT and AGENT_BOT_ID are set together or not at all")
	}
	for _, v := range []struct {
		name string
		into *int64
	}{{"AGENT_BOT_ID", &b.BotID}, {"AGENT_TURN", &b.Turn}, {"AGENT_PARENT_ID", &b.ParentID}} {
		text := os.Getenv(v.name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 || n > protocol.MaxInteger {
			return nil, protocol.Fail(protocol.CreatorIdentityRequired, v.name+" is no positive integer")
		}
		*v.into = n
	}
	return b, nil
}

// Client is a client on the bot's socket that declares the bot as creator and
// author, and never starts a daemon. On a bot's socket the daemon sets these
// itself; Ready().Scope then says whose it is.
func (b *BotEnv) Client() *Client {
	return &Client{Target: Target{Store: b.Store, Socket: b.Socket}, Bot: b}
}

// author is the bot's running turn, or nil when it has none.
func (b *BotEnv) author() *protocol.From {
	if b.Turn == 0 {
		return nil
	}
	return &protocol.From{Bot: b.Bot, Turn: b.Turn}
}

// declare fills in the creator, unless the request names one. A nil b
// declares nothing.
func (b *BotEnv) declare(by *string, id *int64, from **protocol.From) {
	if b == nil {
		return
	}
	if *by == "" && *id == 0 {
		*by, *id = b.Bot, b.BotID
	}
	if *from == nil {
		*from = b.author()
	}
}

// inBotShell reports that socket is the one a bot's shell was given. A
// listener of the bot's own making must not stand there (section 3).
func inBotShell(socket string) bool {
	given := os.Getenv("AGENT_SOCKET")
	if os.Getenv("AGENT_SHELL_CONTEXT") != "1" || given == "" {
		return false
	}
	abs, err := checkedSocket(given)
	return err != nil || abs == socket
}
