// Package client drives an agent daemon: it dials, makes typed calls, follows
// events across reconnects, and starts a daemon where none runs. The agent
// command and every other program use this one package.
//
// The zero Client works. It talks to the daemon of the default store, or of
// the one that AGENT_STORE and AGENT_SOCKET name, and starts nothing:
//
//	var c client.Client
//	defer c.Close()
//	bot, err := c.Inspect(ctx, "Ada")
//
// With a Starter it starts a daemon when none answers. Run gives a bot a
// prompt and waits for the outcome:
//
//	c := &client.Client{Starter: &client.Starter{}}
//	out, err := c.Run(ctx, &protocol.Submit{Bot: "Ada", Prompt: "Hello"},
//		func(e *protocol.Event) error { fmt.Print(e.Text()); return nil })
//
// # Rules that hold everywhere
//
// A call that can block takes a context first and returns when it ends, with
// its cause wrapped. Ending a context never cancels work in the daemon: a
// submission may have been recorded, so ask again with the same RequestID.
// Nothing is sent twice by itself; Retry is the one helper for that.
//
// Every failure with a code is a *protocol.Error. Test it with
// errors.Is(err, protocol.BotNotFound); errors.As gives detail and facts.
//
// Streams are iter.Seq2: a pair is a value and nil, or nil and an error, and
// the error is last. One goroutine ranges over a stream at a time; different ones
// are independent. Breaking out of the loop frees what the stream held; one taken
// with iter.Pull holds it until its stop, or the Client's Close.
//
// A session's reader never waits for a consumer. Notifications go to a queue
// of 4,096; when it is full the session is closed and its streams end, after
// what was queued, with follow_lagged. Answers are never behind notifications.
//
// The package reads no key and logs nothing. Section numbers in its comments
// are the command-line document's, unless another document is named.
package client
