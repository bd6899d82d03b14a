#include "ckpt_world.h"

#include <poll.h>

void
world_make(struct world *s)
{
	fixture_make(&s->fx);
	s->fs = fault_fs_new();
	s->o = fixture_options(&s->fx, &s->fs->ops);
	s->w = NULL;
	s->model = fixture_state(3);
}

void
world_open(struct world *s)
{
	struct err e = {0};

	assert_works(ckpt_writer_open(&s->o, s->model, &s->w, &e), e);
}

void
world_end(struct world *s)
{
	struct err e = {0};

	if (s->w != NULL)
		assert_works(ckpt_writer_close(s->w, false, &e), e);
	json_unref(s->model);
	fault_fs_free(s->fs);
	fixture_remove(&s->fx);
}

uint64_t
world_admit(struct world *s, enum ckpt_kind kind, struct json *entry, struct json *context)
{
	struct err e = {0};
	uint64_t ticket = 0;

	s->model = model_apply(s->model, kind, entry, context);
	assert_works(ckpt_admit(s->w, kind, entry, context, &ticket, &e), e);
	return ticket;
}

void
world_flush(struct world *s)
{
	struct err e = {0};

	assert_works(ckpt_flush(s->w, &e), e);
}

void
world_check(struct world *s)
{
	world_flush(s);
	assert_loads(s->fx.run_fd, s->model, CKPT_CLEAN);
}

bool
world_all_acked(void *writer)
{
	struct ckpt_progress p = ckpt_progress(writer);

	return p.acked == p.admitted;
}

uint64_t
world_bases(struct world *s)
{
	return ckpt_progress(s->w).bases;
}

bool
world_event_waits(const struct world *s)
{
	struct pollfd p = {.fd = ckpt_event_fd(s->w), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}
