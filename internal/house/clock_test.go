package house

import (
	"go/ast"
	"slices"
	"testing"
)

// storesTimes are the files that may make a number of a time, which is what is
// stored or shown. Whoever measures keeps the time.Time, whose difference goes
// by the monotonic clock: setting the wall clock must not end a wait, spend a
// call's time or let the daemon exit (runtime.md, conventions).
var storesTimes = []string{
	"internal/engine/clock.go",                                                      // the one place where the two clocks meet
	"internal/store/schema.go",                                                      // when a store was made
	"internal/model/scripted/provider.go",                                           // when a call was sent
	"internal/model/wire/socket_stream.go",                                          // the same
	"internal/model/wire/stream.go",                                                 // the same
	"internal/tool/open.go",                                                         // a file's time, compared for being the same
	"internal/daemon/companions.go",                                                 // since when one runs, as it is told
	"internal/cli/run.go",                                                           // a fresh bot's name
	"internal/sonny/host/host.go",                                                   // a host's start, in the names of its steps
	"bench/", "demo/", "internal/fakemodel/", "internal/model/chatgpt/chatgpttest/", // no part of the product
}

// numbersOfTimes are the methods of time.Time that leave the monotonic clock
// behind.
var numbersOfTimes = []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "Round"}

func TestClocks(t *testing.T) {
	t.Parallel()
	t.Run("what is measured goes by the monotonic clock", func(t *testing.T) {
		t.Parallel()
		for _, f := range tree(t) {
			for _, fault := range clockFaults(f) {
				t.Error(fault)
			}
		}
	})
	t.Run("the check sees what it is for", func(t *testing.T) {
		t.Parallel()
		for _, row := range []struct {
			name, path, source string
			faults             int
		}{
			{"a difference of two numbers", "internal/daemon/a.go", `package daemon; import "time"; var a = time.Now().UnixMilli()`, 1},
			{"a time without its monotonic part", "internal/model/a.go", `package model; import "time"; func f() { t := time.Now(); _ = t.Round(0) }`, 1},
			{"a time that is stored", "internal/engine/clock.go", `package engine; import "time"; var a = time.Now().UnixMilli()`, 0},
			{"a time that is kept", "internal/daemon/a.go", `package daemon; import "time"; var a = time.Since(time.Now())`, 0},
			{"a time that is made of a number", "internal/cli/a.go", `package cli; import "time"; var a = time.UnixMilli(7)`, 0},
		} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				if got := clockFaults(snippet(t, row.path, row.source)); len(got) != row.faults {
					t.Errorf("%q", got)
				}
			})
		}
	})
}

func clockFaults(f goFile) (faults []string) {
	if f.test || hasPrefix(f.path, storesTimes) || !slices.Contains(f.imports(), "time") {
		return nil
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains(numbersOfTimes, method.Sel.Name) {
			return true
		}
		if made := len(call.Args) > 0 && method.Sel.Name != "Round"; !made { // time.Unix(s, ns) makes one
			faults = append(faults, f.path+" calls "+method.Sel.Name+": a time that is measured stays a time.Time (house/clock_test.go)")
		}
		return true
	})
	return faults
}
