/* One attempt of an agent, from its provider to the words of its command. */
#include "agent.h"

#include "start_line.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "flowsup/clock.h"
#include "flowsup/fs.h"
#include "flowsup/log.h"
#include "flowsup/places.h"

/* ---- Life ---- */

struct agent *
agent_new(struct attempt_run *a)
{
	struct agent *g = calloc(1, sizeof(*g));

	if (g == NULL)
		return NULL;
	g->refs = 1;
	g->w = a->w;
	g->op = a->op;
	g->number = a->number;
	g->from = OP_NO_INDEX;
	g->p = agents_provider(a->w, a->op);
	g->lock_fd = g->answer_fd = -1;
	op_file_name(a->w, a->op, a->number, "", g->dir);
	a->agent = g;
	return g;
}

void
agent_unref(struct agent *g)
{
	if (--g->refs > 0)
		return;
	provider_reading_free(g->reading);
	provider_words_clear(&g->words);
	agent_unlock(g);
	fd_close(&g->answer_fd);
	free(g->cwd);
	free(g->home);
	free(g->prompt);
	free(g->old);
	free(g->old_store);
	free(g->store);
	free(g->chat);
	free(g->kept);
	free(g);
}

/* version NULL: that is not known. */
static void
stop_asking(struct agent *g, const char *version)
{
	if (g->asks != NULL)
		agents_version_put(g->w, g->asks, version);
	g->asks = NULL;
}

void
agent_free(struct agent *g)
{
	if (g == NULL)
		return;
	timer_disarm(&g->w->loop.timers, &g->look);
	timer_disarm(&g->w->loop.timers, &g->drain);
	timer_disarm(&g->w->loop.timers, &g->again);
	timer_disarm(&g->w->loop.timers, &g->tell);
	helper_clear(&g->helper);
	stop_asking(g, NULL);
	agent_unref(g);
}

int
agent_stdin(const struct agent *g, struct err *e)
{
	char name[OP_FILE_TEXT + sizeof(AGENT_INSTRUCTION) + 1];
	int fd;

	if (g->p->prompt != PROVIDER_STDIN)
		return fcntl(g->w->null_fd, F_DUPFD_CLOEXEC, 0);
	snprintf(name, sizeof(name), "%s/" AGENT_INSTRUCTION, g->dir);
	fd = openat(g->w->ops_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 ? fd : err_set(e, ERR_IO, "cannot open ops/%s", name);
}

/* ---- Which conversation ---- */

static int
copy_text(const struct json *v, char **out, struct err *e)
{
	const char *text = json_cstr_of(v);

	if (text == NULL)
		return 0;
	*out = strdup(text);
	return *out != NULL ? 0 : err_nomem(e);
}

static int
lost(const struct agent *g, struct err *e, const char *why)
{
	return err_set(e, ERR_REFUSED, "the conversation of %s cannot be continued: %s",
	    g->w->flow->ops[g->from].id, why);
}

static int
check_bound(const struct agent *g, const struct json *conversation, struct err *e)
{
	const char *home = json_cstr_of(json_get(conversation, "home"));
	const char *cwd = json_cstr_of(json_get(conversation, "cwd"));

	if (json_is_true(json_get(conversation, "tentative")))
		return lost(g, e, "no turn of it was acknowledged");
	if (g->home != NULL && home != NULL && strcmp(g->home, home) != 0)
		return lost(g, e, "it belongs to another home directory of the agent");
	if (g->p->bound_to_cwd && cwd != NULL && strcmp(g->cwd, cwd) != 0)
		return lost(g, e, "it belongs to another working directory");
	return 0;
}

/* What stands in a file of its own is copied by us; another one the program must copy. */
static bool
can_fork(const struct agent *g)
{
	return g->old_store != NULL || g->chat != NULL || g->p->starts[PROVIDER_FORK] != NULL;
}

static bool
can_be_gone_on_in(const struct json *conversation)
{
	return conversation != NULL && !json_is_true(json_get(conversation, "tentative")) &&
	    (json_cstr_of(json_get(conversation, "id")) != NULL || json_cstr_of(json_get(conversation, "store")) != NULL);
}

/* What a resume allows: instead of a recorded conversation, and where a predecessor of this run has made none. */
static bool
is_to_begin_anew(const struct worker *w, uint32_t i)
{
	size_t from = flow_inherited(w->flow, i);

	return from != SIZE_MAX && agents_is_degraded(w, i) &&
	    (w->ops[from].replayed || !can_be_gone_on_in(agents_conversation(w, (uint32_t)from)));
}

/* Several that go on in one conversation each get a copy of their own, and so does whoever goes on in
 * one of the run that this one was forked from. */
static int
choose(struct agent *g, struct err *e)
{
	size_t inherited = flow_inherited(g->w->flow, g->op);
	const struct json *conversation = turns_conversation(g->w, g->op);
	bool shared;

	g->start = PROVIDER_NEW;
	g->from = g->op;
	if (json_is_true(json_get(conversation, CKPT_LOST)))
		return 0;
	if (conversation == NULL)
		conversation = agents_interrupted(g->w, g->op);
	if (conversation == NULL) {
		if (inherited == SIZE_MAX || is_to_begin_anew(g->w, g->op))
			return 0;
		g->from = (uint32_t)inherited;
		conversation = agents_conversation(g->w, g->from);
	}
	/* What was added forks a conversation where there is one; nobody has asked for it. */
	if (flow_grown(g->w->flow, g->op) != NULL && (conversation == NULL ||
	    json_is_true(json_get(conversation, "tentative"))))
		return 0;
	if (conversation == NULL)
		return lost(g, e, "none was recorded");
	if (check_bound(g, conversation, e) != 0 ||
	    copy_text(json_get(conversation, "id"), &g->old, e) != 0 ||
	    copy_text(json_get(conversation, "store"), &g->old_store, e) != 0 ||
	    copy_text(json_get(conversation, "chat"), &g->chat, e) != 0)
		return -1;
	if (g->old == NULL && g->old_store == NULL)
		return lost(g, e, "it has no id");
	shared = json_is_true(json_get(conversation, CKPT_SHARED));
	if (shared && !can_fork(g))
		return lost(g, e, "it is that of the run that this one was forked from, and cannot be copied");
	g->start = g->p->starts[PROVIDER_RESUME] == NULL ||
		((shared || agents_inheritors(g->w, g->from) > 1 || flow_grown(g->w->flow, g->op) != NULL) &&
		    g->p->starts[PROVIDER_FORK] != NULL)
	    ? PROVIDER_FORK : PROVIDER_RESUME;
	return 0;
}

/* ---- Where it runs ---- */

static int
find_home(struct agent *g, char *const *envp, struct err *e)
{
	const char *given;
	struct buf path = {0};

	if (g->p->home_variable == NULL)
		return 0;
	given = places_variable(envp, g->p->home_variable);
	if (given != NULL && given[0] != '\0')
		buf_puts(&path, given);
	else if (flow_home_path(g->p->home_default, places_variable(envp, "HOME"), &path, e) != 0)
		return err_wrap(e, "%s is not set", g->p->home_variable);
	g->home = buf_steal(&path);
	return g->home != NULL ? 0 : err_nomem(e);
}

static int
find_place(struct agent *g, struct err *e)
{
	struct given given;

	if (context_prepare(g->w, g->op, &given, e) != 0)
		return -1;
	g->cwd = strdup(given.cwd);
	if (g->cwd == NULL)
		return err_nomem(e);
	if (g->p->store != NULL && asprintf(&g->store, "%s/%s/%s", g->w->ops_path, g->dir,
		g->p->store) < 0) {
		g->store = NULL;
		return err_nomem(e);
	}
	return find_home(g, given.envp, e);
}

/* ---- Words ---- */

static int
make_words(struct agent *g, const struct json *argv, struct err *e)
{
	const struct flow_role *role = g->w->flow->ops[g->op].how->role;
	struct provider_values v = {.args = role->args};
	char *out = NULL, *file = NULL, old8[9] = "";
	int rc;

	if (asprintf(&out, "%s/%s/" AGENT_LAST, g->w->ops_path, g->dir) < 0)
		out = NULL;
	if (asprintf(&file, "%s/%s/" AGENT_INSTRUCTION, g->w->ops_path, g->dir) < 0)
		file = NULL;
	if (g->old != NULL)
		snprintf(old8, sizeof(old8), "%s", g->old);
	v.at[PLACE_MODEL] = role->model;
	v.at[PLACE_SID] = g->sid[0] != '\0' ? g->sid : NULL;
	v.at[PLACE_OLD] = g->old;
	v.at[PLACE_OLD8] = g->old != NULL ? old8 : NULL;
	v.at[PLACE_CWD] = g->cwd;
	v.at[PLACE_OUT] = out;
	v.at[PLACE_PROMPT] = g->p->prompt == PROVIDER_ARGUMENT ? g->prompt : file;
	v.at[PLACE_STORE] = g->store;
	v.at[PLACE_CHAT] = g->chat;
	v.at[PLACE_HOME] = g->home;
	provider_words_clear(&g->words);
	rc = out == NULL || file == NULL ? err_nomem(e)
					 : provider_words(g->p, argv, &v, &g->words, e);
	free(out);
	free(file);
	return rc;
}

/* ---- Steps, each of which may take a while ---- */

static void step(struct attempt_run *a);
static void again_due(void *arg);

/* Said once: it holds its slot, and is not started. */
static void
waits(struct attempt_run *a, const char *what)
{
	struct worker *w = a->w;

	if (a->agent->waits_for != NULL && strcmp(a->agent->waits_for, what) == 0)
		return;
	a->agent->waits_for = what;
	event_begin(w, "NodeWaiting");
	event_op(w, a->op);
	event_text(w, "for", what);
	event_end(w);
}

static void
tell_due(void *arg)
{
	struct attempt_run *a = arg;

	if (a->agent->helper.w != NULL || timer_is_armed(&a->agent->again))
		waits(a, a->agent->waits_next);
}

/* The same for what is usually over at once. Without memory it is not said. */
static void
waits_long(struct attempt_run *a, const char *what)
{
	struct agent *g = a->agent;
	struct err ignored = {0};

	if (g->waits_next == what)
		return;
	g->waits_next = what;
	timer_arm(&a->w->loop.timers, &g->tell, clock_monotonic_ns() + AGENT_TELL_MS * NS_PER_MS, tell_due, a,
	    &ignored);
}

static void
failed(struct attempt_run *a, const struct err *e)
{
	/* A conversation that is not to be had is refused above and below by this code. */
	spawn_failed(a, e->code == ERR_REFUSED ? CLASS_SESSION_LOST : CLASS_SPAWN, e);
}

static int
program_path(struct agent *g, const char *name, struct buf *to, struct err *e)
{
	struct given given;

	if (context_prepare(g->w, g->op, &given, e) != 0)
		return -1;
	return proc_find_program(name, given.search_path, to, e);
}

static void
version_done(void *arg, const char *text, const char *why)
{
	struct attempt_run *a = arg;
	struct agent *g = a->agent;
	struct buf clean = {0};

	if (text[0] == '\0')
		log_line(LOG_WARNING, "version of %s: \"%s\" %s", g->p->name,
		    json_cstr_of(json_at(g->p->version, 0)), why);
	text_neutralise(&clean, slice_of(text), false);
	snprintf(g->version, sizeof(g->version), "%s", buf_text(&clean));
	stop_asking(g, g->version);
	buf_clear(&clean);
	g->version_known = true;
	step(a);
}

/* Its program is asked, or somebody asks it already. False: it cannot be asked. */
static bool
ask_version(struct attempt_run *a, bool asked, struct err *e)
{
	struct agent *g = a->agent;

	if (asked)
		return timer_arm(&g->w->loop.timers, &g->again,
		    clock_monotonic_ns() + AGENT_VERSION_MS * NS_PER_MS, again_due, a, e) == 0;
	return helper_start(&g->helper, g->w, g->op, &g->words, version_done, a, e) == 0;
}

/* True when the version is known by now, or cannot be known. */
static bool
have_version(struct attempt_run *a)
{
	struct agent *g = a->agent;
	enum version_known known = VERSION_NONE;
	struct buf path = {0};
	struct err e = {0};

	if (g->version_known || g->p->version == NULL)
		return true;
	if (program_path(g, json_cstr_of(json_at(g->p->version, 0)), &path, &e) != 0)
		; /* what is missing is said by the start itself */
	else if (make_words(g, g->p->version, &e) != 0)
		log_line(LOG_WARNING, "version of %s: %s", g->p->name, e.msg);
	else
		known = agents_version_get(g->w, buf_text(&path), buf_view(&g->words.text), g->version, &g->asks);
	buf_clear(&path);
	g->version_known = known == VERSION_KNOWN || known == VERSION_NONE;
	if (g->version_known)
		return true;
	if (ask_version(a, known == VERSION_ASKED, &e)) {
		waits_long(a, "the version of its program");
		return false;
	}
	stop_asking(g, NULL);
	log_line(LOG_WARNING, "version of %s: %s", g->p->name, e.msg);
	g->version_known = true;
	return true;
}

/* What it took is taken from the attempt's limit. */
static void
mint_over(struct attempt_run *a)
{
	timer_disarm(&a->w->loop.timers, &a->limit);
	a->before_ns += clock_monotonic_ns() - a->agent->minting_ns;
}

static void
mint_done(void *arg, const char *text, const char *why)
{
	struct attempt_run *a = arg;
	struct agent *g = a->agent;
	const char *program = json_cstr_of(json_at(g->p->mint, 0));
	struct err e = {0};

	mint_over(a);
	if (text[0] == '\0')
		err_set(&e, ERR_ENVIRONMENT, "\"%s\", which was to give an id for its conversation, %s", program, why);
	else if (text[0] == '-')
		err_set(&e, ERR_ENVIRONMENT, "\"%s\" gave an id for its conversation that begins with \"-\"", program);
	else if (strlen(text) > PROVIDER_MAX_ID)
		err_set(&e, ERR_LIMIT, "\"%s\" gave an id for its conversation of more than %d bytes", program,
		    (int)PROVIDER_MAX_ID);
	else {
		snprintf(g->sid, sizeof(g->sid), "%s", text);
		g->sid_known = true;
		step(a);
		return;
	}
	failed(a, &e);
}

static void
mint_limit_due(void *arg)
{
	struct attempt_run *a = arg;
	char limit[DURATION_TEXT];
	struct err e = {0};

	mint_over(a);
	helper_clear(&a->agent->helper);
	err_set(&e, ERR_LIMIT, "ran longer than %s, in \"%s\", which was to give an id for its conversation",
	    duration_format(a->w->flow->ops[a->op].how->timeout_ns, limit),
	    json_cstr_of(json_at(a->agent->p->mint, 0)));
	spawn_failed(a, CLASS_TIMEOUT, &e);
}

static int
mint(struct attempt_run *a, struct err *e)
{
	struct agent *g = a->agent;
	int64_t left = turns_time_left_ns(a->w, a->op), now = clock_monotonic_ns();

	if (make_words(g, g->p->mint, e) != 0 ||
	    helper_start(&g->helper, g->w, g->op, &g->words, mint_done, a, e) != 0)
		return -1;
	g->minting_ns = now;
	a->started_at = (double)clock_wall_ns() / (double)NS_PER_S; /* it takes of the attempt's time already */
	if (left > 0 && timer_arm(&a->w->loop.timers, &a->limit, now + left, mint_limit_due, a, e) != 0) {
		helper_clear(&g->helper);
		return -1;
	}
	waits_long(a, "the id of its conversation");
	return 0;
}

int
agent_mint_id(char to[PROVIDER_MAX_ID + 1], struct err *e)
{
	char hex[UUID_TEXT];

	if (uuid_make(hex, e) != 0)
		return -1;
	snprintf(to, AGENT_UUID_TEXT, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
	    hex + 20);
	return 0;
}

/* 1: there; 0: later; -1. A resumed conversation keeps its id. */
static int
have_sid(struct attempt_run *a, struct err *e)
{
	struct agent *g = a->agent;

	if (g->sid_known || g->start == PROVIDER_RESUME)
		return 1;
	if (g->p->id == PROVIDER_ID_COMMAND)
		return mint(a, e);
	g->sid_known = true;
	return g->p->id != PROVIDER_ID_MINTED || agent_mint_id(g->sid, e) == 0 ? 1 : -1;
}

/* ---- Files and lock ---- */

struct files_job {
	struct io_job job;
	struct agent *agent;
	struct buf mark;
};

static void
files_work(struct io_job *job, struct io_context *c)
{
	struct files_job *j = (struct files_job *)job;

	job->result = agent_files_make(j->agent, c, buf_view(&j->mark), &job->error);
}

static void
again_due(void *arg)
{
	struct attempt_run *a = arg;

	if (!admission_open(a->w) || a->w->gate_closed)
		spawn_give_back(a, a->agent->dir);
	else
		step(a);
}

/* Somebody else works in the conversation: this attempt waits, with its slot. */
static void
wait_for_lock(struct attempt_run *a)
{
	struct worker *w = a->w;
	struct agent *g = a->agent;
	struct err e = {0};

	waits(a, "its conversation, which somebody else uses");
	if (timer_arm(&w->loop.timers, &g->again, clock_monotonic_ns() + AGENT_LOCK_MS * NS_PER_MS,
		again_due, a, &e) != 0)
		failed(a, &e);
}

void
agent_give_back_all(struct worker *w)
{
	struct attempt_run *a, *following;

	for (a = w->live; a != NULL; a = following) {
		following = a->following;
		if (a->agent != NULL && w->ops[a->op].state == OP_PREPARING &&
		    (a->agent->helper.w != NULL || timer_is_armed(&a->agent->again)))
			spawn_give_back(a, a->agent->dir);
	}
}

static void
files_done(struct io_job *job, void *owner)
{
	struct files_job *j = (struct files_job *)job;
	struct agent *g = j->agent;
	struct worker *w = owner;
	struct attempt_run *a = w->ops[g->op].live;

	if (a != NULL && a->agent == g && w->ops[g->op].state == OP_PREPARING) {
		if (job->result != 0 && job->error.code == ERR_BUSY)
			wait_for_lock(a);
		else if (job->result == 0 && (!admission_open(w) || w->gate_closed))
			spawn_give_back(a, g->dir);
		else if (job->result != 0 ||
		    make_words(g, g->p->starts[g->start], &job->error) != 0)
			failed(a, &job->error);
		else
			spawn_now(a);
	}
	agent_unref(g);
	buf_clear(&j->mark);
	free(j);
}

static void
submit_files(struct attempt_run *a)
{
	struct files_job *j = calloc(1, sizeof(*j));
	struct err e = {0};

	if (j == NULL || start_mark_make(a->w, a->op, &j->mark, &e) != 0) {
		err_nomem(&e);
		failed(a, &e);
		free(j);
		return;
	}
	j->job.work = files_work;
	j->job.done = files_done;
	j->agent = a->agent;
	j->agent->refs++;
	io_submit(a->w->io, &j->job);
}

static void
step(struct attempt_run *a)
{
	struct err e = {0};
	int rc;

	if (!have_version(a))
		return;
	rc = have_sid(a, &e);
	if (rc < 0)
		failed(a, &e);
	else if (rc > 0)
		submit_files(a);
}

/* The last answer of a conversation that is lost and was to be gone on in; NULL: there is none such. */
static const struct json *
lost_answer(const struct worker *w, uint32_t i, bool *by_reference)
{
	size_t from = flow_inherited(w->flow, i);

	if (json_is_true(json_get(turns_conversation(w, i), CKPT_LOST))) {
		*by_reference = turns_outcome(w)->by_reference;
		return turns_outcome(w)->response;
	}
	if (!is_to_begin_anew(w, i))
		return NULL;
	*by_reference = w->ops[from].by_reference;
	return w->ops[from].response;
}

/* What is left of a conversation that is lost: its last answer, before the instruction. */
static int
add_lost_context(const struct worker *w, uint32_t i, struct buf *to, struct err *e)
{
	bool by_reference = false;
	const struct json *response = lost_answer(w, i, &by_reference);

	if (response == NULL)
		return 0;
	buf_puts(to, "[CONTEXT]\nThe conversation before this is not available any more. Its last answer "
		     "was:\n");
	if (json_type(response) == JSON_STRING)
		buf_slice(to, json_text(response));
	else if (by_reference)
		buf_puts(to, json_cstr_of(json_get(response, "file")));
	else
		json_write(to, response);
	buf_puts(to, "\n[/CONTEXT]\n\n");
	return buf_ok(to, e);
}

/* A further turn has only what people have said since. */
static int
make_prompt(struct worker *w, uint32_t i, struct buf *to, struct err *e)
{
	if (add_lost_context(w, i, to, e) != 0)
		return -1;
	if (turns_conversation(w, i) != NULL) {
		turns_instruction(w, i, to);
		return buf_ok(to, e);
	}
	agents_tell_interrupted(w, i, to);
	return context_instruction(w, i, to, e);
}

void
agent_prepare(struct attempt_run *a)
{
	struct agent *g = agent_new(a);
	struct buf text = {0};
	struct err e = {0};
	int rc;

	if (g == NULL) {
		err_nomem(&e);
		failed(a, &e);
		return;
	}
	rc = make_prompt(a->w, a->op, &text, &e);
	if (rc == 0) {
		g->prompt = buf_steal(&text);
		rc = g->prompt == NULL ? err_nomem(&e) : 0;
	}
	buf_clear(&text);
	if (rc == 0)
		rc = provider_takes(g->p, slice_of(g->prompt), &e);
	if (rc == 0)
		rc = find_place(g, &e);
	if (rc == 0)
		rc = choose(g, &e);
	/* What was interrupted and cannot be continued is no reason to fail. */
	if (rc != 0 && e.code == ERR_REFUSED && agents_begin_anew(a->w, a->op)) {
		agent_free(g);
		a->agent = NULL;
		agent_prepare(a);
		return;
	}
	if (rc == 0)
		step(a);
	else
		failed(a, &e);
}
