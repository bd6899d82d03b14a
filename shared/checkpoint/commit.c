#include "base.h"
#include "commit.h"
#include "journal.h"

/* Above it a journal grows as long as its base. At 1 MiB the bases before it alone cost as much as the
 * journal of 100,000 small outcomes, and all bytes written came to more than three times it. */
#define LARGE_BASE ((off_t)1 << 18)

enum { BATCH_KEPT = 8 << 20 }; /* bytes of memory that stay for the next batch */

/*
 * The first items of pending, as far as `bytes` of the batch reach, are durable; SIZE_MAX: all.
 * With in_base a base holds them, else each has its record.
 */
static void
acknowledge(struct committer *c, size_t bytes, bool in_base, uint64_t first_seq, const struct err *end)
{
	struct list done;
	struct item *i;
	uint64_t seq = first_seq;

	list_init(&done);
	while ((i = c->pending.head) != NULL && (in_base || (i->line_end != 0 &&
	    i->line_end <= bytes))) {
		list_take(&c->pending);
		memcpy(i->ack.generation, c->files.generation, sizeof(i->ack.generation));
		i->ack.seq = in_base ? 0 : seq++;
		list_add(&done, i);
	}
	c->durable(c->arg, &done, end);
}

bool
commit_error_is_final(const struct err *e)
{
	return e->code == ERR_IDENTITY || e->code == ERR_LIMIT || e->code == ERR_PERMISSION;
}

static void
drop_batch(struct committer *c)
{
	buf_reset_within(&c->batch, BATCH_KEPT);
	c->batch_records = 0;
}

/* Puts an item into the tip; after that its values are the tip's. encoding: the entry's, or empty. */
static int
apply(struct committer *c, struct item *i, struct slice encoding, struct err *e)
{
	struct state next = state_ref(&c->tip);

	if (state_apply(&next, i->ack.kind, i->entry, encoding, i->context, e) != 0)
		return -1;
	state_clear(&c->tip);
	c->tip = next;
	json_unref(i->entry);
	json_unref(i->context);
	i->entry = i->context = NULL;
	return 0;
}

static bool
is_applied(const struct item *i)
{
	return i->entry == NULL && i->context == NULL;
}

/* Brings everything that waits into the tip and publishes it as a base. */
static int
commit_base(struct committer *c, struct err *e)
{
	struct item *i;
	bool covered;
	int result;

	drop_batch(c);
	c->files.journal_dead = true;
	for (i = c->pending.head; i != NULL; i = i->next)
		if (!is_applied(i) && apply(c, i, (struct slice){"", 0}, e) != 0)
			return -1;
	result = files_rotate(&c->files, &c->tip, &covered, e);
	if (covered)
		acknowledge(c, SIZE_MAX, true, 0, result != 0 && commit_error_is_final(e) ? e : NULL);
	return result;
}

/* Whether a journal that would hold so much has reached what its base deserves. */
static bool
may_compact(const struct committer *c, uint64_t journal_bytes)
{
	const off_t base = c->files.base.size;

	return c->o->literal_limits || base <= LARGE_BASE || journal_bytes >= (uint64_t)base;
}

/* Whether line_bytes more do not belong into this journal. */
static bool
wants_base(const struct committer *c, size_t line_bytes)
{
	const uint64_t bytes = (uint64_t)c->files.journal.size + c->batch.len - line_bytes;
	const uint64_t records = c->files.records + c->batch_records;

	if (line_bytes > c->o->compact_bytes)
		return true;
	return may_compact(c, bytes) && (records >= c->o->compact_records ||
	    bytes + line_bytes > c->o->compact_bytes);
}

/* Makes an item's line at the end of the batch and applies the item. *base: it has to go into a
 * base instead. */
static int
make_line(struct committer *c, struct item *i, bool *base, struct err *e)
{
	const uint64_t seq = c->files.next_seq + c->batch_records;
	const size_t start = c->batch.len;
	struct json *patch = NULL;
	struct slice line;
	struct span entry;

	*base = c->files.journal_dead || i->ack.kind == CKPT_CONTEXT ||
	    i->ack.kind == CKPT_PLAN || seq >= INT64_MAX;
	if (*base)
		return 0;
	if (i->context != NULL) {
		patch = json_diff(c->tip.context, i->context);
		if (patch == NULL)
			return err_nomem(e);
	}
	record_encode(&c->batch, c->files.generation, seq, i->ack.kind, i->entry, patch,
	    &entry);
	json_unref(patch);
	if (buf_ok(&c->batch, e) != 0)
		return -1;
	line = (struct slice){c->batch.data + start, c->batch.len - start};
	*base = wants_base(c, line.len) || line.len > JSON_MAX_LINE ||
	    text_depth(line) > JSON_MAX_DEPTH;
	if (*base)
		return 0;
	if (apply(c, i, (struct slice){c->batch.data + entry.from, entry.len}, e) != 0)
		return -1;
	c->batch_records++;
	i->line_end = c->batch.len;
	return 0;
}

/* The pending items that got no line yet, as lines. */
static int
make_lines(struct committer *c, bool *base, struct err *e)
{
	struct item *i;

	*base = c->o->version == 2;
	for (i = c->pending.head; i != NULL && !*base; i = i->next)
		if (i->line_end == 0 && make_line(c, i, base, e) != 0)
			return -1;
	return 0;
}

/* What a failed append left over, moved to the front of an empty batch. */
static void
keep_rest(struct committer *c, size_t done)
{
	struct item *i;

	for (i = c->pending.head; i != NULL; i = i->next)
		if (i->line_end != 0)
			i->line_end -= done;
	memmove(c->batch.data, c->batch.data + done, c->batch.len - done + 1);
	c->batch.len -= done;
}

static int
append_batch(struct committer *c, struct err *e)
{
	const uint64_t seq = c->files.next_seq;
	const uint64_t before = c->files.records_all;
	size_t durable;
	int result;

	result = files_append(&c->files, buf_view(&c->batch), c->batch_records, &durable, e);
	if (durable > 0) {
		acknowledge(c, durable, false, seq, NULL);
		c->batch_records -= c->files.records_all - before;
		keep_rest(c, durable);
	}
	return result;
}

/*
 * Appends the batch. A write that failed and was repaired is tried once more, with what is left;
 * the numbers in those lines are still the next ones.
 */
static int
commit_lines(struct committer *c, struct err *e)
{
	if (c->batch_records == 0)
		return 0;
	if (append_batch(c, e) != 0) {
		if (c->files.journal_dead || commit_error_is_final(e))
			return -1;
		err_clear(e);
		if (c->batch_records > 0 && append_batch(c, e) != 0)
			return -1;
	}
	drop_batch(c);
	return 0;
}

int
commit(struct committer *c, bool fresh, struct err *e)
{
	bool base = false;

	if (fresh)
		return commit_base(c, e);
	if (c->files.journal_dead && c->o->version == 3)
		return commit_base(c, e);
	if (make_lines(c, &base, e) != 0)
		return -1;
	if (base)
		return commit_base(c, e);
	if (commit_lines(c, e) == 0)
		return 0;
	if (e->code != ERR_IDENTITY || !files_mend(&c->files))
		return -1;
	err_clear(e);
	return commit_base(c, e);
}

void
committer_clear(struct committer *c)
{
	list_clear(&c->pending);
	state_clear(&c->tip);
	buf_clear(&c->batch);
}
