/*
 * Beside start.latency: other people's programs are given the same operation, in the same way: from the
 * call of the command to its return, and to the operation's first instruction. Each has a directory and,
 * where it needs one, a daemon of its own there, which runs. None is durable before it returns.
 *
 *	start_peers [TRIES]	(100; 20 of those that are slow or start once a second)
 */
#include "bench_home.h"

#include <sys/stat.h>
#include <unistd.h>

#include "flowsup/proc.h"
#include "stamps.h"

enum { TRIES = 100, FEW = 5 /* a part of them */, REST_US = 20000, ONE_A_SECOND_US = 1100000, WORDS = 6 };

/* The scripts find $DIR, $STAMP and $FILE in the environment, and so do the words. */
struct peer {
	const char *program, *begin, *words[WORDS], *end;
	bool few;
	useconds_t rest_us;
};
static const struct peer peers[] = {
    {"tsp", "tsp -n true", {"tsp", "-n", "$STAMP", "$FILE"}, "tsp -K", false, REST_US},
    {"nq", "nq true", {"nq", "$STAMP", "$FILE"}, "true", false, REST_US},
    {"s6-svc",
	"mkdir $DIR/s6 && printf '#!/bin/sh\\nexec %s %s\\n' $STAMP $FILE >$DIR/s6/run && "
	"chmod +x $DIR/s6/run && >$DIR/s6/down && { s6-supervise $DIR/s6 </dev/null >/dev/null 2>&1 & } && "
	"i=0; until s6-svok $DIR/s6; do [ $((i += 1)) -lt 100 ] || exit 1; sleep 0.1; done",
	{"s6-svc", "-o", "$DIR/s6"}, "s6-svc -xd $DIR/s6", true, ONE_A_SECOND_US},
    {"supervisorctl",
	"printf '%s\\n' '[unix_http_server]' file=$DIR/sock '[supervisord]' nodaemon=true logfile=/dev/null "
	"logfile_maxbytes=0 pidfile=$DIR/pid '[rpcinterface:supervisor]' "
	"supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface '[supervisorctl]' "
	"serverurl=unix://$DIR/sock '[program:job]' \"command=$STAMP $FILE\" autostart=false "
	"autorestart=false startsecs=0 >$DIR/conf && { supervisord -c $DIR/conf </dev/null >/dev/null 2>&1 & } && "
	"i=0; until [ -S $DIR/sock ]; do [ $((i += 1)) -lt 100 ] || exit 1; sleep 0.1; done",
	{"supervisorctl", "-c", "$DIR/conf", "start", "job"},
	"supervisorctl -c $DIR/conf shutdown", true, REST_US},
};

static bool
sh(const char *script)
{
	char text[2048], *words[] = {(char[]){"sh"}, (char[]){"-c"}, text, NULL};

	snprintf(text, sizeof(text), "%s", script);
	return bench_call("/bin/sh", words, NULL);
}

/* A word of the table: what begins with '$' is taken from the environment, up to a '/'. */
static char *
expand(const char *word, char to[1200])
{
	char name[32];
	size_t n;

	if (word[0] != '$') {
		snprintf(to, 1200, "%s", word);
		return to;
	}
	n = strcspn(word, "/");
	snprintf(name, sizeof(name), "%.*s", (int)n - 1, word + 1);
	snprintf(to, 1200, "%s%s", getenv(name), word + n);
	return to;
}

static void
measure(const struct peer *p, const char *path, struct stamps *s, int tries)
{
	static char texts[WORDS][1200];
	struct samples returned = {0}, begun = {0};
	char *words[WORDS + 1] = {NULL}, name[64], beside[64];
	double from;
	int i;

	for (i = 0; i < WORDS && p->words[i] != NULL; i++)
		words[i] = expand(p->words[i], texts[i]);
	for (i = 0; i < tries; i++) {
		from = seconds_of(CLOCK_MONOTONIC);
		if (!bench_call(path, words, NULL))
			give_up(p->program, "did not succeed");
		sample_add(&returned, 1e3 * (seconds_of(CLOCK_MONOTONIC) - from));
		sample_add(&begun, 1e3 * (stamps_next(s) - from));
		usleep(p->rest_us);
	}
	snprintf(beside, sizeof(beside), "p99 %.3f ms, %d tries", sample_percentile(&returned, 99), tries);
	snprintf(name, sizeof(name), "start.%s.return.median", p->program);
	figure(name, sample_percentile(&returned, 50), "ms", "-", beside);
	snprintf(beside, sizeof(beside), "p99 %.3f ms", sample_percentile(&begun, 99));
	snprintf(name, sizeof(name), "start.%s.exec.median", p->program);
	figure(name, sample_percentile(&begun, 50), "ms", "-", beside);
}

static void
set(const char *name, const char *of, const char *end)
{
	char value[600];

	snprintf(value, sizeof(value), "%s%s", of, end);
	if (setenv(name, value, 1) != 0)
		give_up(name, "cannot be set");
}

static void
take_turn(const struct peer *p, int tries)
{
	struct buf path = {0};
	struct test_dir dir;
	struct stamps s;
	struct err e = {0};

	if (proc_find_program(p->program, getenv("PATH"), &path, &e) != 0) {
		printf("# %s: SKIPPED, not installed\n", p->program);
		return;
	}
	test_dir_make(&dir);
	stamps_make(&s, &dir);
	set("DIR", dir.path, "");
	set("STAMP", s.program, "");
	set("FILE", s.path, "");
	set("TS_SOCKET", dir.path, "/tsp");
	set("NQDIR", dir.path, "");
	if (sh(p->begin))
		measure(p, buf_text(&path), &s, p->few && tries > FEW ? tries / FEW : tries);
	else
		printf("# %s: SKIPPED, does not run here\n", p->program);
	(void)sh(p->end);
	stamps_clear(&s);
	test_dir_remove(&dir);
	buf_clear(&path);
}

int
main(int argc, char **argv)
{
	int tries = bench_tries(argc, argv, 1, TRIES);
	size_t i;

	for (i = 0; i < sizeof(peers) / sizeof(peers[0]); i++)
		take_turn(&peers[i], tries);
	printf("# at: SKIPPED, its jobs would go to the machine's own daemon\n");
	return 0;
}
