package store

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
)

// small are the tables that hold a row, or as many as there are companions.
var small = map[string]bool{
	"store": true, "node_sequence": true, "bot_sequence": true, "turn_sequence": true,
	"event_retention": true, "pause": true, "companions": true,
}

// active are the partial indexes that hold an entry for each active row only,
// so that walking one of them whole is no walk over history.
var active = map[string]bool{
	"turns_running": true, "turns_waiting": true, "turns_paced": true, "turns_ready": true, "turns_ready_bot": true,
	"turns_queued": true, "turns_steers": true, "processes_running": true, "bots_deleting": true,
}

var (
	scanLine  = regexp.MustCompile(`^SCAN (\S+)(?: USING (?:COVERING )?INDEX (\S+))?`)
	withNames = regexp.MustCompile(`(?i)(\w+)\s*(?:\([^()]*\))?\s+AS\s+(?:NOT\s+)?(?:MATERIALIZED\s+)?\(`)
	subNames  = regexp.MustCompile(`(?i)\)\s*(?:AS\s+)?(\w+)`)
)

// scans gives the lines of a statement's plan that walk a table which grows. A
// name that is neither a small table nor a subquery's own is taken for one: it
// may be an alias.
func scans(t *testing.T, c *sqlite.Conn, sql string) (bad []string) {
	t.Helper()
	own := map[string]bool{}
	for _, re := range []*regexp.Regexp{withNames, subNames} {
		for _, m := range re.FindAllStringSubmatch(sql, -1) {
			own[m[1]] = normative[m[1]] == ""
		}
	}
	for _, line := range strings.Split(planOf(t, c, sql), "\n") {
		m := scanLine.FindStringSubmatch(line)
		switch {
		case m == nil, small[m[1]], active[m[2]], own[m[1]]:
		case m[1] == "CONSTANT", strings.HasPrefix(m[1], "("), strings.Contains(line, "VIRTUAL TABLE"):
		default:
			bad = append(bad, line)
		}
	}
	return bad
}

// planned are the statements that have a plan.
func planned() (out []string) {
	for _, q := range queries {
		switch word, _, _ := strings.Cut(strings.TrimSpace(q.sql), " "); strings.ToUpper(word) {
		case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "REPLACE":
			out = append(out, q.sql)
		}
	}
	return out
}

// once are statements that run at open on what was just made or migrated.
var once = map[string]bool{qForeignKey.sql: true, qAnyTable.sql: true}

// fill gives every table enough rows for the planner to have a choice.
func fill(t *testing.T, s *Store) {
	t.Helper()
	err := s.Do("fill", func(tx *Tx) error {
		return script(tx.Conn(), fillSQL)
	})
	if err != nil {
		t.Fatal(err)
	}
}

const fillSQL = `
CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) SELECT i FROM n;
INSERT INTO bots (id, name, status, provider, family, model, instructions, tools)
  SELECT i, 'bot' || i, 'idle', 'p', 'chat', 'm', '', '[]' FROM n WHERE i <= 50;
INSERT INTO nodes (id, parent, turn, turn_seq, depth, total_bytes, item)
  SELECT i, nullif(i - 1, 0), iif(i % 4 = 0, i / 4, NULL), iif(i % 4 = 0, i / 4, NULL), i, i * 100, zeroblob(100) FROM n;
UPDATE bots SET head = id * 8, context_start = id;
INSERT INTO stubs SELECT i, zeroblob(10) FROM n WHERE i % 2 = 0;
INSERT INTO notes (node, text) SELECT i, 'x' FROM n WHERE i % 9 = 0;
INSERT INTO compactions (node, cut, covered_from, covered_to, summary, prompts)
  SELECT i, i - 1, 1, 2, 's', '[]' FROM n WHERE i % 11 = 0;
INSERT INTO elisions (node, through, saved) SELECT i, i, 1 FROM n WHERE i % 13 = 0;
INSERT INTO checkpoints SELECT 'bot' || (i % 50 + 1), i FROM n;
INSERT INTO turns (id, bot, request_id, prompt, status, delivery)
  SELECT i, 'bot' || (i % 50 + 1), 'r' || i, 'p',
  CASE i WHEN 1 THEN 'queued' WHEN 2 THEN 'ready' WHEN 3 THEN 'running' WHEN 4 THEN 'waiting' WHEN 5 THEN 'paced' ELSE 'completed' END,
  'steer' FROM n;
INSERT INTO retained_turns SELECT id, bot FROM turns;
INSERT INTO tools (turn, call_id, name, seq, status) SELECT i, 'c' || i, 'shell', 0, 'completed' FROM n;
INSERT INTO call_ids SELECT id % 50 + 1, 'c' || id, id FROM turns;
INSERT INTO inherited SELECT i % 50 + 1, i, 60 FROM n;
INSERT INTO processes (bot_id, turn, call_id, status) SELECT 1, i, 'c', iif(i = 7, 'running', 'done') FROM n;
INSERT INTO artifacts (turn, call_id, stream, raw_bytes, file) SELECT i, 'c', 'stdout', 1, iif(i % 3 = 0, '1/' || i, NULL) FROM n;
INSERT INTO seen_files SELECT bot, '/f' || id, 1, 1, 1, id, x'00' FROM turns;
INSERT INTO pictures SELECT CAST(i AS BLOB), 'image/png', 1, 1, x'00' FROM n;
INSERT INTO node_pictures (node, hash) SELECT i, CAST(i AS BLOB) FROM n;
INSERT INTO turn_pictures (turn, seq, hash) SELECT i, 0, CAST(i AS BLOB) FROM n;
INSERT INTO picture_holds (hash) SELECT CAST(i AS BLOB) FROM n;
INSERT INTO rules SELECT 'd' || i, '[]' FROM n;
INSERT INTO events (bot, turn, kind, data) SELECT bot, id, 'turn_finished', '{}' FROM turns;
DROP TABLE n;
ANALYZE;
`

func TestPlans(t *testing.T) {
	path := storePath(t)
	s := mustOpen(t, Options{Path: path})
	fill(t, s)
	c := s.readers.free[0].conn
	t.Run("every table of the schema is filled", func(t *testing.T) {
		for table := range normative {
			n, err := integer(c, &query{"SELECT count(*) FROM " + table})
			if err != nil {
				t.Fatal(err)
			}
			if n < 20 && !small[table] {
				t.Errorf("%s has %d rows", table, n)
			}
		}
	})
	t.Run("RT-104 no statement scans a growing table", func(t *testing.T) {
		statements := planned()
		if len(statements) < 4 {
			t.Fatalf("only %d statements are registered", len(statements))
		}
		for _, sql := range statements {
			if once[sql] {
				continue
			}
			for _, line := range scans(t, c, sql) {
				t.Errorf("%s\n\t%s", strings.Join(strings.Fields(sql), " "), line)
			}
		}
	})
	t.Run("RT-104 nor does one without the planner's statistics, which a store need not have", func(t *testing.T) {
		bare := mustOpen(t, Options{Path: storePath(t)}).readers.free[0].conn
		for _, sql := range planned() {
			if once[sql] {
				continue
			}
			for _, line := range scans(t, bare, sql) {
				t.Errorf("%s\n\t%s", strings.Join(strings.Fields(sql), " "), line)
			}
		}
	})
	t.Run("no statement is registered twice", func(t *testing.T) {
		seen := map[string]bool{}
		for _, q := range queries {
			if seen[q.sql] {
				t.Errorf("twice: %s", q.sql)
			}
			seen[q.sql] = true
		}
	})
	for _, row := range []struct {
		name, sql string
		bad       bool
	}{
		{"a whole table", "SELECT kind FROM events", true},
		{"an alias of one", "SELECT e.kind FROM events AS e", true},
		{"one without an index for the condition", "SELECT id FROM turns WHERE origin = ?", true},
		{"an index that grows, walked whole", "SELECT count(*) FROM checkpoints", true},
		{"a table joined without an index", "SELECT 1 FROM bots b JOIN events e ON e.data = b.model WHERE b.name = ?", true},
		{"a delete without an index", "DELETE FROM artifacts WHERE stream = ?", true},
		{"a subquery over one", "SELECT * FROM (SELECT DISTINCT kind FROM events) AS k", true},
		{"an update without an index", "UPDATE turns SET origin = NULL WHERE workspace = ?", true},
		{"a look-up by key", "SELECT item FROM nodes WHERE id = ?", false},
		{"a page of a listing", "SELECT name FROM bots WHERE name > ? ORDER BY name LIMIT 64", false},
		{"the active rows", "SELECT id FROM turns WHERE status = 'running'", false},
		{"the queued of a bot", "SELECT id FROM turns WHERE bot = ? AND status = 'queued' ORDER BY id LIMIT 1", false},
		{"a small table", "SELECT name FROM companions ORDER BY position", false},
		{"the newest node", "SELECT max(id) FROM nodes", false},
		{"a walk along a lineage", `WITH RECURSIVE walk(id, parent) AS (
			SELECT id, parent FROM nodes WHERE id = ? UNION ALL
			SELECT n.id, n.parent FROM walk JOIN nodes n ON n.id = walk.parent)
			SELECT id FROM walk LIMIT 64`, false},
		{"a list given as JSON", "SELECT e.value FROM json_each(?) e", false},
	} {
		t.Run(fmt.Sprintf("the judge of plans: %s is found bad: %v", row.name, row.bad), func(t *testing.T) {
			if bad := scans(t, c, row.sql); (len(bad) > 0) != row.bad {
				t.Errorf("%v\n%s", bad, planOf(t, c, row.sql))
			}
		})
	}
}
