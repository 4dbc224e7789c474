// SPDX-License-Identifier: BSD-2-Clause
/* The helper process that runs a self-test: see offload.h. */
#include "verify/offload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/helper.h"
#include "base/reaper.h"
#include "base/utf8_clean.h"
#include "probe/probe.h"
#include "verify/scratch.h"
#include "verify/verify.h"

/* Interval of checking whether the helper's own children have ended, ns */
#define STUCK_CHECK_NS 100000000L

struct offload {
	struct helper helper;
	unsigned char answer[sizeof(struct verify_result)];
};

void (*offload_test_helper)(const struct verify_opts *opts, int out);
uint64_t offload_limit_ns = UINT64_C(30000000000);

/* ---- the helper -------------------------------------------------------------------------- */

/* A scratch process that waits for a file system cannot be killed. The helper stays until it has
 * ended, so that the daemon can count such processes: see offload_start(). */
static void wait_for_stuck(void)
{
	while (reaper_pending())
		(void)nanosleep(&(struct timespec){.tv_nsec = STUCK_CHECK_NS}, NULL);
}

static void run(struct helper_side *side)
{
	const struct verify_opts *o = side->ctx;
	struct verify_result v;

	if (offload_test_helper) {
		offload_test_helper(o, side->chan);
		_exit(0);
	}
	memset(&v, 0, sizeof(v));
	verify_run(o, &v);
	probe_end();
	if (write(side->chan, &v, sizeof(v)) != sizeof(v))
		_exit(1);
	wait_for_stuck();
}

/* ---- start and end ----------------------------------------------------------------------- */

int offload_start(const struct verify_opts *opts, struct offload **ret, struct diag *diag)
{
	_cleanup_(offload_freep) struct offload *o = calloc(1, sizeof(*o));
	/* the target's pidfd, which shows that the pid was not used again */
	const struct helper_opts ho = {
		.flags = HELPER_STDIO,
		.limit_ns = offload_limit_ns,
		.fds = {opts->target ? opts->target->pidfd : -1},
		.nfds = 1,
	};
	int r;

	if (!o)
		return diag_errno(diag, ENOMEM, "cannot start a process");
	o->helper = HELPER_NONE;
	r = reaper_check(SCRATCH_STUCK_MAX, diag);
	if (r < 0)
		return r;
	r = helper_start(&ho, run, (void *)opts, &o->helper);
	if (r < 0)
		return diag_errno(diag, -r, "cannot start a process");
	*ret = TAKE_PTR(o);
	return 0;
}

void offload_free(struct offload *o)
{
	if (!o)
		return;
	helper_end(&o->helper);
	free(o);
}

int offload_fd(const struct offload *o)
{
	return o->helper.fd;
}

uint64_t offload_deadline(const struct offload *o)
{
	return o->helper.deadline_ns;
}

/* ---- the answer -------------------------------------------------------------------------- */

/* Is the byte at this offset of the answer a bool's? Other values must not be read as one. */
static bool is_bool(const struct offload *o, size_t at)
{
	return o->answer[at] <= 1;
}

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size);
}

static void clean(char *text, size_t size)
{
	char copy[sizeof(((struct verify_result *)0)->reason)];

	snprintf(copy, sizeof(copy), "%s", text);
	utf8_clean(copy, text, size);
}

static bool take_answer(const struct offload *o, struct verify_result *ret)
{
	const size_t cost = offsetof(struct verify_result, cost);
	unsigned int verdict;

	memcpy(&verdict, o->answer + offsetof(struct verify_result, verdict), sizeof(verdict));
	if (verdict >= VERIFY_SKIPPED || !is_bool(o, offsetof(struct verify_result, cached)) ||
	    !is_bool(o, offsetof(struct verify_result, grouped)) ||
	    !is_bool(o, cost + offsetof(struct cost, known)))
		return false;
	memcpy(ret, o->answer, sizeof(*ret));
	if (!is_text(ret->reason, sizeof(ret->reason)) ||
	    !is_text(ret->gc_wrong, sizeof(ret->gc_wrong)))
		return false;
	clean(ret->reason, sizeof(ret->reason));
	clean(ret->gc_wrong, sizeof(ret->gc_wrong));
	return true;
}

static void not_run(struct verify_result *ret, const char *reason)
{
	*ret = (struct verify_result){.verdict = VERIFY_NOT_RUN};
	snprintf(ret->reason, sizeof(ret->reason), "%s", reason);
}

/* What to return for a complete answer, or the error of receiving it. True: it is right. */
static bool judge(const struct offload *o, int r, struct verify_result *ret)
{
	char ending[HELPER_ENDING], reason[sizeof(ret->reason)];

	if (r == 0 && take_answer(o, ret))
		return true;
	if (r == 0)
		not_run(ret, "the process of the self-test sent an invalid answer");
	if (r == 0)
		return false;
	snprintf(reason, sizeof(reason), "the process of the self-test %s",
		 helper_ending(&o->helper, ending));
	not_run(ret, reason);
	return false;
}

bool offload_poll(struct offload *o, struct verify_result *ret)
{
	int r = helper_read(&o->helper, o->answer, sizeof(o->answer));

	if (r == -EINPROGRESS)
		return false;
	/* it ends by itself, or is counted: see wait_for_stuck() */
	if (judge(o, r, ret))
		helper_leave(&o->helper);
	else
		helper_end(&o->helper);
	return true;
}
