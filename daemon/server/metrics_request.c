// SPDX-License-Identifier: BSD-2-Clause
/* A request for /metrics: see metrics_request.h. */
#include "server/metrics_request.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

#define INTERVAL_NS CLOCK_NS_PER_S /* the least, so that many scrapers cost no more than one */

struct job {
	struct session_status *st;
	struct snapshot **snapshots; /* ends with NULL */
	size_t n;
	bool advance; /* the counters */
	struct metrics_request rq;
	enum exposition_form form;
};

static void job_free(void *ctx)
{
	struct job *j = ctx;

	if (!j)
		return;
	for (size_t i = 0; j->snapshots && j->snapshots[i]; i++)
		snapshot_free(j->snapshots[i]);
	free(j->snapshots);
	free(j->st);
	free(j);
}

/* ---- in the thread ---- */

static void advance(struct job *j)
{
	totals_begin(j->rq.totals);
	for (size_t i = 0; j->snapshots[i]; i++) {
		struct snapshot *s = j->snapshots[i];

		j->snapshots[i] = NULL;
		/* out of memory: the target is left out, and begins anew */
		if (totals_add(j->rq.totals, s, j->rq.now_ns) < 0)
			j->rq.totals->skipped++;
	}
	totals_end(j->rq.totals, j->rq.functions, j->rq.now_ns);
}

static int job_write(void *ctx, FILE *out, struct diag *diag)
{
	struct job *j = ctx;
	struct metrics m = {.st = j->st, .n = j->n, .totals = j->rq.totals};

	m.dropped = j->rq.dropped;
	m.refused = j->rq.refused;
	m.pushes = j->rq.pushes;
	if (j->advance)
		advance(j);
	if (metrics_write(&m, j->form, out) < 0)
		return diag_errno(diag, ENOMEM, "cannot write metrics");
	return 0;
}

/* ---- in the main thread ---- */

static int take_snapshots(struct job *j)
{
	size_t taken = 0;

	for (size_t i = 0; i < j->n; i++) {
		if (j->st[i].state == SESSION_ENDED)
			continue;
		if (sessions_snapshot(j->rq.sessions, j->st[i].pid, &j->snapshots[taken], NULL) < 0)
			return -ENOMEM;
		taken++;
	}
	return 0;
}

static int job_new(const struct metrics_request *rq, struct job **ret)
{
	struct job *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	*ret = j;
	j->rq = *rq;
	j->form = exposition_choose(rq->accept);
	j->rq.accept = NULL;
	j->n = sessions_count(rq->sessions);
	j->st = calloc(j->n + 1, sizeof(*j->st));
	j->snapshots = calloc(j->n + 1, sizeof(struct snapshot *));
	if (!j->st || !j->snapshots)
		return -ENOMEM;
	for (size_t i = 0; i < j->n; i++)
		sessions_status(rq->sessions, i, &j->st[i]);
	j->advance = rq->functions > 0 &&
		     (!rq->totals->at_ns || rq->now_ns >= rq->totals->at_ns + INTERVAL_NS);
	return j->advance ? take_snapshots(j) : 0;
}

int metrics_request_start(const struct metrics_request *rq, size_t held, size_t max,
			  struct render **ret, struct diag *diag)
{
	struct job *j = NULL;
	int r = job_new(rq, &j);

	if (r < 0) {
		job_free(j);
		return diag_errno(diag, -r, "cannot write metrics");
	}
	return render_start_job(&(struct render_job){.write = job_write,
						     .free = job_free,
						     .ctx = j,
						     .name = "metrics",
						     .mime = exposition_mime(j->form)},
				held, max, ret, diag);
}
