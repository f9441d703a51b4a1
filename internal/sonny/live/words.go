package live

// words are the states as people read them.
var words = map[State]string{
	Idle: "idle", Queued: "queued", Waiting: "waiting", Working: "working", HeldUp: "held up",
	NeedsYou: "needs you", Done: "done", Failed: "failed", Paused: "paused",
}

func (s State) String() string { return words[s] }
