// SPDX-License-Identifier: BSD-2-Clause
/* Processes that continuous mode samples, and the cuts of their profiles: see continuous.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "continuous/continuous_priv.h"

struct member *member_find(const struct continuous *c, pid_t pid)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i]->pid == pid)
			return c->v[i];
	return NULL;
}

struct member *member_add(struct continuous *c, pid_t pid)
{
	struct member **v = reallocarray(c->v, c->n + 1, sizeof(struct member *));
	struct member *m = calloc(1, sizeof(*m));

	if (v)
		c->v = v;
	if (!v || !m) {
		free(m);
		return NULL;
	}
	m->pid = pid;
	/* Cuts in progress go through the list by position: the new one is cut by the next. */
	c->next_cut += c->next_cut == c->n;
	c->v[c->n++] = m;
	return m;
}

void member_remove(struct continuous *c, struct member *m)
{
	size_t i = 0;

	while (c->v[i] != m)
		i++;
	c->n--;
	memmove(&c->v[i], &c->v[i + 1], (c->n - i) * sizeof(struct member *));
	if (c->next_cut > i)
		c->next_cut--;
	c->attaching -= m->asked_ns != 0;
	snapshot_free(m->last);
	free(m);
}

/* ---- cuts ---- */

/* Labels from the command line come last: they can replace the others. */
static int set_labels(const struct continuous *c, const struct member *m, struct interval *iv)
{
	char pid[16];
	int r;

	snprintf(pid, sizeof(pid), "%d", (int)m->pid);
	r = interval_set_label(iv, INTERVAL_HOST, c->host);
	if (r == 0)
		r = interval_set_label(iv, INTERVAL_SERVICE, m->service);
	if (r == 0)
		r = interval_set_label(iv, INTERVAL_PID, pid);
	if (r == 0)
		r = interval_set_label(iv, INTERVAL_PYTHON,
				       iv->snapshot->targets[0].python_version);
	for (size_t i = 0; r == 0 && i < c->opts.labels->n; i++) {
		const char *text = c->opts.labels->v[i], *equals = strchr(text, '=');
		char name[INTERVAL_LABEL_NAME_MAX + 1];

		snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
		r = interval_set_label(iv, name, equals + 1);
	}
	return r;
}

static void give(struct continuous *c, const struct member *m, struct snapshot *s)
{
	_cleanup_(interval_freep) struct interval *iv = NULL;
	const struct snapshot_target *t = s->targets;
	uint8_t id[INTERVAL_ID_BYTES];
	int r = 0;

	c->counts.samples += t->estimate.samples;
	if (getrandom(id, sizeof(id), 0) == sizeof(id))
		iv = interval_new(id, t->start_unix_ns, t->end_unix_ns, s);
	else
		snapshot_free(s);
	r = iv ? set_labels(c, m, iv) : -ENOMEM;
	if (r == 0) {
		writer_put(c->writer, TAKE_PTR(iv));
		return;
	}
	c->counts.lost++;
	log_warning("process %d: an interval is lost: %s", (int)m->pid, strerror(-r));
}

void member_cut(struct continuous *c, struct member *m)
{
	struct snapshot *s = NULL;
	struct diag diag = {0};
	int r;

	if (m->asked_ns)
		return;
	r = sessions_cut(c->sessions, m->pid, &m->last, &s, &diag);
	if (r == -ESRCH)
		continuous_ended(c, m->pid); /* a client has detached it */
	else if (r < 0)
		log_debug("process %d: %s", (int)m->pid, diag.msg);
	else if (s && s->ntargets)
		give(c, m, s);
	else
		c->counts.empty++;
}

void member_leave(struct continuous *c, struct member *m)
{
	member_cut(c, m);
	(void)sessions_detach(c->sessions, m->pid, NULL);
	member_remove(c, m);
}
