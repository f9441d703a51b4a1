package docs

import (
	"go/ast"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// strings of the package protocol: the values of its constants whose names
// begin with a word, and those a function lists.
func constants(t *testing.T, path, prefix string) []string {
	t.Helper()
	var values []string
	ast.Inspect(goFile(t, path), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, prefix) && len(spec.Values) == 1 {
			if s := text(spec.Values[0]); s != "" {
				values = append(values, s)
			}
		}
		return true
	})
	return values
}

func capabilities(t *testing.T) []string {
	t.Helper()
	var values []string
	ast.Inspect(goFile(t, "../protocol/records.go"), func(n ast.Node) bool {
		f, ok := n.(*ast.FuncDecl)
		if !ok || f.Name.Name != "Capabilities" {
			return true
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok && text(e) != "" {
				values = append(values, text(e))
			}
			return true
		})
		return false
	})
	return values
}

// members are the names on the wire of every field of the protocol's types.
func members(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../protocol/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(goFile(t, path), func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok && f.Tag != nil {
				tag, _ := strconv.Unquote(f.Tag.Value)
				name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				if name != "" && name != "-" {
					names = append(names, name)
				}
			}
			return true
		})
	}
	return names
}

var word = regexp.MustCompile("[`\"]([a-z_0-9]+)[`\"]")

func TestTheProtocolsPageNamesAllOfIt(t *testing.T) {
	t.Parallel()
	page := read(t, "PROTOCOL.md")
	named := map[string]bool{}
	for _, m := range word.FindAllStringSubmatch(page, -1) {
		named[m[1]] = true
	}
	for what, of := range map[string]struct {
		names []string
		least int
	}{
		"op":         {constants(t, "../protocol/ops.go", "Op"), 36},
		"event":      {constants(t, "../protocol/events.go", "Kind"), 40},
		"capability": {capabilities(t), 41},
		"member":     {members(t), 200},
	} {
		if len(of.names) < of.least {
			t.Errorf("only %d names of the kind %s were found: the source was not read", len(of.names), what)
		}
		for _, name := range of.names {
			if !named[name] && name != "reconnected" { // which the Go client makes
				t.Errorf("PROTOCOL.md does not name the %s %s", what, name)
			}
		}
	}
}

// TestEachOpHasItsPlace looks for a heading of each op.
func TestEachOpHasItsPlace(t *testing.T) {
	t.Parallel()
	heads := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(read(t, "PROTOCOL.md"), -1) {
		for _, op := range strings.Split(m[1], ", ") {
			heads[op] = true
		}
	}
	ops := constants(t, "../protocol/ops.go", "Op")
	for _, op := range ops {
		if !heads[op] {
			t.Errorf("PROTOCOL.md has no heading for %s", op)
		}
		delete(heads, op)
	}
	for head := range heads {
		t.Errorf("PROTOCOL.md has a heading %s, which is no op", head)
	}
}

// TestThePagesCodesExist holds the protocol's page to codes that there are.
func TestThePagesCodesExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, list := range [][]string{
		protocolCodes(t), constants(t, "../protocol/ops.go", "Op"), constants(t, "../protocol/events.go", "Kind"), capabilities(t), members(t),
	} {
		for _, name := range list {
			known[name] = true
		}
	}
	for _, m := range regexp.MustCompile("`([a-z]+(?:_[a-z0-9]+)+)`").FindAllStringSubmatch(read(t, "PROTOCOL.md"), -1) {
		switch name := m[1]; name {
		case "sqlite_full", "lease_left_ms", "outside_write", "rule_prompt", "keep_warm": // values and facts
		default:
			if !known[name] {
				t.Errorf("PROTOCOL.md names %s, which is no code, op, event, capability or member", name)
			}
		}
	}
}

// TestTheBotSocketsTableIsTheDaemons compares what the page says is refused on
// a bot's own socket with the daemon's table.
func TestTheBotSocketsTableIsTheDaemons(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile(`(?m)^\| refused \| (.*) \|$`).FindStringSubmatch(read(t, "PROTOCOL.md"))
	if row == nil {
		t.Fatal("PROTOCOL.md has no row of what is refused")
	}
	said := map[string]bool{}
	for _, m := range word.FindAllStringSubmatch(row[1], -1) {
		said[m[1]] = true
	}
	treated := treatments(t)
	for _, op := range constants(t, "../protocol/ops.go", "Op") {
		if refused := treated[op] == "" || treated[op] == "refused"; refused != said[op] {
			t.Errorf("%s on a bot's socket: the daemon has it as %q, the page as refused: %v", op, treated[op], said[op])
		}
	}
}

// treatments is the daemon's table: by op, allowed, narrowed or refused.
func treatments(t *testing.T) map[string]string {
	t.Helper()
	spelling := map[string]string{}
	ast.Inspect(goFile(t, "../protocol/ops.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			spelling[spec.Names[0].Name] = text(spec.Values[0])
		}
		return true
	})
	table := map[string]string{}
	ast.Inspect(goFile(t, "../internal/daemon/scope.go"), func(n ast.Node) bool {
		if kv, ok := n.(*ast.KeyValueExpr); ok {
			key, isOp := kv.Key.(*ast.SelectorExpr)
			value, isWord := kv.Value.(*ast.Ident)
			if isOp && isWord && spelling[key.Sel.Name] != "" {
				table[spelling[key.Sel.Name]] = value.Name
			}
		}
		return true
	})
	if len(table) < 30 {
		t.Fatalf("only %d ops were found in the daemon's table", len(table))
	}
	return table
}
