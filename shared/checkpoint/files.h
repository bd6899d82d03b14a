/*
 * The pair of published files of a run, and what happens to it: the first publication, appends,
 * a fresh base with an empty journal, repair.
 */
#ifndef CHECKPOINT_FILES_H
#define CHECKPOINT_FILES_H

#include "publish.h"
#include "state.h"

struct files {
	struct place place;
	int version;
	struct pin base, journal;
	char generation[CKPT_GENERATION_TEXT];
	uint64_t records;	/* in the journal now */
	uint64_t next_seq;
	bool journal_dead;	/* an error of unknown effect: only a fresh base helps */
	bool displaced;		/* a stranger stands under the journal's name: the next file goes without */
	/* Counts of all that was written, for progress. */
	uint64_t journal_bytes_all, records_all, bases_all;
};

/* Publishes the first pair: the journal before the base, so that no crash leaves a base without a
 * journal. On error nothing is left that a loader would take for a checkpoint. */
int files_open(struct files *f, const struct ckpt_options *o, const struct state *s,
    struct err *e);
/* Takes over a published pair that the caller has opened and loaded; the pins become f's. */
int files_adopt(struct files *f, const struct ckpt_options *o, struct pin base, struct pin journal,
    struct err *e);
void files_close(struct files *f);
/* Takes the first pair back, for a start that failed behind it, and closes. */
void files_withdraw(struct files *f);

/*
 * Appends whole lines by one write and one fsync, with the names checked before and after. 0: all
 * are durable. -1: *durable bytes of them are (whole lines); journal_dead says whether the journal
 * can take more. ERR_IDENTITY, ERR_IO, ERR_NOSPACE.
 */
int files_append(struct files *f, struct slice lines, uint64_t records, size_t *durable,
    struct err *e);
/*
 * Publishes a fresh base (version 2: the whole file) that holds s, then an empty journal.
 * *covered: s is durable and under its name, even when what follows failed.
 *
 * A base or a journal that has gone, got a second link or was written to by somebody else is replaced. A
 * stranger under the journal's name stays as it is: what is published then is a version 2 file, the one
 * form that is whole without a journal, and the result is ERR_IDENTITY all the same.
 */
int files_rotate(struct files *f, const struct state *s, bool *covered, struct err *e);
/* After ERR_IDENTITY: whether files_rotate() can help, which it cannot where a stranger stands in the
 * place of the base or of the run directory. Lets go of what is not there any more. */
bool files_mend(struct files *f);

#endif
