// SPDX-License-Identifier: BSD-2-Clause
/* Helper processes: see separate.h. */
#include "verify/separate.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/reaper.h"
#include "target/target.h"

int separate_begin(const struct verify_opts *o, pid_t parent, int out)
{
	const int keep[] = {out, o->target ? o->target->pidfd : -1};
	sigset_t blocked;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	/* the parent ended before the death signal was set */
	if (getppid() != parent)
		return -ESRCH;
	/* the scratch process may end while it is written to */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGHUP);
	(void)sigprocmask(SIG_SETMASK, &blocked, NULL);
	return descriptors_close_others(3, keep, sizeof(keep) / sizeof(*keep));
}

void separate_end(pid_t *helper)
{
	if (*helper <= 0)
		return;
	(void)kill(*helper, SIGKILL);
	reaper_end(*helper, -1, SEPARATE_END_MS);
	*helper = 0;
}
