-- Step 1 of the schema of state.db: a directory of runs and a mailbox for controls.

CREATE TABLE invocations (
	id         TEXT PRIMARY KEY,          -- 12 hex digits; one per start or play, kept by its resumes
	created_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE plays (
	id            TEXT PRIMARY KEY,       -- 32 hex digits
	invocation_id TEXT NOT NULL REFERENCES invocations(id) ON DELETE CASCADE,
	name          TEXT NOT NULL,
	arguments     JSON
) WITHOUT ROWID;

CREATE TABLE sessions (
	id             TEXT PRIMARY KEY,      -- UUID version 4, 32 hex digits
	run_id         TEXT NOT NULL UNIQUE,
	invocation_id  TEXT NOT NULL REFERENCES invocations(id),
	origin         TEXT NOT NULL,         -- id of the first session of its chain of resumes
	kind           TEXT NOT NULL,         -- flow, agent, play
	name           TEXT NOT NULL,
	status         TEXT NOT NULL,
	reason_code    TEXT NOT NULL,
	reason         TEXT NOT NULL,
	resumed_from   TEXT REFERENCES sessions(id) ON DELETE SET NULL,
	created_at     REAL NOT NULL,         -- epoch seconds, no two alike
	started_at     REAL,
	ended_at       REAL,
	done           INTEGER NOT NULL DEFAULT 0,
	total          INTEGER NOT NULL DEFAULT 0,
	metadata       JSON NOT NULL,         -- object
	labels         JSON NOT NULL          -- object of strings; the table below is for searching
);
CREATE UNIQUE INDEX sessions_by_time ON sessions(created_at);
CREATE INDEX sessions_by_origin ON sessions(origin);
CREATE INDEX sessions_by_invocation ON sessions(invocation_id);
-- A run has at most one successor: of two resumes at once the second violates this.
CREATE UNIQUE INDEX sessions_by_predecessor ON sessions(resumed_from) WHERE resumed_from IS NOT NULL;
-- What a supervisor looks for: everything that has not ended.
CREATE INDEX sessions_live ON sessions(status, created_at)
	WHERE status IN ('queued', 'starting', 'running', 'paused');

CREATE TABLE labels (
	session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
	name       TEXT NOT NULL,
	value      TEXT NOT NULL,
	PRIMARY KEY (session_id, name)
) WITHOUT ROWID;
CREATE INDEX labels_by_value ON labels(name, value);

CREATE TABLE status_transitions (
	seq         INTEGER PRIMARY KEY,
	session_id  TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
	status      TEXT NOT NULL,
	reason_code TEXT NOT NULL,
	reason      TEXT NOT NULL,
	at          REAL NOT NULL
);
CREATE INDEX status_transitions_by_session ON status_transitions(session_id, seq);

CREATE TABLE session_controls (
	id         TEXT PRIMARY KEY,          -- UUID version 4, 32 hex digits
	session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
	verb       TEXT NOT NULL,             -- checked by the writer: a newer verb needs no new table
	payload    JSON,                      -- null, or an object
	created_at REAL NOT NULL,             -- grows strictly within a session
	claimed_at REAL,
	applied_at REAL,                      -- null until the result is terminal
	result     TEXT
);
CREATE INDEX session_controls_pending ON session_controls(session_id, applied_at)
	WHERE applied_at IS NULL;
CREATE INDEX session_controls_by_time ON session_controls(session_id, created_at, id);

CREATE TABLE queues (
	name  TEXT PRIMARY KEY,
	slots INTEGER NOT NULL                -- 0: unlimited
) WITHOUT ROWID;
