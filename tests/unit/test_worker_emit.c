/* The worker's socket as operations use it: tokens, sizes, repetition, peers that misbehave. */
#include "run_fixture.h"
#include "worker/worker.h"

#include <poll.h>
#include <unistd.h>

#include "flowsup/ipc.h"
#include "flowsup/protocol.h"

#define HEAD "name: t\nconcurrency: 2\ndefaults: {grace: 300ms}\nplan:\n"
#define WAITS(file) "until test -e " file "; do sleep 0.01; done"

/* The token of an operation's attempt stands in its start line. */
static void
token_of(struct run_fixture *r, const char *op, char to[64])
{
	char *log, *line, *at;

	run_wait_text(r, RUN_ATTEMPTS, op);
	log = run_file(r, RUN_ATTEMPTS);
	line = strstr(log, op);
	at = line != NULL ? strstr(line, "\"token\":\"") : NULL;
	assert_non_null(at);
	at += strlen("\"token\":\"");
	snprintf(to, 64, "%.*s", (int)strcspn(at, "\""), at);
	free(log);
}

static int
dial(struct run_fixture *r)
{
	struct json *hello = json_set(json_object(), "role", json_cstr("operation"));
	struct err e = {0};
	int fd = ipc_connect(r->run_fd, RUN_SOCKET, &e);

	assert_works(fd, e);
	hello = json_set(hello, "major", json_int(PROTOCOL_MAJOR));
	hello = json_set(hello, "minor", json_int(PROTOCOL_MINOR));
	assert_works(message_send(fd, MSG_HELLO, hello, -1, &e), e);
	return fd;
}

static void
answer(int fd, struct message *m)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	struct err e = {0};

	assert_int_equal(poll(&wait, 1, 60000), 1);
	assert_int_equal(message_recv(fd, FROM_WORKER_REPLY, m, NULL, &e), 1);
}

/* Sends a request (value as JSON text) and asserts the answer: NULL: accepted; else the error. */
static void
request(int fd, const char *token, const char *verb, const char *value, const char *error)
{
	struct json *body = json_set(json_object(), "token", json_cstr(token)), *v = NULL;
	struct message m;
	struct err e = {0};

	assert_works(json_parse(slice_of(value), NULL, &v, NULL, &e), e);
	body = json_set(body, "verb", json_cstr(verb));
	assert_works(message_send(fd, MSG_REQUEST, json_set(body, "value", v), -1, &e), e);
	answer(fd, &m);
	if ((error == NULL) != (m.type == MSG_OK))
		print_message("# %s: %s\n", verb, json_cstr_of(json_get(m.body, "message")));
	assert_int_equal(m.type, error == NULL ? MSG_OK : MSG_ERROR);
	if (error != NULL)
		assert_string_equal(json_cstr_of(json_get(m.body, "error")), error);
	message_clear(&m);
}

static void
test_emit__tokens(void **state)
{
	struct run_fixture *r = *state;
	char a[64], b[64], other[64];
	int fd;

	run_make(r, HEAD "  - {id: a, run: '" WAITS("go") "'}\n  - {id: b, run: '" WAITS("go") "'}\n"
			 "  - {id: c, needs: [a, b], run: '" WAITS("go2") "'}\n", NULL, NULL);
	run_start(r);
	token_of(r, "\"op\":\"a\"", a);
	token_of(r, "\"op\":\"b\"", b);
	assert_int_equal(strlen(a), 34);
	assert_string_not_equal(a, b);
	fd = dial(r);
	request(fd, a, "context.set", "{\"id\":\"1\",\"pointer\":\"/a\",\"value\":1}", NULL);
	request(fd, b, "context.set", "{\"id\":\"1\",\"pointer\":\"/b\",\"value\":1}", NULL);
	/* a's bits with b's index, a prefix, nothing, somebody's index. */
	snprintf(other, sizeof(other), "%.32s%s", a, b + 32);
	request(fd, other, "context.set", "{\"id\":\"2\",\"pointer\":\"/x\",\"value\":1}", "RefusedError");
	snprintf(other, sizeof(other), "%.31s", a);
	request(fd, other, "progress", "{\"fraction\":1}", "RefusedError");
	request(fd, "", "progress", "{\"fraction\":1}", "RefusedError");
	request(fd, "-fffffffffffffffffff", "progress", "{\"fraction\":1}", "RefusedError");
	request(fd, a, "dance", "{}", "RefusedError");
	test_file_write(r->dir.fd, "go", "");
	run_wait_text(r, RUN_ATTEMPTS, "\"op\":\"c\"");
	request(fd, a, "context.set", "{\"id\":\"3\",\"pointer\":\"/late\",\"value\":1}", "RefusedError");
	test_file_write(r->dir.fd, "go2", "");
	close(fd);
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
}

/* A request that is sent again, because its answer was lost, is taken once. */
static void
test_emit__the_same_request_is_taken_once(void **state)
{
	struct run_fixture *r = *state;
	char token[64], *log;
	int fd, i;

	run_make(r, HEAD "  - {id: a, run: '" WAITS("go") "'}\n", NULL, NULL);
	run_start(r);
	token_of(r, "\"op\":\"a\"", token);
	for (i = 0; i < 3; i++) {
		fd = dial(r);
		request(fd, token, "context.append", "{\"id\":\"same\",\"pointer\":\"/l\",\"value\":1}", NULL);
		close(fd);
	}
	log = run_file(r, "ops/a.1/emitted.jsonl");
	assert_string_equal(log, "{\"op\":\"append\",\"pointer\":\"/l\",\"value\":1,\"id\":\"same\"}\n");
	free(log);
	test_file_write(r->dir.fd, "go", "");
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
}

/* Connections that say nothing, or nonsense, keep nobody waiting for ever. */
static void
test_emit__peers_that_misbehave(void **state)
{
	struct run_fixture *r = *state;
	int silent[40], fd, i;
	struct pollfd gone;
	char token[64];
	struct err e = {0};

	run_make(r, HEAD "  - {id: a, run: '" WAITS("go") "'}\n", NULL, NULL);
	run_start(r);
	token_of(r, "\"op\":\"a\"", token);
	fd = dial(r);
	assert_int_equal(ipc_send(fd, slice_of("{\"type\":\"poke\""), -1, &e), 0);
	gone = (struct pollfd){.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&gone, 1, 60000), 1);
	close(fd);
	/* A request before hello. */
	fd = ipc_connect(r->run_fd, RUN_SOCKET, &e);
	assert_works(fd, e);
	request(fd, token, "progress", "{\"fraction\":1}", "RefusedError");
	close(fd);
	for (i = 0; i < 40; i++)
		silent[i] = ipc_connect(r->run_fd, RUN_SOCKET, &e);
	fd = dial(r);
	request(fd, token, "progress", "{\"fraction\":0.5}", NULL);
	close(fd);
	for (i = 0; i < 40; i++)
		if (silent[i] >= 0)
			close(silent[i]);
	test_file_write(r->dir.fd, "go", "");
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
	assert_int_equal(run_count_events(r, "NodeProgress", "a"), 1);
}

/*
 * Peers that take every place and ask all the time: who comes then is served when these have had their
 * turns, which are counted, and does not wait until they fall silent.
 */
static void
test_emit__peers_that_never_stop(void **state)
{
	struct run_fixture *r = *state;
	int busy[WORKER_MAX_PEERS], late;
	struct pollfd answered = {.events = POLLIN}, gone = {.events = POLLIN};
	struct json *body;
	unsigned i, turn, left = 0;
	struct message m;
	struct err e = {0};
	char token[64];

	run_make(r, HEAD "  - {id: a, run: '" WAITS("go") "'}\n", NULL, NULL);
	run_start(r);
	token_of(r, "\"op\":\"a\"", token);
	for (i = 0; i < WORKER_MAX_PEERS; i++) {
		busy[i] = dial(r);
		request(busy[i], token, "progress", "{\"fraction\":0.1}", NULL);
	}
	late = answered.fd = dial(r);
	body = json_set(json_object(), "token", json_cstr(token));
	body = json_set(json_set(body, "verb", json_cstr("context.set")), "value",
	    json_set(json_set(json_set(json_object(), "id", json_cstr("1")), "pointer", json_cstr("/late")), "value",
		json_int(1)));
	assert_works(message_send(late, MSG_REQUEST, body, -1, &e), e);
	for (turn = 1; turn < WORKER_PEER_STAY + 4 && poll(&answered, 1, 0) == 0; turn++)
		for (i = 0; i < WORKER_MAX_PEERS; i++) {
			gone.fd = busy[i];
			if (busy[i] < 0)
				continue;
			if (poll(&gone, 1, 0) == 0) {
				request(busy[i], token, "progress", "{\"fraction\":0.1}", NULL);
				continue;
			}
			assert_int_equal(message_recv(busy[i], FROM_WORKER_REPLY, &m, NULL, &e), -1);
			close(busy[i]);
			busy[i] = -1;
			left++;
		}
	assert_true(left == 1 || (left == 0 && poll(&answered, 1, 0) == 1));
	assert_true(turn >= WORKER_PEER_STAY);
	answer(late, &m);
	assert_int_equal(m.type, MSG_OK);
	message_clear(&m);
	/* A place that has become free lets the others stay. */
	for (i = 0; i < WORKER_MAX_PEERS; i++)
		if (busy[i] >= 0)
			close(busy[i]);
	close(late);
	test_file_write(r->dir.fd, "go", "");
	run_expect(r, STATUS_COMPLETED, "run.completed.all");
}

#define T(name) cmocka_unit_test_setup_teardown(name, run_setup, run_teardown)

static const struct CMUnitTest tests[] = {
    T(test_emit__tokens),
    T(test_emit__the_same_request_is_taken_once),
    T(test_emit__peers_that_misbehave),
    T(test_emit__peers_that_never_stop),
};

TEST_MAIN("worker_emit", tests)
