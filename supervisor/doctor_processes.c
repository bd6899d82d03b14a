/* doctor: processes of dead workers that no start line names. */
#include "client.h"
#include "doctor.h"
#include "flowsup/endops.h"
#include "flowsup/fs.h"
#include "flowsup/home.h"
#include "flowsup/store.h"
#include "leftover.h"

/* Of a crashed run, also where no start line names it. */
void
doctor_strays(struct doctor *d, const struct session *s, size_t *found)
{
	struct attempts a = {0};
	bool here = false, other_boot = true;
	struct err e = {0};
	int run_fd;
	size_t i;

	if (s->status != STATUS_CRASHED || s->resumed_as_run[0] != '\0' || session_is_copy(s, &d->home))
		return;
	run_fd = rundir_open(&d->home, s->run_id, &e);
	if (run_fd >= 0 && attempts_read(run_fd, &a, &e) == 0 && a.nstrays > 0 &&
	    endops_is_here(&a, &here, &other_boot, &e) == 0 && here && !other_boot && leftover_strays(&a) > 0)
		for (i = 0; i < a.nstrays; i++) {
			struct buf text = {0}, hint = {0};

			if (!attempts_stray_lives(&a, i))
				continue;
			leftover_add_process(&text, a.strays[i].pid);
			buf_printf(&hint, "flowsup stop %s", s->run_id);
			doctor_say(d, GRADE_WARNING, "processes", buf_text(&hint), "run %s has crashed, and %s of it goes on",
			    s->run_id, buf_text(&text));
			buf_clear(&hint);
			buf_clear(&text);
			++*found;
		}
	attempts_clear(&a);
	fd_close(&run_fd);
}

/* What nobody can say of whose it is. */
void
doctor_unproved_processes(struct doctor *d, size_t *found)
{
	struct json *status = NULL;
	const struct json *one;
	struct json_iter it;

	if (!client_is_up(&d->home) || client_status(&d->home, CLIENT_ANSWER_MS, &status, NULL) != 0)
		return;
	it = json_iterate(json_get(status, "strays"));
	while (json_next(&it, NULL, &one)) {
		struct json_iter runs = json_iterate(json_get(one, "runs"));
		const struct json *run;
		struct buf text = {0}, hint = {0};
		int64_t pid = 0;
		size_t n = 0;

		if (!json_int64(json_get(one, "pid"), &pid) || json_length(json_get(one, "runs")) == 0)
			continue;
		leftover_add_process(&text, (pid_t)pid);
		buf_puts(&text, " may be of run");
		while (json_next(&runs, NULL, &run))
			buf_printf(&text, "%s%s", n++ == 0 ? " " : " or ", json_cstr_of(run));
		buf_printf(&hint, "ps -o pid,ppid,lstart,args -p %lld; kill %lld", (long long)pid, (long long)pid);
		doctor_say(d, GRADE_WARNING, "processes", buf_text(&hint),
		    "%s, whose worker has died, or of nothing that is a run", buf_text(&text));
		buf_clear(&hint);
		buf_clear(&text);
		++*found;
	}
	json_unref(status);
}
