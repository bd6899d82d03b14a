-- What belongs to a job, the chain of a run and its resumes: queue, key, policies, notices. Additive.

ALTER TABLE sessions ADD COLUMN queue TEXT NOT NULL DEFAULT 'default'; -- '': in none (foreground)
ALTER TABLE sessions ADD COLUMN unique_key TEXT;
-- {"notify":{"command":[...]},"watchdog_ns":N,"withheld":[NAME...],"foreground":true}
ALTER TABLE sessions ADD COLUMN policy JSON NOT NULL DEFAULT '{}';
ALTER TABLE sessions ADD COLUMN notify TEXT NOT NULL DEFAULT '';       -- '', problems, all
ALTER TABLE sessions ADD COLUMN restarts_left INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN restarts_done INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN quick_deaths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN place TEXT NOT NULL DEFAULT '';        -- of the worker: host boot-id pid-namespace
CREATE INDEX sessions_by_queue ON sessions(queue, created_at)
	WHERE status IN ('queued', 'starting', 'running', 'paused');
CREATE INDEX sessions_by_unique ON sessions(unique_key, created_at) WHERE unique_key IS NOT NULL;
CREATE INDEX sessions_restarting ON sessions(ended_at) WHERE status = 'crashed' AND restarts_left > 0;

-- Each event that somebody asked to be told of, once.
CREATE TABLE notices (
	session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
	event      TEXT NOT NULL,             -- a status word, waiting:<op>, storage:<n>, blocking
	at         REAL NOT NULL,
	claimed_at REAL,                      -- a command was started, or is about to be
	ended_at   REAL,
	outcome    TEXT,
	PRIMARY KEY (session_id, event)
) WITHOUT ROWID;
CREATE INDEX notices_unclaimed ON notices(at) WHERE claimed_at IS NULL;
