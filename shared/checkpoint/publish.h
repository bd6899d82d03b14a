/*
 * Publication of one object under one name, by identity.
 *
 * An object is made in the staging directory, pinned by the descriptor that made it, and installed
 * by an exchange with what the name leads to. What the exchange brought back must be the object
 * that was pinned before, or everything is put back as it was. Invariants:
 *
 *	1. a pin is moved only when the name was seen to lead to the new object;
 *	2. a file is unlinked only below staging and only while its name leads to an object we made, or, by
 *	   place_sweep(), one that an earlier writer of ours made there and did not live to name or retire;
 *	3. a displaced object stays until a directory fsync behind its displacement has succeeded;
 *	4. after an error of unknown effect the older object is never put back.
 */
#ifndef CHECKPOINT_PUBLISH_H
#define CHECKPOINT_PUBLISH_H

#include "flowsup/fs.h"
#include "sink.h"

enum { STAGING_NAME = 33 };

/* An object we hold: its descriptor keeps the inode from being used again. fd -1: none. */
struct pin {
	int fd;
	struct fs_identity id;
	off_t size; /* as written by us */
};

struct retired {
	struct retired *next;
	struct pin pin;
	char name[STAGING_NAME];
};

struct place {
	const struct fs_ops *fs;
	int runs_fd, run_fd; /* borrowed; runs_fd -1: nothing known above the run directory */
	const char *run_id;  /* borrowed */
	int staging_fd;	     /* owned; -1: it has gone, and is made anew before the next publication */
	struct fs_identity run, staging;
	bool plain;	     /* the file system knows no exchange: plain rename, the same checks */
	bool directory_sync; /* false once a directory fsync was not known */
	/* What is published displaces nothing, and another publication follows at once, whose fsync of staging
	 * does for both: until then the worst that a power loss leaves is a name in staging. */
	bool more_follows;
	struct retired *retired;
};

/* Opens (and makes) the staging directory; borrows the rest. */
int place_open(struct place *p, const struct fs_ops *fs, int runs_fd, int run_fd,
    const char *run_id, struct err *e);
void place_close(struct place *p);
/* Before a publication: its name leads to the staging directory, which is made anew where it leads to nothing.
 * ERR_IDENTITY where something else stands there. */
int place_keep_staging(struct place *p, struct err *e);
/* Takes away what writers that were killed left in staging: regular files of ours alone, mode 0600, under names
 * as make() gives. The caller holds the run's lock and nothing is on its way. A failure costs room only. */
void place_sweep(struct place *p);

/* The names of the steps for one kind of object, for tests. */
struct publish_seams {
	const char *create, *inspect, *write, *sync, *install, *install_first, *look, *reopen,
	    *reinspect, *reread, *reclose, *restore, *sync_run, *sync_staging, *find_retired,
	    *unlink_retired, *close_retired, *find_unused, *unlink_unused, *close_unused, *withdraw;
};
extern const struct publish_seams base_seams, journal_seams;

/* Gives a whole content to the sink, up to sink_end(). */
typedef int emit_content(const void *arg, struct sink *to, struct err *e);

/*
 * Publishes what emit (NULL: nothing) makes under name. pin: what the name leads to now (fd -1: nothing); on success the new
 * object, open for appending. Returns 0 or -1 with
 *	ERR_IDENTITY	a name led elsewhere; nothing was destroyed, the pin is as before;
 *	ERR_UNCERTAIN	the new object is published, perhaps not durably; the pin has moved;
 *	others		the former object is published; the pin is as before.
 */
int publish(struct place *p, const char *name, const struct publish_seams *seams,
    emit_content *emit, const void *arg, struct pin *pin, struct err *e);
/* Takes a published object of ours away again, by way of staging; closes the pin. For a failed
 * start. False when the name may still lead to it. */
bool withdraw(struct place *p, const char *name, const struct publish_seams *seams, struct pin *pin);

/* The name leads to the pinned object, which has one link, a mode that readers take and, with size >= 0, that
 * size; else ERR_IDENTITY. ERR_IO when that cannot be told. */
int place_check_name(struct place *p, const char *what, const char *name, const struct pin *pin,
    off_t size, struct err *e);
enum leads { TO_OURS, TO_NOTHING, TO_STRANGER };
/* Where a name leads; to ours as well when that cannot be told. */
enum leads place_leads(struct place *p, const char *what, const char *name, const struct pin *pin);
/* The run id still leads from runs/ to the pinned run directory, which only we write to. */
int place_check_run(struct place *p, const char *what, struct err *e);

#endif
