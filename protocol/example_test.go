package protocol_test

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"agent/protocol"
)

// A program with a transport of its own writes requests and reads typed lines.
func Example() {
	request, err := protocol.AppendRequest(nil, 1, protocol.OpSubmit, &protocol.Submit{Bot: "Ada", RequestID: "r1", Prompt: "Hello"})
	if err != nil {
		fmt.Println(err)
		return
	}
	os.Stdout.Write(request)

	lines := protocol.NewReader(strings.NewReader(
		`{"id":1,"error":"budget_exhausted","budget_tokens":200,"tokens_used":220}` + "\n"))
	defer lines.Close()
	in, err := lines.Next()
	if err != nil {
		fmt.Println(err)
		return
	}
	if refusal := in.Answer.Err; errors.Is(refusal, protocol.BudgetExhausted) {
		var used int
		refusal.Fact("tokens_used", &used)
		fmt.Println("spent", used)
	}
	// Output:
	// {"id":1,"op":"submit","bot":"Ada","request_id":"r1","prompt":"Hello"}
	// spent 220
}

// A daemon reads requests strictly and appends its lines by hand.
func ExampleParseRequest() {
	for _, line := range []string{`{"id":7,"op":"inspect","bot":"Bob"}`, `{"id":8,"op":"inspect","bto":"Bob"}`} {
		r, refusal := protocol.ParseRequest([]byte(line))
		if refusal != nil {
			os.Stdout.Write(protocol.AppendError(nil, nil, refusal))
			continue
		}
		bot := r.Params.(*protocol.Inspect).Bot
		os.Stdout.Write(protocol.AppendError(nil, r.ID, protocol.Fail(protocol.BotNotFound, bot)))
	}
	// Output:
	// {"id":7,"error":"bot_not_found","detail":"Bob"}
	// {"id":null,"error":"invalid_json","detail":"bot is required"}
}

func ExampleParseHandle() {
	h, err := protocol.ParseHandle("turn:Ada/40")
	fmt.Println(h.Bot, h.Turn, err)
	_, err = protocol.ParseHandle("proc:01")
	fmt.Println(err)
	// Output:
	// Ada 40 <nil>
	// invalid_handle: "proc:01" is neither turn:BOT/N nor proc:N
}

func ExampleOpt() {
	c := protocol.Configure{Bot: "Ada", Workspace: protocol.Null[string](), BudgetTokens: protocol.Set[int64](5000)}
	line, _ := protocol.AppendRequest(nil, 1, protocol.OpConfigure, &c)
	os.Stdout.Write(line)
	// Output: {"id":1,"op":"configure","bot":"Ada","workspace":null,"budget_tokens":5000}
}
