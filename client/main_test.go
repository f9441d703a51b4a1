package client

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"agent/protocol"
)

// The test binary stands in for the agent program: started with serve it is a
// daemon that answers the ready line and shutdown, or fails as its environment
// says.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		os.Exit(serve(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

func serve(args []string) int {
	flags := map[string][]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		flags[name] = append(flags[name], value)
	}
	if status := os.Getenv("SERVE_EXIT"); status != "" {
		fmt.Fprintln(os.Stderr, "agent: loading")
		fmt.Fprintln(os.Stderr, "agent: invalid_provider_url: not-a-url")
		code, _ := strconv.Atoi(status)
		return code
	}
	if owner := os.Getenv("SERVE_OWNED"); owner != "" && os.Remove(owner) == nil {
		fmt.Fprintln(os.Stderr, "agent: store_already_owned: by a daemon that leaves")
		return 75
	}
	if holder := os.Getenv("SERVE_HOLD"); holder != "" { // it starts once that is closed
		conn, err := net.Dial("unix", holder)
		if err != nil {
			return 1
		}
		conn.Read(make([]byte, 1))
	}
	l, err := net.Listen("unix", flags["socket"][0])
	if err != nil {
		return 75
	}
	seen, err := json.Marshal(map[string]any{"args": args, "env": os.Environ()})
	if err != nil || os.WriteFile(flags["store"][0], seen, 0o600) != nil {
		return 1
	}
	ready := protocol.Ready{PID: os.Getpid(), Store: protocol.Store{Identity: "x"}, Walls: flags["wall"], Protected: flags["protect-path"]}
	for {
		conn, err := l.Accept()
		if err != nil {
			return 0
		}
		go serveConn(conn, l, &ready)
	}
}

func serveConn(conn net.Conn, l net.Listener, ready *protocol.Ready) {
	line, _ := protocol.AppendReady(nil, ready)
	conn.Write(line)
	lines := protocol.NewLineReader(conn)
	for {
		line, err := lines.Next()
		if err != nil {
			conn.Close()
			return
		}
		r, _ := protocol.ParseRequest(line)
		answer, _ := protocol.AppendResult(nil, r.ID, protocol.ShuttingDown{ShuttingDown: true})
		conn.Write(answer)
		if r.Op == protocol.OpShutdown {
			l.Close()
		}
	}
}
