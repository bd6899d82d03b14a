#include "test.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flowsup/ipc.h"
#include "flowsup/protocol.h"

static void
test_protocol__parse(void **state)
{
	static const struct {
		const char *packet;
		unsigned from;
		enum message_type type; /* MESSAGE_TYPES: refused */
		const char *says;
	} cases[] = {
	    {"{\"type\":\"hello\",\"role\":\"client\",\"major\":1,\"minor\":0}", FROM_CLIENT, MSG_HELLO,
		NULL},
	    /* Newer within the major version: tolerated, with whatever it adds. */
	    {"{\"type\":\"hello\",\"role\":\"client\",\"major\":1,\"minor\":9,\"new\":[]}", FROM_CLIENT,
		MSG_HELLO, NULL},
	    {"{\"type\":\"hello\",\"role\":\"client\",\"major\":2,\"minor\":0}", FROM_CLIENT,
		MESSAGE_TYPES, "version 2.0"},
	    {"{\"type\":\"hello\",\"role\":\"client\",\"major\":1,\"minor\":-1}", FROM_CLIENT,
		MESSAGE_TYPES, "version"},
	    {"{\"type\":\"hello\",\"role\":\"client\",\"major\":1.0,\"minor\":0}", FROM_CLIENT,
		MESSAGE_TYPES, "'major' is not an integer"},
	    {"{\"type\":\"hello\",\"role\":\"client\",\"major\":99999999999999999999,\"minor\":0}",
		FROM_CLIENT, MESSAGE_TYPES, "out of range"},
	    {"{\"type\":\"poke\",\"run\":\"r\"}", FROM_CLIENT, MSG_POKE, NULL},
	    {"{\"run\":\"r\",\"type\":\"poke\"}", FROM_SUPERVISOR, MSG_POKE, NULL},
	    {"{\"type\":\"poke\",\"run\":\"r\"}", FROM_WORKER, MESSAGE_TYPES, "may not send 'poke'"},
	    {"{\"type\":\"poke\"}", FROM_CLIENT, MESSAGE_TYPES, "'run' is missing"},
	    {"{\"type\":\"poke\",\"run\":null}", FROM_CLIENT, MESSAGE_TYPES, "not a string"},
	    {"{\"type\":\"poke\",\"run\":\"\\u0000\"}", FROM_CLIENT, MESSAGE_TYPES, "may not"},
	    {"{\"type\":\"poke\",\"run\":\"\\ud800\"}", FROM_CLIENT, MESSAGE_TYPES, "may not"},
	    {"{\"type\":\"stop\",\"all\":true,\"now\":0}", FROM_CLIENT, MESSAGE_TYPES,
		"'now' is not true or false"},
	    {"{\"type\":\"settle\",\"run\":\"r\",\"line\":{}}", FROM_CLIENT, MSG_SETTLE, NULL},
	    {"{\"type\":\"settle\",\"run\":\"r\",\"line\":[]}", FROM_CLIENT, MESSAGE_TYPES,
		"'line' is not an object"},
	    {"{\"type\":\"changed\",\"run\":\"r\",\"status\":\"s\"}", FROM_SUPERVISOR, MSG_CHANGED,
		NULL},
	    {"{\"type\":\"changed\",\"run\":\"r\",\"status\":\"s\",\"reason\":1}", FROM_SUPERVISOR,
		MESSAGE_TYPES, "'reason'"},
	    {"{\"type\":\"ok\",\"value\":[]}", FROM_SUPERVISOR, MESSAGE_TYPES, "'value' is not an object"},
	    {"{\"type\":\"ok\"}", FROM_SUPERVISOR | FROM_WORKER_REPLY, MSG_OK, NULL},
	    {"{\"type\":\"nonsense\"}", FROM_CLIENT, MESSAGE_TYPES, "unknown type"},
	    {"{\"type\":7}", FROM_CLIENT, MESSAGE_TYPES, "without a type"},
	    {"{}", FROM_CLIENT, MESSAGE_TYPES, "without a type"},
	    {"[]", FROM_CLIENT, MESSAGE_TYPES, "not an object"},
	    {"", FROM_CLIENT, MESSAGE_TYPES, "no message"},
	    {"{\"type\":\"poke\",\"type\":\"poke\",\"run\":\"r\"}", FROM_CLIENT, MESSAGE_TYPES,
		"no message"},
	    {"{\"type\":\"poke\",\"run\":\"r\"} ", FROM_CLIENT, MSG_POKE, NULL},
	    {"{\"type\":\"poke\",\"run\":\"r\"}{}", FROM_CLIENT, MESSAGE_TYPES, "no message"},
	};
	struct message m;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		e = (struct err){0};
		print_message("# %s\n", cases[i].packet);
		if (cases[i].type != MESSAGE_TYPES) {
			assert_works(
			    message_parse(slice_of(cases[i].packet), cases[i].from, &m, &e), e);
			assert_int_equal(m.type, cases[i].type);
			message_clear(&m);
		} else {
			assert_fails(
			    message_parse(slice_of(cases[i].packet), cases[i].from, &m, &e),
			    ERR_PROTOCOL, e);
			assert_non_null(strstr(e.msg, cases[i].says));
		}
	}
}

static void
test_protocol__each_type_has_its_own_bound(void **state)
{
	struct message m;
	struct buf packet = {0};
	struct err e = {0};
	int i;

	(void)state;
	buf_puts(&packet, "{\"type\":\"poke\",\"run\":\"");
	for (i = 0; i < 600; i++)
		buf_putc(&packet, 'x');
	buf_puts(&packet, "\"}");
	assert_fails(message_parse(buf_view(&packet), FROM_CLIENT, &m, &e), ERR_PROTOCOL, e);
	assert_non_null(strstr(e.msg, "more than 512"));
	buf_clear(&packet);
}

static void
test_protocol__sent_is_received(void **state)
{
	struct json *body = json_set(json_object(), "run", json_cstr("20260101T000000-00000a"));
	struct message m;
	struct err e = {0};
	int fds[2];

	(void)state;
	assert_works(ipc_pair(fds, &e), e);
	assert_int_equal(message_recv(fds[1], FROM_CLIENT, &m, NULL, &e), 0);
	assert_int_equal(message_send(fds[0], MSG_POKE, body, -1, &e), 0);
	assert_int_equal(message_send(fds[0], MSG_STATUS, NULL, -1, &e), 0);
	assert_int_equal(message_recv(fds[1], FROM_CLIENT, &m, NULL, &e), 1);
	assert_int_equal(m.type, MSG_POKE);
	assert_string_equal(json_cstr_of(json_get(m.body, "run")), "20260101T000000-00000a");
	message_clear(&m);
	assert_int_equal(message_recv(fds[1], FROM_CLIENT, &m, NULL, &e), 1);
	assert_int_equal(m.type, MSG_STATUS);
	message_clear(&m);
	close(fds[0]);
	assert_fails(message_recv(fds[1], FROM_CLIENT, &m, NULL, &e), ERR_NOTFOUND, e);
	close(fds[1]);
}

/* A descriptor beside nonsense is closed with it. */
static void
test_protocol__nonsense_keeps_nothing_open(void **state)
{
	struct message m;
	struct err e = {0};
	int fds[2], passed = -1, before, memfd;

	(void)state;
	assert_works(ipc_pair(fds, &e), e);
	memfd = ipc_memfd("test", slice_of("bytes"), &e);
	assert_true(memfd >= 0);
	before = test_count_fds();
	assert_int_equal(ipc_send(fds[0], slice_of("{\"type\":\"x\"}"), memfd, &e), 0);
	assert_fails(message_recv(fds[1], FROM_CLIENT, &m, &passed, &e), ERR_PROTOCOL, e);
	assert_int_equal(passed, -1);
	assert_int_equal(test_count_fds(), before);
	close(memfd);
	close(fds[0]);
	close(fds[1]);
}

static void
test_protocol__too_much_to_send_is_said(void **state)
{
	struct buf text = {0};
	struct json *body;
	struct err e = {0};
	int fds[2], i;

	(void)state;
	for (i = 0; i < 600; i++)
		buf_putc(&text, 'x');
	body = json_set(json_object(), "run", json_cstr(buf_text(&text)));
	buf_clear(&text);
	assert_works(ipc_pair(fds, &e), e);
	assert_fails(message_send(fds[0], MSG_POKE, body, -1, &e), ERR_PROTOCOL, e);
	close(fds[0]);
	close(fds[1]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_protocol__parse),
    cmocka_unit_test(test_protocol__each_type_has_its_own_bound),
    cmocka_unit_test(test_protocol__sent_is_received),
    cmocka_unit_test(test_protocol__nonsense_keeps_nothing_open),
    cmocka_unit_test(test_protocol__too_much_to_send_is_said),
};

TEST_MAIN("protocol", tests)
