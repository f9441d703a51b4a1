package house

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// A room is a folder with all below it, and what of ours it may import beside
// itself and the protocol, which is open to all.
type room struct {
	folder string
	may    []string
	// alone lists what one kind of file of the room may import besides: the
	// key is how the file's name begins.
	alone map[string][]string
}

// belowEngine are the rooms that the engine stands on.
var belowEngine = []string{
	"internal/place", "internal/secret", "internal/sandbox", "internal/rules",
	"internal/model", "internal/store", "internal/window", "internal/tool",
}

// sonnyMay is open to every room of the terminal client.
var sonnyMay = []string{
	"client", "internal/place", "internal/secret", "internal/rules", "internal/approver", "internal/git", "internal/outlet", "internal/sonny",
}

// rooms is the house. A folder that is not here has no place in the tree: give
// it a line, here and in CONTRIBUTING.md.
var rooms = []room{
	{folder: "protocol"},
	{folder: "internal/git", may: []string{"internal/place"}},
	{folder: "internal/outlet"},
	{folder: "client", may: []string{"internal/place", "internal/secret", "internal/git"}},
	{folder: "internal/place"},
	{folder: "internal/secret", may: []string{"internal/place"}},
	{folder: "internal/sandbox", may: []string{"internal/place"}},
	{folder: "internal/rules"},
	// The sign-in lives in a file of the person's.
	{folder: "internal/model/chatgpt", may: []string{"internal/model", "internal/place", "internal/secret"}},
	{folder: "internal/model", may: []string{"internal/secret"}},
	{folder: "internal/store", may: []string{"internal/place"}},
	{folder: "internal/window", may: []string{"internal/model"}},
	{folder: "internal/tool", may: []string{
		"internal/place", "internal/sandbox", "internal/rules", "internal/secret", "internal/model",
	}},
	{folder: "internal/engine", may: belowEngine},
	{folder: "internal/daemon", may: append([]string{"internal/engine"}, belowEngine...)},
	{
		folder: "internal/cli", may: []string{"client", "internal/outlet", "internal/place", "internal/secret"},
		alone: map[string][]string{
			"serve":    {"internal/daemon"},
			"approver": {"internal/approver"},
			"login":    {"internal/model/chatgpt"}, // and the sign-in below it
			"store":    {"internal/store"},
			"version":  {"internal/store"}, // for the schema's number
			// The daemon's helper children are told apart before any verb.
			"main": {"internal/sandbox", "internal/tool"},
		},
	},
	{folder: "internal/approver", may: []string{"client", "internal/secret"}},
	{folder: "internal/sonny", may: sonnyMay},
	{folder: "internal/fakemodel", may: []string{"internal/model"}},
	{folder: "cmd/agent", may: []string{"internal/cli"}},
	{folder: "cmd/sonny", may: []string{"internal/sonny/cli"}},
	{folder: "examples", may: []string{"client"}},
	{
		folder: "bench", may: []string{"client", "internal/fakemodel"},
		// A daemon of its own, whose syncs are slow and whose heap can be asked for.
		alone: map[string][]string{"probed": {"internal/daemon", "internal/store"}},
	},

	// These drive the built program, or read the tree, and import nothing.
	{folder: "internal/house"},
	{folder: "docs"},
	{folder: "demo"},
}

// forTests are never part of what ships. The model server may be imported by
// any room's tests, the families' helpers by those of rooms above them.
var forTests = []string{"internal/fakemodel", "internal/model/modeltest", "internal/model/chatgpt/chatgpttest", "internal/sonny/sonnytest"}

func TestImportsOfEveryRoom(t *testing.T) {
	t.Parallel()
	files := tree(t)
	if len(files) < 100 {
		t.Fatalf("only %d files found: the tree was not read", len(files))
	}
	for _, f := range files {
		for _, fault := range importFaults(f) {
			t.Error(fault)
		}
	}
}

// importFaults says what of a file's imports its room does not allow.
func importFaults(f goFile) []string {
	r, ok := roomOf(f.dir())
	if !ok {
		return []string{fmt.Sprintf("%s: the folder %s is no room: give it a line in rooms and in CONTRIBUTING.md", f.path, f.dir())}
	}
	var faults []string
	for _, imported := range f.imports() {
		ours, ok := strings.CutPrefix(imported, module)
		if ok && !allowed(r, f, ours) {
			faults = append(faults, fmt.Sprintf("%s: %s may not import %s", f.path, r.folder, ours))
		}
	}
	return faults
}

func allowed(r room, f goFile, imported string) bool {
	for _, folder := range forTests {
		if within(imported, folder) && !within(f.dir(), folder) && !within(f.dir(), "bench") && !f.test {
			return false
		}
	}
	if within(imported, "protocol") && r.folder != "protocol" || within(imported, r.folder) {
		return true
	}
	if within(imported, "internal/fakemodel") && f.test {
		return true
	}
	for _, folder := range r.may {
		if within(imported, folder) {
			return true
		}
	}
	for prefix, folders := range r.alone {
		if !strings.HasPrefix(path.Base(f.path), prefix) {
			continue
		}
		for _, folder := range folders {
			if within(imported, folder) {
				return true
			}
		}
	}
	return false
}

// roomOf finds the room a folder belongs to.
func roomOf(folder string) (room, bool) {
	for _, r := range rooms {
		if within(folder, r.folder) {
			return r, true
		}
	}
	return room{}, false
}

// within reports whether folder is top or below it.
func within(folder, top string) bool {
	return folder == top || strings.HasPrefix(folder, top+"/")
}

func TestImportCheckSeesWhatItIsFor(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name, path, imports string
		faulty              bool
	}{
		{"a room may import the protocol", "internal/rules/a.go", "agent/protocol", false},
		{"a room may import its own folders", "internal/model/anthropic/a.go", "agent/internal/model/wire", false},
		{"the protocol imports nothing of ours", "protocol/a.go", "agent/internal/place", true},
		{"the store does not know the engine", "internal/store/a.go", "agent/internal/engine", true},
		{"the engine does not know the client", "internal/engine/a.go", "agent/client", true},
		{"the engine does not know the daemon", "internal/engine/a.go", "agent/internal/daemon", true},
		{"a verb may not import the daemon", "internal/cli/run.go", "agent/internal/daemon", true},
		{"serve may import the daemon", "internal/cli/serve.go", "agent/internal/daemon", false},
		{"serve may not import the store", "internal/cli/serve.go", "agent/internal/store", true},
		{"the terminal client does not know the store", "internal/sonny/lead/a.go", "agent/internal/store", true},
		{"a test may import the model server", "internal/engine/a_test.go", "agent/internal/fakemodel", false},
		{"what ships may not import the model server", "internal/engine/a.go", "agent/internal/fakemodel", true},
		{"a family may not import its tests' helpers", "internal/model/wire/a.go", "agent/internal/model/modeltest", true},
		{"a family's test may import them", "internal/model/wire/a_test.go", "agent/internal/model/modeltest", false},
		{"a name that only begins alike is another folder", "internal/rules/a.go", "agent/protocolx", true},
		{"a folder without a line is refused", "internal/attic/a.go", "fmt", true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := snippet(t, row.path, fmt.Sprintf("package a\n\nimport _ %q\n", row.imports))
			if faults := importFaults(f); (len(faults) > 0) != row.faulty {
				t.Errorf("faults %q, want any: %v", faults, row.faulty)
			}
		})
	}
}

// Nobody but the store sees the module. Benchmarks fill a store's file directly,
// where the product would take hours, and tests look at one from outside.
func TestTheStoreAloneReachesTheStorageModule(t *testing.T) {
	t.Parallel()
	for _, f := range tree(t) {
		for _, imported := range f.imports() {
			sqlite := strings.HasPrefix(imported, "zombiezen.com/go/sqlite") || strings.HasPrefix(imported, "modernc.org/sqlite")
			if sqlite && !f.test && !within(f.dir(), "internal/store") && !within(f.dir(), "bench") {
				t.Errorf("%s imports %s: storage is reached through internal/store", f.path, imported)
			}
		}
	}
}

func TestAgentLinksNoScreenModules(t *testing.T) {
	t.Parallel()
	out, err := goList("-deps", "./cmd/agent")
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if len(linked) < 50 {
		t.Fatalf("only %d packages under cmd/agent: the list was not read", len(linked))
	}
	for _, pkg := range linked {
		for _, screen := range []string{"chroma", "glamour", "bubbletea", "lipgloss", "agent/internal/sonny"} {
			if strings.Contains(pkg, screen) {
				t.Errorf("cmd/agent links %s: the daemon's memory pays for each import, and it has no screen", pkg)
			}
		}
	}
}

func TestSonnyIsAClient(t *testing.T) {
	t.Parallel()
	t.Run("PO-4 sonny links neither the daemon nor its store", func(t *testing.T) {
		out, err := goList("-deps", "./cmd/sonny")
		if err != nil {
			t.Fatal(err)
		}
		linked := strings.Fields(string(out))
		if !slices.Contains(linked, "agent/client") {
			t.Fatal("the client is not linked: the list was not read")
		}
		for _, pkg := range linked {
			ours, is := strings.CutPrefix(pkg, "agent/")
			inside := is && slices.ContainsFunc([]string{"internal/engine", "internal/daemon", "internal/store", "internal/tool", "internal/sandbox"}, func(room string) bool { return within(ours, room) })
			if inside || strings.Contains(pkg, "sqlite") {
				t.Errorf("cmd/sonny links %s: it is a client of the daemon's socket only", pkg)
			}
		}
	})
}

// The daemon has no way to listen on a TCP port, not even for a sign-in.
func TestTheDaemonLinksNoSignIn(t *testing.T) {
	t.Parallel()
	t.Run("PO-10 the daemon links no listener for a sign-in", func(t *testing.T) {
		out, err := goList("-deps", "./internal/daemon")
		if err != nil {
			t.Fatal(err)
		}
		linked := strings.Fields(string(out))
		if !slices.Contains(linked, "agent/internal/model/chatgpt") {
			t.Fatal("the sign-in's file is not linked: the list was not read")
		}
		if slices.Contains(linked, "agent/internal/model/chatgpt/signin") {
			t.Error("the daemon links the sign-in's listener, which is for the command alone")
		}
	})
}
