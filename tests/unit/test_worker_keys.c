/* A worker on its run: one test for each key of an operation and of a run. */
#include "run_fixture.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/fs.h"

#define HEAD "name: t\nconcurrency: 4\nplan:\n"

static void
completes(struct run_fixture *r, const char *yaml)
{
	run_whole(r, yaml, STATUS_COMPLETED, "run.completed.all");
}

static void
fails(struct run_fixture *r, const char *yaml)
{
	run_whole(r, yaml, STATUS_FAILED, "run.failed.operation");
}

static void
test_worker__runs_and_hands_responses_on(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD "  - {id: a.b-c, run: 'printf one'}\n"
			  "  - {id: d, needs: [a.b-c], run: 'cat \"$FLOWSUP_DEP_a_b_c\"; printf two'}\n"
			  "  - {id: e, exec: [printf, '%s', 'a b'], needs: [d]}\n");
	run_assert_response(r, "a.b-c", "one");
	run_assert_response(r, "d", "onetwo");
	run_assert_response(r, "e", "a b");
	assert_int_equal(run_count_events(r, "NodeStarted", NULL), 3);
	assert_int_equal(run_count_events(r, "NodeCompleted", NULL), 3);
	assert_int_equal(run_count_events(r, "CheckpointSaved", NULL), 3);
	assert_int_equal(run_count_events(r, "RunEnded", NULL), 1);
}

static void
test_worker__environment(void **state)
{
	static const char *const more[] = {"GIVEN=from submitter", "HOME=/somewhere",
	    "FLOWSUP_STALE=x", "TMOUT=2", NULL};
	struct run_fixture *r = *state;

	run_make(r, "name: t\nenv: {A: run, B: run, H: ~/x, GIVEN: {required: true}}\nplan:\n"
		    "  - id: a\n    env: {B: op, C: '{{prompt}}'}\n"
		    "    run: 'echo \"$A|$B|$C|$H|$GIVEN|$TMOUT|${FLOWSUP_STALE-unset}|$FLOWSUP_OP_ID|"
		    "$FLOWSUP_ATTEMPT|${FLOWSUP_DEADLINE-none}\"; test -d \"$FLOWSUP_ARTIFACTS\" && "
		    "test -n \"$FLOWSUP_IDEMPOTENCY_KEY\" && test -d \"$FLOWSUP_HOME/runs/$FLOWSUP_RUN_ID\""
		    " && test -n \"$FLOWSUP_SESSION_ID\"'\n"
		    "prompt: hello\n", NULL, more);
	run_start(r);
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
	run_assert_response(r, "a",
	    "run|op|hello|/somewhere/x|from submitter|2|unset|a|1|none\n");
}

static void
test_worker__required_name_is_missing(void **state)
{
	struct run_fixture *r = *state;

	fails(r, "name: t\nenv: {NOT_THERE: {required: true}}\nplan:\n  - {id: a, run: 'true'}\n");
	run_assert_failure(r, "a", "spawn", "NOT_THERE is required");
}

static void
test_worker__templates(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD "  - {id: a, run: 'printf \"; echo $HOME\"'}\n"
			  "  - {id: j, response: json, run: 'printf \"[1,2]\"'}\n"
			  "  - {id: b, needs: [a, j], exec: [printf, '%s|%s', '{{ops.a.response}}', "
			  "'{{ops.j.response}}']}\n"
			  "  - {id: c, needs: [a], env: {D: '{{artifacts.a}}'}, "
			  "run: 'test -d \"$D\" && basename \"$D\"'}\n");
	run_assert_response(r, "b", "; echo |[1,2]");
	run_assert_response(r, "c", "a\n");
}

static void
test_worker__too_large_for_a_template(void **state)
{
	struct run_fixture *r = *state;

	fails(r, HEAD "  - {id: a, run: 'head -c 70000 /dev/zero | tr \"\\0\" x'}\n"
		      "  - {id: b, needs: [a], exec: [echo, '{{ops.a.response}}']}\n");
	run_assert_failure(r, "b", "spawn", "64 KiB");
}

static void
test_worker__foreach_items_are_arguments(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD "  - {id: e, foreach: ['a b', '$(id)'], run: 'printf %s \"$1\"'}\n"
			  "  - {id: f, foreach: [x], exec: [printf, '%s', 'i {{item}}']}\n");
	run_assert_response(r, "e.0", "a b");
	run_assert_response(r, "e.1", "$(id)");
	run_assert_response(r, "f.0", "i x");
}

static void
test_worker__cwd(void **state)
{
	struct run_fixture *r = *state;
	struct buf wanted = {0};

	completes(r, HEAD "  - {id: m, run: 'mkdir sub'}\n"
			  "  - {id: a, needs: [m], cwd: sub, run: 'pwd; cd ..; pwd'}\n"
			  "  - {id: b, cwd: /usr, run: 'pwd'}\n");
	buf_printf(&wanted, "%s/sub\n%s\n", r->dir.path, r->dir.path);
	run_assert_response(r, "a", buf_text(&wanted));
	run_assert_response(r, "b", "/usr\n");
	buf_clear(&wanted);
}

static void
test_worker__cwd_is_gone(void **state)
{
	struct run_fixture *r = *state;

	fails(r, HEAD "  - {id: a, cwd: gone, run: 'true'}\n");
	run_assert_failure(r, "a", "spawn", "gone");
}

static void
test_worker__program_is_missing(void **state)
{
	struct run_fixture *r = *state;

	fails(r, HEAD "  - {id: a, exec: [pritnf, x]}\n");
	run_assert_failure(r, "a", "spawn", "cannot execute \"pritnf\"");
	run_assert_failure(r, "a", "spawn", "did you mean \"printf\"");
}

static void
test_worker__umask_nice_limits(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD
	    "  - {id: a, umask: '0137', nice: 5, limits: {files: 64, cpu: 33, memory: 512M}, "
	    "run: 'umask; nice; ulimit -n; ulimit -t; ulimit -v'}\n"
	    "  - {id: b, run: umask}\n");
	run_assert_response(r, "a", "0137\n5\n64\n33\n524288\n");
	run_assert_response(r, "b", "0022\n");
}

static void
test_worker__cpu_limit(void **state)
{
	struct run_fixture *r = *state;
	const struct json *error;

	fails(r, HEAD
	    "  - {id: soft, limits: {cpu: 1s}, run: 'while :; do :; done'}\n"
	    "  - {id: hard, limits: {cpu: 1s}, grace: 1s, run: 'trap \"echo last words\" XCPU; while :; do :; done'}\n"
	    "  - {id: both, limits: {cpu: 33s}, grace: 2500ms, run: 'ulimit -S -t; ulimit -H -t'}\n");
	error = json_get(run_entry(r, "soft"), "error");
	assert_string_equal(json_cstr_of(json_get(error, "message")), "used 1 s of processor time, as much "
	    "as its limit allows (limits.cpu); ended by SIGXCPU");
	error = json_get(run_entry(r, "hard"), "error");
	assert_string_equal(json_cstr_of(json_get(error, "message")), "used 1 s of processor time, as much "
	    "as its limit allows (limits.cpu); ended by SIGKILL");
	assert_string_equal(json_cstr_of(json_get(run_entry(r, "hard"), "response")), "last words\n");
	run_assert_response(r, "both", "33\n36\n");
}

/* Nobody may open so many files, whatever rights he has. */
static void
write_limits(struct run_fixture *r, const char *limits)
{
	struct json *launch = NULL, *value = NULL;
	char *text = run_file(r, RUN_LAUNCH);
	struct buf out = {0};
	struct err e = {0};

	assert_works(json_parse(slice_of(text), NULL, &launch, NULL, &e), e);
	assert_works(json_parse(slice_of(limits), NULL, &value, NULL, &e), e);
	launch = json_set(launch, "limits", value);
	json_write(&out, launch);
	assert_works(buf_ok(&out, &e), e);
	assert_int_equal(unlinkat(r->run_fd, RUN_LAUNCH, 0), 0);
	assert_works(fs_create_file(r->run_fd, RUN_LAUNCH, buf_view(&out), &e), e);
	buf_clear(&out);
	json_unref(launch);
	free(text);
}

static void
test_worker__limits_above_its_own_are_lowered(void **state)
{
	struct run_fixture *r = *state;
	struct rlimit own;
	struct json *event;
	char wanted[64];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
	run_make(r, HEAD "  - {id: a, run: 'ulimit -S -n; ulimit -H -n'}\n"
			 "  - {id: b, needs: [a], run: 'ulimit -S -c'}\n", NULL, NULL);
	write_limits(r, "{\"nofile\":[1099511627776,1099511627776],\"core\":[0,0]}");
	run_start(r);
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
	snprintf(wanted, sizeof(wanted), "%llu\n%llu\n", (unsigned long long)own.rlim_max,
	    (unsigned long long)own.rlim_max);
	run_assert_response(r, "a", wanted);
	run_assert_response(r, "b", "0\n");
	assert_int_equal(run_count_events(r, "LimitsLowered", NULL), 1);
	event = run_event(r, "LimitsLowered", NULL);
	assert_string_equal(json_cstr_of(json_get(event, "limits")), "nofile");
	json_unref(event);
}

static void
test_worker__output_merged(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD "  - {id: a, output: merged, run: 'echo 1; echo 2 >&2; echo 3'}\n"
			  "  - {id: b, run: 'echo 1; echo 2 >&2; echo 3'}\n");
	run_assert_response(r, "a", "1\n2\n3\n");
	run_assert_response(r, "b", "1\n3\n");
	assert_false(run_has_file(r, "ops/a.1.err"));
	assert_true(run_has_file(r, "ops/b.1.err"));
}

static void
test_worker__exit_and_signal(void **state)
{
	struct run_fixture *r = *state;

	fails(r, HEAD "  - {id: a, run: 'echo partial; exit 7'}\n  - {id: b, run: 'kill -9 $$'}\n");
	run_assert_failure(r, "a", "exit", "7");
	run_assert_failure(r, "b", "signal", "SIGKILL");
	assert_true(slice_is(json_text(json_get(run_entry(r, "a"), "response")), "partial\n"));
	assert_int_equal(json_type(json_get(run_entry(r, "b"), "response")), JSON_NULL);
}

static void
test_worker__skips_with_the_cause_named(void **state)
{
	struct run_fixture *r = *state;
	struct json *event;

	fails(r, HEAD "  - {id: a, run: 'exit 1'}\n"
		      "  - {id: b, needs: [a], run: 'true'}\n"
		      "  - {id: c, needs: [b], run: 'true'}\n"
		      "  - {id: rescue, needs: [{op: a, on: failure}], run: 'printf rescued'}\n"
		      "  - {id: last, needs: [{op: c, on: always}], run: 'printf last'}\n"
		      "  - {id: apart, run: 'printf apart'}\n");
	assert_null(run_entry(r, "b"));
	assert_null(run_entry(r, "c"));
	run_assert_response(r, "rescue", "rescued");
	run_assert_response(r, "last", "last");
	run_assert_response(r, "apart", "apart");
	event = run_event(r, "NodeSkipped", "c");
	assert_true(slice_is(json_text(json_get(event, "cause")), "a"));
	json_unref(event);
	assert_int_equal(run_count_events(r, "NodeSkipped", NULL), 2);
}

static void
test_worker__conditions(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD
	    "  - {id: v, response: json, run: 'echo \"{\\\"verdict\\\": \\\"ship\\\"}\"'}\n"
	    "  - {id: y, needs: [{op: v, when: {pointer: /verdict, equals: ship}}], run: 'printf y'}\n"
	    "  - {id: n, needs: [{op: v, when: {pointer: /verdict, equals: hold}}], run: 'printf n'}\n"
	    "  - {id: m, needs: [{op: v, when: {pointer: /verdict, matches: '^sh'}}], run: 'printf m'}\n"
	    "  - {id: x, needs: [{op: v, when: {pointer: /other, exists: false}}], run: 'printf x'}\n");
	run_assert_response(r, "y", "y");
	run_assert_response(r, "m", "m");
	run_assert_response(r, "x", "x");
	assert_null(run_entry(r, "n"));
	assert_int_equal(run_count_events(r, "NodeSkipped", "n"), 1);
}

static void
test_worker__conditions_on_what_failed(void **state)
{
	struct run_fixture *r = *state;

	fails(r, HEAD
	    "  - {id: f, response: json, run: 'echo \"{\\\"why\\\": \\\"x\\\"}\"; exit 3'}\n"
	    "  - {id: l, response: jsonl, run: 'echo 1; echo \"[2]\"; kill -9 $$'}\n"
	    "  - {id: s, response: json, schema: {type: array}, run: 'echo \"{\\\"why\\\": 1}\"'}\n"
	    "  - {id: t, response: json, run: 'echo \"\\\"text\\\"\"; exit 3'}\n"
	    "  - {id: b, response: json, run: 'echo \"{]\"'}\n"
	    "  - {id: x, needs: [{op: f, on: failure, when: {pointer: /why, equals: x}}], run: 'printf x'}\n"
	    "  - {id: y, needs: [{op: f, on: always, when: {pointer: /why, equals: y}}], run: 'printf y'}\n"
	    "  - {id: z, needs: [{op: l, on: failure, when: {pointer: /1/0, equals: 2}}, {op: s, on: always, when: {pointer: /why, exists: true}}], run: 'printf z'}\n"
	    "  - {id: q, needs: [{op: t, on: failure, when: {pointer: \"\", matches: '^.text.'}}, {op: b, on: failure, when: {pointer: \"\", equals: \"{]\\n\"}}], run: 'printf q'}\n");
	run_assert_response(r, "x", "x");
	run_assert_response(r, "z", "z");
	run_assert_response(r, "q", "q");
	assert_null(run_entry(r, "y"));
}

static void
test_worker__responses(void **state)
{
	struct run_fixture *r = *state;
	const struct json *v;

	fails(r, HEAD "  - {id: j, response: json, run: 'echo \" {\\\"a\\\": 1.0} \"'}\n"
		      "  - {id: l, response: jsonl, run: 'echo 1; echo; echo \"[2]\"'}\n"
		      "  - {id: n, response: none, run: 'echo ignored'}\n"
		      "  - {id: bad, response: json, run: 'echo \"{]\"'}\n"
		      "  - {id: empty, response: json, run: 'true'}\n"
		      "  - {id: badl, response: jsonl, run: 'echo 1; echo nope'}\n");
	v = json_get(run_entry(r, "j"), "response");
	assert_int_equal(json_type(json_get(v, "a")), JSON_REAL);
	v = json_get(run_entry(r, "l"), "response");
	assert_int_equal(json_length(v), 2);
	assert_int_equal(json_type(json_get(run_entry(r, "n"), "response")), JSON_NULL);
	run_assert_failure(r, "bad", "response", "line 1, column 2");
	run_assert_failure(r, "empty", "response", NULL);
	run_assert_failure(r, "badl", "response", "JSON line 2: column 1: syntax error: expected a value");
}

/* The deepest that can stand in a checkpoint, and one level more. */
static void
test_worker__nested_responses(void **state)
{
#define NESTED(n) "'printf \"[%.0s\" $(seq " n "); printf \"]%.0s\" $(seq " n ")'}\n"
	struct run_fixture *r = *state;

	fails(r, HEAD "  - {id: fits, response: json, run: " NESTED("509")
		      "  - {id: deep, response: json, run: " NESTED("510"));
	run_assert_entry(r, "fits", "completed");
	assert_int_equal(json_depth(json_get(run_entry(r, "fits"), "response"), 1000), 509);
	run_assert_failure(r, "deep", "response", "more than 509 levels");
}

static void
test_worker__bytes_that_are_no_utf8(void **state)
{
	struct run_fixture *r = *state;
	struct stat st;

	completes(r, HEAD "  - {id: a, run: 'printf \"a\\\\377b\"'}\n");
	run_assert_response(r, "a", "a\xef\xbf\xbd" "b");
	assert_true(json_is_true(json_get(run_entry(r, "a"), "response_lossy")));
	assert_int_equal(fstatat(r->run_fd, "ops/a.1.out", &st, 0), 0);
	assert_int_equal(st.st_size, 3);
}

static void
test_worker__large_responses_stand_in_their_file(void **state)
{
	struct run_fixture *r = *state;
	const struct json *v;
	int64_t size;

	completes(r, HEAD "  - {id: a, run: 'head -c 3000000 /dev/zero | tr \"\\0\" x'}\n"
			  "  - {id: b, needs: [a], run: 'wc -c < \"$FLOWSUP_DEP_a\"'}\n"
			  "  - {id: m, run: 'head -c 200000 /dev/zero | tr \"\\0\" y'}\n");
	v = json_get(run_entry(r, "a"), "response");
	assert_true(slice_is(json_text(json_get(v, "file")), "ops/a.1.out"));
	assert_true(json_int64(json_get(v, "size"), &size));
	assert_int_equal(size, 3000000);
	assert_int_equal(json_text(json_get(v, "head")).len, 4096);
	assert_int_equal(json_text(json_get(v, "tail")).len, 4096);
	run_assert_response(r, "b", "3000000\n");
	assert_int_equal(json_text(json_get(run_entry(r, "m"), "response")).len, 200000);
}

static void
test_worker__artifacts(void **state)
{
	struct run_fixture *r = *state;
	const struct json *v;

	fails(r, HEAD
	    "  - {id: a, artifacts: [x.txt], run: 'printf abc > \"$FLOWSUP_ARTIFACTS/x.txt\"'}\n"
	    "  - {id: none, artifacts: [x.txt], run: 'true'}\n"
	    "  - {id: empty, artifacts: [x.txt], run: ': > \"$FLOWSUP_ARTIFACTS/x.txt\"'}\n"
	    "  - {id: dir, artifacts: [x.txt], run: 'mkdir \"$FLOWSUP_ARTIFACTS/x.txt\"'}\n"
	    "  - {id: fifo, artifacts: [x.txt], run: 'mkfifo \"$FLOWSUP_ARTIFACTS/x.txt\"'}\n");
	v = json_at(json_get(run_entry(r, "a"), "artifacts"), 0);
	assert_true(slice_is(json_text(json_get(v, "path")), "x.txt"));
	assert_non_null(json_get(v, "digest"));
	run_assert_failure(r, "none", "artifact", "not there");
	run_assert_failure(r, "empty", "artifact", "is empty");
	run_assert_failure(r, "dir", "artifact", "not a regular file");
	run_assert_failure(r, "fifo", "artifact", "not a regular file");
}

/* A directory in which nothing was left is handed on; what was left, stays, also where the directory has
 * got the time of another one, and each operation finds its own empty. */
static void
test_worker__empty_artifact_directories_are_handed_on(void **state)
{
#define EMPTY "test -z \"$(ls -A \"$FLOWSUP_ARTIFACTS\")\" && "
	struct run_fixture *r = *state;

	completes(r, HEAD
	    "  - {id: a, run: '" EMPTY "true'}\n"
	    "  - {id: b, needs: [a], run: '" EMPTY "true'}\n"
	    "  - {id: c, needs: [b], run: '" EMPTY ": > \"$FLOWSUP_ARTIFACTS/.kept\"'}\n"
	    "  - {id: d, needs: [c], run: '" EMPTY "true'}\n"
	    "  - {id: e, needs: [d], run: '" EMPTY "mkdir \"$FLOWSUP_ARTIFACTS/x\"; rmdir \"$FLOWSUP_ARTIFACTS/x\"'}\n"
	    "  - {id: f, needs: [e], run: '" EMPTY ": > \"$FLOWSUP_ARTIFACTS/kept\"; "
	    "touch -d 2001-01-01 \"$FLOWSUP_ARTIFACTS\"'}\n"
	    "  - {id: g, needs: [f], run: '" EMPTY "true'}\n"
	    "  - {id: h, needs: [g], run: '" EMPTY "rm -r \"$FLOWSUP_ARTIFACTS\"; : > \"$FLOWSUP_ARTIFACTS\"'}\n"
	    "  - {id: i, needs: [h], run: '" EMPTY "true'}\n");
	assert_int_equal(faccessat(r->run_fd, "artifacts/c/.kept", F_OK, 0), 0);
	assert_int_equal(faccessat(r->run_fd, "artifacts/f/kept", F_OK, 0), 0);
	assert_int_equal(faccessat(r->run_fd, "artifacts/h", F_OK, 0), 0);
	assert_int_equal(faccessat(r->run_fd, "artifacts/a", F_OK, 0), -1);
	assert_int_equal(faccessat(r->run_fd, "artifacts/d", F_OK, 0), -1);
	assert_int_equal(faccessat(r->run_fd, "artifacts/i", F_OK, 0), 0);
}

/* What an earlier attempt left does not satisfy the contract, by whatever way its path leads. */
static void
test_worker__stale_artifacts(void **state)
{
	struct run_fixture *r = *state;
	char *kept;

	fails(r, HEAD "  - {id: file, artifacts: [d/out], retry: {attempts: 2, backoff: 1ms}, run: "
		      "'cd $FLOWSUP_ARTIFACTS; test $FLOWSUP_ATTEMPT = 1 || exit 0; mkdir d; "
		      "echo old > d/out; echo kept > d/other; exit 1'}\n"
		      "  - {id: link, artifacts: [d/out], retry: {attempts: 2, backoff: 1ms}, run: "
		      "'cd $FLOWSUP_ARTIFACTS; test $FLOWSUP_ATTEMPT = 1 || exit 0; mkdir $TEST_DIR/away; "
		      "echo precious > $TEST_DIR/away/out; ln -s $TEST_DIR/away d; exit 1'}\n"
		      "  - {id: leaf, artifacts: [out], retry: {attempts: 2, backoff: 1ms}, run: "
		      "'cd $FLOWSUP_ARTIFACTS; test $FLOWSUP_ATTEMPT = 1 || exit 0; "
		      "echo precious > $TEST_DIR/target; ln -s $TEST_DIR/target out; exit 1'}\n"
		      "  - {id: made, artifacts: [d/out], retry: {attempts: 2, backoff: 1ms}, run: "
		      "'cd $FLOWSUP_ARTIFACTS; mkdir -p d; echo $FLOWSUP_ATTEMPT > d/out; "
		      "test $FLOWSUP_ATTEMPT = 2'}\n");
	run_assert_failure(r, "file", "artifact", "d/out");
	run_assert_failure(r, "link", "artifact", "d/out");
	run_assert_failure(r, "leaf", "artifact", "out");
	run_assert_entry(r, "made", "completed");
	free(run_file(r, RUN_ARTIFACTS "/file/d/other"));
	kept = run_test_file(r, "away/out");
	assert_string_equal(kept, "precious\n");
	free(kept);
	kept = run_test_file(r, "target");
	assert_string_equal(kept, "precious\n");
	free(kept);
}

static void
test_worker__retry(void **state)
{
	struct run_fixture *r = *state;
	int64_t attempts;

	fails(r, HEAD
	    "  - {id: a, retry: {attempts: 3, backoff: 10ms}, run: 'echo $FLOWSUP_ATTEMPT; "
	    "test $FLOWSUP_ATTEMPT = 3'}\n"
	    "  - {id: b, retry: {attempts: 2, backoff: 10ms}, run: 'exit 1'}\n"
	    "  - {id: c, retry: {attempts: 5, backoff: 10ms, on: [75, signal]}, run: 'exit 1'}\n"
	    "  - {id: d, retry: {attempts: 2, backoff: 10ms, on: [75]}, run: 'exit 75'}\n");
	run_assert_response(r, "a", "3\n");
	assert_true(json_int64(json_get(run_entry(r, "a"), "attempts"), &attempts));
	assert_int_equal(attempts, 3);
	assert_int_equal(run_count_events(r, "NodeStarted", "b"), 2);
	assert_int_equal(run_count_events(r, "NodeStarted", "c"), 1);
	assert_int_equal(run_count_events(r, "NodeStarted", "d"), 2);
	assert_int_equal(run_count_events(r, "NodeFailed", NULL), 3);
	assert_true(run_has_file(r, "ops/b.2.err"));
}

static void
test_worker__idempotent_false(void **state)
{
	struct run_fixture *r = *state;

	completes(r, HEAD "  - {id: a, idempotent: false, run: 'ls $FLOWSUP_HOME/runs/$FLOWSUP_RUN_ID/"
			  "ops/a.1'}\n");
	run_assert_response(r, "a", "started\n");
}

static void
test_worker__fail_fast(void **state)
{
	struct run_fixture *r = *state;

	run_whole(r, "name: t\nconcurrency: 1\nfail_fast: true\nplan:\n"
		     "  - {id: a, run: 'exit 1'}\n  - {id: b, run: 'true'}\n  - {id: c, run: 'true'}\n",
	    STATUS_FAILED, "run.failed.operation");
	run_assert_failure(r, "a", "exit", NULL);
	assert_int_equal(run_count_events(r, "NodeStarted", NULL), 1);
	assert_int_equal(run_count_events(r, "NodeCancelled", NULL), 2);
	assert_null(run_entry(r, "b"));
}

/* Each adds itself, looks how many there are, and takes itself away. */
static void
test_worker__concurrency(void **state)
{
	struct run_fixture *r = *state;
	char *counts;

	completes(r, "name: t\nconcurrency: 2\nplan:\n"
		     "  - {id: m, run: 'mkdir now'}\n"
		     "  - {id: e, needs: [m], foreach: [1, 2, 3, 4, 5, 6, 7, 8], run: 'touch now/$1; "
		     "ls now | wc -l >> counts; sleep 0.02; rm now/$1'}\n");
	counts = run_test_file(r, "counts");
	assert_null(strpbrk(counts, "3456789"));
	free(counts);
}

static void
test_worker__relaxed_durability(void **state)
{
	struct run_fixture *r = *state;

	run_make(r, HEAD "  - {id: a, run: 'printf 1'}\n  - {id: b, needs: [a], run: 'printf 2'}\n",
	    "{\"durability\": \"relaxed\"}", NULL);
	run_start(r);
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
	run_assert_response(r, "b", "2");
}

/* Full durability: the start of a dependent stands behind its predecessor's acknowledgement. */
static void
test_worker__dependents_wait_for_the_acknowledgement(void **state)
{
	struct run_fixture *r = *state;
	char *saved, *started;

	completes(r, HEAD "  - {id: a, run: 'true'}\n  - {id: b, needs: [a], run: 'true'}\n");
	assert_int_equal(run_count_events(r, "CheckpointSaved", "a"), 1);
	saved = strstr(r->events, "\"event\":\"CheckpointSaved\"");
	started = strstr(r->events, "\"event\":\"NodeReady\"");
	assert_non_null(started);
	started = strstr(started + 1, "\"event\":\"NodeReady\"");
	assert_non_null(saved);
	assert_non_null(started);
	assert_true(saved < started);
}

static void
test_worker__cannot_be_started(void **state)
{
	struct run_fixture *r = *state;
	struct json *doc;
	struct err e = {0};

	run_make(r, HEAD "  - {id: a, run: 'true'}\n", NULL, NULL);
	assert_works(json_parse(slice_of("{\"plan\": 3}"), NULL, &doc, NULL, &e), e);
	json_unref(doc);
	assert_int_equal(unlinkat(r->run_fd, RUN_FLOW, 0), 0);
	test_file_write(r->run_fd, RUN_FLOW, "{\"plan\": 3}");
	assert_int_equal(fchmodat(r->run_fd, RUN_FLOW, 0600, 0), 0);
	run_start(r);
	run_expect(r, STATUS_FAILED, "run.failed.start");
	assert_false(run_has_file(r, "checkpoint.json"));
}

static void
test_worker__the_run_s_deadline(void **state)
{
	struct run_fixture *r = *state;

	run_whole(r, "name: t\ntimeout: 2s\nconcurrency: 1\nplan:\n"
		     "  - {id: a, run: 'until grep -q DeadlineClosed "
		     "$FLOWSUP_HOME/runs/$FLOWSUP_RUN_ID/events.jsonl; do sleep 0.05; done; printf \"${FLOWSUP_DEADLINE:+set}\"'}\n"
		     "  - {id: b, run: 'true'}\n",
	    STATUS_TIMED_OUT, "run.timed_out.deadline");
	run_assert_response(r, "a", "set");
	assert_null(run_entry(r, "b"));
	assert_int_equal(run_count_events(r, "DeadlineClosed", NULL), 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, run_setup, run_teardown)
static const struct CMUnitTest tests[] = {
    T(test_worker__runs_and_hands_responses_on),
    T(test_worker__environment),
    T(test_worker__required_name_is_missing),
    T(test_worker__templates),
    T(test_worker__too_large_for_a_template),
    T(test_worker__foreach_items_are_arguments),
    T(test_worker__cwd),
    T(test_worker__cwd_is_gone),
    T(test_worker__program_is_missing),
    T(test_worker__umask_nice_limits),
    T(test_worker__cpu_limit),
    T(test_worker__limits_above_its_own_are_lowered),
    T(test_worker__output_merged),
    T(test_worker__exit_and_signal),
    T(test_worker__skips_with_the_cause_named),
    T(test_worker__conditions),
    T(test_worker__conditions_on_what_failed),
    T(test_worker__responses),
    T(test_worker__nested_responses),
    T(test_worker__bytes_that_are_no_utf8),
    T(test_worker__large_responses_stand_in_their_file),
    T(test_worker__artifacts),
    T(test_worker__empty_artifact_directories_are_handed_on),
    T(test_worker__stale_artifacts),
    T(test_worker__retry),
    T(test_worker__idempotent_false),
    T(test_worker__fail_fast),
    T(test_worker__concurrency),
    T(test_worker__relaxed_durability),
    T(test_worker__dependents_wait_for_the_acknowledgement),
    T(test_worker__cannot_be_started),
    T(test_worker__the_run_s_deadline),
};

TEST_MAIN("worker_keys", tests)
