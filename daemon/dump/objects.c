// SPDX-License-Identifier: BSD-2-Clause
/* Counts the objects of a process by type: see objects.h. */
#include "dump/objects.h"

#include <errno.h>
#include <stdlib.h>

#include "inspect/inspect.h"
#include "target/refusal.h"
#include "target/target.h"

struct objects {
	struct target *target;
	struct inspect *inspect;
	struct inspect_result found;
};

void objects_free(struct objects *o)
{
	if (!o)
		return;
	inspect_free(o->inspect);
	inspect_result_deinit(&o->found);
	target_free(o->target);
	free(o);
}

int objects_open(pid_t pid, struct objects **ret, struct diag *diag)
{
	_cleanup_(objects_freep) struct objects *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return diag_errno(diag, ENOMEM, "cannot look into process %d", pid);
	r = target_open(pid, &o->target, diag);
	if (r == 0)
		r = inspect_open(&(struct inspect_opts){.target = o->target}, &o->inspect,
				 &o->found, diag);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(o);
	return 0;
}

const char *objects_version(const struct objects *o)
{
	return o->found.python->version;
}

const char *objects_command(const struct objects *o)
{
	return o->found.cmdline;
}

int objects_census(struct objects *o, struct census *ret, struct diag *diag)
{
	const pid_t pid = o->target->pid;
	int r = inspect_census(o->inspect, ret);

	if (r < 0 && !target_alive(o->target))
		return diag_set(diag, -ESRCH, PYP_EXIT_NO_PROCESS, "", "process %d has ended", pid);
	switch (r) {
	case -EPERM:
		return refusal_explain(pid, refusal_scope(), diag);
	case -EOPNOTSUPP:
		return diag_set(diag, r, PYP_EXIT_UNTRACEABLE, "",
				"object lists of Python %s in process %d are not supported%s",
				objects_version(o), pid,
				python_free_threaded(o->found.python)
					? ": free-threaded builds have none"
					: "");
	case -ENOENT:
		return diag_set(diag, r, PYP_EXIT_FAILURE,
				"try again: a garbage collection may have been running",
				"the garbage collector's lists were not found in process %d", pid);
	case -ETIMEDOUT:
	case -EBUSY:
		return diag_set(diag, r, PYP_EXIT_FAILURE,
				"does it map files of a file system that does not answer?",
				"the objects of process %d were not read within %d seconds", pid,
				INSPECT_CENSUS_MS / 1000);
	default:
		return r < 0 ? diag_errno(diag, -r, "cannot read the objects of process %d", pid)
			     : 0;
	}
}
