package daemon_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agent/internal/store"
	"agent/protocol"
)

// A store of every version that was ever released is kept in testdata/stores, and
// each opens in the newest program with all its work intact. What a version's
// store was made by is frozen: a change to the schema is a further step and a
// further store, made by
//
//	UPDATE_STORES=1 go test ./internal/daemon -run NewestStoreIsKept
const storesFolder = "testdata/stores"

// keptScript is what the bots of a kept store do. It may grow; what stands there
// stays, for the older stores.
const keptScript = `[
	{"match":{"equals":"say"},"steps":[{"calls":[{"tool":"echo","id":"e1","arguments":{"text":"kept"}}]},{"text":"it said ${last}"}]},
	{"match":{"equals":"ask"},"steps":[{"calls":[{"tool":"echo","id":"a1","arguments":{"text":"allowed"}}]},{"text":"it said ${last}"}]},
	{"match":{"regex":"^await (.*)$"},"steps":[{"calls":[{"tool":"wait","id":"w1","arguments":{"handles":["${1}"]}}]},{"text":"it ended"}]},
	{"match":{"equals":"look"},"steps":[{"calls":[{"tool":"look","id":"l1","arguments":{}}]},{"text":"it said ${last}"}]},
	{"match":{"equals":"queued"},"steps":[{"text":"done: ${prompt}"}]}]`

// keptHost is a place whose bots work where every machine has a folder.
func keptHost(t *testing.T) *host {
	h := newHost(t, keptScript)
	h.workspace = "/"
	h.set.Limits.ApprovalHoldMS = 0
	return h
}

// fillKept makes the work that a kept store holds: a conversation, a fork of it, a
// call that waits for a verdict, a turn that waits for another with one queued
// behind it, and a call of a client's tool.
func fillKept(t *testing.T, k *conn) {
	k.bot("Ada", "/", "echo")
	if got := k.run("Ada", "r1", "say"); got.Status != protocol.StatusCompleted {
		t.Fatalf("%+v", got)
	}
	k.fork("Ada", "Eve", `"workspace":"/"`)
	k.ask(nil, "create", `"bot":"Bob","model":"s/m","instructions":"","tools":["echo"],"workspace":"/","approve":["echo"],"approver":"manual"`)
	asked := k.submit("Bob", "r2", "ask", "")
	k.bot("Cat", "/", "wait")
	k.submit("Cat", "r3", fmt.Sprintf("await turn:Bob/%d", asked.Turn), "")
	k.submit("Cat", "r4", "queued", `"delivery":"queue"`)
	k.served("Dan", "/", "", `{"name":"look","description":"looks","parameters":{"type":"object"},"tag":"eyes","expire_ms":86400000}`)
	k.submit("Dan", "r5", "look", "")
	k.parked(3)
}

func TestNewestStoreIsKept(t *testing.T) {
	version := store.SchemaVersion()
	kept := filepath.Join(storesFolder, fmt.Sprintf("v%d.sqlite.gz", version))
	digest := filepath.Join(storesFolder, fmt.Sprintf("v%d.schema", version))
	text, err := os.ReadFile("../store/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	now := hex.EncodeToString(sum[:]) + "\n"
	if os.Getenv("UPDATE_STORES") != "" {
		h := keptHost(t)
		p := h.start()
		fillKept(t, p.dial())
		p.dial().ask(nil, "shutdown", "")
		if status := p.wait(); status != 0 {
			t.Fatalf("exit %d", status)
		}
		if err := pack(h.set.Store, kept); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(digest, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(digest); err != nil || string(was) != now {
		t.Errorf("schema.sql is not what the kept store of version %d was made by (%v): a released schema is never edited; "+
			"add a step in schema.go, which takes older stores to a version %d, and keep a store of that", version, err, version+1)
	}
}

func TestOlderStoresOpen(t *testing.T) {
	t.Parallel()
	list, err := filepath.Glob(filepath.Join(storesFolder, "v*.sqlite.gz"))
	if err != nil || len(list) != store.SchemaVersion() {
		t.Fatalf("%d stores are kept, of %d versions: %v", len(list), store.SchemaVersion(), err)
	}
	for _, kept := range list {
		name, _, _ := strings.Cut(filepath.Base(kept), ".")
		if n, err := strconv.Atoi(name[1:]); err != nil || n < 1 || n > store.SchemaVersion() {
			t.Errorf("%s is of no version", kept)
		}
		t.Run("a store of version "+name[1:]+" goes on where it was", func(t *testing.T) {
			t.Parallel()
			h := keptHost(t)
			if err := unpack(kept, h.set.Store); err != nil {
				t.Fatal(err)
			}
			p := h.start()
			k := p.dial()
			goesOn(t, k)
			k.ask(nil, "shutdown", "")
			if status := p.wait(); status != 0 {
				t.Errorf("exit %d", status)
			}
		})
	}
}

// goesOn finds the work of fillKept and brings it to its end.
func goesOn(t *testing.T, k *conn) {
	if got := k.result("Ada", 1); got.Status != protocol.StatusCompleted || !strings.Contains(got.Text, "kept") {
		t.Errorf("what was said: %+v", got)
	}
	if got := k.nodes("Eve"); len(got) != 4 {
		t.Errorf("the fork has %d items", len(got))
	}
	var page protocol.EventPage
	k.ask(&page, "events", `"bot":"Ada","after":0,"limit":256`)
	if n := len(page.Events); n == 0 || !strings.Contains(string(page.Events[n-1]), `"turn_finished"`) {
		t.Errorf("%d events are kept", len(page.Events))
	}
	k.follow("Cat", 0)
	waiting := k.waiting(1)
	if waiting[0].Bot != "Bob" || waiting[0].CallID != "a1" || waiting[0].Request != 1 {
		t.Errorf("what waits for a verdict: %+v", waiting[0])
	}
	k.allow(waiting[0], "")
	k.until("turn_finished", 3)
	k.until("turn_finished", 4)
	for turn, want := range map[int64]string{3: "it ended", 4: "done: queued"} {
		if got := k.result("Cat", turn); got.Text != want {
			t.Errorf("turn %d: %+v", turn, got)
		}
	}
	if got := k.result("Bob", 2); got.Status != protocol.StatusCompleted || !strings.Contains(got.Text, "allowed") {
		t.Errorf("the call that was allowed: %+v", got)
	}
	served := k.serve("eyes", 60_000)
	if len(served.Calls) != 1 || served.Calls[0].CallID != "l1" {
		t.Fatalf("what waits for a client: %+v", served.Calls)
	}
	k.follow("Dan", 0)
	k.ask(nil, "tool_result", fmt.Sprintf(`"bot":"Dan","turn":5,"call_id":"l1","request":1,"tag":"eyes","lease":%d,"output":"seen"`, served.Lease))
	k.until("turn_finished", 5)
	if got := k.result("Dan", 5); got.Text != "it said seen" {
		t.Errorf("the served call: %+v", got)
	}
}

func pack(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	z, _ := gzip.NewWriterLevel(f, gzip.BestCompression)
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}

func unpack(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}
