/*
 * What the sources of this directory share about the database: one connection, its statements
 * (prepared once, at first use), transactions, and SQLite's results as errors.
 */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <sqlite3.h>

#include "flowsup/fs.h"
#include "flowsup/store.h"

/* name, text. Statements of a fixed text; a list with filters prepares its own. */
#define SESSION_COLUMNS                                                                            \
	"s.run_id, s.id, s.invocation_id, s.origin, s.resumed_from, p.run_id, n.run_id, s.kind, "  \
	"s.name, s.status, s.reason_code, s.reason, s.created_at, s.started_at, s.ended_at, "      \
	"s.done, s.total, s.metadata, s.labels, s.queue, s.unique_key, s.policy, s.notify, "       \
	"s.place, s.restarts_left, s.restarts_done, s.quick_deaths"
/* The same places, of which a brief list reads only these. */
#define OF_QUEUED(column) "CASE s.status WHEN 'queued' THEN " column " END, "
#define SESSION_BRIEF_COLUMNS                                                                      \
	"s.run_id, NULL, NULL, " OF_QUEUED("s.origin") "NULL, NULL, n.run_id, NULL, "              \
	"s.name, s.status, s.reason_code, s.reason, s.created_at, s.started_at, s.ended_at, "      \
	"s.done, s.total, s.metadata, NULL, " OF_QUEUED("s.queue") OF_QUEUED("s.unique_key")       \
	"s.policy, NULL, CASE s.status WHEN 'crashed' THEN s.place END, s.restarts_left, "         \
	"s.restarts_done, NULL"
#define SESSION_TABLES                                                                             \
	"sessions s LEFT JOIN sessions p ON p.id = s.resumed_from "                                \
	"LEFT JOIN sessions n ON n.resumed_from = s.id "
#define SESSION_SELECT "SELECT " SESSION_COLUMNS " FROM " SESSION_TABLES
#define SESSION_BRIEF_SELECT                                                                       \
	"SELECT " SESSION_BRIEF_COLUMNS " FROM sessions s LEFT JOIN sessions n ON n.resumed_from = s.id "

/* Of the table or alias t: not at its end; as the partial indices have it. */
#define IS_LIVE(t) t ".status IN ('queued', 'starting', 'running', 'paused')"
/* Crashed, and about to be resumed by its policy: the job goes on. */
#define IS_RESTARTING(t) t ".status = 'crashed' AND " t ".restarts_left > 0"
/*
 * Crashed while it was being stopped at once, and something of it runs, or may for all that is known yet.
 * Whoever stopped it so was told that nothing of it goes on.
 */
#define IS_BEING_ENDED(t)                                                                          \
	t ".status = 'crashed' AND CASE WHEN json_valid(" t ".metadata) "                          \
	"THEN COALESCE(json_array_length(" t ".metadata, '$.running_operations'), 1) > 0 END "     \
	"AND EXISTS(SELECT 1 FROM session_controls c WHERE c.session_id = " t ".id "               \
	"AND c.verb = 'stop' AND c.result LIKE 'applied%' AND c.applied_at IS NOT NULL "           \
	"AND CASE WHEN json_valid(c.payload) THEN json_extract(c.payload, '$.mode') = 'now' END) " \
	"AND NOT EXISTS(SELECT 1 FROM sessions a WHERE a.resumed_from = " t ".id)"
/* A run of the home that this one is a copy of: it takes nobody's slot, and nothing is to be done for it. */
#define IS_COPY(t) "is_copy(" t ".run_id, " t ".metadata)"
/* Jobs that have a slot of queue q: runs that go on, and those whose automatic resume is to come. */
#define SLOT_OF_LIVE(q)                                                                            \
	" FROM sessions u WHERE " IS_LIVE("u") " AND u.queue = " q " AND "                         \
	"(u.status <> 'queued' OR u.restarts_done > 0) AND NOT " IS_COPY("u")
#define SLOT_OF_RESTARTING(q)                                                                      \
	" FROM sessions u WHERE " IS_RESTARTING("u") " AND u.queue = " q " AND NOT " IS_COPY("u")
#define SLOTS_USED(q)                                                                              \
	"((SELECT COUNT(*)" SLOT_OF_LIVE(q) ") + (SELECT COUNT(*)" SLOT_OF_RESTARTING(q) "))"
#define UNIQUE_BEING_ENDED "b.status = 'crashed' AND b.restarts_left = 0"
/*
 * The oldest run of another job that goes on with this key, before a run with `restarts` made at `at`.
 * What has left the queue is before everybody; of those in it an automatic resume is, whose job has
 * its key already however late its row came.
 */
#define UNIQUE_BLOCKER(what, key, origin, restarts, at)                                            \
	"SELECT " what " FROM sessions b WHERE b.unique_key = " key " AND b.origin <> " origin     \
	" AND (" IS_LIVE("b") " OR " IS_RESTARTING("b") " OR (" IS_BEING_ENDED("b") ")) "          \
	"AND (b.status <> 'queued' OR (b.restarts_done = 0, b.created_at) < "                      \
	"(" restarts " = 0, " at ")) ORDER BY b.created_at LIMIT 1"

#define CONTROL_COLUMNS "id, verb, payload, created_at, claimed_at, applied_at, result"

#define STATEMENT_TABLE(X)                                                                         \
	X(Q_BEGIN, "BEGIN IMMEDIATE")                                                              \
	X(Q_COMMIT, "COMMIT")                                                                      \
	X(Q_ROLLBACK, "ROLLBACK")                                                                  \
	X(Q_SESSION_TIME,                                                                          \
	    "SELECT MAX(?1, COALESCE((SELECT MAX(created_at) + 0.000001 FROM sessions), 0))")      \
	X(Q_INVOCATION_ADD, "INSERT INTO invocations(id, created_at) VALUES(?1, ?2) "              \
			    "ON CONFLICT(id) DO NOTHING")                                          \
	X(Q_SESSION_ADD,                                                                           \
	    "INSERT INTO sessions(id, run_id, invocation_id, origin, kind, name, status, "         \
	    "reason_code, reason, resumed_from, created_at, total, metadata, labels, done, "       \
	    "queue, unique_key, policy, notify, restarts_left, restarts_done, quick_deaths, place) "      \
	    "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "           \
	    "COALESCE(?16, (SELECT queue FROM sessions WHERE id = ?10), 'default'), "             \
	    "COALESCE(?17, (SELECT unique_key FROM sessions WHERE id = ?10)), ?18, "              \
	    "COALESCE(?19, ''), ?20, ?21, ?22, COALESCE(?23, ''))")                               \
	X(Q_PLAY_ADD, "INSERT INTO plays(id, invocation_id, name, arguments) VALUES(?1, ?2, ?3, ?4)") \
	X(Q_LABEL_ADD, "INSERT INTO labels(session_id, name, value) VALUES(?1, ?2, ?3)")           \
	X(Q_CHAIN, "SELECT s.origin, s.invocation_id, n.run_id, s.run_id FROM " SESSION_TABLES     \
		   "WHERE s.id = ?1")                                                              \
	X(Q_HAND_OVER, "UPDATE session_controls SET session_id = ?1 WHERE session_id = ?2 "        \
		       "AND claimed_at IS NULL AND applied_at IS NULL")                            \
	X(Q_SESSION_READ, SESSION_SELECT "WHERE s.run_id = ?1")                                    \
	X(Q_SESSION_STATUS, "SELECT id, status, kind FROM sessions WHERE run_id = ?1")             \
	X(Q_SESSION_MOVE,                                                                          \
	    "UPDATE sessions SET status = ?2, reason_code = ?3, reason = ?4, "                     \
	    "started_at = CASE WHEN ?2 = 'running' THEN COALESCE(started_at, ?5) "                 \
	    "ELSE started_at END, ended_at = CASE WHEN ?6 THEN ?5 ELSE NULL END, "                 \
	    "done = CASE WHEN ?7 < 0 THEN done ELSE ?7 END WHERE run_id = ?1")                     \
	X(Q_TRANSITION_ADD, "INSERT INTO status_transitions(session_id, status, reason_code, "     \
			    "reason, at) VALUES(?1, ?2, ?3, ?4, ?5)")                              \
	X(Q_PROGRESS, "UPDATE sessions SET done = ?2, total = ?3 WHERE run_id = ?1")               \
	X(Q_METADATA_READ, "SELECT metadata FROM sessions WHERE run_id = ?1")                      \
	X(Q_METADATA_WRITE, "UPDATE sessions SET metadata = ?2 WHERE run_id = ?1")                 \
	X(Q_TRANSITIONS, "SELECT t.status, t.reason_code, t.reason, t.at "                         \
			 "FROM status_transitions t JOIN sessions s ON s.id = t.session_id "       \
			 "WHERE s.run_id = ?1 ORDER BY t.seq")                                     \
	X(Q_LAST, SESSION_SELECT "ORDER BY s.created_at DESC LIMIT 1")                             \
	X(Q_LAST_FAILED, SESSION_SELECT "WHERE s.status IN ('failed', 'timed_out', 'crashed') "    \
					"AND n.id IS NULL ORDER BY s.created_at DESC LIMIT 1")                      \
	X(Q_LATEST, SESSION_SELECT "WHERE s.origin = (SELECT origin FROM sessions "                \
				   "WHERE run_id = ?1) AND n.id IS NULL "                          \
				   "ORDER BY s.created_at DESC LIMIT 1")                           \
	X(Q_BY_SESSION, "SELECT run_id FROM sessions WHERE id = ?1")                               \
	X(Q_BY_INVOCATION, "SELECT run_id FROM sessions WHERE invocation_id = ?1 "                 \
			   "ORDER BY created_at DESC LIMIT 1")                                     \
	X(Q_BY_PLAY, "SELECT s.run_id FROM plays p JOIN sessions s "                               \
		     "ON s.invocation_id = p.invocation_id WHERE p.id = ?1 "                       \
		     "ORDER BY s.created_at DESC LIMIT 1")                                         \
	X(Q_PREFIX_RUN, "SELECT run_id FROM sessions WHERE run_id >= ?1 AND run_id < ?2 "          \
			"ORDER BY run_id LIMIT 2")                                                 \
	X(Q_PREFIX_SESSION, "SELECT id FROM sessions WHERE id >= ?1 AND id < ?2 "                  \
			    "ORDER BY id LIMIT 2")                                                 \
	X(Q_PREFIX_INVOCATION, "SELECT id FROM invocations WHERE id >= ?1 AND id < ?2 "            \
			       "ORDER BY id LIMIT 2")                                              \
	X(Q_PREFIX_PLAY, "SELECT id FROM plays WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 2")    \
	X(Q_CONTROL_ADD,                                                                           \
	    "INSERT INTO session_controls(id, session_id, verb, payload, created_at) "             \
	    "SELECT ?1, s.id, ?3, ?4, MAX(?5, COALESCE((SELECT MAX(c.created_at) + 0.000001 "      \
	    "FROM session_controls c WHERE c.session_id = s.id), 0)) FROM sessions s "             \
	    "WHERE s.run_id = ?2 AND EXISTS (SELECT 1 FROM sessions r WHERE r.id = s.id "          \
	    "AND (r.status IN ('starting', 'running', 'paused') OR " IS_RESTARTING("r")            \
	    " OR (r.status = 'queued' AND ?3 <> 'stop')))")                                        \
	X(Q_CONTROL_PAUSE, "INSERT INTO session_controls(id, session_id, verb, created_at) "        \
			   "VALUES(?1, ?2, 'pause', ?3)")                                          \
	X(Q_CONTROLS, "SELECT " CONTROL_COLUMNS " FROM session_controls WHERE session_id = "       \
		      "(SELECT id FROM sessions WHERE run_id = ?1) ORDER BY created_at, id")       \
	X(Q_CONTROLS_PENDING,                                                                      \
	    "SELECT " CONTROL_COLUMNS " FROM session_controls WHERE session_id = "                 \
	    "(SELECT id FROM sessions WHERE run_id = ?1) AND applied_at IS NULL "                  \
	    "ORDER BY created_at, id")                                                             \
	X(Q_CONTROLS_LOST, "SELECT " CONTROL_COLUMNS ", r.run_id, r.name FROM session_controls c "  \
			   "JOIN (SELECT id AS session, run_id, name FROM sessions WHERE NOT "     \
			   IS_LIVE("sessions") ") r ON r.session = c.session_id "                  \
			   "WHERE c.applied_at IS NULL AND c.claimed_at IS NOT NULL "              \
			   "ORDER BY claimed_at, id")                                              \
	X(Q_CONTROL_READ, "SELECT " CONTROL_COLUMNS ", (SELECT run_id FROM sessions "              \
			  "WHERE sessions.id = session_id) FROM session_controls WHERE id = ?1")   \
	X(Q_CONTROL_CLAIM, "UPDATE session_controls SET claimed_at = ?2, result = ?3 "             \
			   "WHERE id = ?1 AND claimed_at IS NULL AND applied_at IS NULL")          \
	X(Q_CONTROL_FINISH,                                                                        \
	    "UPDATE session_controls SET applied_at = ?2, result = ?3 WHERE id = ?1 "              \
	    "AND applied_at IS NULL AND CASE WHEN ?4 IS NULL THEN claimed_at IS NULL "             \
	    "ELSE claimed_at IS NOT NULL AND result = ?4 END")                                     \
	X(Q_CONTROL_SWEEP,                                                                         \
	    "UPDATE session_controls SET applied_at = ?2, result = ?3 "                            \
	    "WHERE applied_at IS NULL AND claimed_at IS NULL AND session_id = "                    \
	    "(SELECT id FROM sessions WHERE run_id = ?1 AND (status IN ('completed', 'failed', "   \
	    "'timed_out', 'cancelled') OR (?4 AND status = 'crashed')))")                          \
	X(Q_CONTROL_STOP_DEAD,                                                                     \
	    "UPDATE session_controls SET applied_at = ?2, result = ?3 "                            \
	    "WHERE verb = 'stop' AND applied_at IS NULL AND session_id "                           \
	    " = (SELECT id FROM sessions WHERE run_id = ?1)")                        \
	X(Q_CONTROL_RESOLVE,                                                                       \
	    "UPDATE session_controls SET applied_at = ?2, result = ?3 || ': resolved by ' || ?4 "  \
	    "|| ' after the claim ''' || result || ''' was taken and never reported back' "        \
	    "WHERE id = ?1 AND claimed_at IS NOT NULL AND applied_at IS NULL")                     \
	X(Q_CONTROL_FIND, "SELECT c.id, s.run_id FROM session_controls c JOIN sessions s "         \
			  "ON s.id = c.session_id WHERE c.id >= ?1 AND c.id < ?2 "                 \
			  "ORDER BY c.id LIMIT 2")                                                 \
	X(Q_SUCCEEDED, "UPDATE sessions SET restarts_left = 0 WHERE id = ?1 "                      \
		       "AND (restarts_left > 0 OR ?2 = 0)")                                        \
	X(Q_GIVE_UP, "UPDATE sessions SET restarts_left = 0 WHERE run_id = ?1 "                    \
		     "AND restarts_left > 0 AND status = 'crashed'")                               \
	X(Q_REMOVE, "DELETE FROM sessions WHERE run_id = ?1 AND status NOT IN "                    \
		    "('queued', 'starting', 'running', 'paused')")                                 \
	X(Q_REMOVE_CALLS, "DELETE FROM invocations WHERE id NOT IN "                               \
			  "(SELECT invocation_id FROM sessions) AND id = ?1")                      \
	X(Q_PLACE, "UPDATE sessions SET place = ?2 WHERE run_id = ?1")                             \
	X(Q_HAS_WORK, "SELECT EXISTS(SELECT 1 FROM sessions s WHERE " IS_LIVE("s")                 \
		      " AND s.reason_code <> 'run.queued.environment' AND NOT " IS_COPY("s") ") "   \
		      "OR EXISTS(SELECT 1 FROM sessions s WHERE " IS_RESTARTING("s")               \
		      " AND NOT " IS_COPY("s") ") OR EXISTS(SELECT 1 FROM notices n "              \
		      "JOIN sessions s ON s.id = n.session_id WHERE n.claimed_at IS NULL "         \
		      "AND NOT " IS_COPY("s") ")")                                                 \
	X(Q_UNIQUE_LIVE, "SELECT run_id FROM sessions WHERE unique_key = ?1 AND origin <> ?2 "     \
			 "AND status IN ('starting', 'running', 'paused') LIMIT 1")                \
	X(Q_UNIQUE, UNIQUE_BLOCKER("b.run_id, " UNIQUE_BEING_ENDED, "?1", "?2", "?3", "?4"))                                              \
	X(Q_QUEUE_SET, "INSERT INTO queues(name, slots) VALUES(?1, ?2) "                           \
		       "ON CONFLICT(name) DO UPDATE SET slots = ?2")                               \
	X(Q_QUEUES, "SELECT n.name, COALESCE(q.slots, 0), " SLOTS_USED("n.name") ", "              \
		    "(SELECT COUNT(*) FROM sessions w WHERE " IS_LIVE("w") " AND w.queue = n.name " \
		    "AND w.status = 'queued' AND w.restarts_done = 0 AND NOT " IS_COPY("w")        \
		    "), q.name IS NOT NULL "                                                       \
		    "FROM (SELECT name FROM queues UNION SELECT 'default' UNION "                  \
		    "SELECT s.queue FROM sessions s WHERE " IS_LIVE("s") " AND s.queue <> '') n "  \
		    "LEFT JOIN queues q ON q.name = n.name ORDER BY n.name")                       \
	X(Q_STANDING,                                                                              \
	    "SELECT q.slots, " SLOTS_USED("?1") " + (SELECT COUNT(*) FROM sessions u WHERE "       \
	    IS_LIVE("u") " AND u.queue = ?1 AND u.created_at < ?2 AND u.status = 'queued' "        \
	    "AND u.restarts_done = 0 AND u.reason_code IN "                                        \
	    "('run.queued.new', 'run.queued.slot', 'run.queued.descriptors') "                     \
	    "AND NOT " IS_COPY("u") ") "                                                           \
	    "FROM queues q WHERE q.name = ?1")                                                     \
	X(Q_HOLDERS,                                                                               \
	    "SELECT q.slots, h.run_id FROM queues q LEFT JOIN (SELECT u.run_id, u.created_at"      \
	    SLOT_OF_LIVE("?1") " UNION ALL SELECT u.run_id, u.created_at" SLOT_OF_RESTARTING("?1") \
	    ") h WHERE q.name = ?1 AND q.slots > 0 ORDER BY h.created_at")                         \
	X(Q_STARTABLE,                                                                             \
	    "SELECT s.run_id, s.queue, s.reason_code, s.restarts_done FROM sessions s WHERE "      \
	    IS_LIVE("s") " AND s.status = 'queued' AND s.reason_code <> 'run.queued.environment' " \
	    "AND (s.unique_key IS NULL OR s.reason_code = 'run.queued.new' OR CASE ("              \
	    UNIQUE_BLOCKER(UNIQUE_BEING_ENDED, "s.unique_key", "s.origin", "s.restarts_done",      \
		"s.created_at") ") WHEN 0 THEN 0 WHEN 1 THEN s.reason NOT LIKE 'waits for what %' "\
	    "ELSE 1 END) AND NOT " IS_COPY("s") " ORDER BY s.created_at")                                                            \
	X(Q_NOTICE_ADD, "INSERT INTO notices(session_id, event, at) SELECT id, ?2, ?3 "            \
			"FROM sessions WHERE run_id = ?1 AND (notify = 'all' "                     \
			"OR (notify = 'problems' AND ?4)) ON CONFLICT DO NOTHING")                 \
	X(Q_NOTICES, "SELECT s.run_id, n.event, n.outcome, n.at, n.claimed_at, n.ended_at "        \
		     "FROM notices n JOIN sessions s ON s.id = n.session_id "                      \
		     "WHERE s.run_id = ?1 ORDER BY n.at, n.event")                                 \
	X(Q_NOTICES_UNCLAIMED, "SELECT s.run_id, n.event, n.outcome, n.at, n.claimed_at, n.ended_at " \
			       "FROM notices n JOIN sessions s ON s.id = n.session_id "            \
			       "WHERE n.claimed_at IS NULL AND NOT " IS_COPY("s") " ORDER BY n.at")                   \
	X(Q_NOTICE_CLAIM, "UPDATE notices SET claimed_at = ?3 WHERE event = ?2 AND claimed_at IS NULL " \
			  "AND session_id = (SELECT id FROM sessions WHERE run_id = ?1)")          \
	X(Q_NOTICES_LOST, "UPDATE notices SET ended_at = ?1, outcome = 'unknown: the supervisor " \
			  "ended meanwhile' WHERE claimed_at IS NOT NULL AND ended_at IS NULL")    \
	X(Q_NOTICE_FINISH, "UPDATE notices SET ended_at = ?3, outcome = ?4 WHERE event = ?2 "      \
			   "AND session_id = (SELECT id FROM sessions WHERE run_id = ?1)")

enum statement {
#define X(name, text) name,
	STATEMENT_TABLE(X)
#undef X
	    STATEMENTS
};

struct store {
	sqlite3 *db;
	sqlite3_stmt *prepared[STATEMENTS];
	char *path;
	struct fs_identity home; /* of the directory it lies in */
	char *made_here;	 /* as the metadata of its own runs have it */
	pid_t owner; /* a connection does not cross fork */
	int busy_ms;
	int steps_waiting; /* of the schema, for live runs to end */
	int64_t busy_until_ns; /* of the call that waits */
};

/* The statement, reset and without bindings; NULL with an error. Borrowed from the store. */
sqlite3_stmt *store_statement(struct store *s, enum statement which, struct err *e);
/* SQLite's latest result as an error: ERR_BUSY, ERR_NOSPACE, ERR_PERMISSION, ERR_NOMEM, ERR_IO. */
int store_error(struct store *s, int rc, const char *what, struct err *e);

/* Values are numbered from 1; each binding returns false when memory ran out. NULL text is null. */
bool bind_text(sqlite3_stmt *q, int at, const char *text);
bool bind_json(sqlite3_stmt *q, int at, const struct json *value);
bool bind_real(sqlite3_stmt *q, int at, double value);
bool bind_int(sqlite3_stmt *q, int at, int64_t value);

/* 1: a row, 0: done, -1: error; resets the statement unless a row came. */
int store_step(struct store *s, sqlite3_stmt *q, struct err *e);
/* Runs a statement that gives no row; *changed (may be NULL) is the number of rows it wrote. */
int store_run(struct store *s, sqlite3_stmt *q, int *changed, struct err *e);
/* "" for null. Borrowed until the next step. */
const char *column_text(sqlite3_stmt *q, int at);
/* A text of fixed size into `to`, "" for null or what does not fit. */
void column_copy(sqlite3_stmt *q, int at, char *to, size_t size);
/* NULL with an error when the column is not JSON; NULL without one when it is null. */
int column_json(sqlite3_stmt *q, int at, struct json **out, struct err *e);

/* Statements without values and rows. */
int store_execute(struct store *s, const char *sql, struct err *e);
int store_begin(struct store *s, struct err *e);
/* Commits when rc is 0, else rolls back and keeps the error; returns what came of it. */
int store_end(struct store *s, int rc, struct err *e);

double store_now(void); /* epoch seconds */

#endif
