package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A verbSet names, for an import path, what opens a connection or a port. An
// entry "*" stands for everything of the package, one that ends in "*" for
// every name that begins so.
type verbSet map[string][]string

var listening = verbSet{
	"net":                      {"Listen*", "FileListener", "FilePacketConn"},
	"crypto/tls":               {"Listen", "NewListener"},
	"net/http":                 {"ListenAndServe*", "Serve", "ServeTLS", "Server"},
	"net/http/httptest":        {"*"},
	"syscall":                  {"Bind", "Listen"},
	"golang.org/x/sys/unix":    {"Bind", "Listen"},
	"golang.org/x/net/netutil": {"*"},

	"github.com/coder/websocket": {"Accept*"},
}

var dialling = verbSet{
	"net":                          {"Dial*", "Lookup*", "Resolver", "DefaultResolver", "Resolve*"},
	"crypto/tls":                   {"Dial*", "Client"},
	"net/http":                     {"Get", "Head", "Post*", "Client", "Transport", "DefaultClient", "DefaultTransport"},
	"net/rpc":                      {"*"},
	"net/smtp":                     {"*"},
	"syscall":                      {"Connect"},
	"golang.org/x/sys/unix":        {"Connect"},
	"golang.org/x/net/http2":       {"*"},
	"golang.org/x/net/proxy":       {"*"},
	"golang.org/x/oauth2":          {"*"},
	"github.com/coder/websocket":   {"Dial*"},
	"github.com/gorilla/websocket": {"*"},
}

// unixOnly may open sockets, of the Unix kind alone. The sandbox's trials make one
// that a confined command must not reach.
var unixOnly = []string{"internal/place/", "client/", "internal/sandbox/trials"}

// mayListen may open a TCP port: what only tests import (rooms_test.go holds
// that), and the sign-in's callback while the sign-in lasts.
var mayListen = []string{"internal/fakemodel/", "internal/model/modeltest/", "internal/model/chatgpt/chatgpttest/", "internal/model/chatgpt/signin/listen.go"}

// mayDial may reach the network: the one transport of the model families, which
// the sign-in goes through, too, the page fetcher, and what only tests import.
var mayDial = []string{"internal/model/wire/", "internal/tool/fetch", "internal/model/modeltest/"}

func TestNetworkWords(t *testing.T) {
	t.Parallel()
	t.Run("PO-10 nothing that ships can open a TCP port", func(t *testing.T) {
		t.Parallel()
		for _, f := range tree(t) {
			for _, fault := range listenFaults(f) {
				t.Error(fault)
			}
		}
	})
	t.Run("PO-19 only the models' transport, the fetcher and the sign-in dial out", func(t *testing.T) {
		t.Parallel()
		for _, f := range tree(t) {
			for _, fault := range dialFaults(f) {
				t.Error(fault)
			}
		}
	})
	t.Run("PO-10 PO-19 the rules name folders that are there", func(t *testing.T) {
		t.Parallel()
		for _, prefix := range []string{"internal/place/", "internal/model/wire/", "internal/model/chatgpt/signin/listen.go"} {
			if !slices.ContainsFunc(tree(t), func(f goFile) bool { return strings.HasPrefix(f.path, prefix) }) {
				t.Errorf("no file under %s: a rule about it proves nothing", prefix)
			}
		}
	})
}

func listenFaults(f goFile) []string { return networkFaults(f, listening, mayListen, "listens") }

func dialFaults(f goFile) []string { return networkFaults(f, dialling, mayDial, "dials out") }

func networkFaults(f goFile, verbs verbSet, free []string, does string) []string {
	if f.test || hasPrefix(f.path, free) {
		return nil
	}
	if hasPrefix(f.path, unixOnly) {
		return inetFaults(f)
	}
	var faults []string
	for _, name := range mentions(f, verbs) {
		faults = append(faults, fmt.Sprintf("%s %s: it mentions %s; only %s may", f.path, does, name, strings.Join(slices.Concat(unixOnly, free), ", ")))
	}
	return faults
}

// mentions lists the names of the set that a file speaks of, through whatever
// name it imports their package by.
func mentions(f goFile, verbs verbSet) []string {
	local := map[string][]string{}
	var found []string
	for _, spec := range f.tree.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		names, ok := verbs[path]
		if !ok {
			continue
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." || names[0] == "*" {
			found = append(found, path)
		}
		local[name] = names
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && named(sel.Sel.Name, local[x.Name]) {
			found = append(found, x.Name+"."+sel.Sel.Name)
		}
		return true
	})
	return found
}

func named(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return name == pattern
	})
}

// inetFaults finds, in a file that may open Unix sockets alone, what would open
// another kind: a network's name that is not "unix", a name that is not
// written where it is used, an Internet address family.
func inetFaults(f goFile) []string {
	var faults []string
	fault := func(what string) { faults = append(faults, f.path+": opens Unix sockets alone, and has "+what) }
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if value, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && inetNetwork(value) {
				fault("the network " + n.Value)
			}
		case *ast.Ident:
			if slices.Contains([]string{"AF_INET", "AF_INET6", "TCPAddr", "UDPAddr", "SockaddrInet4", "SockaddrInet6"}, n.Name) {
				fault(n.Name)
			}
		case *ast.CallExpr:
			if name := opener(n); name != "" && !namesUnix(n) {
				fault(name + " with a network that is not written \"unix\" on the spot")
			}
		}
		return true
	})
	if found := mentions(f, verbSet{"net/http": {"*"}, "crypto/tls": {"*"}}); len(found) > 0 {
		fault(found[0])
	}
	return faults
}

func inetNetwork(s string) bool {
	return slices.Contains([]string{"tcp", "tcp4", "tcp6", "udp", "udp4", "udp6", "ip", "ip4", "ip6"}, s)
}

// opener names the call when it is one of package net's that take a network,
// or a Listen or Dial method with at least the network and the address.
func opener(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) < 2 {
		return ""
	}
	name := sel.Sel.Name
	x, _ := sel.X.(*ast.Ident)
	inNet := x != nil && x.Name == "net"
	method := (name == "DialContext" || name == "Dial" || name == "Listen" && len(call.Args) == 3) && (x == nil || x.Name != "unix")
	if method || inNet && (strings.HasPrefix(name, "Dial") || strings.HasPrefix(name, "Listen")) {
		return name
	}
	return ""
}

func namesUnix(call *ast.CallExpr) bool {
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool {
		lit, ok := arg.(*ast.BasicLit)
		return ok && lit.Value == `"unix"`
	})
}

func hasPrefix(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

func TestNetworkCheckSeesWhatItIsFor(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name, path, body string
		imports          string
		listens, dials   bool
	}{
		{"a port in the daemon", "internal/daemon/a.go", `net.Listen("tcp", ":0")`, `"net"`, true, false},
		{"a port under another name", "internal/daemon/a.go", `n.Listen("tcp", ":0")`, `n "net"`, true, false},
		{"a page server", "internal/engine/a.go", `http.ListenAndServe(":0", nil)`, `"net/http"`, true, false},
		{"a request from the engine", "internal/engine/a.go", `http.Get("http://127.0.0.1")`, `"net/http"`, false, true},
		{"a name looked up", "internal/daemon/a.go", `net.LookupHost("host")`, `"net"`, false, true},
		{"a web socket", "internal/daemon/a.go", `websocket.Dial(nil, "", nil)`, `"github.com/coder/websocket"`, false, true},
		{"a web socket served by the daemon", "internal/daemon/a.go", `websocket.Accept(nil, nil, nil)`, `"github.com/coder/websocket"`, true, false},
		{"a web socket served by the models' transport", "internal/model/wire/a.go", `websocket.Accept(nil, nil, nil)`, `"github.com/coder/websocket"`, true, false},
		{"a web socket dialled by the test server", "internal/fakemodel/a.go", `websocket.Dial(nil, "", nil)`, `"github.com/coder/websocket"`, false, true},
		{"a Unix socket in its room", "internal/place/a.go", `net.Listen("unix", "s")`, `"net"`, false, false},
		{"a port in the sockets' room", "internal/place/a.go", `net.Listen("tcp", "s")`, `"net"`, true, true},
		{"a network that a variable names", "client/a.go", `net.Dial(network, "s")`, `"net"`, true, true},
		{"a request from the client", "client/a.go", `http.Get("http://127.0.0.1")`, `"net/http"`, true, true},
		{"a dial by the models' transport", "internal/model/wire/a.go", `net.Dial("tcp", "s")`, `"net"`, false, false},
		{"a port in the models' transport", "internal/model/wire/a.go", `net.Listen("tcp", "s")`, `"net"`, true, false},
		{"a port in the test server", "internal/fakemodel/a.go", `net.Listen("tcp", "s")`, `"net"`, false, false},
		{"a port in a test", "internal/engine/a_test.go", `net.Listen("tcp", "s")`, `"net"`, false, false},
		{"a status code", "internal/engine/a.go", `println(http.StatusOK)`, `"net/http"`, false, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := snippet(t, row.path, fmt.Sprintf("package a\n\nimport %s\n\nfunc f(network string) { %s }\n", row.imports, row.body))
			if faults := listenFaults(f); (len(faults) > 0) != row.listens {
				t.Errorf("listening: faults %q, want any: %v", faults, row.listens)
			}
			if faults := dialFaults(f); (len(faults) > 0) != row.dials {
				t.Errorf("dialling: faults %q, want any: %v", faults, row.dials)
			}
		})
	}
}
