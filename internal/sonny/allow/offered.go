package allow

import (
	"encoding/json"

	"agent/protocol"
)

// Offered is the rule that "allow, and stop asking" would write for a call. The zero
// value offers none. It belongs to one goroutine.
type Offered struct {
	Words []string     // nil: none is offered
	Reach Reach        // where it would hold
	Owner protocol.Bot // whose rules it would join: the lead of the bot that asks

	script string
	have   *protocol.Rules
}

// Offer is the rule that is offered for a script of a bot that goes by an owner's rules.
// It reads the rules' files.
func (p Place) Offer(owner *protocol.Bot, script string) Offered {
	o := Offered{Owner: *owner, script: script, have: p.Read(owner.ID)}
	o.Words = Offer(o.have, script)
	return o
}

// There reports whether a rule is offered.
func (o *Offered) There() bool { return o.Words != nil }

// Text is the rule's words as a person reads them.
func (o *Offered) Text() string { return Text(o.Words) }

// Edit takes words that the person wrote. What would not let the call through, or allows
// more than can be seen, is refused, and the words stay as they were.
func (o *Offered) Edit(typed string) error {
	words, err := Words(typed)
	if err == nil {
		err = Check(o.have, words, o.script)
	}
	if err == nil {
		o.Words = words
	}
	return err
}

// Script is the command among a call's arguments; "" where there is none, and so none to
// offer a rule for.
func Script(arguments string) string {
	var args struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal([]byte(arguments), &args)
	return args.Command
}
