-- The store's schema, version 1 (runtime.md 24). Names are normative. What is
-- added to them: the column "one" of tables with a single row, call_ids, inherited,
-- and indexes marked "own".

CREATE TABLE store (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  identity   INTEGER NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;

-- Ids are never given out twice. Nodes take max(highest id, last_id), so that
-- appending writes no counter; last_id is raised when history is deleted.
CREATE TABLE node_sequence (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  last_id INTEGER NOT NULL CHECK (last_id >= 0)
) STRICT;
INSERT INTO node_sequence VALUES (1, 0);

CREATE TABLE bot_sequence (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  last_id INTEGER NOT NULL CHECK (last_id >= 0)
) STRICT;
INSERT INTO bot_sequence VALUES (1, 0);

CREATE TABLE turn_sequence (
  one     INTEGER PRIMARY KEY CHECK (one = 1),
  last_id INTEGER NOT NULL CHECK (last_id >= 0)
) STRICT;
INSERT INTO turn_sequence VALUES (1, 0);

CREATE TABLE event_retention (
  one           INTEGER PRIMARY KEY CHECK (one = 1),
  pruned_cursor INTEGER NOT NULL CHECK (pruned_cursor >= 0)
) STRICT;
INSERT INTO event_retention VALUES (1, 0);

CREATE TABLE companions (
  name     TEXT PRIMARY KEY,
  position INTEGER NOT NULL,
  command  TEXT NOT NULL -- JSON
) STRICT;

CREATE TABLE pause (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  "by"     TEXT NOT NULL,
  by_id    INTEGER,
  turn     INTEGER,
  reason   TEXT,
  since_ms INTEGER NOT NULL
) STRICT;

-- A rule set is kept once, whoever uses it.
CREATE TABLE rules (
  digest TEXT PRIMARY KEY,
  files  TEXT NOT NULL -- JSON: names and texts
) STRICT;

CREATE TABLE bots (
  id                  INTEGER PRIMARY KEY,
  name                TEXT NOT NULL UNIQUE,
  head                INTEGER REFERENCES nodes (id),
  status              TEXT NOT NULL CHECK (status IN
                      ('idle', 'running', 'waiting', 'paced', 'completed', 'failed', 'interrupted', 'deleting')),
  running_turn        INTEGER,
  closed              INTEGER REFERENCES nodes (id), -- the running turn's newest proven fork point
  provider            TEXT NOT NULL,
  family              TEXT NOT NULL,
  model               TEXT NOT NULL,
  reasoning           TEXT,
  tools               TEXT NOT NULL, -- JSON
  allowed             TEXT,          -- JSON
  client_tools        TEXT,          -- JSON
  settings            TEXT,          -- JSON
  denials             TEXT,          -- JSON, per tag, expired ones included
  overturns           TEXT,          -- JSON, one-time allows for calls and steps
  workspace           TEXT,
  budget_tokens       INTEGER,
  tokens_used         INTEGER NOT NULL DEFAULT 0,
  input_tokens        INTEGER NOT NULL DEFAULT 0,
  cached_input_tokens INTEGER NOT NULL DEFAULT 0,
  context_start       INTEGER REFERENCES nodes (id),
  note                INTEGER REFERENCES notes (node),
  compaction          INTEGER REFERENCES compactions (node),
  elision             INTEGER REFERENCES elisions (node),
  compaction_model    TEXT,
  created_by          TEXT,
  created_by_id       INTEGER,
  cache_bot           INTEGER,
  fallbacks           INTEGER NOT NULL DEFAULT 0,
  pruned_cursor       INTEGER NOT NULL DEFAULT 0,
  -- What thinking may still be sent (runtime.md 19): the fingerprint of the
  -- last request's prefix, the node below which none is, and the span and mark
  -- of the last move of the elision floor.
  prefix              INTEGER,
  below               INTEGER NOT NULL DEFAULT 0,
  "from"              INTEGER NOT NULL DEFAULT 0,
  "to"                INTEGER NOT NULL DEFAULT 0,
  elided              INTEGER NOT NULL DEFAULT 0,
  sandbox             TEXT, -- JSON: mode, folders, exclusions, network, sockets
  rules               TEXT, -- a digest of rules, or the unreadable mark; so no foreign key
  gates               TEXT, -- JSON
  closed_to_bots      INTEGER NOT NULL DEFAULT 0,
  creator_limits      TEXT, -- JSON: what a deleted sandboxed creator left binding
  bot_made            INTEGER NOT NULL DEFAULT 0, -- by a bot, or a fork of one that was
  -- Long texts last, so that a listing need not cross their overflow pages.
  instructions            TEXT NOT NULL,
  compaction_instructions TEXT
) STRICT;
CREATE INDEX bots_head ON bots (head);
CREATE INDEX bots_closed ON bots (closed);
CREATE INDEX bots_context_start ON bots (context_start);
CREATE INDEX bots_note ON bots (note);
CREATE INDEX bots_compaction ON bots (compaction);
CREATE INDEX bots_elision ON bots (elision);
CREATE INDEX bots_rules ON bots (rules);
CREATE INDEX bots_deleting ON bots (name) WHERE status = 'deleting';
CREATE INDEX bots_created_by_id ON bots (created_by_id) WHERE created_by_id IS NOT NULL; -- own: a deleted creator's children

CREATE TABLE nodes (
  id           INTEGER PRIMARY KEY,
  parent       INTEGER REFERENCES nodes (id),
  turn         INTEGER, -- on a turn's first item
  turn_seq     INTEGER, -- its ordinal, on the same
  depth        INTEGER NOT NULL,
  total_bytes  INTEGER NOT NULL, -- cumulative along the lineage
  elided       INTEGER NOT NULL DEFAULT 0, -- saved by this node's stub
  total_elided INTEGER NOT NULL DEFAULT 0, -- cumulative
  thinking     INTEGER NOT NULL DEFAULT 0, -- bytes of thinking in the item
  pictures     INTEGER NOT NULL DEFAULT 0,
  item         BLOB NOT NULL -- last: walks over metadata never touch its overflow pages
) STRICT;
CREATE INDEX nodes_parent ON nodes (parent);
CREATE UNIQUE INDEX nodes_turn ON nodes (turn) WHERE turn IS NOT NULL;
CREATE INDEX nodes_turn_seq ON nodes (turn_seq) WHERE turn_seq IS NOT NULL;

CREATE TABLE stubs (
  node INTEGER PRIMARY KEY REFERENCES nodes (id),
  item BLOB NOT NULL
) STRICT;

CREATE TABLE notes (
  node     INTEGER PRIMARY KEY REFERENCES nodes (id),
  previous INTEGER REFERENCES notes (node),
  text     TEXT NOT NULL
) STRICT;
CREATE INDEX notes_previous ON notes (previous);

CREATE TABLE compactions (
  node         INTEGER PRIMARY KEY REFERENCES nodes (id),
  previous     INTEGER REFERENCES compactions (node),
  cut          INTEGER NOT NULL REFERENCES nodes (id),
  pinned       INTEGER REFERENCES nodes (id),
  covered_from INTEGER NOT NULL,
  covered_to   INTEGER NOT NULL,
  summary      TEXT NOT NULL,
  prompts      TEXT NOT NULL -- JSON
) STRICT;
CREATE INDEX compactions_previous ON compactions (previous);
CREATE INDEX compactions_cut ON compactions (cut);
CREATE INDEX compactions_pinned ON compactions (pinned) WHERE pinned IS NOT NULL;

CREATE TABLE elisions (
  node     INTEGER PRIMARY KEY REFERENCES nodes (id),
  previous INTEGER REFERENCES elisions (node),
  through  INTEGER NOT NULL,
  saved    INTEGER NOT NULL
) STRICT;
CREATE INDEX elisions_previous ON elisions (previous);

CREATE TABLE checkpoints (
  bot  TEXT NOT NULL REFERENCES bots (name),
  head INTEGER NOT NULL REFERENCES nodes (id),
  PRIMARY KEY (bot, head)
) STRICT, WITHOUT ROWID;
CREATE INDEX checkpoints_head ON checkpoints (head);

CREATE TABLE turns (
  id                  INTEGER PRIMARY KEY,
  bot                 TEXT NOT NULL REFERENCES bots (name),
  request_id          TEXT NOT NULL,
  prompt_node         INTEGER REFERENCES nodes (id), -- set: the prompt is in that node and prompt is empty
  from_bot            TEXT,
  from_bot_id         INTEGER, -- own: the identity behind from_bot
  from_turn           INTEGER,
  origin              TEXT,
  status              TEXT NOT NULL CHECK (status IN
                      ('queued', 'ready', 'running', 'waiting', 'paced', 'completed', 'failed', 'interrupted', 'steered')),
  workspace           TEXT,
  model               TEXT,
  delivery            TEXT NOT NULL CHECK (delivery IN ('reject', 'queue', 'steer')),
  expected_turn       INTEGER,
  waiting             TEXT, -- JSON, the park record
  model_rounds        INTEGER NOT NULL DEFAULT 0,
  input_tokens        INTEGER NOT NULL DEFAULT 0,
  output_tokens       INTEGER NOT NULL DEFAULT 0,
  cached_input_tokens INTEGER NOT NULL DEFAULT 0,
  retries             INTEGER NOT NULL DEFAULT 0,
  paced_ms            INTEGER NOT NULL DEFAULT 0,
  started_ms          INTEGER,
  finished_ms         INTEGER,
  external            TEXT, -- JSON: tools that brought outside content
  into_turn           INTEGER, -- own: the turn that took a steer in
  into_node           INTEGER, -- own: the steer's item in it
  prompt              TEXT NOT NULL,
  UNIQUE (bot, request_id)
) STRICT;
CREATE INDEX turns_bot ON turns (bot, id);
CREATE INDEX turns_prompt_node ON turns (prompt_node) WHERE prompt_node IS NOT NULL;
CREATE INDEX turns_into ON turns (into_turn, into_node) WHERE into_turn IS NOT NULL; -- own: a turn's steers
CREATE INDEX turns_running ON turns (id) WHERE status = 'running';
CREATE INDEX turns_waiting ON turns (id) WHERE status = 'waiting';
CREATE INDEX turns_paced ON turns (id) WHERE status = 'paced';
CREATE INDEX turns_ready ON turns (id) WHERE status = 'ready';
CREATE INDEX turns_ready_bot ON turns (bot) WHERE status = 'ready';
CREATE INDEX turns_queued ON turns (bot, id) WHERE status = 'queued';
CREATE INDEX turns_steers ON turns (bot, id) WHERE status = 'queued' AND delivery = 'steer';

-- Turns that still own records retention may drop.
CREATE TABLE retained_turns (
  turn INTEGER PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
  bot  TEXT NOT NULL REFERENCES bots (name)
) STRICT;
CREATE INDEX retained_turns_bot ON retained_turns (bot, turn);

CREATE TABLE tools (
  turn     INTEGER NOT NULL,
  call_id  TEXT NOT NULL,
  name     TEXT NOT NULL,
  seq      INTEGER NOT NULL, -- order in the round
  status   TEXT NOT NULL CHECK (status IN ('planned', 'executing', 'completed')),
  approval TEXT, -- JSON
  served   TEXT, -- JSON
  steps    TEXT, -- JSON
  PRIMARY KEY (turn, call_id)
) STRICT, WITHOUT ROWID;

-- The call ids of the nodes that are there, by the bot whose turn planned them,
-- deleted or not: they are never pruned and go with their node.
CREATE TABLE call_ids (
  bot_id  INTEGER NOT NULL,
  call_id TEXT NOT NULL,
  node    INTEGER NOT NULL REFERENCES nodes (id), -- the last item of the response with the call
  PRIMARY KEY (bot_id, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX call_ids_node ON call_ids (node); -- own: node deletion

-- Whose turns made the part of its lineage that a fork did not: the nodes up to
-- "through", and after that of the row before, are those of source, deleted or
-- not.
CREATE TABLE inherited (
  bot_id  INTEGER NOT NULL,
  through INTEGER NOT NULL,
  source  INTEGER NOT NULL,
  PRIMARY KEY (bot_id, through)
) STRICT, WITHOUT ROWID;

CREATE TABLE processes (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  bot_id    INTEGER NOT NULL,
  turn      INTEGER NOT NULL REFERENCES turns (id),
  call_id   TEXT NOT NULL,
  status    TEXT NOT NULL CHECK (status IN ('running', 'done', 'lost', 'stopped')),
  delivered INTEGER REFERENCES nodes (id), -- the wait result that carried it
  result    TEXT -- JSON
) STRICT;
CREATE INDEX processes_turn ON processes (turn);
CREATE INDEX processes_running ON processes (turn) WHERE status = 'running';
CREATE INDEX processes_delivered ON processes (delivered) WHERE delivered IS NOT NULL; -- own: node deletion

CREATE TABLE artifacts (
  turn      INTEGER NOT NULL,
  call_id   TEXT NOT NULL,
  stream    TEXT NOT NULL,
  raw_bytes INTEGER NOT NULL,
  file      TEXT, -- of a spilled one: BOT_ID/NAME, below STORE.files
  truncated INTEGER NOT NULL DEFAULT 0, -- own: the disk filled while it was written (runtime.md 26)
  data      BLOB, -- raw or in blocks
  PRIMARY KEY (turn, call_id, stream)
) STRICT;
CREATE INDEX artifacts_file ON artifacts (file) WHERE file IS NOT NULL; -- own: the sweep of spill files

CREATE TABLE seen_files (
  bot      TEXT NOT NULL REFERENCES bots (name),
  path     TEXT NOT NULL,
  size     INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  inode    INTEGER NOT NULL,
  used     INTEGER NOT NULL,
  hash     BLOB NOT NULL,
  PRIMARY KEY (bot, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX seen_files_used ON seen_files (bot, used); -- own: which to forget

CREATE TABLE pictures (
  hash       BLOB PRIMARY KEY,
  media_type TEXT NOT NULL,
  width      INTEGER NOT NULL,
  height     INTEGER NOT NULL,
  data       BLOB NOT NULL
) STRICT;

CREATE TABLE node_pictures (
  node INTEGER NOT NULL REFERENCES nodes (id),
  hash BLOB NOT NULL REFERENCES pictures (hash),
  refused INTEGER NOT NULL DEFAULT 0, -- own: a provider did not take it, so it goes as text
  path TEXT, -- own: where a client had it
  PRIMARY KEY (node, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX node_pictures_hash ON node_pictures (hash);

-- Own: the pictures of a submission that waits; its node has them once it starts.
CREATE TABLE turn_pictures (
  turn INTEGER NOT NULL REFERENCES turns (id),
  seq  INTEGER NOT NULL, -- order in the submission
  hash BLOB NOT NULL REFERENCES pictures (hash),
  path TEXT,
  PRIMARY KEY (turn, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_pictures_hash ON turn_pictures (hash);

-- Own: pictures that were kept for what is about to name them, and are dropped
-- when that does not come about.
CREATE TABLE picture_holds (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  hash BLOB NOT NULL REFERENCES pictures (hash)
) STRICT;
CREATE INDEX picture_holds_hash ON picture_holds (hash);

CREATE TABLE events (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  bot  TEXT NOT NULL REFERENCES bots (name),
  turn INTEGER,
  kind TEXT NOT NULL,
  data TEXT NOT NULL -- JSON; names nodes, never copies them
) STRICT;
CREATE INDEX events_bot ON events (bot, id);
CREATE INDEX events_turn ON events (turn, kind, id);
